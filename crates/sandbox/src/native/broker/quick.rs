//! Making ordinary names in ordinary places with as few calls as can be.
//!
//! Most names that a command makes can concern no rule, whoever made their
//! directory. Which directories are like that is remembered by the identity of
//! the directory and its mount, and forgotten when a directory is moved or
//! made: the init is the only one inside that does either. Whatever is not
//! ordinary is left to the handlers that look closely.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ringfence_sys::seccomp::{Answer, Notification};
use ringfence_sys::{self as sys, Errno};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Statx, StatxFlags,
};
use rustix::process::Pid;

use super::caller::{CURRENT_FOLDER, Caller, as_descriptor, path_of};
use super::{Broker, Done, Outcome, value};
use crate::view::FileId;
use crate::wire::Operation;

const LONGEST_PATH: usize = libc::PATH_MAX as usize;
/// The most directories and threads that are remembered.
const MOST_DIRECTORIES: usize = 20_000;
const MOST_THREADS: usize = 64;

/// What is remembered from call to call.
#[derive(Default)]
pub(super) struct Quick {
    directories: HashMap<Identity, Known>,
    threads: HashMap<Pid, Thread>,
}

/// One directory as seen through one mount.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    mount: u64,
    directory: FileId,
}

impl Identity {
    fn of(status: &Statx) -> Self {
        let device = rustix::fs::makedev(status.stx_dev_major, status.stx_dev_minor);
        Self {
            mount: status.stx_mnt_id,
            directory: FileId::new(device, status.stx_ino),
        }
    }
}

/// What is known of a directory.
enum Known {
    /// Some rule may be about names in it.
    Special,
    /// In no writable directory of the host.
    Free,
    /// In one, where the guard calls it so, with these entries that are not
    /// ordinary.
    Ordinary(PathBuf, Vec<OsString>),
}

/// What is held open of a thread. It stays that of the thread: a later one of
/// the same number has other files.
struct Thread {
    directory: OwnedFd,
    status: OwnedFd,
}

/// A directory and an ordinary name in it.
struct Target {
    directory: OwnedFd,
    identity: Identity,
    name: OsString,
    is_guarded: bool,
    /// Whether a directory was there before the start.
    was_directory: bool,
}

impl Quick {
    /// A directory was moved: others are elsewhere now.
    pub(super) fn forget_directories(&mut self) {
        self.directories.clear();
    }
}

