//! Why it is not known what should hold. Nothing was run.

use std::path::PathBuf;

use ringfence_sandbox::HostError;

use crate::kits::KitError;
use crate::policy::PolicyLoadError;
use crate::secrets::{ApprovalsError, WorkingFolderError};

/// Why an intent cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum IntentError {
    /// Nothing is known of the user.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The current directory was removed.
    #[error("the current directory is gone")]
    NoDirectory,
    /// The directory cannot be found.
    #[error("{}: {error}", .path.display())]
    BadDirectory {
        /// As named.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not known what was approved.
    #[error(transparent)]
    Approvals(#[from] ApprovalsError),
    /// The file of the directory is wrong.
    #[error(transparent)]
    WorkingFolder(#[from] WorkingFolderError),
    /// A kit is wrong.
    #[error(transparent)]
    Kit(#[from] KitError),
    /// A policy is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
}

impl IntentError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Host(error) => error.code(),
            Self::NoDirectory | Self::BadDirectory { .. } => "no-working-folder",
            Self::Approvals(error) => error.code(),
            Self::WorkingFolder(error) => error.code(),
            Self::Kit(error) => error.code(),
            Self::Policy(error) => error.code(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Host(error) => error.hint(),
            Self::NoDirectory | Self::BadDirectory { .. } => {
                "go to an existing directory, or name one: --cwd DIR"
            }
            Self::Approvals(error) => error.hint(),
            Self::WorkingFolder(error) => error.hint(),
            Self::Kit(error) => error.hint(),
            Self::Policy(error) => error.hint(),
        }
    }
}
