//! Everything that looks at the crate from outside, in one binary.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

#[path = "suite/ceiling.rs"]
mod ceiling;
#[path = "suite/credentials.rs"]
mod credentials;
#[path = "suite/decisions.rs"]
mod decisions;
#[path = "suite/differential.rs"]
mod differential;
#[path = "suite/explanations.rs"]
mod explanations;
#[path = "suite/merging.rs"]
mod merging;
#[path = "suite/names.rs"]
mod names;
#[path = "suite/properties.rs"]
mod properties;
#[path = "suite/requests.rs"]
mod requests;
#[path = "suite/srt_credentials.rs"]
mod srt_credentials;
#[path = "suite/support.rs"]
mod support;