impl Broker<'_> {
    /// Does a call that makes an ordinary name; `None` for all others.
    pub(super) fn quickly(&mut self, call: &Notification) -> Option<Outcome> {
        let listener = std::sync::Arc::clone(&self.listener);
        let caller = Caller::new(&listener, call);
        let [one, two, three, four, five, _] = call.arguments;
        let here = CURRENT_FOLDER;
        let outcome = match call.number {
            libc::SYS_openat => self.open_quickly(&caller, (one, two), three, four),
            libc::SYS_mkdirat => self.make_directory_quickly(&caller, (one, two), three),
            libc::SYS_renameat => self.rename_quickly(&caller, (one, two), (three, four), 0),
            libc::SYS_renameat2 => self.rename_quickly(&caller, (one, two), (three, four), five),
            libc::SYS_symlinkat => self.symlink_quickly(&caller, one, (two, three)),
            libc::SYS_linkat if five == 0 => self.link_quickly(&caller, (one, two), (three, four)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open_quickly(&caller, (here, one), two, three),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                self.open_quickly(&caller, (here, one), u64::from(flags.cast_unsigned()), two)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_directory_quickly(&caller, (here, one), two),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename_quickly(&caller, (here, one), (here, two), 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.symlink_quickly(&caller, one, (here, two)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.link_quickly(&caller, (here, one), (here, two)),
            _ => Ok(None),
        };
        outcome.transpose()
    }

    fn open_quickly(
        &mut self,
        caller: &Caller<'_>,
        at: (u64, u64),
        flags: u64,
        mode: u64,
    ) -> Result<Option<Done>, Errno> {
        let flags = OFlags::from_bits_retain(as_descriptor(flags).cast_unsigned());
        if flags.intersects(OFlags::PATH | OFlags::TMPFILE) {
            return Ok(None);
        }
        let Some(target) = self.target(caller, at)? else {
            return Ok(None);
        };
        if !flags.contains(OFlags::CREATE) {
            return self.open_there(&target, flags);
        }
        sys::set_umask(self.umask_of(caller)?);
        let (directory, name) = (&target.directory, &target.name);
        let with = OFlags::EXCL | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o1777).unwrap_or(0));
        let opened = match rustix::fs::openat(directory, name, flags | with, mode) {
            Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {
                return self.open_there(&target, flags);
            }
            other => other,
        };
        let file =
            opened.inspect_err(|errno| self.note_read_only(Operation::Create, &target, *errno))?;
        let close_on_exec = flags.contains(OFlags::CLOEXEC);
        Ok(Some(Done::Now(Answer::Descriptor(file, close_on_exec))))
    }

    /// A plain file that is there, and `None` for anything else.
    fn open_there(&mut self, target: &Target, flags: OFlags) -> Result<Option<Done>, Errno> {
        let opened = open_plain(target, flags)
            .inspect_err(|errno| self.note_read_only(Operation::Write, target, *errno))?;
        let Some(file) = opened else {
            return Ok(None);
        };
        self.refuse_mapping(&file, flags)?;
        let close_on_exec = flags.contains(OFlags::CLOEXEC);
        Ok(Some(Done::Now(Answer::Descriptor(file, close_on_exec))))
    }

    fn make_directory_quickly(
        &mut self,
        caller: &Caller<'_>,
        at: (u64, u64),
        mode: u64,
    ) -> Result<Option<Done>, Errno> {
        let Some(target) = self.target(caller, at)? else {
            return Ok(None);
        };
        sys::set_umask(self.umask_of(caller)?);
        let mode = Mode::from_raw_mode(u32::try_from(mode & 0o1777).unwrap_or(0));
        rustix::fs::mkdirat(&target.directory, &target.name, mode)
            .inspect_err(|errno| self.note_read_only(Operation::MakeFolder, &target, *errno))?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let status = rustix::fs::statat(&target.directory, &target.name, flags)?;
        let fresh = Identity {
            mount: target.identity.mount,
            directory: FileId::of_stat(&status),
        };
        // Its number may have been that of another.
        self.quick.directories.remove(&fresh);
        if target.is_guarded {
            self.made.remember(fresh.directory);
        }
        value(0).map(Some)
    }

    fn rename_quickly(
        &mut self,
        caller: &Caller<'_>,
        old: (u64, u64),
        new: (u64, u64),
        flags: u64,
    ) -> Result<Option<Done>, Errno> {
        let flags = RenameFlags::from_bits_retain(as_descriptor(flags).cast_unsigned());
        if !(flags - RenameFlags::NOREPLACE).is_empty() {
            return Ok(None);
        }
        let Some(from) = self.target(caller, old)? else {
            return Ok(None);
        };
        let Some(to) = self.target(caller, new)? else {
            return Ok(None);
        };
        let status = rustix::fs::statat(&from.directory, &from.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        let is_link = kind == FileType::Symlink && to.was_directory;
        if kind == FileType::Directory || is_link {
            return Ok(None);
        }
        match rustix::fs::renameat_with(&from.directory, &from.name, &to.directory, &to.name, flags)
        {
            // Onto a mount.
            Err(Errno::BUSY) => Ok(None),
            Err(errno) => {
                self.note_read_only(Operation::Rename, &to, errno);
                Err(errno)
            }
            Ok(()) => value(0).map(Some),
        }
    }

    fn symlink_quickly(
        &mut self,
        caller: &Caller<'_>,
        content: u64,
        at: (u64, u64),
    ) -> Result<Option<Done>, Errno> {
        let Some(target) = self.target(caller, at)? else {
            return Ok(None);
        };
        if target.was_directory {
            return Ok(None);
        }
        let content = caller.path(content)?;
        rustix::fs::symlinkat(content, &target.directory, &target.name)
            .inspect_err(|errno| self.note_read_only(Operation::Create, &target, *errno))?;
        value(0).map(Some)
    }

    fn link_quickly(
        &mut self,
        caller: &Caller<'_>,
        old: (u64, u64),
        new: (u64, u64),
    ) -> Result<Option<Done>, Errno> {
        let Some(from) = self.target(caller, old)? else {
            return Ok(None);
        };
        let Some(to) = self.target(caller, new)? else {
            return Ok(None);
        };
        if to.was_directory {
            return Ok(None);
        }
        let none = AtFlags::empty();
        rustix::fs::linkat(&from.directory, &from.name, &to.directory, &to.name, none)
            .inspect_err(|errno| self.note_read_only(Operation::Link, &to, *errno))?;
        value(0).map(Some)
    }

    /// What the mounts refused belongs in the record as well.
    fn note_read_only(&mut self, operation: Operation, target: &Target, errno: Errno) {
        if matches!(errno, Errno::ROFS | Errno::ACCESS)
            && let Ok(directory) = path_of(&target.directory)
        {
            let path = directory.join(&target.name);
            self.note_covered(operation, &path, errno);
        }
    }

    /// Where a path leads, if neither the directory nor the name is anything
    /// but ordinary.
    fn target(
        &mut self,
        caller: &Caller<'_>,
        (base, address): (u64, u64),
    ) -> Result<Option<Target>, Errno> {
        let mut buffer = [0; LONGEST_PATH];
        let path = sys::read_c_string_into(caller.thread(), address, &mut buffer)?;
        caller.confirm()?;
        let Some((directory, name)) = split(path) else {
            return Ok(None);
        };
        let directory = match (self.base_of(caller, base, path)?, directory) {
            (Some(base), b"") => base,
            (Some(base), below) => match open_below(&base, below) {
                Err(Errno::LOOP) => return Ok(None),
                other => other?,
            },
            (None, whole) => match open_below(CWD, whole) {
                Err(Errno::LOOP) => return Ok(None),
                other => other?,
            },
        };
        self.ordinary(directory, OsStr::from_bytes(name))
    }

    fn ordinary(&mut self, directory: OwnedFd, name: &OsStr) -> Result<Option<Target>, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let status = rustix::fs::statx(&directory, "", AtFlags::EMPTY_PATH, wanted)?;
        let identity = Identity::of(&status);
        if !self.quick.directories.contains_key(&identity) {
            let known = self.classify(&directory)?;
            if self.quick.directories.len() >= MOST_DIRECTORIES {
                self.quick.directories.clear();
            }
            self.quick.directories.insert(identity, known);
        }
        let (is_guarded, was_directory) = match &self.quick.directories[&identity] {
            Known::Special => return Ok(None),
            Known::Free => (false, false),
            Known::Ordinary(path, exceptions) => {
                let is_exception = exceptions.iter().any(|one| one.eq_ignore_ascii_case(name));
                if is_exception || !self.guard.is_ordinary_name(name.as_bytes()) {
                    return Ok(None);
                }
                (true, self.was_there(&path.join(name)))
            }
        };
        Ok(Some(Target {
            directory,
            identity,
            name: name.to_owned(),
            is_guarded,
            was_directory,
        }))
    }

    fn classify(&self, directory: &OwnedFd) -> Result<Known, Errno> {
        let path = path_of(directory)?;
        // A file of `/proc` opened by the init would have the init's rights.
        if path.starts_with("/proc") || path.starts_with("/dev") {
            return Ok(Known::Special);
        }
        Ok(match self.roots.known_as(directory, &path) {
            Err(_) => Known::Special,
            Ok(None) => Known::Free,
            Ok(Some(known)) => match self.guard.exceptions(&known) {
                Some(exceptions) => Known::Ordinary(known, exceptions),
                None => Known::Special,
            },
        })
    }

    /// The directory that a path starts from, where it says so.
    pub(super) fn base_of(
        &mut self,
        caller: &Caller<'_>,
        base: u64,
        path: &[u8],
    ) -> Result<Option<OwnedFd>, Errno> {
        if path.starts_with(b"/") {
            return Ok(None);
        }
        let number = as_descriptor(base);
        if number != libc::AT_FDCWD {
            return caller.base(base).map(Some);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let open =
            |thread: &Thread| rustix::fs::openat(&thread.directory, "cwd", flags, Mode::empty());
        self.with_thread(caller, open).map(Some)
    }

    fn umask_of(&mut self, caller: &Caller<'_>) -> Result<u32, Errno> {
        self.with_thread(caller, |thread| {
            let mut buffer = [0; 512];
            let length = rustix::io::pread(&thread.status, &mut buffer, 0)?;
            umask_in(&buffer[..length]).ok_or(Errno::SRCH)
        })
    }

    /// Asks about the caller through what is held open of it.
    fn with_thread<T>(
        &mut self,
        caller: &Caller<'_>,
        ask: impl Fn(&Thread) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let number = caller.thread();
        if let Some(thread) = self.quick.threads.get(&number)
            && let Ok(answer) = ask(thread)
        {
            return Ok(answer);
        }
        let thread = Thread::open(number)?;
        caller.confirm()?;
        let answer = ask(&thread)?;
        if self.quick.threads.len() >= MOST_THREADS {
            self.quick.threads.clear();
        }
        self.quick.threads.insert(number, thread);
        Ok(answer)
    }
}

impl Thread {
    fn open(number: Pid) -> Result<Self, Errno> {
        let path = format!("/proc/{}", number.as_raw_pid());
        let directory = rustix::fs::open(
            path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let status = rustix::fs::openat(&directory, "status", flags, Mode::empty())?;
        Ok(Self { directory, status })
    }
}

/// The directory and the name of a path, where both are plain.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.starts_with(b"/proc/") || path.starts_with(b"/dev/") {
        return None;
    }
    let (directory, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&b"/"[..], &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b""[..], path),
    };
    let is_plain = !matches!(name, b"" | b"." | b"..") && name.len() <= 255;
    is_plain.then_some((directory, name))
}

