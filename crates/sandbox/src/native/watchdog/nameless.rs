//! Memory in files that have no name (`memfd_create(2)`), which counts for no
//! process unless it has them mapped.
//!
//! They are found by asking about every descriptor of every task, in slices,
//! and each file is counted once however many hold it. Out of sight stay those
//! whose last descriptor is under way in a Unix socket, those that are mapped,
//! not resident in the mapping and open nowhere, and whatever comes after the
//! first million descriptors.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::numbers::Numbers;
use super::reserve::{Reserve, is_gone};
use crate::native::storage::memory_device;

/// The most descriptors that one walk asks about.
const MOST_ASKED: u32 = 1 << 20;
/// The most files that are told apart; more are counted once per descriptor.
const MOST_FILES: usize = 1 << 18;
/// The most files that are asked about again between two walks: the largest.
const MOST_ASKED_AGAIN: usize = 1024;
/// How many descriptors are asked about in one go however long it takes.
const FEWEST: u32 = 32;
/// The unit of `stx_blocks`.
const BLOCK: u64 = 512;

/// The files without a name that the sandbox holds.
pub(super) struct Nameless {
    reserve: Rc<Reserve>,
    /// The kernel's own tmpfs, on which they all lie.
    device: u64,
    /// The largest first.
    files: Vec<File>,
    walk: Option<Walk>,
    /// When the last walk was over, and what it took.
    last_end: Instant,
    cost: Duration,
}

/// A file, and a descriptor of it.
#[derive(Debug, PartialEq, Eq)]
struct File {
    bytes: u64,
    inode: u64,
    link: PathBuf,
}

/// A walk under way.
struct Walk {
    reserve: Rc<Reserve>,
    /// `/proc`, `/proc/PID/task` and `/proc/PID/task/TID/fd`, as far as it is.
    folders: Vec<(PathBuf, Numbers)>,
    files: HashMap<u64, File>,
    /// Those that are not told apart.
    others: Vec<File>,
    most: usize,
    asked: u32,
}

/// What came of going on with a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is not over.
    UnderWay,
    /// It is over and found no more than was known.
    Over,
    /// It is over and found more.
    OverWithMore,
}

impl Nameless {
    pub(super) fn new(reserve: Rc<Reserve>) -> Result<Self, Errno> {
        Ok(Self {
            reserve,
            device: memory_device()?,
            files: Vec::new(),
            walk: None,
            last_end: Instant::now(),
            cost: Duration::ZERO,
        })
    }

