//! Looking at writable directories when a run is over, and nothing of it is
//! alive: what must not be there is moved to quarantine.
//!
//! It judges the final state, however that came to be, so it also holds what was
//! written in place while the run went on, and what another sandbox did in the
//! same directories. By descriptors alone, and following no link: what is there
//! was made by hostile code.

mod baseline;
mod moving;
mod repository;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;

use self::baseline::Baseline;
pub use self::baseline::SweepRecord;
use self::moving::Quarantine;
use crate::guard::{Guard, is_dependency};
use crate::survey::{Entry, list, open_directory, open_root};
use crate::within::is_within;

/// The deepest that is looked.
const DEEPEST: usize = 200;
/// The most entries of one directory.
const MOST_ENTRIES: usize = 2_000_000;

/// What was found, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// What it was.
    pub path: PathBuf,
    /// Which rule it broke.
    pub rule: String,
    /// Where it is now; `None` for what could not be moved, and for what was
    /// put back.
    pub moved_to: Option<PathBuf>,
}

/// The sweep of one run, to be made when it is over.
#[derive(Debug, Clone)]
pub struct Sweeper {
    guard: Arc<Guard>,
    baseline: Baseline,
}

impl Sweeper {
    /// For a run that begins now, with what was surveyed before it.
    pub(crate) fn new(guard: Arc<Guard>) -> Self {
        let baseline = Baseline::of(guard.survey());
        Self { guard, baseline }
    }

    /// For a run that was cut off, of which this was written down.
    pub fn of_record(record: &SweepRecord) -> Self {
        Self {
            guard: Arc::new(record.guard()),
            baseline: Baseline::of_record(record),
        }
    }

    /// What has to be known to sweep if this process is cut off.
    pub fn record(&self) -> SweepRecord {
        SweepRecord::of(&self.guard, &self.baseline)
    }

    /// Looks, and moves what must not be there to a directory of its own below
    /// `quarantine`.
    pub fn sweep(&self, quarantine: &Path) -> Vec<Swept> {
        let mut sweep = Sweep {
            guard: &self.guard,
            baseline: &self.baseline,
            quarantine: Quarantine::new(quarantine.to_path_buf()),
            swept: Vec::new(),
        };
        let roots = self.guard.roots();
        for root in roots {
            let is_inner = roots
                .iter()
                .any(|other| other != root && is_within(root, other));
            if !is_inner && let Ok(directory) = open_root(root) {
                sweep.walk(&directory, root, Around::default());
            }
        }
        sweep.put_links_back();
        sweep.swept
    }
}

/// What is known of the directories around one.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    depth: usize,
    is_dependency: bool,
}

struct Sweep<'a> {
    guard: &'a Guard,
    baseline: &'a Baseline,
    quarantine: Quarantine,
    swept: Vec<Swept>,
}

impl Sweep<'_> {
    fn walk(&mut self, directory: &OwnedFd, path: &Path, around: Around) {
        if around.depth > DEEPEST || self.quarantine.is_around(path) {
            return;
        }
        let Ok(entries) = list(directory.as_fd(), MOST_ENTRIES) else {
            return;
        };
        let is_repository = repository::looks_like_one(path, &entries);
        if is_repository && self.guard.guards_git() {
            self.judge_repository(directory, path, &entries);
        }
        let are_names_free = around.is_dependency || !self.baseline.had(directory, path);
        for entry in &entries {
            if !are_names_free && self.judge_name(directory, path, entry) {
                continue;
            }
            if entry.name.as_bytes().eq_ignore_ascii_case(b".git") {
                self.judge_git_entry(directory, path, entry);
            }
            // Nothing in there is anybody's work tree.
            let is_objects = is_repository && entry.name == "objects";
            if entry.kind == FileType::Directory
                && !is_objects
                && let Ok(inner) = open_directory(directory.as_fd(), &entry.name)
            {
                let around = Around {
                    depth: around.depth + 1,
                    is_dependency: around.is_dependency || is_dependency(entry.name.as_bytes()),
                };
                self.walk(&inner, &path.join(&entry.name), around);
            }
        }
    }

    /// Judges an entry that a protected name begins with; true when it is gone.
    fn judge_name(&mut self, directory: &OwnedFd, path: &Path, entry: &Entry) -> bool {
        let lower = entry.name.as_bytes().to_ascii_lowercase();
        let guard = self.guard;
        for sequel in guard.sequels(&lower) {
            let is_moved = match sequel.split_first() {
                None => self.judge_protected(directory, path, entry),
                Some((first, rest)) => {
                    self.judge_sequel(directory, path, entry, first, rest);
                    false
                }
            };
            if is_moved {
                return true;
            }
        }
        false
    }

    /// What follows the first component of a protected name.
    fn judge_sequel(
        &mut self,
        directory: &OwnedFd,
        path: &Path,
        entry: &Entry,
        next: &[u8],
        rest: &[Vec<u8>],
    ) {
        let place = path.join(&entry.name);
        if entry.kind == FileType::Symlink {
            // It would lead to a directory in which names are free.
            self.judge_protected(directory, path, entry);
            return;
        }
        let Ok(inner) = open_directory(directory.as_fd(), &entry.name) else {
            return;
        };
        let entries = list(inner.as_fd(), MOST_ENTRIES).unwrap_or_default();
        let is_next = |entry: &&Entry| entry.name.as_bytes().eq_ignore_ascii_case(next);
        for entry in entries.iter().filter(is_next) {
            match rest.split_first() {
                None => {
                    self.judge_protected(&inner, &place, entry);
                }
                Some((next, rest)) => self.judge_sequel(&inner, &place, entry, next, rest),
            }
        }
    }

    /// Moves a protected name that was not there before; true if it did.
    fn judge_protected(&mut self, directory: &OwnedFd, path: &Path, entry: &Entry) -> bool {
        if self.baseline.had_entry(directory, path, &entry.name) {
            return false;
        }
        let name = entry.name.to_string_lossy();
        self.take_away(directory, path, entry, &format!("protected name {name}"))
    }

    fn take_away(&mut self, directory: &OwnedFd, path: &Path, entry: &Entry, rule: &str) -> bool {
        let moved_to = self.quarantine.take(directory, path, &entry.name);
        let is_gone = moved_to.is_some();
        self.swept.push(Swept {
            path: path.join(&entry.name),
            rule: rule.to_owned(),
            moved_to,
        });
        is_gone
    }

    /// Links in place of protected names could be removed, as nothing can be
    /// mounted over them.
    fn put_links_back(&mut self) {
        for (place, target) in self.baseline.links() {
            let Some((parent, name)) = place.parent().zip(place.file_name()) else {
                continue;
            };
            if let Ok(directory) = open_root(parent)
                && rustix::fs::symlinkat(target, &directory, name).is_ok()
            {
                self.swept.push(Swept {
                    path: place.clone(),
                    rule: "protected name that was removed, and is there again".to_owned(),
                    moved_to: None,
                });
            }
        }
    }
}
