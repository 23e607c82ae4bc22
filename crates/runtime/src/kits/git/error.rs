//! Why a kit could not be fetched.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a kit could not be fetched, or read from what was fetched.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("cannot start git: {0}")]
    Start(io::Error),
    /// It cannot be watched.
    #[error("cannot watch git: {0}")]
    Watch(io::Error),
    /// It takes too long.
    #[error("git did not end within {0:?}")]
    Slow(Duration),
    /// It did not do it.
    #[error("git could not {task}: {told}")]
    Failed {
        /// What it was to do.
        task: &'static str,
        /// The end of what it said.
        told: String,
    },
    /// It printed what it should not.
    #[error("git printed what is no answer to {0}")]
    Answer(&'static str),
    /// A folder or file of the cache.
    #[error("{}: {error}", .path.display())]
    Cache {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A folder of the cache that others can change.
    #[error("{}: it is a link, or belongs to somebody else", .0.display())]
    Foreign(PathBuf),
}

impl GitError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Start(_) => "kit-no-git",
            Self::Cache { .. } | Self::Foreign(_) => "kit-cache",
            _ => "kit-git",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Start(_) => "install git, or name a folder or a zip archive",
            Self::Cache { .. } => "make room, and check who may write there",
            Self::Foreign(_) => "move it out of the way",
            _ => "try the same with git clone; nobody is asked for passwords here",
        }
    }
}
