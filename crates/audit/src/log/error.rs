//! Why an event could not be recorded.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why the log cannot be used, or an event was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The folder is missing and cannot be made.
    #[error("cannot make the audit folder {}: {error}", .path.display())]
    CreateFolder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// The folder is a link.
    #[error("the audit folder {} is a link", .path.display())]
    FolderIsLink {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be opened.
    #[error("cannot open the audit folder {}: {error}", .path.display())]
    OpenFolder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// The folder belongs to somebody else.
    #[error("the audit folder {} belongs to uid {owner}", .path.display())]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The folder cannot be written to.
    #[error("cannot write to the audit folder {}: {error}", .path.display())]
    UnwritableFolder {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// Something else has the name of the log.
    #[error("the audit log {} is not a regular file", .path.display())]
    NotAFile {
        /// The log.
        path: PathBuf,
    },
    /// The log belongs to somebody else.
    #[error("the audit log {} belongs to uid {owner}", .path.display())]
    ForeignFile {
        /// The log.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The log cannot be opened or made.
    #[error("cannot open the audit log {}: {error}", .path.display())]
    OpenFile {
        /// The log.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// The log cannot be looked at.
    #[error("cannot look at the audit log {}: {error}", .path.display())]
    Inspect {
        /// The log.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// The key can be read by others.
    #[error("the key {} can be read by others", .path.display())]
    KeyExposed {
        /// The key.
        path: PathBuf,
    },
    /// The key is none of ours.
    #[error("the key {} has {size} bytes and not 32", .path.display())]
    KeySize {
        /// The key.
        path: PathBuf,
        /// Its size.
        size: usize,
    },
    /// There is no new key.
    #[error("the kernel gives no random numbers: {0}")]
    Random(Errno),
    /// The lock cannot be had.
    #[error("cannot lock {}: {error}", .path.display())]
    Lock {
        /// The lock.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// A file that is full cannot be moved on.
    #[error("cannot rename {}: {error}", .path.display())]
    Rotate {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// Nothing could be written.
    #[error("cannot write to the audit log {}: {error}", .path.display())]
    Write {
        /// The log.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// A part of a line was written.
    #[error("only {written} of {wanted} bytes fitted in the audit log {}", .path.display())]
    Short {
        /// The log.
        path: PathBuf,
        /// Bytes written.
        written: usize,
        /// Bytes of the line.
        wanted: usize,
    },
    /// The run has its last record.
    #[error("the records of this run are sealed")]
    Sealed,
    /// The event cannot be written as JSON.
    #[error("an event cannot be written as JSON")]
    Encode,
}

impl LogError {
    /// Whether there was no room for a record.
    pub fn is_no_room(&self) -> bool {
        match self {
            Self::Write { error, .. } => super::is_full(*error),
            Self::Short { .. } => true,
            _ => false,
        }
    }

    /// A stable name for this error, the same for all of them: what counts is
    /// that nothing can be recorded.
    #[allow(clippy::unused_self, reason = "as other errors have it")]
    pub fn code(&self) -> &'static str {
        "audit-unavailable"
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            error if error.is_no_room() => MAKE_ROOM,
            Self::Short { .. } => MAKE_ROOM,
            Self::CreateFolder { .. }
            | Self::OpenFolder { .. }
            | Self::UnwritableFolder { .. }
            | Self::Rotate { .. }
            | Self::Write { .. } => {
                "make it a folder that you may write to, or set XDG_STATE_HOME to one"
            }
            Self::FolderIsLink { .. } => {
                "put a folder in place of the link, or set XDG_STATE_HOME to where it leads"
            }
            Self::ForeignFolder { .. } | Self::ForeignFile { .. } => {
                "give it to yourself with chown, or set XDG_STATE_HOME to a folder of your own"
            }
            Self::NotAFile { .. }
            | Self::OpenFile { .. }
            | Self::Inspect { .. }
            | Self::KeySize { .. } => "move it out of the way; it is made anew",
            Self::KeyExposed { .. } => {
                "move the whole audit folder out of the way: who could read the key can forge its log"
            }
            Self::Lock { .. } => {
                "see which ringfence has it, such as with fuser, and whether that was stopped"
            }
            Self::Random(_) => "try again once the machine has random numbers",
            Self::Sealed | Self::Encode => "report this as a bug",
        }
    }
}

const MAKE_ROOM: &str = "make room on its disk";
