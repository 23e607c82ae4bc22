//! Changing the mode and the length of files by name.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};

use ringfence_sys::Errno;
use ringfence_sys::seccomp::Answer;
use rustix::fs::{CWD, FallocateFlags, FileType, Mode, OFlags, ResolveFlags};

use super::caller::{Caller, Lead, as_descriptor, path_of};
use super::{Broker, Done, Outcome, value};
use crate::guarding::Guarding;
use crate::native::disk::Name;
use crate::wire::Operation;

impl Broker<'_> {
    pub(super) fn change_mode(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: u64,
        mode: u64,
        flags: u64,
    ) -> Outcome {
        let flags = as_descriptor(flags);
        let path = caller.path(path)?;
        let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
        let place = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
            caller.open_place(as_descriptor(base))?
        } else if let Some(place) = self.plainly_existing(caller, base, &path, follows)? {
            place
        } else {
            existing(caller, base, &path, follows)?
        };
        let mode = self.admit_mode(&place, mode)?;
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        rustix::fs::chmod(link, mode)?;
        value(0)
    }

    pub(super) fn change_mode_of_open(
        &mut self,
        caller: &Caller<'_>,
        number: u64,
        mode: u64,
    ) -> Outcome {
        let file = caller.open_file(as_descriptor(number))?;
        let mode = self.admit_mode(&file, mode)?;
        rustix::fs::fchmod(&file, mode)?;
        value(0)
    }

    /// The mode that the file or directory `place` may get.
    fn admit_mode(&mut self, place: &OwnedFd, mode: u64) -> Result<Mode, Errno> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
        // A file of the host that is a standard stream is not ours to change.
        if kind == FileType::RegularFile && !self.roots.is_in_view(place)? && !is_memory(place)? {
            return Err(Errno::PERM);
        }
        // Otherwise what must stay is read-only by its mount.
        if self.guarding == Guarding::Full {
            self.judge_place(Operation::ChangeMode, place)?;
        }
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o7777).unwrap_or(0));
        match kind {
            _ if mode.contains(Mode::SUID) => Err(Errno::PERM),
            FileType::Symlink if mode.contains(Mode::SGID) => Err(Errno::OPNOTSUPP),
            FileType::Directory => Ok(mode),
            _ if mode.contains(Mode::SGID) => Err(Errno::PERM),
            _ => Ok(mode),
        }
    }

    /// What is at `path`, with few calls, where no link to an open file is on
    /// the way and nothing has to be judged; `None` for all others.
    fn plainly_existing(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: &OsStr,
        follows: bool,
    ) -> Result<Option<OwnedFd>, Errno> {
        let bytes = path.as_encoded_bytes();
        let is_special = bytes.is_empty()
            || [&b"/proc/"[..], b"/dev/"]
                .iter()
                .any(|one| bytes.starts_with(one));
        if is_special || !follows || self.guarding == Guarding::Full {
            return Ok(None);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let how = ResolveFlags::NO_MAGICLINKS;
        let opened = match self.base_of(caller, base, bytes)? {
            Some(base) => rustix::fs::openat2(base, path, flags, Mode::empty(), how),
            None => rustix::fs::openat2(CWD, path, flags, Mode::empty(), how),
        };
        match opened {
            Err(Errno::LOOP) => Ok(None),
            other => other.map(Some),
        }
    }

    pub(super) fn truncate(&mut self, caller: &Caller<'_>, path: u64, length: u64) -> Outcome {
        let path = caller.path(path)?;
        let place = existing(caller, super::caller::CURRENT_FOLDER, &path, true)?;
        self.judge_place(Operation::Write, &place)?;
        if length > i64::MAX.cast_unsigned() {
            return Err(Errno::INVAL);
        }
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        self.disk.admit_writing(flags | OFlags::TRUNC)?;
        let file = rustix::fs::open(link, flags, Mode::empty())?;
        self.disk.opened(&file, None, Name::Given)?;
        let is_too_large = self.largest_file.is_some_and(|most| length > most);
        if is_too_large && rustix::fs::fstat(&file)?.st_size.cast_unsigned() < length {
            return Err(Errno::FBIG);
        }
        rustix::fs::ftruncate(file, length)?;
        value(0)
    }
}

impl Broker<'_> {
    /// Space for a file of the caller, of which there may be too little left.
    /// Where none is counted, the kernel does it: nothing was judged.
    pub(super) fn allocate(
        &mut self,
        caller: &Caller<'_>,
        number: u64,
        mode: u64,
        (offset, length): (u64, u64),
    ) -> Outcome {
        if !self.disk.is_kept() {
            return Ok(Done::Now(Answer::Continue));
        }
        let file = caller.open_file(as_descriptor(number))?;
        let flags = FallocateFlags::from_bits_retain(as_descriptor(mode).cast_unsigned());
        let frees = FallocateFlags::PUNCH_HOLE | FallocateFlags::COLLAPSE_RANGE;
        if !flags.intersects(frees) {
            self.disk.admit_space(&file, offset, length)?;
        }
        let end = offset.checked_add(length).ok_or(Errno::FBIG)?;
        let grows = !flags.contains(FallocateFlags::KEEP_SIZE);
        if grows && self.largest_file.is_some_and(|most| end > most) {
            return Err(Errno::FBIG);
        }
        rustix::fs::fallocate(&file, flags, offset, length)?;
        value(0)
    }
}

/// A place that is there, by descriptor.
fn existing(caller: &Caller<'_>, base: u64, path: &OsStr, follow: bool) -> Result<OwnedFd, Errno> {
    let lead = match caller.lead(base, path) {
        // `.`, `..` or `/`: a folder with no name of its own.
        Err(Errno::BUSY) => return open_whole(caller, base, path),
        Ok(Lead::Spot(spot)) if follow => caller.follow(spot),
        other => other,
    };
    match lead {
        Ok(Lead::Spot(spot)) => rustix::fs::openat(
            &spot.folder,
            &spot.name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ),
        Ok(Lead::Descriptor(number)) => caller.open_place(number),
        Ok(Lead::Terminal) => Err(Errno::PERM),
        Err(Errno::BUSY) => open_whole(caller, base, path),
        Err(errno) => Err(errno),
    }
}

fn open_whole(caller: &Caller<'_>, base: u64, path: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        caller.base_for(base, path)?,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
}

/// A file that `memfd_create` made.
fn is_memory(file: &OwnedFd) -> Result<bool, Errno> {
    let path = path_of(file)?;
    Ok(path.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
}
