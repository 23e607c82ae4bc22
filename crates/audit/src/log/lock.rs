//! The right to change the log, which one process has at a time.
//!
//! It is asked for a bounded time: a writer that was stopped while it had it
//! must not stop every other run for good.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::error::LogError;
use super::folder::Folder;
use super::held::Slot;
use super::names::LOCK;

/// How long it is waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long until it is asked for again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(2);

/// The lock while it is held.
#[derive(Debug)]
pub(crate) struct Locked<'a>(BorrowedFd<'a>);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing alone would leave it with a child that is just being started
        // and has a copy of the descriptor.
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}

/// Waits until nobody else has it.
pub(super) fn take<'a>(slot: &'a mut Slot, folder: &Folder) -> Result<Locked<'a>, LogError> {
    let failed = |error| LogError::Lock {
        path: folder.path_of(LOCK),
        error,
    };
    loop {
        wait(slot.make(folder)?.as_fd()).map_err(failed)?;
        // Another file may have the name by now, and others its lock.
        if slot.is_current(folder)? {
            break;
        }
        drop(slot.held().map(|held| Locked(held.as_fd())));
    }
    let held = slot.held().ok_or(failed(Errno::NOENT))?;
    Ok(Locked(held.as_fd()))
}

/// Waits for a descriptor's lock.
pub(crate) fn wait_for(descriptor: BorrowedFd<'_>) -> Result<Locked<'_>, Errno> {
    wait(descriptor)?;
    Ok(Locked(descriptor))
}

fn wait(descriptor: BorrowedFd<'_>) -> Result<(), Errno> {
    let started = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        match rustix::fs::flock(descriptor, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if started.elapsed() < PATIENCE => {}
            Err(Errno::INTR) => continue,
            done => return done,
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
