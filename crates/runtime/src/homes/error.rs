//! Why a kept home cannot be used.

use std::path::{Path, PathBuf};

use ringfence_sys::Errno;

/// What is wrong with a kept home.
#[derive(Debug, thiserror::Error)]
pub enum HomesError {
    /// Another run has it.
    #[error("the kept home {name} is in use by another run")]
    InUse {
        /// What it is called.
        name: String,
    },
    /// There is none by that name.
    #[error("there is no kept home {name}")]
    Unknown {
        /// As given.
        name: String,
    },
    /// It cannot be made, read or removed.
    #[error("{}: {errno}", .path.display())]
    Unusable {
        /// Where.
        path: PathBuf,
        /// The kernel's answer.
        errno: Errno,
    },
    /// Nobody would see what is written to it.
    #[error("a home cannot be kept where the listener for system calls is another sandbox's")]
    Unjudged,
}

impl HomesError {
    pub(super) fn unusable(path: &Path, errno: Errno) -> Self {
        Self::Unusable {
            path: path.to_path_buf(),
            errno,
        }
    }

    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "home-in-use",
            Self::Unknown { .. } => "unknown-home-name",
            Self::Unusable { .. } => "home-unusable",
            Self::Unjudged => "home-unjudged",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::InUse { .. } => {
                "wait for that run, or keep another beside it: --home keep=NAME; or --home private"
            }
            Self::Unknown { .. } => "see which there are: ringfence home list",
            Self::Unusable { .. } => {
                "check that the directory is yours and no link, or do without: --home private"
            }
            Self::Unjudged => "leave it out: --home private",
        }
    }
}
