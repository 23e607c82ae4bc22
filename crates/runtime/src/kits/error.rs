//! Why a kit cannot be used.

use std::io;
use std::path::PathBuf;

use ringfence_policy::{KitFault, PolicyError, SourceError};

use super::collect::{DEEPEST, MOST_BYTES, MOST_FILES};
use super::git::GitError;
use super::reference::ReferenceError;

/// Why a kit cannot be used. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// Not a way to name a kit.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// A file or folder of it could not be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The place.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no `spec.yaml`.
    #[error("{kit}: there is no spec.yaml in it")]
    NoSpec {
        /// The kit as named.
        kit: String,
    },
    /// Its `spec.yaml` is not text.
    #[error("{kit}: spec.yaml is not UTF-8")]
    NotText {
        /// The kit as named.
        kit: String,
    },
    /// A link, a device or the like.
    #[error("{kit}: {entry:?} is neither a file nor a folder")]
    Special {
        /// The kit as named.
        kit: String,
        /// Which.
        entry: String,
    },
    /// A name that leads out of the kit, or that no file should have.
    #[error("{kit}: {entry:?} is not a path of a kit")]
    Path {
        /// The kit as named.
        kit: String,
        /// Which.
        entry: String,
    },
    /// A folder below `files/` that means nothing.
    #[error("{kit}: {entry:?} is neither below files/home/ nor below files/workspace/")]
    Place {
        /// The kit as named.
        kit: String,
        /// Which.
        entry: String,
    },
    /// The same path twice.
    #[error("{kit}: {entry:?} is there twice")]
    Twice {
        /// The kit as named.
        kit: String,
        /// Which.
        entry: String,
    },
    /// Too many bytes.
    #[error("{kit}: larger than {MOST_BYTES} bytes")]
    TooLarge {
        /// The kit as named.
        kit: String,
    },
    /// Too many files.
    #[error("{kit}: more than {MOST_FILES} files, or folders deeper than {DEEPEST}")]
    TooMany {
        /// The kit as named.
        kit: String,
    },
    /// Not a zip archive that can be read.
    #[error("{}: not a zip archive that can be read: {why}", .path.display())]
    Zip {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It could not be fetched.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Its `spec.yaml` is wrong.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Its rules do not fit together.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A file of it refers to an argument in a wrong way.
    #[error("{file}: {fault}")]
    File {
        /// The file, within the kit.
        file: String,
        /// What is wrong.
        fault: KitFault,
    },
    /// Two kits with one name.
    #[error("two kits have the name {0}")]
    SameName(String),
    /// Files would be left on the host.
    #[error("kit {0} brings files or commands, and this policy shares /tmp with the host")]
    SharedTmp(String),
    /// An argument that no kit has.
    #[error("argument {0:?} is not NAME=VALUE")]
    Argument(String),
    /// An argument for a kit that was not named.
    #[error("no kit of this run has an argument {0}")]
    ArgumentUnknown(String),
}

impl KitError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Reference(error) => error.code(),
            Self::Unreadable { .. } => "kit-unreadable",
            Self::NoSpec { .. } | Self::NotText { .. } => "kit-no-spec",
            Self::Special { .. } => "kit-special-file",
            Self::Path { .. } | Self::Place { .. } | Self::Twice { .. } => "kit-file-path",
            Self::TooLarge { .. } | Self::TooMany { .. } => "kit-too-large",
            Self::Zip { .. } => "kit-zip",
            Self::Git(error) => error.code(),
            Self::Source(error) => error.code(),
            Self::Policy(error) => error.code(),
            Self::File { fault, .. } => fault.code(),
            Self::SameName(_) => "kit-same-name",
            Self::SharedTmp(_) => "kit-shared-tmp",
            Self::Argument(_) => "kit-arg-form",
            Self::ArgumentUnknown(_) => "kit-arg-unknown",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Reference(error) => error.hint(),
            Self::Unreadable { .. } => "check the path and that you may read it",
            Self::NoSpec { .. } | Self::NotText { .. } => {
                "name the folder that holds spec.yaml; in a repository: #dir=FOLDER"
            }
            Self::Special { .. } => "a kit has plain files only; replace the link by its file",
            Self::Path { .. } | Self::Twice { .. } => "make the kit anew from plain file names",
            Self::Place { .. } => "move it to files/home/ or files/workspace/",
            Self::TooLarge { .. } | Self::TooMany { .. } => {
                "have an install step fetch what is large"
            }
            Self::Zip { .. } => "make it with zip or git archive, stored or deflated",
            Self::Git(error) => error.hint(),
            Self::Source(error) => error.hint(),
            Self::Policy(error) => error.hint(),
            Self::File { fault, .. } => fault.hint(),
            Self::SameName(_) => "name one of them only",
            Self::SharedTmp(_) => "leave /tmp out of allowWrite",
            Self::Argument(_) => "write --kit-arg NAME=VALUE",
            Self::ArgumentUnknown(_) => "`ringfence kit show` lists the arguments of a kit",
        }
    }
}