    /// Begins a walk, unless one is under way.
    pub(super) fn begin(&mut self) {
        if self.walk.is_none() {
            self.walk = Walk::begin(&self.reserve).ok();
            self.cost = Duration::ZERO;
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.walk.is_some()
    }

    /// Whether the last walk was long enough ago for what it took.
    pub(super) fn has_rested(&self, least: Duration, times_cost: u32) -> bool {
        self.last_end.elapsed() >= least.max(self.cost * times_cost)
    }

    /// Goes on with the walk under way.
    pub(super) fn go_on(&mut self, slice: Duration) -> Progress {
        let Some(walk) = &mut self.walk else {
            return Progress::Over;
        };
        let began = Instant::now();
        let is_over = walk.go_on(self.device, began + slice);
        self.cost += began.elapsed();
        if !is_over {
            return Progress::UnderWay;
        }
        let before = self.sum();
        self.files = self.walk.take().map_or_else(Vec::new, Walk::files);
        self.last_end = Instant::now();
        if self.sum() > before {
            Progress::OverWithMore
        } else {
            Progress::Over
        }
    }

    /// Bytes in the files that were found, as they are now.
    pub(super) fn bytes(&mut self) -> u64 {
        let device = self.device;
        for file in self.files.iter_mut().take(MOST_ASKED_AGAIN) {
            // Gone from there, it may be elsewhere: the next walk will tell.
            if let Ok(now) = ask(device, &file.link) {
                let now = now.filter(|(inode, _)| *inode == file.inode);
                file.bytes = now.map_or(0, |(_, bytes)| bytes);
            }
        }
        self.sum()
    }

    fn sum(&self) -> u64 {
        let bytes = self.files.iter().map(|file| file.bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// The device and the inodes of the files that were found.
    pub(super) fn known(&self) -> (u64, HashSet<u64>) {
        let held = self.files.iter().filter(|file| file.bytes > 0);
        (self.device, held.map(|file| file.inode).collect())
    }
}

impl Walk {
    fn begin(reserve: &Rc<Reserve>) -> Result<Self, Errno> {
        Ok(Self {
            folders: vec![("/proc".into(), Numbers::of_processes(reserve)?)],
            reserve: Rc::clone(reserve),
            files: HashMap::new(),
            others: Vec::new(),
            most: MOST_FILES,
            asked: 0,
        })
    }

    /// Asks until `until`, at least a few times; whether it is over.
    fn go_on(&mut self, device: u64, until: Instant) -> bool {
        let mut few = FEWEST;
        while self.asked < MOST_ASKED && self.step(device) {
            few = few.saturating_sub(1);
            if few == 0 {
                if Instant::now() >= until {
                    return false;
                }
                few = FEWEST;
            }
        }
        true
    }

    /// Whether there was anything left to do. What ends or is closed meanwhile
    /// holds nothing any more.
    fn step(&mut self, device: u64) -> bool {
        let depth = self.folders.len();
        let Some((folder, numbers)) = self.folders.last_mut() else {
            return false;
        };
        let Some(number) = numbers.next() else {
            self.folders.pop();
            return true;
        };
        let path = folder.join(number.to_string());
        match depth {
            1 => self.enter_process(device, &path),
            // Threads may have descriptors of their own.
            2 => self.enter(path.join("fd")),
            _ => self.ask(device, path),
        }
        true
    }

    fn enter_process(&mut self, device: u64, process: &Path) {
        // A program that runs from such a file holds it without a descriptor.
        self.ask(device, process.join("exe"));
        self.enter(process.join("task"));
    }

    fn enter(&mut self, folder: PathBuf) {
        let numbers = Numbers::in_folder(&self.reserve, &folder);
        self.folders
            .extend(numbers.map(|numbers| (folder, numbers)));
    }

    fn ask(&mut self, device: u64, link: PathBuf) {
        self.asked += 1;
        let Ok(Some((inode, bytes @ 1..))) = ask(device, &link) else {
            return;
        };
        let file = File { bytes, inode, link };
        if self.files.len() < self.most {
            self.files.entry(inode).or_insert(file);
        } else if !self.files.contains_key(&inode) {
            self.others.push(file);
        }
    }

    fn files(self) -> Vec<File> {
        let mut files: Vec<_> = self.files.into_values().chain(self.others).collect();
        files.sort_unstable_by_key(|file| std::cmp::Reverse(file.bytes));
        files
    }
}

/// The inode and the bytes of what a link leads to, if it is there and on this
/// device. Nothing is fetched from a distant file system for it.
fn ask(device: u64, link: &Path) -> Result<Option<(u64, u64)>, Errno> {
    let wanted = StatxFlags::INO | StatxFlags::BLOCKS;
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let status = match rustix::fs::statx(CWD.as_fd(), link, flags, wanted) {
        Err(errno) if is_gone(errno) => return Ok(None),
        other => other?,
    };
    let on = rustix::fs::makedev(status.stx_dev_major, status.stx_dev_minor);
    let found = (status.stx_ino, status.stx_blocks.saturating_mul(BLOCK));
    Ok((on == device).then_some(found))
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, OwnedFd};

    use rustix::fs::MemfdFlags;

    use super::*;

    const MANY: usize = 1 << 20;

    fn memory_file(bytes: usize) -> OwnedFd {
        let file = rustix::fs::memfd_create("x", MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(rustix::io::write(&file, &vec![1; bytes]), Ok(bytes));
        file
    }

    fn reserve() -> Rc<Reserve> {
        Rc::new(Reserve::new().unwrap())
    }

    fn walked() -> Nameless {
        let mut nameless = Nameless::new(reserve()).unwrap();
        nameless.begin();
        while nameless.go_on(Duration::ZERO) == Progress::UnderWay {}
        nameless
    }

    fn found(nameless: &Nameless, file: &OwnedFd) -> Vec<u64> {
        let inode = rustix::fs::fstat(file).unwrap().st_ino;
        let files = nameless.files.iter().filter(|file| file.inode == inode);
        files.map(|file| file.bytes).collect()
    }

    #[test]
    fn g9_a_file_without_a_name_is_found_once_however_many_hold_it() {
        let file = memory_file(MANY);
        let _copy = file.try_clone().unwrap();
        let nameless = walked();
        assert_eq!(found(&nameless, &file), [MANY as u64]);
        let inode = rustix::fs::fstat(&file).unwrap().st_ino;
        assert!(nameless.known().1.contains(&inode));
    }

    #[test]
    fn what_was_found_is_asked_about_again() {
        let file = memory_file(MANY);
        let mut nameless = walked();
        rustix::io::write(&file, &vec![1; MANY]).unwrap();
        assert!(nameless.bytes() >= 2 * MANY as u64);
        assert_eq!(found(&nameless, &file), [2 * MANY as u64]);
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::fs::ftruncate(&file, 0).unwrap();
        assert_eq!(
            ask(nameless.device, Path::new(&link)).map(|it| it.map(|it| it.1)),
            Ok(Some(0))
        );
        nameless.bytes();
        assert_eq!(found(&nameless, &file), [0]);
    }

    #[test]
    fn files_with_a_name_and_empty_ones_are_not_there() {
        let named = OwnedFd::from(tempfile::tempfile().unwrap());
        rustix::io::write(&named, &[1; 4096]).unwrap();
        let empty = memory_file(0);
        let nameless = walked();
        assert!(found(&nameless, &empty).is_empty());
        let link = format!("/proc/self/fd/{}", named.as_raw_fd());
        assert_eq!(ask(nameless.device, Path::new(&link)), Ok(None));
    }

    #[test]
    fn beyond_the_most_files_every_descriptor_counts() {
        let device = Nameless::new(reserve()).unwrap().device;
        let (one, other) = (memory_file(4096), memory_file(4096));
        let mut walk = Walk::begin(&reserve()).unwrap();
        walk.most = 1;
        for file in [&one, &one, &other, &other] {
            walk.ask(device, format!("/proc/self/fd/{}", file.as_raw_fd()).into());
        }
        assert_eq!((walk.files.len(), walk.others.len(), walk.asked), (1, 2, 4));
        assert_eq!(walk.files().len(), 3);
    }
}
