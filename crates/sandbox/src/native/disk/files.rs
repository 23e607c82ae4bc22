//! The files of the host's writable folders that were opened for writing or
//! removed, and by how much they have grown together.
//!
//! A file is held as a mere place (`O_PATH`) and its blocks are compared with
//! those it had when it was first opened. Once nobody can write to it any more
//! its growth is added up and it is let go. A removed file frees its blocks
//! only when nobody has it open, so until then it is held as well.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ringfence_sys::{self as sys, Errno, OpenFor};
use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::view::FileId;

/// How many files are asked about before giving up on finding room.
const TRIES_FOR_ROOM: usize = 256;

/// What a folder counts for, when it is made and when it is removed: one that
/// grew and is empty again must not give back more than was counted for it.
const FOLDER_BLOCKS: i64 = 8;

/// Whether a file has a name from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Name {
    Given,
    /// Made by `O_TMPFILE`: counted as an inode until it is gone or has one.
    None,
}

/// The table of files.
#[derive(Debug)]
pub(super) struct Files {
    held: HashMap<FileId, Held>,
    /// In the order in which they are asked about.
    queue: VecDeque<FileId>,
    most: usize,
    /// The growth in blocks of files that were let go.
    settled: i64,
    /// Files without a name that are held.
    nameless: u64,
    /// Whether somebody inside may hold files as mere places, which no lease
    /// shows. From then on what is removed is not known to be freed.
    places_are_out: bool,
    /// The blocks of removed files that are counted for that reason.
    unfreed: i64,
}

#[derive(Debug)]
struct Held {
    place: OwnedFd,
    blocks_before: i64,
    name: Name,
}

/// What is known of a file's users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It may still grow, or its blocks are not free yet.
    Busy,
    /// It has come to rest with this many blocks.
    Over { blocks: i64 },
    /// It has no name any more, and nobody has its so many blocks open.
    Removed { blocks: i64 },
}

impl Files {
    pub(super) fn new(most: usize) -> Self {
        Self {
            held: HashMap::new(),
            queue: VecDeque::new(),
            most,
            settled: 0,
            nameless: 0,
            places_are_out: false,
            unfreed: 0,
        }
    }

    /// Takes note that somebody inside gets a file as a mere place.
    pub(super) fn gave_out_place(&mut self) {
        self.places_are_out = true;
    }

    /// Everybody inside is gone, and with them what they held.
    pub(super) fn close(&mut self) {
        self.places_are_out = false;
        self.settled -= std::mem::take(&mut self.unfreed);
        self.settle(self.most);
    }

    /// Makes room for one more file.
    pub(super) fn make_room(&mut self) -> Result<(), Errno> {
        if self.held.len() >= self.most {
            self.settle(TRIES_FOR_ROOM);
        }
        if self.held.len() < self.most {
            Ok(())
        } else {
            Err(Errno::NFILE)
        }
    }

    /// Takes note of a file that was opened for writing and had as many blocks
    /// before that.
    pub(super) fn add(
        &mut self,
        file: BorrowedFd<'_>,
        id: FileId,
        blocks_before: i64,
        name: Name,
    ) -> Result<(), Errno> {
        let Entry::Vacant(entry) = self.held.entry(id) else {
            return Ok(());
        };
        entry.insert(Held {
            place: as_place(file)?,
            blocks_before,
            name,
        });
        self.queue.push_back(id);
        self.nameless += u64::from(name == Name::None);
        Ok(())
    }

