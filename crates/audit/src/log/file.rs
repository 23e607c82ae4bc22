//! [`OpenFile`]: the file that records are appended to.

use std::os::fd::OwnedFd;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::LogError;
use super::folder::{Folder, Identity, own_user};
use super::rotation::{Rotation, segment_name};

/// After so many records, a look at whether the name means another file.
const LOOK_EVERY: u32 = 64;
/// For the owner alone.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// What the name of the log stands for at a moment.
pub(super) struct Named {
    pub(super) identity: Identity,
    pub(super) size: u64,
}

impl From<&Stat> for Named {
    fn from(stat: &Stat) -> Self {
        Self {
            identity: stat.into(),
            size: u64::try_from(stat.st_size).unwrap_or(0),
        }
    }
}

/// The log, open for appending.
#[derive(Debug)]
pub(super) struct OpenFile {
    descriptor: OwnedFd,
    identity: Identity,
    size: u64,
    /// Up to where everything is whole lines.
    whole: u64,
    /// Records until the next look at the name.
    until_look: u32,
}

impl OpenFile {
    /// What has the name now, if anything.
    pub(super) fn stat(folder: &Folder) -> Result<Option<Named>, LogError> {
        match rustix::fs::statat(folder, segment_name(0), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Named::from(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(LogError::Inspect {
                path: folder.path_of(&segment_name(0)),
                error,
            }),
        }
    }

    /// Makes sure that what has the name, if anything, can be appended to.
    pub(super) fn check(folder: &Folder) -> Result<(), LogError> {
        let name = segment_name(0);
        let unusable = |error| LogError::OpenFile {
            path: folder.path_of(&name),
            error,
        };
        let stat = match rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat.map_err(unusable)?,
        };
        check_ours(&stat, folder)?;
        let access = Access::READ_OK | Access::WRITE_OK;
        rustix::fs::accessat(folder, &name, access, AtFlags::EACCESS).map_err(unusable)
    }

    /// Opens it, and makes it where it is missing.
    pub(super) fn open(folder: &Folder) -> Result<Self, LogError> {
        let name = segment_name(0);
        let unusable = |error| LogError::OpenFile {
            path: folder.path_of(&name),
            error,
        };
        // Without waiting, or a pipe put in its place would hang us.
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let descriptor = match rustix::fs::openat(folder, &name, flags, PRIVATE) {
            Err(Errno::LOOP) => {
                return Err(LogError::NotAFile {
                    path: folder.path_of(&name),
                });
            }
            opened => opened.map_err(unusable)?,
        };
        let stat = rustix::fs::fstat(&descriptor).map_err(unusable)?;
        check_ours(&stat, folder)?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            rustix::fs::fchmod(&descriptor, PRIVATE).map_err(unusable)?;
        }
        let named = Named::from(&stat);
        Ok(Self {
            descriptor,
            identity: named.identity,
            size: named.size,
            whole: 0,
            until_look: LOOK_EVERY,
        })
    }

    /// Whether records still go here: it is neither full, and so moved on or
    /// about to be, nor taken away.
    pub(super) fn is_still_good(
        &mut self,
        folder: &Folder,
        rotation: Rotation,
    ) -> Result<bool, LogError> {
        let stat = rustix::fs::fstat(&self.descriptor).map_err(|error| LogError::Inspect {
            path: folder.path_of(&segment_name(0)),
            error,
        })?;
        self.size = Named::from(&stat).size;
        let is_good = stat.st_nlink > 0 && !rotation.is_due(self.size);
        self.until_look -= 1;
        if !is_good || self.until_look > 0 {
            return Ok(is_good);
        }
        self.until_look = LOOK_EVERY;
        let named = Self::stat(folder)?;
        Ok(named.is_some_and(|named| named.identity == self.identity))
    }

    /// Writes `line`, which starts and ends with a newline; the first one only
    /// where a line before it was left torn.
    pub(super) fn append(&mut self, line: &[u8], folder: &Folder) -> Result<(), LogError> {
        let path = || folder.path_of(&segment_name(0));
        let failed = |error| LogError::Write {
            path: path(),
            error,
        };
        let is_torn = self.ends_torn().map_err(failed)?;
        let bytes = &line[usize::from(!is_torn)..];
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.descriptor, bytes));
        let written = written.map_err(failed)?;
        if written != bytes.len() {
            return Err(LogError::Short {
                path: path(),
                written,
                wanted: bytes.len(),
            });
        }
        self.size += written as u64;
        self.whole = self.size;
        Ok(())
    }

    /// Whether the last line has no end: a crash or a full disk cut it. What
    /// ends where our own last record did needs no look.
    fn ends_torn(&self) -> Result<bool, Errno> {
        if self.size == self.whole {
            return Ok(false);
        }
        let mut last = [b'\n'];
        rustix::io::pread(&self.descriptor, &mut last, self.size - 1)?;
        Ok(last != [b'\n'])
    }
}

/// Refuses what is no file, or is one of another user.
fn check_ours(stat: &Stat, folder: &Folder) -> Result<(), LogError> {
    let path = folder.path_of(&segment_name(0));
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
