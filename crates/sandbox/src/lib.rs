//! sandbox.
#![forbid(unsafe_code)]