    /// Takes note that a name of `place` was removed.
    pub(super) fn removed(&mut self, place: OwnedFd) -> Result<(), Errno> {
        let status = rustix::fs::fstat(&place)?;
        if status.st_nlink > 0 {
            return Ok(());
        }
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => {
                self.settled -= FOLDER_BLOCKS;
                return Ok(());
            }
            _ => {
                self.settled -= status.st_blocks;
                return Ok(());
            }
        }
        let id = FileId::of_stat(&status);
        if self.held.contains_key(&id) {
            drop(place);
            self.settle_one(id);
            return Ok(());
        }
        let blocks_before = status.st_blocks;
        match use_of(&place) {
            Use::Over { blocks } => self.add_up(blocks, blocks_before),
            Use::Removed { blocks } => self.add_up_removed(blocks, blocks_before),
            Use::Busy if self.held.len() < self.most => {
                let held = Held {
                    place,
                    blocks_before,
                    name: Name::Given,
                };
                self.held.insert(id, held);
                self.queue.push_back(id);
            }
            // Whoever fills the table gets nothing back for what is removed.
            Use::Busy => {}
        }
        Ok(())
    }

    /// Takes note that a folder was made.
    pub(super) fn made_folder(&mut self) {
        self.settled += FOLDER_BLOCKS;
    }

    /// The growth by what a whole file had before and has now.
    pub(super) fn replaced(&mut self, before: Option<&Stat>, now: Option<&Stat>) {
        let blocks = |status: Option<&Stat>| status.map_or(0, |status| status.st_blocks);
        self.settled += blocks(now) - blocks(before);
    }

    /// Lets go of those that nobody uses, looking at no more than `most`.
    pub(super) fn settle(&mut self, most: usize) {
        for _ in 0..most.min(self.queue.len()) {
            let Some(id) = self.queue.pop_front() else {
                return;
            };
            if self.held.contains_key(&id) && !self.settle_one(id) {
                self.queue.push_back(id);
            }
        }
    }

    fn settle_one(&mut self, id: FileId) -> bool {
        let Some(held) = self.held.get(&id) else {
            return true;
        };
        let (before, name) = (held.blocks_before, held.name);
        match use_of(&held.place) {
            Use::Busy => return false,
            Use::Over { blocks } => self.add_up(blocks, before),
            Use::Removed { blocks } => self.add_up_removed(blocks, before),
        }
        self.nameless -= u64::from(name == Name::None);
        self.held.remove(&id);
        true
    }

    fn add_up(&mut self, blocks: i64, before: i64) {
        self.settled += blocks - before;
    }

    fn add_up_removed(&mut self, blocks: i64, before: i64) {
        if self.places_are_out {
            self.unfreed += blocks;
            self.add_up(blocks, before);
        } else {
            self.add_up(0, before);
        }
    }

    /// The growth of all files together, in blocks; negative when more was
    /// freed than added.
    pub(super) fn grown(&self) -> i64 {
        let held = self.held.values().map(|held| {
            rustix::fs::fstat(&held.place).map_or(0, |now| now.st_blocks - held.blocks_before)
        });
        self.settled + held.sum::<i64>()
    }

    pub(super) fn nameless(&self) -> u64 {
        self.nameless
    }
}

fn use_of(place: &OwnedFd) -> Use {
    let Ok(status) = rustix::fs::fstat(place) else {
        return Use::Busy;
    };
    let is_removed = status.st_nlink == 0;
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(link, flags, Mode::empty()) else {
        return Use::Busy;
    };
    let kind = if is_removed {
        OpenFor::Anything
    } else {
        OpenFor::Writing
    };
    match sys::is_open_elsewhere(file.as_fd(), kind) {
        Ok(true) => Use::Busy,
        _ if is_removed => Use::Removed {
            blocks: status.st_blocks,
        },
        // Where there are no leases, it could be written to at any time.
        Err(_) => Use::Busy,
        // Asked again: it may have grown until the lease was granted.
        Ok(false) => rustix::fs::fstat(&file).map_or(Use::Busy, |status| Use::Over {
            blocks: status.st_blocks,
        }),
    }
}

