//! [`Slot`]: a name in the folder and the file that it stands for, kept open.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::LogError;
use super::folder::{Folder, Identity, own_user};

/// For the owner alone.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// A file that is open.
#[derive(Debug)]
pub(super) struct HeldFile {
    descriptor: OwnedFd,
    identity: Identity,
}

impl AsFd for HeldFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A name and what it stood for when we last looked.
#[derive(Debug)]
pub(super) struct Slot {
    name: String,
    held: Option<HeldFile>,
}

impl Slot {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            held: None,
        }
    }

    /// Makes sure that what has the name, if anything, can be used.
    pub(super) fn check(&self, folder: &Folder) -> Result<(), LogError> {
        let Some(stat) = self.stat(folder)? else {
            return Ok(());
        };
        self.check_ours(&stat, folder)?;
        let access = Access::READ_OK | Access::WRITE_OK;
        rustix::fs::accessat(folder, &self.name, access, AtFlags::EACCESS).map_err(|error| {
            LogError::OpenFile {
                path: folder.path_of(&self.name),
                error,
            }
        })
    }

    /// What has the name now, if anything.
    pub(super) fn stat(&self, folder: &Folder) -> Result<Option<Stat>, LogError> {
        match rustix::fs::statat(folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(LogError::Inspect {
                path: folder.path_of(&self.name),
                error,
            }),
        }
    }

    /// The file that has the name now, with its size.
    pub(super) fn look(&mut self, folder: &Folder) -> Result<Option<(&HeldFile, u64)>, LogError> {
        let Some(stat) = self.stat(folder)? else {
            self.held = None;
            return Ok(None);
        };
        let size = size_of(&stat);
        let held = self.take_if(Identity::from(&stat));
        let held = match held {
            Some(held) => held,
            None => self.open(folder, OFlags::empty())?,
        };
        Ok(Some((self.held.insert(held), size)))
    }

    /// The file that has the name now, made where there is none.
    pub(super) fn make(&mut self, folder: &Folder) -> Result<&HeldFile, LogError> {
        let there = self.look(folder)?.is_some();
        let held = match self.held.take().filter(|_| there) {
            Some(held) => held,
            None => self.open(folder, OFlags::CREATE)?,
        };
        Ok(self.held.insert(held))
    }

    /// The file that is held.
    pub(super) fn held(&self) -> Option<&HeldFile> {
        self.held.as_ref()
    }

    /// Whether the name still stands for the file that is held.
    pub(super) fn is_current(&self, folder: &Folder) -> Result<bool, LogError> {
        let named = self.stat(folder)?.map(|stat| Identity::from(&stat));
        Ok(named.is_some() && named == self.held.as_ref().map(|held| held.identity))
    }

    fn take_if(&mut self, identity: Identity) -> Option<HeldFile> {
        self.held.take().filter(|held| held.identity == identity)
    }

    fn open(&self, folder: &Folder, make: OFlags) -> Result<HeldFile, LogError> {
        let path = || folder.path_of(&self.name);
        let unusable = |error| LogError::OpenFile {
            path: path(),
            error,
        };
        // Without waiting, or a pipe put in its place would hang us.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY | make;
        let descriptor = match rustix::fs::openat(folder, &self.name, flags, PRIVATE) {
            Err(Errno::LOOP) => return Err(LogError::NotAFile { path: path() }),
            opened => opened.map_err(unusable)?,
        };
        let stat = rustix::fs::fstat(&descriptor).map_err(unusable)?;
        self.check_ours(&stat, folder)?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            rustix::fs::fchmod(&descriptor, PRIVATE).map_err(unusable)?;
        }
        Ok(HeldFile {
            descriptor,
            identity: Identity::from(&stat),
        })
    }

    /// Refuses what is no file, or is one of another user.
    fn check_ours(&self, stat: &Stat, folder: &Folder) -> Result<(), LogError> {
        let path = folder.path_of(&self.name);
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(LogError::NotAFile { path });
        }
        if stat.st_uid != own_user() {
            return Err(LogError::ForeignFile {
                path,
                owner: stat.st_uid,
            });
        }
        Ok(())
    }
}

/// Bytes of a file.
pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
