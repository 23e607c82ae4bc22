//! Opening files for writing, and making them.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};

use ringfence_sys::seccomp::Answer;
use ringfence_sys::{self as sys, Errno};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

use super::caller::{Caller, Lead, Spot, as_descriptor};
use super::pipes::Waiting;
use super::{Broker, Done, Outcome};
use crate::native::disk::Name;
use crate::wire::Operation;

/// How often a name may change under us before we give up.
const MOST_TRIES: usize = 16;

/// The flags and mode of an `open`.
#[derive(Clone, Copy)]
struct How {
    flags: OFlags,
    mode: u32,
}

impl How {
    fn close_on_exec(self) -> bool {
        self.flags.contains(OFlags::CLOEXEC)
    }

    /// To open what is there already. Never blocks and never takes a
    /// controlling terminal; what the caller wanted of that is put right
    /// afterwards or was asked of a worker.
    fn existing(self) -> OFlags {
        let without = OFlags::CREATE | OFlags::EXCL;
        (self.flags - without) | OFlags::NOCTTY | OFlags::CLOEXEC
    }
}

impl Broker<'_> {
    pub(super) fn open(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: u64,
        flags: u64,
        mode: u64,
    ) -> Outcome {
        let flags = OFlags::from_bits_retain(as_descriptor(flags).cast_unsigned());
        let how = How {
            flags,
            mode: u32::try_from(mode & 0o1777).unwrap_or(0),
        };
        if flags.contains(OFlags::PATH) {
            // A place opens nothing and makes nothing, whatever path the
            // kernel will find; and only the kernel can give one out.
            self.disk.gave_out_place();
            return Ok(Done::Now(Answer::Continue));
        }
        let path = caller.path(path)?;
        if flags.contains(OFlags::TMPFILE) {
            return self.open_nameless(caller, base, &path, how);
        }
        let mut lead = match caller.lead(base, &path) {
            // The path names a folder: `.`, `..` or `/`.
            Err(Errno::BUSY) => return Err(Errno::ISDIR),
            other => other?,
        };
        if path.as_encoded_bytes().ends_with(b"/") {
            return Err(not_a_file(&lead, flags));
        }
        let follows =
            !flags.contains(OFlags::NOFOLLOW) && !flags.contains(OFlags::CREATE | OFlags::EXCL);
        for _ in 0..MOST_TRIES {
            let spot = match lead {
                Lead::Spot(spot) if follows => match self.follow(caller, spot)? {
                    Lead::Spot(spot) => spot,
                    Lead::Descriptor(number) => return self.reopen(caller, number, how),
                    Lead::Terminal => return open_terminal(caller, how),
                },
                Lead::Spot(spot) => spot,
                Lead::Descriptor(number) => return self.reopen(caller, number, how),
                Lead::Terminal => return open_terminal(caller, how),
            };
            match self.open_spot(caller, &spot, how) {
                // Made, removed or turned into a link since we looked.
                Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {}
                Err(Errno::LOOP) if !flags.contains(OFlags::NOFOLLOW) => {}
                Err(Errno::NOENT) if flags.contains(OFlags::CREATE) && spot.status()?.is_some() => {
                }
                other => return other,
            }
            lead = Lead::Spot(spot);
        }
        Err(Errno::AGAIN)
    }

    /// Follows links at the end, each of which may itself be a guarded name.
    fn follow(&mut self, caller: &Caller<'_>, spot: Spot) -> Result<Lead, Errno> {
        if spot.is_link()? {
            self.judge(Operation::Write, &spot)?;
        }
        caller.follow(spot)
    }

    fn open_spot(&mut self, caller: &Caller<'_>, spot: &Spot, how: How) -> Outcome {
        let status = spot.status()?;
        let makes = status.is_none() && how.flags.contains(OFlags::CREATE);
        if makes {
            self.disk.admit_name()?;
        }
        if makes && let Some(scratch) = self.make_common_folder(spot)? {
            return descriptor(scratch, how);
        }
        let operation = if status.is_some() {
            Operation::Write
        } else {
            Operation::Create
        };
        self.judge(operation, spot)?;
        let Some(status) = status else {
            return if how.flags.contains(OFlags::CREATE) {
                self.create(caller, spot, how)
            } else {
                Err(Errno::NOENT)
            };
        };
        if how.flags.contains(OFlags::CREATE | OFlags::EXCL) {
            return Err(Errno::EXIST);
        }
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice => {
                self.open_slowly(caller, spot, how)
            }
            FileType::Directory if how.flags.contains(OFlags::CREATE) => Err(Errno::ISDIR),
            _ => {
                self.disk.admit_writing(how.flags)?;
                let file = open_at_once(spot, how)?;
                self.refuse_mapping(&file, how.flags)?;
                self.disk.opened(&file, Some(&status), Name::Given)?;
                descriptor(file, how)
            }
        }
    }

    fn create(&mut self, caller: &Caller<'_>, spot: &Spot, how: How) -> Outcome {
        self.disk.admit_writing(how.flags)?;
        self.before_making(Operation::Create, spot)?;
        sys::set_umask(caller.umask()?);
        let flags = how.existing() | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(
            &spot.folder,
            &spot.name,
            flags,
            Mode::from_raw_mode(how.mode),
        )?;
        self.settle(Operation::Create, spot, || {
            let _ = rustix::fs::unlinkat(&spot.folder, &spot.name, AtFlags::empty());
        })?;
        self.disk.made_name(&spot.folder);
        self.disk.opened(&file, None, Name::Given)?;
        descriptor(file, how)
    }

    /// A pipe or a device, whose opening may have to wait for a peer.
    fn open_slowly(&mut self, caller: &Caller<'_>, spot: &Spot, how: How) -> Outcome {
        let place = rustix::fs::openat(
            &spot.folder,
            &spot.name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        self.open_place_slowly(caller, place, how)
    }

    fn open_place_slowly(&mut self, caller: &Caller<'_>, place: OwnedFd, how: How) -> Outcome {
        let status = rustix::fs::fstat(&place)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        if kind == FileType::Fifo && !how.flags.contains(OFlags::NONBLOCK) {
            return self.open_pipe(caller, place, how);
        }
        if kind == FileType::RegularFile {
            self.disk.admit_writing(how.flags)?;
        }
        let link = format!("/proc/self/fd/{}", place.as_raw_fd());
        let flags = how.existing() - OFlags::NOFOLLOW;
        let file = rustix::fs::open(link, flags, Mode::empty())?;
        self.refuse_mapping(&file, how.flags)?;
        self.disk.opened(&file, Some(&status), Name::Given)?;
        descriptor(file, how)
    }

    fn open_pipe(&mut self, caller: &Caller<'_>, place: OwnedFd, how: How) -> Outcome {
        let waiting = Waiting::new(&self.listener, caller.call());
        self.workers.run(&self.listener, caller, move || {
            let end = waiting.open(&place, how.existing() - OFlags::NOFOLLOW)?;
            Ok(Answer::Descriptor(end, how.close_on_exec()))
        })?;
        Ok(Done::Later)
    }

    /// `O_TMPFILE`: no name is made or changed. A file without a name gets one
    /// only by `linkat`, which is watched.
    fn open_nameless(&mut self, caller: &Caller<'_>, base: u64, path: &OsStr, how: How) -> Outcome {
        let base = caller.base_for(base, path)?;
        self.disk.admit_name()?;
        self.disk.admit_writing(how.flags)?;
        sys::set_umask(caller.umask()?);
        let flags = how.flags | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(how.mode);
        let file = rustix::fs::openat2(base, path, flags, mode, ResolveFlags::NO_MAGICLINKS)?;
        self.disk.opened(&file, None, Name::None)?;
        descriptor(file, how)
    }

    /// `/dev/stdout` and the like. A file is opened anew, as the kernel does.
    /// A pipe or a socket, and a file outside that the sandbox only holds
    /// open, is the very one that the caller holds.
    fn reopen(&mut self, caller: &Caller<'_>, number: i32, how: How) -> Outcome {
        let place = caller.open_place(number)?;
        self.judge_place(Operation::Write, &place)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
        if matches!(kind, FileType::Fifo | FileType::Socket) {
            return held(caller, number, how);
        }
        match self.open_place_slowly(caller, place, how) {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NXIO | Errno::NOENT) => {
                held(caller, number, how)
            }
            other => other,
        }
    }
}

