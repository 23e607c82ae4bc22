//! When the log has grown too large: `audit.jsonl` becomes `audit.jsonl.1`,
//! that becomes `audit.jsonl.2`, and the oldest goes. Under the lock.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::LogError;
use super::folder::Folder;
use super::names::{MOST_KEPT, segment_name};
use crate::chain::Header;

/// Enough for the first fields of a line.
const BEGINNING: usize = 512;

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

    /// The number of the oldest record that is left when files are moved on;
    /// none if all of them are.
    pub(super) fn first_left(self, folder: &Folder) -> Option<u64> {
        open_segment(folder, self.keep)?;
        let oldest = (0..self.keep)
            .rev()
            .find_map(|age| open_segment(folder, age))?;
        first_seq(&oldest)
    }

    /// Moves the files on.
    pub(super) fn rotate(self, folder: &Folder) -> Result<(), LogError> {
        (0..self.keep).rev().try_for_each(|age| {
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
}

impl Default for Rotation {
    /// 16 MiB, and 8 old files.
    fn default() -> Self {
        Self::new(16 * 1024 * 1024, 8)
    }
}

/// The number of the oldest record that there is.
pub(super) fn oldest_seq(folder: &Folder) -> Option<u64> {
    let oldest = (0..=MOST_KEPT)
        .rev()
        .find_map(|age| open_segment(folder, age))?;
    first_seq(&oldest)
}

/// A file of the log, for reading.
pub(super) fn open_segment(folder: &Folder, age: u32) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::openat(folder, segment_name(age), flags, Mode::empty()).ok()
}

fn first_seq(file: &OwnedFd) -> Option<u64> {
    let mut beginning = [0; BEGINNING];
    let read = rustix::io::pread(file, &mut beginning, 0).ok()?;
    Header::parse(&beginning[..read]).map(|header| header.seq)
}
