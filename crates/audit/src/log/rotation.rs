//! When the log has grown too large: `network.jsonl` becomes
//! `network.jsonl.1`, that becomes `network.jsonl.2`, and the oldest goes.
//!
//! One process at a time does it, under a lock. Nobody appends to a file that
//! has reached its size, so a writer that still holds an old one leaves it
//! before its next record.

use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::LogError;
use super::file::OpenFile;
use super::folder::Folder;

const FILE: &str = "network.jsonl";
const LOCK: &str = "network.lock";

/// The most old files that are ever kept, and looked for.
pub(crate) const MOST_KEPT: u32 = 32;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    full_bytes: u64,
    keep: u32,
}

impl Rotation {
    /// Files that are full at `full_bytes`, and `keep` old ones, from 1 to 32.
    pub fn new(full_bytes: u64, keep: u32) -> Self {
        Self {
            full_bytes,
            keep: keep.clamp(1, MOST_KEPT),
        }
    }

    /// Whether a file of `size` is full.
    pub(super) fn is_due(self, size: u64) -> bool {
        size > 0 && size >= self.full_bytes
    }
}

impl Default for Rotation {
    /// 16 MiB, and 8 old files.
    fn default() -> Self {
        Self::new(16 * 1024 * 1024, 8)
    }
}

/// The name of the log, for 0, and of its old files, from 1, the newest.
pub(crate) fn segment_name(age: u32) -> String {
    match age {
        0 => FILE.to_owned(),
        age => format!("{FILE}.{age}"),
    }
}

/// Moves the files on, unless somebody else does or just has.
pub(super) fn rotate(folder: &Folder, rotation: Rotation) -> Result<(), LogError> {
    let Some(_lock) = try_lock(folder)? else {
        // Whoever has it is at it; until then the file is a little too large.
        return Ok(());
    };
    let named = OpenFile::stat(folder)?;
    if named.is_none_or(|named| !rotation.is_due(named.size)) {
        return Ok(());
    }
    (0..rotation.keep).rev().try_for_each(|age| {
        let (from, to) = (segment_name(age), segment_name(age + 1));
        match rustix::fs::renameat(folder, &from, folder, &to) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(LogError::Rotate {
                path: folder.path_of(&from),
                error,
            }),
        }
    })
}

/// The right to move files on.
struct Lock(OwnedFd);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave it with a child that is just being started
        // and has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

fn try_lock(folder: &Folder) -> Result<Option<Lock>, LogError> {
    let failed = |error| LogError::Lock {
        path: folder.path_of(LOCK),
        error,
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let lock = rustix::fs::openat(folder, LOCK, flags | OFlags::NONBLOCK, mode).map_err(failed)?;
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock(lock))),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
