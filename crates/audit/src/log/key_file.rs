//! The file of the key: made once, for the owner alone.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use super::error::LogError;
use super::folder::{Folder, own_user};
use super::names::KEY;
use crate::chain::{KEY_SIZE, Key};

/// A key, and whether there was one.
pub(super) enum Found {
    Before(Key),
    Now(Key),
}

/// Refuses a key that somebody else has or could have read.
pub(super) fn check(folder: &Folder) -> Result<(), LogError> {
    match rustix::fs::statat(folder, KEY, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => check_private(&stat, folder),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(LogError::Inspect {
            path: folder.path_of(KEY),
            error,
        }),
    }
}

/// Reads the key, and makes one where there is none. The lock must be held.
pub(super) fn load(folder: &Folder) -> Result<Found, LogError> {
    match read(folder)? {
        Some(key) => Ok(Found::Before(key)),
        None => make(folder).map(Found::Now),
    }
}

fn read(folder: &Folder) -> Result<Option<Key>, LogError> {
    let path = || folder.path_of(KEY);
    let unusable = |error| LogError::OpenFile {
        path: path(),
        error,
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::openat(folder, KEY, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(LogError::NotAFile { path: path() }),
        opened => opened.map_err(unusable)?,
    };
    check_private(&rustix::fs::fstat(&file).map_err(unusable)?, folder)?;
    let mut bytes = [0; KEY_SIZE + 1];
    match rustix::io::pread(&file, &mut bytes, 0).map_err(unusable)? {
        KEY_SIZE => {}
        size => return Err(LogError::KeySize { path: path(), size }),
    }
    let bytes = bytes.first_chunk().ok_or(LogError::Encode)?;
    Ok(Some(Key::new(bytes)))
}

fn make(folder: &Folder) -> Result<Key, LogError> {
    let path = || folder.path_of(KEY);
    let mut bytes = [0; KEY_SIZE];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    if filled.map_err(LogError::Random)? < KEY_SIZE {
        return Err(LogError::Random(Errno::IO));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let failed = |error| LogError::OpenFile {
        path: path(),
        error,
    };
    let file = rustix::fs::openat(folder, KEY, flags, mode).map_err(failed)?;
    let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, &bytes));
    if written != Ok(KEY_SIZE) {
        // Half a key would be in the way of every later run.
        let _ = rustix::fs::unlinkat(folder, KEY, AtFlags::empty());
        return Err(LogError::Write {
            path: path(),
            error: written.err().unwrap_or(Errno::NOSPC),
        });
    }
    Ok(Key::new(&bytes))
}

fn check_private(stat: &Stat, folder: &Folder) -> Result<(), LogError> {
    let path = folder.path_of(KEY);
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(LogError::NotAFile { path });
    }
    if stat.st_uid != own_user() {
        let owner = stat.st_uid;
        return Err(LogError::ForeignFile { path, owner });
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        return Err(LogError::KeyExposed { path });
    }
    Ok(())
}
