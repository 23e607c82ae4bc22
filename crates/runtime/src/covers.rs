//! Noticing that the host replaces or rewrites a file that is masked or hidden
//! inside, so that its cover is laid anew and shows what there is now.
//!
//! The files themselves are watched, and the directories around them for being
//! moved; a directory for what is made in it only while a file is missing, since
//! code inside may make many files beside it.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_sandbox::{Cover, Running, Shows};
use ringfence_sys::Errno;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, StatxFlags};

use crate::masked::Masks;

/// Until it is looked again where nothing tells.
const WITHOUT_WORD: Duration = Duration::from_secs(1);
/// Until what failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// The covers of one run.
pub(crate) struct Covers<'a> {
    laid: Vec<(Cover, Option<Seen>)>,
    masks: Masks<'a>,
    /// Where the kernel tells; without it we look from time to time.
    notes: Option<OwnedFd>,
    watches: HashSet<i32>,
    next: Option<Instant>,
}

/// How a file was seen last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    device: (u32, u32),
    inode: u64,
    size: u64,
    modified: (i64, u32),
    changed: (i64, u32),
}

impl<'a> Covers<'a> {
    /// Those of a plan that is about to be carried out: what is replaced from now
    /// on is noticed.
    pub(crate) fn of(covers: &[Cover], masks: Masks<'a>) -> Self {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let notes = (!covers.is_empty()).then(|| inotify::init(flags).ok());
        let mut made = Self {
            laid: covers.iter().map(|cover| (cover.clone(), None)).collect(),
            masks,
            notes: notes.flatten(),
            watches: HashSet::new(),
            next: None,
        };
        made.watch();
        for (cover, seen) in &mut made.laid {
            *seen = look(&cover.path);
        }
        made
    }

    /// Readable when something may have changed.
    pub(crate) fn notes(&self) -> Option<BorrowedFd<'_>> {
        self.notes.as_ref().map(AsFd::as_fd)
    }

    /// When to look whether or not.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Lays anew and rewrites what has changed, if it was told of, or is time.
    pub(crate) fn attend(&mut self, running: &Running) {
        let is_due = self.next.is_some_and(|at| Instant::now() >= at);
        if !self.has_notes() && !is_due {
            return;
        }
        // Before it is looked, so that what comes after that is told again.
        self.watch();
        if self.renew(running).is_err() {
            self.next = Instant::now().checked_add(AFTER_FAILURE);
        }
    }

    fn renew(&mut self, running: &Running) -> Result<(), Errno> {
        let looked = self.laid.iter().map(|(cover, _)| look(&cover.path));
        let looked: Vec<_> = looked.collect();
        let numbers = (0..looked.len()).filter(|at| looked[*at] != self.laid[*at].1);
        let changed: Vec<_> = numbers.collect();
        if changed.is_empty() {
            return Ok(());
        }
        let covers: Vec<_> = changed.iter().map(|at| &self.laid[*at].0).collect();
        // First, since until then what is there now may be seen.
        running.cover(&covers)?;
        for cover in covers {
            self.show(running, cover)?;
        }
        for at in changed {
            self.laid[at].1 = looked[at];
        }
        Ok(())
    }

    /// What is there now, masked. Nothing where its secret is not found: nobody
    /// can be asked any more.
    fn show(&self, running: &Running, cover: &Cover) -> Result<(), Errno> {
        let Shows::Masked { number, services } = &cover.shows else {
            return Ok(());
        };
        let shown = self.masks.shown(&cover.path, services).unwrap_or_default();
        running.show(*number, &shown)
    }

    /// Has the kernel tell of everything that is there now.
    fn watch(&mut self) {
        self.next = None;
        let Some(notes) = &self.notes else {
            self.next = (!self.laid.is_empty())
                .then(|| Instant::now().checked_add(WITHOUT_WORD))
                .flatten();
            return;
        };
        let paths = self.laid.iter().map(|(cover, _)| &*cover.path);
        let mut watches = HashSet::new();
        for (path, flags) in wanted(paths) {
            match inotify::add_watch(notes, c_string(&path), flags) {
                Ok(number) => drop(watches.insert(number)),
                // It may just have been moved, or no more can be had.
                Err(_) => self.next = Instant::now().checked_add(WITHOUT_WORD),
            }
        }
        for gone in self.watches.difference(&watches) {
            // The kernel may have done so itself.
            let _ = inotify::remove_watch(notes, *gone);
        }
        self.watches = watches;
    }

    /// Whether the kernel told anything, which is taken.
    fn has_notes(&self) -> bool {
        let Some(notes) = &self.notes else {
            return false;
        };
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut has_any = false;
        while rustix::io::read(notes, &mut buffer).is_ok_and(|(read, _)| !read.is_empty()) {
            has_any = true;
        }
        has_any
    }
}

/// What is to be told of, of which files and directories.
fn wanted<'a>(paths: impl Iterator<Item = &'a Path>) -> HashMap<PathBuf, WatchFlags> {
    let moved = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::DONT_FOLLOW;
    let mut wanted = HashMap::new();
    let mut want = |path: &Path, flags| {
        let known = wanted.entry(path.to_path_buf()).or_insert(moved);
        *known |= flags;
    };
    for path in paths {
        let is_there = |path: &&Path| path.symlink_metadata().is_ok();
        let Some(deepest) = path.ancestors().find(is_there) else {
            continue;
        };
        let own = if deepest == path {
            WatchFlags::ATTRIB | WatchFlags::CLOSE_WRITE
        } else {
            WatchFlags::CREATE | WatchFlags::MOVED_TO
        };
        want(deepest, own);
        deepest
            .ancestors()
            .skip(1)
            .for_each(|directory| want(directory, moved));
    }
    wanted
}

fn look(path: &Path) -> Option<Seen> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let wanted = StatxFlags::BASIC_STATS;
    let status = rustix::fs::statx(CWD, path, flags, wanted).ok()?;
    Some(Seen {
        device: (status.stx_dev_major, status.stx_dev_minor),
        inode: status.stx_ino,
        size: status.stx_size,
        modified: (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec),
        changed: (status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec),
    })
}

fn c_string(path: &Path) -> CString {
    // A path that is there has no zero in it.
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_waited_for_where_it_may_come_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("a")).unwrap();
        std::fs::write(root.join("a/there"), "").unwrap();
        let paths = ["a/there", "a/b/missing"].map(|name| root.join(name));
        let wanted = wanted(paths.iter().map(|path| &**path));
        let tells = |path: &Path, flags| wanted.get(path).is_some_and(|all| all.contains(flags));
        assert!(tells(&paths[0], WatchFlags::ATTRIB | WatchFlags::MOVE_SELF));
        assert!(tells(
            &root.join("a"),
            WatchFlags::CREATE | WatchFlags::MOVE_SELF
        ));
        assert!(tells(&root, WatchFlags::MOVE_SELF));
        // Where others make files all the time.
        assert!(!tells(&root, WatchFlags::CREATE));
        assert!(!tells(&paths[0], WatchFlags::CREATE));
        assert!(!wanted.contains_key(&paths[1]));
    }
}
