//! The file that says where the log ends.

use rustix::io::Errno;

use super::error::LogError;
use super::folder::Folder;
use super::held::Slot;
use super::names::HEAD;
use crate::chain::{HEAD_SIZE, Head, Key};

/// What the file says.
pub(super) enum HeadState {
    Missing,
    /// It is not what our key wrote.
    Altered,
    Good(Head),
}

/// Reads it.
pub(super) fn read(slot: &mut Slot, folder: &Folder, key: &Key) -> Result<HeadState, LogError> {
    let Some((file, _)) = slot.look(folder)? else {
        return Ok(HeadState::Missing);
    };
    let mut bytes = [0; HEAD_SIZE + 1];
    let read = rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut bytes, 0));
    let read = read.map_err(|error| LogError::Inspect {
        path: folder.path_of(HEAD),
        error,
    })?;
    Ok(match Head::decode(&bytes[..read], key) {
        Some(head) => HeadState::Good(head),
        None => HeadState::Altered,
    })
}

/// Writes it in place.
pub(super) fn write(
    slot: &mut Slot,
    folder: &Folder,
    head: &Head,
    key: &Key,
) -> Result<(), LogError> {
    let bytes = head.encode(key).ok_or(LogError::Encode)?;
    let file = slot.make(folder)?;
    let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(file, &bytes, 0));
    let failed = |error| LogError::Write {
        path: folder.path_of(HEAD),
        error,
    };
    match written.map_err(failed)? {
        HEAD_SIZE => Ok(()),
        _ => Err(failed(Errno::NOSPC)),
    }
}
