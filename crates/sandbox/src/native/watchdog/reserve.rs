//! Descriptors that are kept for looking.
//!
//! Code inside can have the init hold descriptors, of removed files for
//! instance, and others can use up those of the machine. Whoever looks must be
//! able to open a file all the same: nothing that cannot be looked at is gone.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_sys::Errno;
use rustix::fs::{Mode, OFlags};

/// More than are open at once for all looks together.
const SPARE: usize = 8;

/// The reserve.
pub(super) struct Reserve(RefCell<Vec<OwnedFd>>);

impl Reserve {
    pub(super) fn new() -> Result<Self, Errno> {
        let reserve = Self(RefCell::new(Vec::with_capacity(SPARE)));
        reserve.refill()?;
        Ok(reserve)
    }

    /// Opens a file to be read, at the expense of the reserve if need be.
    pub(super) fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        self.lend(|| rustix::fs::open(path, flags, Mode::empty()))
    }

    fn lend(&self, open: impl Fn() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
        // What was lent before is closed by now, or is still in use.
        let _ = self.refill();
        loop {
            match open() {
                Err(errno @ (Errno::MFILE | Errno::NFILE)) => {
                    self.0.borrow_mut().pop().ok_or(errno).map(drop)?;
                }
                other => return other,
            }
        }
    }

    /// Each is an open file of its own: copies would save none of the machine's.
    fn refill(&self) -> Result<(), Errno> {
        let mut spare = self.0.borrow_mut();
        while spare.len() < SPARE {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            spare.push(rustix::fs::open("/proc", flags, Mode::empty())?);
        }
        Ok(())
    }
}

/// Whether a process that was asked about is there no more. Nothing else that
/// can go wrong says so.
pub(super) fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(reserve: &Reserve) -> usize {
        reserve.0.borrow().len()
    }

    #[test]
    fn g9_where_no_descriptor_is_left_the_reserve_is_used_and_filled_again() {
        let reserve = Reserve::new().unwrap();
        let open = || rustix::fs::open("/proc", OFlags::PATH, Mode::empty());
        for errno in [Errno::MFILE, Errno::NFILE] {
            // As if only what the reserve gives up could be had.
            let lent = reserve.lend(|| match left(&reserve) {
                SPARE => Err(errno),
                _ => open(),
            });
            assert!(lent.is_ok());
            assert_eq!(left(&reserve), SPARE - 1);
        }
        assert_eq!(
            reserve.lend(|| Err(Errno::MFILE)).unwrap_err(),
            Errno::MFILE
        );
        assert_eq!(left(&reserve), 0);
        assert_eq!(
            reserve.lend(|| Err(Errno::NOENT)).unwrap_err(),
            Errno::NOENT
        );
        assert_eq!(left(&reserve), SPARE);
    }

    #[test]
    fn g9_only_what_is_not_there_is_gone() {
        assert!([Errno::NOENT, Errno::SRCH].into_iter().all(is_gone));
        let others = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::ACCESS,
            Errno::INTR,
        ];
        assert!(!others.into_iter().any(is_gone));
    }
}
