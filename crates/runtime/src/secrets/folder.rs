//! [`PrivateFolder`]: a folder of ours that nobody else can enter, held by a
//! descriptor.
//!
//! Files in it are read only when they are regular, ours and closed to others,
//! and are replaced as a whole or not at all.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// How long the lock is waited for, and how long between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
/// For the owner alone.
const PRIVATE_FOLDER: Mode = Mode::RWXU;
const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Why a folder of ours, or a file in it, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FolderError {
    #[error("cannot make the folder {}: {error}", .path.display())]
    Make { path: PathBuf, error: Errno },
    #[error("the folder {} is a link", .path.display())]
    IsLink { path: PathBuf },
    #[error("cannot open the folder {}: {error}", .path.display())]
    Open { path: PathBuf, error: Errno },
    #[error("{} belongs to uid {owner}", .path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("cannot close the folder {} to others: {error}", .path.display())]
    Close { path: PathBuf, error: Errno },
    #[error("cannot lock the folder {}: {error}", .path.display())]
    Lock { path: PathBuf, error: Errno },
    #[error("{} is not a regular file", .path.display())]
    NotAFile { path: PathBuf },
    #[error("{} can be read or written by others", .path.display())]
    Exposed { path: PathBuf },
    #[error("{} is larger than {limit} bytes", .path.display())]
    TooLarge { path: PathBuf, limit: usize },
    #[error("cannot read {}: {error}", .path.display())]
    Read { path: PathBuf, error: Errno },
    #[error("cannot write {}: {error}", .path.display())]
    Write { path: PathBuf, error: Errno },
    #[error("cannot remove {}: {error}", .path.display())]
    Remove { path: PathBuf, error: Errno },
}

impl FolderError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::IsLink { .. } | Self::NotAFile { .. } => {
                "look at what is there, and move it out of the way"
            }
            Self::Foreign { .. } => "run it as the user whose files these are",
            Self::Exposed { .. } => {
                "others may have seen or changed it: look at it, then chmod 600 it"
            }
            Self::Lock { .. } => "another ringfence is at work there; try again",
            Self::TooLarge { .. } => "it is none of ours: move it out of the way",
            _ => "make room, and check who may write there",
        }
    }
}

/// A folder for the owner alone.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// The right to change a folder's files, until it is dropped.
#[derive(Debug)]
pub(crate) struct Locked<'a>(&'a PrivateFolder);

impl PrivateFolder {
    /// Opens it, and makes it first where it is missing.
    pub(crate) fn make(path: &Path) -> Result<Self, FolderError> {
        refuse_link(path)?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| FolderError::Make {
            path: path.to_path_buf(),
            error: errno(&error),
        })?;
        Self::open(path)?.ok_or_else(|| FolderError::Open {
            path: path.to_path_buf(),
            error: Errno::NOENT,
        })
    }

    /// Opens it, if it is there.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, FolderError> {
        refuse_link(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = match rustix::fs::open(path, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => {
                let path = path.to_path_buf();
                return Err(FolderError::Open { path, error });
            }
            Ok(descriptor) => descriptor,
        };
        let path = path.to_path_buf();
        let folder = Self { descriptor, path };
        folder.close_to_others()?;
        Ok(Some(folder))
    }

    fn close_to_others(&self) -> Result<(), FolderError> {
        let failed = |error| FolderError::Close {
            path: self.path.clone(),
            error,
        };
        let stat = rustix::fs::fstat(&self.descriptor).map_err(failed)?;
        refuse_foreign(&stat, &self.path)?;
        if Mode::from_raw_mode(stat.st_mode) == PRIVATE_FOLDER {
            return Ok(());
        }
        rustix::fs::fchmod(&self.descriptor, PRIVATE_FOLDER).map_err(failed)
    }

    /// The path of an entry, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Waits until nobody else changes its files. A writer that was stopped
    /// must not stop every other for good, so it is a bounded time.
    pub(crate) fn lock(&self) -> Result<Locked<'_>, FolderError> {
        let started = Instant::now();
        loop {
            let operation = FlockOperation::NonBlockingLockExclusive;
            match rustix::fs::flock(&self.descriptor, operation) {
                Ok(()) => return Ok(Locked(self)),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if started.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                Err(error) => {
                    let path = self.path.clone();
                    return Err(FolderError::Lock { path, error });
                }
            }
        }
    }

    /// A file's content, if it is there.
    pub(crate) fn read(
        &self,
        name: &str,
        limit: usize,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, FolderError> {
        let path = || self.path_of(name);
        let failed = |error| FolderError::Read {
            path: path(),
            error,
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(FolderError::NotAFile { path: path() }),
            opened => opened.map_err(failed)?,
        };
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        refuse_unfit(&stat, &path())?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(limit.min(size_of_file(&stat)) + 1));
        File::from(file)
            .take(limit as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed(errno(&error)))?;
        if bytes.len() > limit {
            return Err(FolderError::TooLarge {
                path: path(),
                limit,
            });
        }
        Ok(Some(bytes))
    }
}