/// The same file as a mere place, which does not count as open.
fn as_place(file: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;

    use super::*;

    const MANY: usize = 1 << 20;
    /// In blocks.
    const MANY_BLOCKS: i64 = 2048;

    fn watch(files: &mut Files, file: &File) -> FileId {
        let status = rustix::fs::fstat(file).unwrap();
        let id = FileId::of_stat(&status);
        files
            .add(file.as_fd(), id, status.st_blocks, Name::Given)
            .unwrap();
        id
    }

    fn remove(files: &mut Files, path: &Path) {
        let place = rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap();
        std::fs::remove_file(path).unwrap();
        files.removed(place).unwrap();
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn g9_growth_counts_at_once_and_stays_after_closing() {
        let folder = folder();
        let mut files = Files::new(10);
        let mut file = File::create(folder.path().join("a")).unwrap();
        watch(&mut files, &file);
        file.write_all(&vec![1; MANY]).unwrap();
        assert!(files.grown() >= MANY_BLOCKS);
        files.settle(10);
        assert_eq!(files.held.len(), 1);
        drop(file);
        files.settle(10);
        assert_eq!((files.held.len(), files.queue.len()), (0, 0));
        assert!(files.grown() >= MANY_BLOCKS);
    }

    #[test]
    fn only_the_growth_of_an_old_file_counts_and_removing_it_gives_back() {
        let folder = folder();
        let path = folder.path().join("old");
        std::fs::write(&path, vec![1; 3 * MANY]).unwrap();
        let mut files = Files::new(10);
        let mut file = File::options().append(true).open(&path).unwrap();
        watch(&mut files, &file);
        file.write_all(&vec![1; MANY]).unwrap();
        assert!((MANY_BLOCKS..2 * MANY_BLOCKS).contains(&files.grown()));
        file.set_len(0).unwrap();
        assert!(files.grown() <= -3 * MANY_BLOCKS);
        drop(file);
        remove(&mut files, &path);
        assert!(files.grown() <= -3 * MANY_BLOCKS && files.held.is_empty());
    }

    #[test]
    fn g9_a_removed_file_counts_until_nobody_has_it_open() {
        let folder = folder();
        let path = folder.path().join("a");
        let mut files = Files::new(10);
        let mut file = File::create(&path).unwrap();
        watch(&mut files, &file);
        file.write_all(&vec![1; MANY]).unwrap();
        let reader = File::open(&path).unwrap();
        drop(file);
        files.settle(10);
        remove(&mut files, &path);
        files.settle(10);
        assert!(files.grown() >= MANY_BLOCKS && files.held.len() == 1);
        drop(reader);
        files.settle(10);
        assert!(files.grown() == 0 && files.held.is_empty());
    }

    #[test]
    fn a_file_with_another_name_frees_nothing() {
        let folder = folder();
        let [one, other] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&one, vec![1; MANY]).unwrap();
        std::fs::hard_link(&one, &other).unwrap();
        let mut files = Files::new(10);
        remove(&mut files, &one);
        assert_eq!(files.grown(), 0);
        remove(&mut files, &other);
        assert!(files.grown() <= -MANY_BLOCKS);
    }

    #[test]
    fn g9_a_folder_gives_back_no_more_than_it_counted() {
        let folder = folder();
        let path = folder.path().join("d");
        let mut files = Files::new(10);
        std::fs::create_dir(&path).unwrap();
        files.made_folder();
        assert!(files.grown() > 0);
        for number in 0..300 {
            let name = path.join(format!("{number:0>200}"));
            File::create(&name).unwrap();
            std::fs::remove_file(&name).unwrap();
        }
        let place = rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
        std::fs::remove_dir(&path).unwrap();
        files.removed(place).unwrap();
        assert_eq!(files.grown(), 0);
    }

    #[test]
    fn a_full_table_has_room_again_once_files_are_closed() {
        let folder = folder();
        let mut files = Files::new(3);
        let opened: Vec<File> = ["a", "b", "c"]
            .map(|name| File::create(folder.path().join(name)).unwrap())
            .into();
        for file in &opened {
            watch(&mut files, file);
        }
        assert_eq!(files.make_room(), Err(Errno::NFILE));
        drop(opened);
        files.make_room().unwrap();
    }

    #[test]
    fn g9_what_may_be_held_as_a_place_is_freed_only_at_the_end() {
        let folder = folder();
        let path = folder.path().join("a");
        let mut files = Files::new(10);
        let mut file = File::create(&path).unwrap();
        watch(&mut files, &file);
        file.write_all(&vec![1; MANY]).unwrap();
        drop(file);
        files.gave_out_place();
        remove(&mut files, &path);
        assert!(files.grown() >= MANY_BLOCKS && files.held.is_empty());
        files.close();
        assert_eq!(files.grown(), 0);
    }

    #[test]
    fn a_copy_of_an_opening_is_one_as_a_mapping_is() {
        let folder = folder();
        let mut files = Files::new(3);
        let file = File::create(folder.path().join("a")).unwrap();
        let id = watch(&mut files, &file);
        let copy = file.try_clone().unwrap();
        drop(file);
        assert!(!files.settle_one(id));
        drop(copy);
        assert!(files.settle_one(id));
    }
}
