//! What is built in: the base every run stands on, profiles and compatibility modes.

mod base;
mod hidden;
mod mode;
mod profile;
mod protected;
mod table;

use thiserror::Error;

use crate::layer::Layer;
use crate::path::PathContext;

pub use base::{base_layer, home_layer};
pub use hidden::SETTINGS_FILES;
pub use mode::{CompatibilityMode, mode_layer};
pub use profile::{Profile, profile_layer};
pub(crate) use protected::protected_names;

/// The base and a profile: what a run has before anybody configured anything.
pub fn builtin_layers(profile: Profile, context: &PathContext) -> Vec<Layer> {
    vec![base_layer(context), profile_layer(profile, context)]
}

/// A profile or mode that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no {kind} {name:?}; there are {known}")]
pub struct UnknownName {
    /// `profile` or `compatibility mode`.
    pub kind: &'static str,
    /// The name as typed.
    pub name: String,
    /// The names there are.
    pub known: String,
}

impl UnknownName {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self.kind {
            "profile" => "unknown-profile",
            _ => "unknown-compatibility-mode",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        "use one of the names that are listed"
    }
}
