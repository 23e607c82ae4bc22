//! The calls in namespaces of their own, as whoever runs them: the same binary
//! is run as root and again as an ordinary user.
#![allow(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test fails the test"
)]

mod suite;
