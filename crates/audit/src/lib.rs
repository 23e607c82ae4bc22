//! What code in a sandbox tried and was refused: the record's types and their
//! bounded collection.
#![forbid(unsafe_code)]

mod refusal;

pub use refusal::{Refusal, RefusalKind, Refusals};
