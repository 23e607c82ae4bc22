//! Opening directories to look at them, also those of our own that were made
//! unreadable: by a run, so that nobody looks, or by their owner.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use ringfence_sys::Errno;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

/// A directory that can be listed. Its mode is what it was once this is gone.
pub(crate) struct Looked {
    opened: OwnedFd,
    restored: Option<Mode>,
}

impl AsFd for Looked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }
}

impl Looked {
    /// Lets its owner change what is in it, until this is gone.
    pub(crate) fn make_writable(&mut self) -> Result<(), Errno> {
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&self.opened)?.st_mode);
        rustix::fs::fchmod(&self.opened, mode | Mode::RWXU)?;
        self.restored.get_or_insert(mode);
        Ok(())
    }
}

impl Drop for Looked {
    fn drop(&mut self) {
        if let Some(mode) = self.restored {
            let _ = rustix::fs::fchmod(&self.opened, mode);
        }
    }
}

/// Opens a writable root; no link is followed.
pub(crate) fn open_root(path: &Path) -> Result<Looked, Errno> {
    let open = |flags| {
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
    };
    look(open)
}

/// Opens a directory that nothing is changed about, and whose path has no links.
pub(crate) fn open_readable(path: &Path) -> Result<Looked, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(Looked {
        opened,
        restored: None,
    })
}

/// Opens an entry of a directory that is one itself.
pub(crate) fn open_directory(parent: BorrowedFd<'_>, name: &OsStr) -> Result<Looked, Errno> {
    let open = |flags| {
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(parent, name, flags, Mode::empty())
    };
    look(open)
}

fn look(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<Looked, Errno> {
    match open(OFlags::RDONLY) {
        Err(Errno::ACCESS) => look_at_closed(&open(OFlags::PATH)?),
        other => other.map(|opened| Looked {
            opened,
            restored: None,
        }),
    }
}

/// One that its owner may not read: he may let himself.
fn look_at_closed(place: &OwnedFd) -> Result<Looked, Errno> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    rustix::fs::chmod(&link, mode | Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&link, flags, Mode::empty());
    if opened.is_err() {
        let _ = rustix::fs::chmod(&link, mode);
    }
    Ok(Looked {
        opened: opened?,
        restored: Some(mode),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::survey::list;

    #[test]
    fn a_closed_directory_of_ours_is_looked_at_and_closed_again() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("file"), "").unwrap();
        let mode = || std::fs::metadata(&inner).unwrap().permissions().mode() & 0o7777;
        std::fs::set_permissions(&inner, PermissionsExt::from_mode(0o311)).unwrap();
        let root = open_root(&folder.path().canonicalize().unwrap()).unwrap();
        let mut looked = open_directory(root.as_fd(), OsStr::new("inner")).unwrap();
        for _ in 0..2 {
            assert_eq!(list(looked.as_fd(), 10).unwrap().len(), 1);
        }
        looked.make_writable().unwrap();
        assert_eq!(mode(), 0o711);
        drop(looked);
        assert_eq!(mode(), 0o311);
    }
}
