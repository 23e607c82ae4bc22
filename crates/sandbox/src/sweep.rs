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

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, FileType};

use self::baseline::Baseline;
pub use self::baseline::SweepRecord;
use self::moving::Quarantine;
use crate::guard::{Guard, is_dependency};
use crate::survey::{Entry, Looked, list, looks_like_one, open_directory, open_root};
use crate::within::is_within;

/// The deepest that is looked.
const DEEPEST: usize = 200;
/// The most entries of one directory.
const MOST_ENTRIES: usize = 2_000_000;

/// The rule about hooks and configuration that are not in a Git directory, and about what a policy
/// names.
const TOLD_TO_LOOK: &str = "path that is denied, or that Git is told to look at";
/// The rule about what could not be looked at.
const UNSEEN: &str = "directory that cannot be looked into";

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
        let baseline = Baseline::of(guard.survey(), guard.roots());
        Self { guard, baseline }
    }

    /// For a run that was cut off, of which this was written down.
    pub fn of_record(record: &SweepRecord) -> Self {
        Self {
            guard: Arc::new(record.guard()),
            baseline: Baseline::of_record(record),
        }
    }

    /// The command is let go now: nothing older is of the run.
    pub fn begin_now(&mut self) {
        self.baseline.begin_now();
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
            match open_root(root) {
                _ if is_inner => {}
                Ok(mut directory) => {
                    if sweep.walk(&mut directory, root, Around::default()).is_err() {
                        sweep.tell(root, UNSEEN, None);
                    }
                }
                // A single writable file has no names in it.
                Err(Errno::NOTDIR) if is_file(root) => {}
                Err(_) => sweep.tell(root, UNSEEN, None),
            }
        }
        sweep.take_what_was_led_to();
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

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

