//! Renaming onto a writable file that is a mount of its own.
//!
//! Many tools write a new file beside the old one and rename it. Where a single file is writable,
//! the kernel refuses that: the name is a mount point (`EBUSY`, rename(2)). So the content is
//! written into the file that is there, through a descriptor, and the other name is removed. It
//! keeps its inode, owner and mode, and for a moment others can see it half written; when writing
//! fails, what it held is put back.

use std::os::fd::OwnedFd;

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};

use super::Broker;
use super::caller::Spot;

/// The most bytes that are written so: nobody else is served meanwhile. Such files are settings.
const LARGEST: u64 = 16 * 1024 * 1024;

impl Broker<'_> {
    /// What is to be answered to a rename that the kernel refused for a mount point: as if it had
    /// worked, once the content is replaced.
    pub(super) fn replace_content(
        &mut self,
        from: &Spot,
        to: &Spot,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        // The name that is moved may be the mount point.
        let target = open(to, OFlags::PATH).map_err(|_| Errno::BUSY)?;
        if !flags.is_empty() || !self.roots.is_mounted_file(&target)? {
            return Err(Errno::BUSY);
        }
        let source = open(from, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let target = open(to, OFlags::RDWR | OFlags::NONBLOCK)?;
        let before = regular(&target)?;
        let (new, old) = (content(&source)?, content(&target)?);
        self.disk.admit_writing(OFlags::WRONLY)?;
        if let Err(errno) = write_whole(&target, &new) {
            // As far as that can be done.
            let _ = write_whole(&target, &old);
            return Err(errno);
        }
        self.disk
            .replaced(Some(&before), Some(&rustix::fs::fstat(&target)?));
        let doomed = self.disk.before_removing(&from.folder, &from.name);
        rustix::fs::unlinkat(&from.folder, &from.name, AtFlags::empty())?;
        self.disk.removed(doomed);
        Ok(())
    }
}

fn open(spot: &Spot, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(&spot.folder, &spot.name, flags, Mode::empty()) {
        // A link or a directory is not put in place of a file so.
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => Err(Errno::BUSY),
        other => other,
    }
}

fn regular(file: &OwnedFd) -> Result<Stat, Errno> {
    let status = rustix::fs::fstat(file)?;
    let is_small = u64::try_from(status.st_size).is_ok_and(|size| size <= LARGEST);
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile if is_small => Ok(status),
        _ => Err(Errno::BUSY),
    }
}

fn content(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    const AT_ONCE: usize = 64 * 1024;
    let size = u64::try_from(regular(file)?.st_size).unwrap_or(0);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let mut room = vec![0; AT_ONCE];
    loop {
        let at = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        match rustix::io::pread(file, &mut room[..], at)? {
            0 => return Ok(bytes),
            // It grows while it is read.
            _ if at > LARGEST => return Err(Errno::BUSY),
            read => bytes.extend_from_slice(&room[..read]),
        }
    }
}

fn write_whole(file: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    let mut at = 0;
    while at < bytes.len() {
        let offset = u64::try_from(at).unwrap_or(u64::MAX);
        at += match rustix::io::pwrite(file, &bytes[at..], offset)? {
            0 => return Err(Errno::NOSPC),
            written => written,
        };
    }
    rustix::fs::ftruncate(file, u64::try_from(bytes.len()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_replaced_as_a_whole_whatever_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, vec![7; 200_000]).unwrap();
        let file = rustix::fs::open(&path, OFlags::RDWR, Mode::empty()).unwrap();
        for length in [0, 1, 300_000] {
            let bytes = vec![b'x'; length];
            write_whole(&file, &bytes).unwrap();
            assert_eq!(content(&file).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_too_large_or_no_file_is_left_to_the_kernels_answer() {
        let folder = tempfile::tempdir().unwrap();
        let large = std::fs::File::create(folder.path().join("f")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        assert_eq!(content(&large.into()), Err(Errno::BUSY));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
        assert_eq!(content(&folder), Err(Errno::BUSY));
    }
}
