//! Why a plan cannot be made.

use std::path::PathBuf;

use ringfence_sys::Errno;

use crate::limits::{LimitName, Unheld};
use crate::view::ViewError;

/// Something that is wrong, or cannot be enforced here. Nothing was run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PlanError {
    #[error("there is no command to run")]
    NoCommand,
    #[error("the command has a NUL byte in it")]
    NulInCommand,
    #[error("the limit on {} cannot be held here: {why}", .limit.as_str())]
    LimitUnenforceable { limit: LimitName, why: Unheld },
    #[error("this kernel has no Landlock")]
    NoLandlock,
    #[error(
        "this kernel has no Landlock, and the listener for system calls is another sandbox's: one of them is needed"
    )]
    NoLandlockNorListener,
    #[error("the filters of system calls cannot be made: {0}")]
    Filters(Errno),
    #[error("the working folder {} does not exist or may not be entered", .path.display())]
    NoWorkingFolder { path: PathBuf },
    #[error("the working folder {} is not a folder", .path.display())]
    WorkingFolderIsFile { path: PathBuf },
    #[error("the whole file system cannot be made writable: {} is /", .what)]
    RootWritable { what: String },
    #[error("the working folder is {}, of which every sandbox has its own", .path.display())]
    WorkingFolderIsPrivate { path: PathBuf },
    #[error("the working folder {} is a hidden place", .path.display())]
    WorkingFolderHidden { path: PathBuf },
    #[error("{} cannot be a writable place: it belongs to the sandbox itself", .path.display())]
    ReservedPlace { path: PathBuf },
    #[error("{} is to be writable and is not there", .path.display())]
    NothingToWrite { path: PathBuf },
    #[error("{} is to be writable and cannot be made: {errno}", .path.display())]
    CannotMake { path: PathBuf, errno: Errno },
    #[error("{} leads elsewhere by a link", .path.display())]
    PlaceByLink { path: PathBuf },
    #[error("the kept home {} is gone", .path.display())]
    NoKeptHome { path: PathBuf },
    #[error("the pattern {pattern} matches more than {limit} places")]
    PatternTooWide { pattern: String, limit: usize },
    #[error("the pattern {pattern} cannot be used: {error}")]
    Pattern {
        pattern: String,
        error: globset::Error,
    },
    #[error("/run/ringfence cannot be made inside: the policy shows the host's own /run")]
    OwnFolderTaken,
    #[error("{} is a folder, of which no part can be replaced", .path.display())]
    MaskedFolder { path: PathBuf },
    #[error("{} cannot be a file below /run/ringfence", .path.display())]
    GivenPath { path: PathBuf },
    #[error("{files} files with {bytes} bytes are more than a sandbox is given")]
    TooMuchGiven { files: usize, bytes: usize },
    #[error(transparent)]
    View(#[from] ViewError),
}

impl PlanError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoCommand => "no-command",
            Self::NulInCommand => "nul-in-command",
            Self::LimitUnenforceable { .. } => "limit-unenforceable",
            Self::NoLandlock => "no-landlock",
            Self::NoLandlockNorListener => "no-landlock-nor-listener",
            Self::Filters(_) => "filters-unavailable",
            Self::NoWorkingFolder { .. } => "no-working-folder",
            Self::WorkingFolderIsFile { .. } => "working-folder-is-file",
            Self::RootWritable { .. } => "root-writable",
            Self::WorkingFolderIsPrivate { .. } => "working-folder-is-private",
            Self::WorkingFolderHidden { .. } => "working-folder-hidden",
            Self::ReservedPlace { .. } => "reserved-place",
            Self::NothingToWrite { .. } => "write-missing",
            Self::CannotMake { .. } => "write-unmakeable",
            Self::PlaceByLink { .. } => "place-by-link",
            Self::NoKeptHome { .. } => "no-kept-home",
            Self::PatternTooWide { .. } => "pattern-too-wide",
            Self::Pattern { .. } => "bad-pattern",
            Self::OwnFolderTaken => "own-folder-taken",
            Self::MaskedFolder { .. } => "masked-folder",
            Self::GivenPath { .. } => "given-path",
            Self::TooMuchGiven { .. } => "too-much-given",
            Self::View(_) => "place-unreadable",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoCommand => "name one: ringfence run -- CMD ARGS…",
            Self::NulInCommand => "no program can be given such an argument",
            Self::LimitUnenforceable { .. } => {
                "see what would hold it: ringfence doctor; or accept less: --weaker limits"
            }
            Self::NoLandlock => {
                "boot with lsm=landlock,… or accept one layer less: --weaker landlock"
            }
            Self::NoLandlockNorListener => {
                "boot with lsm=landlock,… or start ringfence outside of the sandbox that has the listener"
            }
            Self::Filters(_) => "see what this machine can enforce, and the fix: ringfence doctor",
            Self::NoWorkingFolder { .. } | Self::WorkingFolderIsFile { .. } => {
                "name a folder: --cwd DIR"
            }
            Self::RootWritable { .. } | Self::WorkingFolderHidden { .. } => {
                "go to a project folder, or name one: --cwd DIR"
            }
            Self::WorkingFolderIsPrivate { .. } => {
                "use a folder below it: mkdir /tmp/work && cd /tmp/work"
            }
            Self::ReservedPlace { .. } => "take it out of the writable places",
            Self::NothingToWrite { .. } => {
                "make it first, or say that it is a directory, which is made: --write PATH/"
            }
            Self::CannotMake { .. } => "make it first, where you may write",
            Self::PlaceByLink { .. } => {
                "name the place itself: an earlier command may have left the link"
            }
            Self::NoKeptHome { .. } => "run it again: another command removed it meanwhile",
            Self::PatternTooWide { .. } => "name the folder instead of a pattern",
            Self::Pattern { .. } => "patterns know * ? [a-z] {a,b} and **",
            Self::OwnFolderTaken => "show the parts of /run that are needed instead of all of it",
            Self::MaskedFolder { .. } => "name the file in it that holds the secret",
            Self::GivenPath { .. } => "use a path of plain names that no other file has",
            Self::TooMuchGiven { .. } => "give at most 4096 files and 64 MiB",
            Self::View(_) => "check that the path is right and readable",
        }
    }
}
