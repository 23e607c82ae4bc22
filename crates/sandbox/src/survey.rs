//! What is there before a run: the protected names of every writable directory,
//! its Git directories, and which directories there are.
//!
//! A walk by descriptors that follows no link, reads names only and has a
//! budget: other sandboxes may be at work in the same directories.

mod looking;
mod repository;
mod user;
mod walk;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

pub(crate) use self::looking::{Looked, open_directory, open_root};
pub(crate) use self::repository::looks_like_one;
pub(crate) use self::user::UserGit;
pub(crate) use self::walk::{Entry, list, real};
use crate::guard::Guard;
use crate::view::FileId;

/// The most directories that are looked at.
const MOST_DIRECTORIES: usize = 25_000;
/// The most entries of all of them together.
const MOST_ENTRIES: usize = 400_000;
/// The most places that are bound read-only.
const MOST_FROZEN: usize = 400;
/// The deepest that is looked.
const DEEPEST: usize = 100;

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Survey {
    /// Protected names and Git's control files that are there: bound read-only.
    pub(crate) frozen: Vec<PathBuf>,
    /// Where protected names lead by links, and where Git is told to look: also
    /// what is not there yet must not be made.
    pub(crate) led_to: Vec<PathBuf>,
    /// Links in place of protected names, with where they lead. Nothing can be
    /// mounted over a link.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// What the policy denies writing, there or not.
    pub(crate) denied: Vec<PathBuf>,
    /// Git directories.
    pub(crate) repositories: HashSet<FileId>,
    /// The configuration files of those.
    pub(crate) configurations: Vec<PathBuf>,
    /// The directories, but for those below dependencies and in Git directories.
    pub(crate) directories: HashMap<PathBuf, FileId>,
    /// Directories that look like one, to Git or to us.
    pub(crate) alike: HashSet<FileId>,
    /// Directories of hooks that configuration has Git seek in every work tree
    /// that it holds for.
    pub(crate) relative_hooks: Vec<PathBuf>,
    /// What interrupted rebases run when they go on, each with its Git directory.
    pub(crate) rebase_commands: HashSet<(PathBuf, String)>,
    /// Whether that is all there is.
    pub(crate) is_complete: bool,
}

impl Survey {
    /// Looks through the roots of a guard, until the budget is used up.
    pub(crate) fn take(guard: &Guard) -> Self {
        walk::Surveyor::new(guard).survey()
    }
}
