//! runtime.
#![forbid(unsafe_code)]
