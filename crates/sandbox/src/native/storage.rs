//! How full the private storage of a run is: the one tmpfs that `/tmp`,
//! `/dev/shm` and every other private folder lie on.

use std::os::fd::OwnedFd;

use ringfence_sys::Errno;
use rustix::fs::{MemfdFlags, Mode, OFlags, StatVfs};

/// A folder of the private storage in every view.
const PART: &str = "/dev/shm";

/// The private storage, and what lay there before anything was run.
#[derive(Debug)]
pub(super) struct Storage {
    place: OwnedFd,
    device: u64,
    /// Of layers that lie on it.
    layers: Vec<u64>,
    before: Level,
}

/// The kernel's own tmpfs, on which files without a name and shared memory lie
/// (`memfd_create(2)`).
pub(super) fn memory_device() -> Result<u64, Errno> {
    let sample = rustix::fs::memfd_create("sample", MemfdFlags::CLOEXEC)?;
    Ok(rustix::fs::fstat(&sample)?.st_dev)
}

/// What a file system holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) bytes: u64,
    pub(super) inodes: u64,
    /// Bytes for which there is room; all there are where that is not limited.
    pub(super) free: u64,
    pub(super) full: Option<Full>,
}

/// What a file system has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    Bytes,
    Names,
}

impl Level {
    fn of(status: &StatVfs) -> Self {
        let blocks = status.f_blocks.saturating_sub(status.f_bfree);
        Self {
            bytes: blocks.saturating_mul(status.f_frsize),
            inodes: status.f_files.saturating_sub(status.f_ffree),
            free: if status.f_blocks > 0 {
                status.f_bfree.saturating_mul(status.f_frsize)
            } else {
                u64::MAX
            },
            full: Full::of(status),
        }
    }
}

impl Full {
    fn of(status: &StatVfs) -> Option<Self> {
        // Some file systems have no such numbers at all.
        if status.f_blocks > 0 && status.f_bfree == 0 {
            Some(Self::Bytes)
        } else if status.f_files > 0 && status.f_ffree == 0 {
            Some(Self::Names)
        } else {
            None
        }
    }
}

impl Storage {
    /// To be called once the view is built and before anything is run.
    pub(super) fn open() -> Result<Self, Errno> {
        Self::at(PART)
    }

    pub(super) fn at(path: &str) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            device: rustix::fs::fstat(&place)?.st_dev,
            layers: Vec::new(),
            before: Level::of(&rustix::fs::fstatvfs(&place)?),
            place,
        })
    }

    /// The same, of which files on these devices are part too.
    pub(super) fn with_layers(self, layers: Vec<u64>) -> Self {
        Self { layers, ..self }
    }

    /// What was added since the start. Nothing where it cannot be told.
    pub(super) fn added(&self) -> Level {
        let Ok(status) = rustix::fs::fstatvfs(&self.place) else {
            return Level::default();
        };
        let now = Level::of(&status);
        Level {
            bytes: now.bytes.saturating_sub(self.before.bytes),
            inodes: now.inodes.saturating_sub(self.before.inodes),
            ..now
        }
    }

    /// Whether a file on this device is part of it.
    pub(super) fn is_on(&self, device: u64) -> bool {
        self.device == device || self.layers.contains(&device)
    }
}
