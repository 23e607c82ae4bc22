//! Measuring and removing trees that code inside has made: by descriptor, without following a
//! link, and with an end however deep or wide they are.

use std::ffi::{CString, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir};
use serde::Serialize;

/// Directories that are open at once. Deeper ones are not measured, and are moved up to be removed.
const MOST_OPEN: usize = 64;
/// The most entries that are measured.
const MOST_MEASURED: u64 = 1_000_000;
/// The most entries of a directory that are shown.
const MOST_SHOWN: usize = 100;
/// What a block of a file's size is.
const BLOCK: u64 = 512;

/// What a tree takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// Bytes on disk.
    pub bytes: u64,
    /// Files, directories and links.
    pub entries: u64,
    /// Whether there is more that was not measured.
    pub is_partial: bool,
}

/// What is at the top of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name, with what is no text replaced.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A file.
    File,
    /// A link, which was not followed.
    Link,
    /// Something of the host's that was removed inside.
    Removed,
    /// A pipe or a socket.
    Other,
}

impl EntryKind {
    /// The word for tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Link => "link",
            Self::Removed => "removed",
            Self::Other => "other",
        }
    }

    fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            // How an overlay marks it; nobody inside can make any other.
            FileType::CharacterDevice => Self::Removed,
            _ => Self::Other,
        }
    }
}

/// The names in a directory.
pub(super) fn names(folder: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    each(folder, |name, _| {
        names.push(OsString::from_vec(name.into_bytes()));
        Ok(true)
    })?;
    Ok(names)
}

/// What is at the top of a tree, sorted. As much of it as is shown.
pub(super) fn top(folder: BorrowedFd<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    // What cannot be read is not shown.
    let _ = each(folder, |name, kind| {
        entries.push(Entry {
            name: name.to_string_lossy().into_owned(),
            kind: EntryKind::of(kind),
        });
        Ok(entries.len() < MOST_SHOWN)
    });
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

/// What the tree below `root` takes.
pub(super) fn measure(root: BorrowedFd<'_>) -> Size {
    let mut size = Size::default();
    measure_in(root, MOST_OPEN, &mut size);
    size
}

fn measure_in(folder: BorrowedFd<'_>, depth: usize, size: &mut Size) {
    let read = each(folder, |name, kind| {
        if size.entries >= MOST_MEASURED {
            size.is_partial = true;
            return Ok(false);
        }
        size.entries += 1;
        if let Ok(status) = rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            size.bytes += u64::try_from(status.st_blocks).unwrap_or(0) * BLOCK;
        }
        if kind == FileType::Directory {
            match open(folder, &name) {
                Ok(inner) if depth > 0 => measure_in(inner.as_fd(), depth - 1, size),
                _ => size.is_partial = true,
            }
        }
        Ok(true)
    });
    size.is_partial |= read.is_err();
}

/// Removes the directory `name` of `folder` and everything below it. For a caller that no other
/// process changes it beside.
pub(super) fn remove(folder: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let name = CString::new(name).map_err(|_| Errno::INVAL)?;
    let root = open_surely(folder, &name)?;
    let mut removal = Removal {
        root: root.as_fd(),
        moved: 0,
    };
    // What was moved up is found by the next round.
    while removal.empty(root.as_fd(), MOST_OPEN)? {}
    rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR)
}

/// A tree that is being removed.
struct Removal<'a> {
    root: BorrowedFd<'a>,
    /// How many directories were moved up to it.
    moved: u64,
}

impl Removal<'_> {
    /// Empties a directory. True when something was moved up to the root meanwhile.
    fn empty(&mut self, folder: BorrowedFd<'_>, depth: usize) -> Result<bool, Errno> {
        let before = self.moved;
        let mut found = Vec::new();
        each(folder, |name, kind| {
            found.push((name, kind));
            Ok(true)
        })?;
        for (name, kind) in found {
            if kind != FileType::Directory {
                rustix::fs::unlinkat(folder, &name, AtFlags::empty())?;
            } else if depth == 0 {
                self.moved += 1;
                let up = format!(".moved-{}", self.moved);
                rustix::fs::renameat(folder, &name, self.root, up)?;
            } else {
                let inner = open_surely(folder, &name)?;
                self.empty(inner.as_fd(), depth - 1)?;
                rustix::fs::unlinkat(folder, &name, AtFlags::REMOVEDIR)?;
            }
        }
        Ok(self.moved > before)
    }
}

/// Opens a directory, whatever its mode: code inside may have shut it, and the kernel shuts the one
/// that an overlay works in.
fn open_surely(folder: BorrowedFd<'_>, name: &CString) -> Result<OwnedFd, Errno> {
    let place = {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(folder, name, flags, Mode::empty())?
    };
    // The very directory, which a mere place cannot be changed by otherwise.
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    rustix::fs::chmodat(CWD, link, Mode::RWXU, AtFlags::empty())?;
    open(folder, name)
}

pub(super) fn open(folder: BorrowedFd<'_>, name: &CString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// Calls `see` with each entry until it has seen enough.
pub(super) fn each(
    folder: BorrowedFd<'_>,
    mut see: impl FnMut(CString, FileType) -> Result<bool, Errno>,
) -> Result<(), Errno> {
    const ROOM: usize = 8 * 1024;
    // A place in it of its own.
    let own = open(folder, &CString::from(c"."))?;
    let mut room = [MaybeUninit::uninit(); ROOM];
    let mut entries = RawDir::new(&own, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say.
            FileType::Unknown => rustix::fs::statat(&own, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |status| {
                    FileType::from_raw_mode(status.st_mode)
                }),
            kind => kind,
        };
        if !see(name.to_owned(), kind)? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn folder(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn what_is_deeper_than_any_path_is_removed_and_measured_in_part() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join("tree")).unwrap();
        let mut at = folder(&top.path().join("tree"));
        for _ in 0..3000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = open(at.as_fd(), &CString::from(c"d")).unwrap();
        }
        let root = folder(top.path());
        assert!(measure(root.as_fd()).is_partial);
        remove(root.as_fd(), "tree").unwrap();
        assert!(!top.path().join("tree").exists());
    }

    #[test]
    fn shut_directories_are_removed() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("tree/shut/x")).unwrap();
        let shut = folder(&top.path().join("tree/shut"));
        rustix::fs::fchmod(&shut, Mode::empty()).unwrap();
        remove(folder(top.path()).as_fd(), "tree").unwrap();
        assert!(!top.path().join("tree").exists());
    }
}