fn open_below(base: impl AsFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(
        base,
        OsStr::from_bytes(path),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        // A link to an open file would be read as one of ours.
        ResolveFlags::NO_MAGICLINKS,
    )
}

/// Opens a plain file that is there. Others may make whoever opens them wait.
fn open_plain(target: &Target, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
    let (directory, name) = (&target.directory, &target.name);
    let status = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let how = (flags - OFlags::CREATE) | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(directory, name, how | OFlags::CLOEXEC, Mode::empty())?;
    if !flags.contains(OFlags::NONBLOCK) {
        let set = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, set - OFlags::NONBLOCK)?;
    }
    Ok(Some(file))
}

fn umask_in(status: &[u8]) -> Option<u32> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let mask = lines.find_map(|line| line.strip_prefix(b"Umask:"))?;
    u32::from_str_radix(std::str::from_utf8(mask).ok()?.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_where_both_parts_are_plain() {
        let split = |path: &'static str| split(path.as_bytes());
        assert_eq!(split("a"), Some((&b""[..], &b"a"[..])));
        assert_eq!(split("a/b/c"), Some((&b"a/b"[..], &b"c"[..])));
        assert_eq!(split("/a"), Some((&b"/"[..], &b"a"[..])));
        for path in ["", "a/", ".", "a/..", "/", "/dev/tty", "/proc/self/x"] {
            assert_eq!(split(path), None, "{path}");
        }
    }

    #[test]
    fn a_umask_is_found() {
        assert_eq!(umask_in(b"Name:\tx\nUmask:\t0027\nState:\tR\n"), Some(0o27));
        assert_eq!(umask_in(b"Name:\tx\n"), None);
    }
}
