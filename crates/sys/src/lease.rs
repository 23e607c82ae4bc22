//! Leases on files (fcntl(2), `F_SETLEASE`), used only to ask who else has a
//! file open: one is granted when nobody stands in its way, and given back at
//! once.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Errno, Result, check};

/// The kind of opening that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenFor {
    /// For writing, or mapped from such an opening.
    Writing,
    /// For anything but as a mere place (`O_PATH`).
    Anything,
}

/// Whether anybody but the caller has `file` open, which the caller must have
/// open for reading alone and only once. Fails for a file of another owner,
/// and where the file system has no leases.
pub fn is_open_elsewhere(file: BorrowedFd<'_>, kind: OpenFor) -> Result<bool> {
    let wanted = match kind {
        OpenFor::Writing => libc::F_RDLCK,
        OpenFor::Anything => libc::F_WRLCK,
    };
    match set_lease(file, wanted) {
        Ok(()) => set_lease(file, libc::F_UNLCK).map(|()| false),
        Err(Errno::AGAIN) => Ok(true),
        Err(errno) => Err(errno),
    }
}

fn set_lease(file: BorrowedFd<'_>, kind: libc::c_int) -> Result<()> {
    // SAFETY: `F_SETLEASE` takes an integer.
    let returned = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    check(libc::c_long::from(returned))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn ask(path: &std::path::Path, kind: OpenFor) -> bool {
        is_open_elsewhere(File::open(path).unwrap().as_fd(), kind).unwrap()
    }

    /// Another test's child may have a copy of what was open for a moment.
    fn ask_until_free(path: &std::path::Path, kind: OpenFor) -> bool {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while ask(path, kind) {
            if std::time::Instant::now() > end {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    #[test]
    fn others_show_as_long_as_they_have_the_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let writer = File::create(&path).unwrap();
        assert!(ask(&path, OpenFor::Writing));
        drop(writer);
        let reader = File::open(&path).unwrap();
        assert!(ask_until_free(&path, OpenFor::Writing));
        assert!(ask(&path, OpenFor::Anything));
        drop(reader);
        assert!(ask_until_free(&path, OpenFor::Anything));
    }
}