impl Locked<'_> {
    /// Writes a file whole: what was there stays until all of the new one is
    /// on the disk.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let fresh = format!("{name}.new");
        let written = self
            .write(&fresh, bytes)
            .and_then(|()| rustix::fs::renameat(self.folder(), &fresh, self.folder(), name))
            .and_then(|()| rustix::fs::fsync(self.folder()));
        written.map_err(|error| FolderError::Write {
            path: self.0.path_of(name),
            error,
        })
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Errno> {
        // Left over from a writer that died.
        match rustix::fs::unlinkat(self.folder(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.folder(), name, flags, PRIVATE_FILE)?;
        let mut file = File::from(file);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| {
            let _ = rustix::fs::unlinkat(self.folder(), name, AtFlags::empty());
            errno(&error)
        })
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), FolderError> {
        match rustix::fs::unlinkat(self.folder(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(FolderError::Remove {
                path: self.0.path_of(name),
                error,
            }),
        }
    }

    fn folder(&self) -> impl AsFd {
        self.0.descriptor.as_fd()
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing alone would leave it with a child that has a copy of the
        // descriptor.
        let _ = rustix::fs::flock(self.folder(), FlockOperation::Unlock);
    }
}

fn refuse_unfit(stat: &Stat, path: &Path) -> Result<(), FolderError> {
    let path = path.to_path_buf();
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(FolderError::NotAFile { path });
    }
    refuse_foreign(stat, &path)?;
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        return Err(FolderError::Exposed { path });
    }
    Ok(())
}

fn refuse_foreign(stat: &Stat, path: &Path) -> Result<(), FolderError> {
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(FolderError::Foreign {
        path: path.to_path_buf(),
        owner: stat.st_uid,
    })
}

/// A link is refused by its own name: what the kernel says to opening one as a
/// folder is the same as to a file.
fn refuse_link(path: &Path) -> Result<(), FolderError> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink()) {
        let path = path.to_path_buf();
        return Err(FolderError::IsLink { path });
    }
    Ok(())
}

fn size_of_file(stat: &Stat) -> usize {
    usize::try_from(stat.st_size).unwrap_or(0)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn g5_what_is_kept_is_for_the_owner_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/own");
        assert!(PrivateFolder::open(&path).unwrap().is_none());
        let folder = PrivateFolder::make(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        folder.lock().unwrap().replace("file", b"one").unwrap();
        folder.lock().unwrap().replace("file", b"two").unwrap();
        assert_eq!(mode(&path.join("file")), 0o600);
        assert_eq!(**folder.read("file", 3).unwrap().unwrap(), *b"two");
        assert!(matches!(
            folder.read("file", 2),
            Err(FolderError::TooLarge { .. })
        ));
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1);
        set_mode(&path, 0o755);
        PrivateFolder::open(&path).unwrap().unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn g5_links_and_exposed_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("own");
        let folder = PrivateFolder::make(&path).unwrap();
        folder.lock().unwrap().replace("file", b"one").unwrap();
        symlink("own", place.path().join("link")).unwrap();
        for linked in [PrivateFolder::make, |path: &Path| {
            PrivateFolder::open(path).map(Option::unwrap)
        }] {
            let refused = linked(&place.path().join("link")).unwrap_err();
            assert!(matches!(refused, FolderError::IsLink { .. }));
        }
        symlink("file", path.join("other")).unwrap();
        let refused = folder.read("other", 9).unwrap_err();
        assert!(matches!(refused, FolderError::NotAFile { .. }));
        set_mode(&path.join("file"), 0o640);
        let refused = folder.read("file", 9).unwrap_err();
        assert!(matches!(refused, FolderError::Exposed { .. }));
        assert_eq!(folder.read("none", 9).unwrap(), None);
    }

    #[test]
    fn what_a_dead_writer_left_is_no_hindrance() {
        let place = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::make(place.path()).unwrap();
        std::fs::write(place.path().join("file.new"), "half").unwrap();
        folder.lock().unwrap().replace("file", b"whole").unwrap();
        assert_eq!(**folder.read("file", 9).unwrap().unwrap(), *b"whole");
    }

    #[test]
    fn one_at_a_time_changes_files() {
        let place = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::make(place.path()).unwrap();
        let held = folder.lock().unwrap();
        let other = PrivateFolder::make(place.path()).unwrap();
        let operation = FlockOperation::NonBlockingLockExclusive;
        let busy = rustix::fs::flock(&other.descriptor, operation);
        assert_eq!(busy, Err(Errno::WOULDBLOCK));
        drop(held);
        other.lock().unwrap();
    }
}
