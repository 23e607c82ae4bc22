//! End-to-end tests over the built binary, as whoever runs them: the same
//! binary is run as root and again as an ordinary user.
#![allow(clippy::expect_used, reason = "a test fails on the spot")]

mod suite;
