//! Sandbox kits: where they come from, what they ask for, and how a sandbox is
//! set up with them.
//!
//! A kit is read into memory once, with limits, without following links; what
//! was read is what is hashed, approved and used. Nothing of it runs outside.

mod approval;
mod collect;
mod error;
mod folder;
mod git;
mod inputs;
mod load;
mod reference;
mod script;
mod setup;
mod zipped;

pub use approval::KitApproval;
pub use error::KitError;
pub use inputs::{KitInputs, RunKits};
pub use load::{Freshness, KitStore, LoadedKit, load_kits};
pub use reference::{KitReference, ReferenceError};
pub use setup::KitSetup;

#[cfg(test)]
mod tests;
