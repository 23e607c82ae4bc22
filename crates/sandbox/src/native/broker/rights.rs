//! Files that give rights to whoever runs them, by a set-id bit or capabilities.
//!
//! The kernel takes these away when the file is written to by a call, and not
//! when that happens in a shared mapping. That takes a file that is open to read
//! and write, so no such file is opened for both.

use std::os::fd::OwnedFd;

use ringfence_sys::Errno;
use rustix::fs::{FileType, OFlags};

use super::caller::path_of;
use super::{Broker, GUARDED};
use crate::rights::gives_rights;
use crate::wire::Operation;

impl Broker<'_> {
    /// Refuses to give out a file that was just opened, if it could be changed
    /// by a mapping and gives rights.
    pub(super) fn refuse_mapping(&mut self, file: &OwnedFd, flags: OFlags) -> Result<(), Errno> {
        if flags & OFlags::ACCMODE != OFlags::RDWR {
            return Ok(());
        }
        let status = rustix::fs::fstat(file)?;
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        if !is_file || !gives_rights(file, &status) {
            return Ok(());
        }
        let path = path_of(file)?;
        self.refuse(Operation::Write, &path, "file that gives rights");
        Err(GUARDED)
    }
}