impl Sweep<'_> {
    /// An error for one that cannot be listed.
    fn walk(&mut self, directory: &mut Looked, path: &Path, around: Around) -> Result<(), Errno> {
        if self.quarantine.is_around(path) {
            return Ok(());
        }
        let entries = list(directory.as_fd(), MOST_ENTRIES)?;
        let is_repository = looks_like_one(path, &entries);
        if is_repository && self.guard.guards_git() {
            self.judge_repository(directory, path, &entries);
        }
        let are_names_free = around.is_dependency || !self.baseline.had(&*directory, path);
        for entry in &entries {
            if (!are_names_free && self.judge_name(directory, path, entry))
                || self.judge_place(directory, path, entry)
            {
                continue;
            }
            if entry.name.as_bytes().eq_ignore_ascii_case(b".git") {
                self.judge_git_entry(directory, path, entry);
                self.judge_hooks_of_tree(path);
            }
            if entry.kind == FileType::Directory
                && !self.baseline.was_frozen(&*directory, path, &entry.name)
            {
                let around = Around {
                    depth: around.depth + 1,
                    is_dependency: around.is_dependency || is_dependency(entry.name.as_bytes()),
                };
                self.enter(directory, path, entry, around);
            }
        }
        Ok(())
    }

    /// Looks into a directory. One that cannot be looked into is taken away, if
    /// the run made it.
    fn enter(&mut self, directory: &mut Looked, path: &Path, entry: &Entry, around: Around) {
        let inner = open_directory(directory.as_fd(), &entry.name);
        let looked = inner.and_then(|mut inner| {
            if around.depth > DEEPEST {
                return Err(Errno::NAMETOOLONG);
            }
            self.walk(&mut inner, &path.join(&entry.name), around)
        });
        match looked {
            // Seen; of somebody else's, who lets nobody look; or gone.
            Ok(()) | Err(Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            _ if self.baseline.had_entry(&*directory, path, &entry.name) => {
                self.tell(&path.join(&entry.name), UNSEEN, None);
            }
            _ => {
                self.take_away(directory, path, entry, UNSEEN);
            }
        }
    }

    /// A link where a directory was would let names be free behind it; true when
    /// it is gone.
    fn judge_place(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) -> bool {
        let is_link = entry.kind == FileType::Symlink;
        is_link
            && self.baseline.had_directory(&path.join(&entry.name))
            && self.take_away(directory, path, entry, "link in place of a directory")
    }

    /// Judges an entry that a protected name begins with; true when it is gone.
    fn judge_name(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) -> bool {
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
        directory: &mut Looked,
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
        let Ok(mut inner) = open_directory(directory.as_fd(), &entry.name) else {
            return;
        };
        let entries = list(inner.as_fd(), MOST_ENTRIES).unwrap_or_default();
        let is_next = |entry: &&Entry| entry.name.as_bytes().eq_ignore_ascii_case(next);
        for entry in entries.iter().filter(is_next) {
            match rest.split_first() {
                Some((next, rest)) if entry.kind != FileType::RegularFile => {
                    self.judge_sequel(&mut inner, &place, entry, next, rest);
                }
                // A file on the way may say where the rest is.
                _ => {
                    self.judge_protected(&mut inner, &place, entry);
                }
            }
        }
    }

    /// Moves a protected name that was not there before; true if it did.
    fn judge_protected(&mut self, directory: &mut Looked, path: &Path, entry: &Entry) -> bool {
        let place = path.join(&entry.name);
        let link = self.baseline.links().iter().find(|(own, _)| *own == place);
        let is_kept = match link {
            // Nothing is mounted over a link: it may have been replaced.
            Some((_, target)) => is_link_to(directory, &entry.name, target),
            None => self.baseline.had_entry(&*directory, path, &entry.name),
        };
        if is_kept {
            return false;
        }
        let name = entry.name.to_string_lossy();
        self.take_away(directory, path, entry, &format!("protected name {name}"))
    }

    fn take_away(
        &mut self,
        directory: &mut Looked,
        path: &Path,
        entry: &Entry,
        rule: &str,
    ) -> bool {
        let moved_to = self.quarantine.take(directory, path, &entry.name);
        let is_gone = moved_to.is_some();
        self.tell(&path.join(&entry.name), rule, moved_to);
        is_gone
    }

    fn tell(&mut self, path: &Path, rule: &str, moved_to: Option<PathBuf>) {
        self.swept.push(Swept {
            path: path.to_path_buf(),
            rule: rule.to_owned(),
            moved_to,
        });
    }

    /// What came to be where links in place of protected names, and Git's
    /// configuration, lead.
    fn take_what_was_led_to(&mut self) {
        for place in self.baseline.led_to() {
            if let Some((mut directory, parent, entry)) = self.reach(place)
                && !self.is_as_it_was(&directory, &parent, &entry.name)
            {
                self.take_away(&mut directory, &parent, &entry, TOLD_TO_LOOK);
            }
        }
    }

    /// Whether an entry was read-only throughout, or is the link that it was.
    fn is_as_it_was(&self, directory: &Looked, parent: &Path, name: &OsStr) -> bool {
        let place = parent.join(name);
        let link = self.baseline.links().iter().find(|(own, _)| *own == place);
        self.baseline.is_in_place(directory, parent, name)
            && link.is_none_or(|(_, target)| is_link_to(directory, name, target))
    }

    /// What is at a path in a writable root. A link on the way there that the run
    /// made is taken away, and so leads nowhere.
    fn reach(&mut self, place: &Path) -> Option<(Looked, PathBuf, Entry)> {
        let mut roots = self.guard.roots().iter();
        let from = roots.find(|root| place.starts_with(root))?;
        let mut names = place.strip_prefix(from).ok()?.iter().peekable();
        let mut directory = open_root(from).ok()?;
        let mut path = from.clone();
        while let Some(name) = names.next() {
            let entry = entry_of(&directory, name)?;
            if names.peek().is_none() {
                return Some((directory, path, entry));
            }
            if entry.kind == FileType::Symlink {
                if !self.baseline.had_entry(&directory, &path, name) {
                    self.take_away(&mut directory, &path, &entry, TOLD_TO_LOOK);
                }
                return None;
            }
            directory = open_directory(directory.as_fd(), name).ok()?;
            path.push(name);
        }
        None
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
                self.tell(place, "link that was removed, and is there again", None);
            }
        }
    }
}

fn is_link_to(directory: &Looked, name: &OsStr, target: &Path) -> bool {
    let found = rustix::fs::readlinkat(directory, name, Vec::new());
    found.is_ok_and(|found| found.as_bytes() == target.as_os_str().as_bytes())
}

fn entry_of(directory: &Looked, name: &OsStr) -> Option<Entry> {
    let status = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Entry {
        name: name.to_owned(),
        kind: FileType::from_raw_mode(status.st_mode),
    })
}
