//! [`Folder`]: where the log lives, held by a descriptor.
//!
//! What is written goes only to a folder that belongs to us and that nobody
//! else can enter.

use std::fs::DirBuilder;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::LogError;

/// For the owner alone.
const PRIVATE: Mode = Mode::RWXU;

/// A file whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl From<&Stat> for Identity {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// The folder of the log.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens it for writing, and makes it first where it is missing.
    pub(super) fn make(path: &Path) -> Result<Self, LogError> {
        refuse_link(path)?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| LogError::CreateFolder {
            path: path.to_path_buf(),
            error: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        })?;
        let folder = Self::open(path).map_err(|error| LogError::OpenFolder {
            path: path.to_path_buf(),
            error,
        })?;
        folder.make_private()?;
        Ok(folder)
    }

    /// Opens it for reading.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            descriptor: rustix::fs::open(path, flags, Mode::empty())?,
            path: path.to_path_buf(),
        })
    }

    fn make_private(&self) -> Result<(), LogError> {
        let unusable = |error| LogError::UnwritableFolder {
            path: self.path.clone(),
            error,
        };
        let stat = rustix::fs::fstat(self).map_err(unusable)?;
        if stat.st_uid != own_user() {
            return Err(LogError::ForeignFolder {
                path: self.path.clone(),
                owner: stat.st_uid,
            });
        }
        if Mode::from_raw_mode(stat.st_mode) != PRIVATE {
            rustix::fs::fchmod(self, PRIVATE).map_err(unusable)?;
        }
        let access = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(self, ".", access, AtFlags::EACCESS).map_err(unusable)
    }

    /// The path of an entry, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A link is refused by its own name: what the kernel says to opening one as a
/// folder is the same as to a file.
fn refuse_link(path: &Path) -> Result<(), LogError> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    let is_link = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
    if is_link {
        return Err(LogError::FolderIsLink {
            path: path.to_path_buf(),
        });
    }
    Ok(())
}

/// Whose files the log's must be.
pub(super) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