/// The caller's own open file, if it was opened for what is wanted now.
fn held(caller: &Caller<'_>, number: i32, how: How) -> Outcome {
    let file = caller.open_file(number)?;
    let wanted = how.flags & OFlags::ACCMODE;
    let held = rustix::fs::fcntl_getfl(&file)? & OFlags::ACCMODE;
    if held != wanted && held != OFlags::RDWR {
        return Err(Errno::ACCESS);
    }
    descriptor(file, how)
}

/// Why what a path with a slash at its end names is not opened for writing.
fn not_a_file(lead: &Lead, flags: OFlags) -> Errno {
    let Lead::Spot(spot) = lead else {
        return Errno::NOTDIR;
    };
    let status = rustix::fs::statat(&spot.folder, &spot.name, AtFlags::empty());
    match status.map(|status| FileType::from_raw_mode(status.st_mode)) {
        _ if flags.contains(OFlags::CREATE) => Errno::ISDIR,
        Ok(FileType::Directory) => Errno::ISDIR,
        Ok(_) => Errno::NOTDIR,
        Err(errno) => errno,
    }
}

/// Opens a file that is there, without ever waiting for it.
fn open_at_once(spot: &Spot, how: How) -> Result<OwnedFd, Errno> {
    let flags = how.existing() | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::openat(&spot.folder, &spot.name, flags, Mode::empty())?;
    if !how.flags.contains(OFlags::NONBLOCK) {
        let set = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, set - OFlags::NONBLOCK)?;
    }
    Ok(file)
}

fn open_terminal(caller: &Caller<'_>, how: How) -> Outcome {
    let path = sys::controlling_terminal_of(caller.thread())?;
    descriptor(rustix::fs::open(path, how.existing(), Mode::empty())?, how)
}

#[allow(clippy::unnecessary_wraps, reason = "the end of every handler")]
fn descriptor(file: OwnedFd, how: How) -> Outcome {
    Ok(Done::Now(Answer::Descriptor(file, how.close_on_exec())))
}
