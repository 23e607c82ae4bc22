//! The thread that made a watched call: its memory, its folder, its open
//! files; and where a path of its leads.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ringfence_sys::seccomp::{Listener, Notification};
use ringfence_sys::{self as sys, Errno};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::net::SocketAddrUnix;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::links::Links;
use crate::view::FileId;

/// `AT_FDCWD` as it stands in a register.
pub(super) const CURRENT_FOLDER: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

const LONGEST_PATH: usize = libc::PATH_MAX as usize;

/// The calling thread.
pub(super) struct Caller<'a> {
    listener: &'a Listener,
    call: &'a Notification,
}

/// Where a path leads: a folder and a name in it.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    path: PathBuf,
    /// As the caller wrote it, from where it started.
    written: PathBuf,
    /// How many more links its resolution may follow.
    links: Links,
}

/// Where a path leads when it may also be an open file of the caller.
pub(super) enum Lead {
    Spot(Spot),
    /// A descriptor of the caller, named as `/dev/stdout`, `/dev/fd/N` and such.
    Descriptor(i32),
    /// The caller's controlling terminal.
    Terminal,
}

impl<'a> Caller<'a> {
    pub(super) fn new(listener: &'a Listener, call: &'a Notification) -> Self {
        Self { listener, call }
    }

    pub(super) fn thread(&self) -> Pid {
        self.call.thread
    }

    pub(super) fn call(&self) -> &Notification {
        self.call
    }

    /// Copies a path out of the caller's memory.
    pub(super) fn path(&self, address: u64) -> Result<OsString, Errno> {
        let bytes = sys::read_c_string(self.thread(), address, LONGEST_PATH)?;
        self.confirm()?;
        Ok(OsString::from_vec(bytes))
    }

    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let bytes = sys::read_bytes(self.thread(), address, length)?;
        self.confirm()?;
        Ok(bytes)
    }

    /// What was learnt about the thread id was about the caller, not about a
    /// later thread of the same number.
    pub(super) fn confirm(&self) -> Result<(), Errno> {
        if self.listener.still_waits(self.call) {
            Ok(())
        } else {
            Err(Errno::SRCH)
        }
    }

    /// The folder that a relative path starts from.
    pub(super) fn base(&self, descriptor: u64) -> Result<OwnedFd, Errno> {
        let number = as_descriptor(descriptor);
        if number != libc::AT_FDCWD {
            return self.open_place(number);
        }
        let base = self.open_link("cwd")?;
        self.confirm()?;
        Ok(base)
    }

    /// As [`Self::base`], and any folder for a path that needs none.
    pub(super) fn base_for(&self, descriptor: u64, path: &OsStr) -> Result<OwnedFd, Errno> {
        if path.as_bytes().starts_with(b"/") {
            rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        } else {
            self.base(descriptor)
        }
    }

    /// What is at `path`, links followed, by descriptor.
    pub(super) fn open_existing(&self, path: &OsStr) -> Result<OwnedFd, Errno> {
        rustix::fs::openat2(
            self.base_for(CURRENT_FOLDER, path)?,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_MAGICLINKS,
        )
    }

    /// Follows one of the caller's own links below `/proc`.
    fn open_link(&self, entry: &str) -> Result<OwnedFd, Errno> {
        let path = format!("/proc/{}/{entry}", self.thread().as_raw_pid());
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| {
            if errno == Errno::NOENT {
                Errno::BADF
            } else {
                errno
            }
        })
    }

    /// The process that the calling thread is part of.
    pub(super) fn process(&self) -> Result<Pid, Errno> {
        Pid::from_raw(self.status_field("Tgid:", 10)?.cast_signed()).ok_or(Errno::SRCH)
    }

    /// The caller's open file `number`, to be used as it is.
    pub(super) fn open_file(&self, number: i32) -> Result<OwnedFd, Errno> {
        if number < 0 {
            return Err(Errno::BADF);
        }
        let file = rustix::process::pidfd_getfd(self.pidfd()?, number, PidfdGetfdFlags::empty())?;
        self.confirm()?;
        Ok(file)
    }

    /// The calling thread, which may have other files open than its process
    /// does; the process where the kernel is older (6.9).
    fn pidfd(&self) -> Result<OwnedFd, Errno> {
        const OF_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
        match rustix::process::pidfd_open(self.thread(), OF_THREAD) {
            Err(Errno::INVAL) => rustix::process::pidfd_open(self.process()?, PidfdFlags::empty()),
            other => other,
        }
    }

    /// The caller's open file `number`, as a place in the file system.
    pub(super) fn open_place(&self, number: i32) -> Result<OwnedFd, Errno> {
        let place = match self.open_link(&format!("fd/{number}")) {
            // The links of a process that cannot be dumped are root's, whoever
            // it is; to take a file from it asks for the right to trace it, which
            // the init has over everything that was started inside.
            Err(Errno::ACCESS) => as_place(&self.open_file(number)?)?,
            other => other?,
        };
        self.confirm()?;
        Ok(place)
    }

    /// The mask that the caller's new files are made with.
    pub(super) fn umask(&self) -> Result<u32, Errno> {
        self.status_field("Umask:", 8)
    }

    fn status_field(&self, field: &str, radix: u32) -> Result<u32, Errno> {
        let path = format!("/proc/{}/status", self.thread().as_raw_pid());
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut buffer = [0u8; 1024];
        let length = rustix::io::read(file, &mut buffer)?;
        self.confirm()?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        text.lines()
            .find_map(|line| line.strip_prefix(field))
            .and_then(|number| u32::from_str_radix(number.trim(), radix).ok())
            .ok_or(Errno::SRCH)
    }

    /// Where `path` leads, not following a link at its very end.
    pub(super) fn spot(&self, descriptor: u64, path: &OsStr) -> Result<Spot, Errno> {
        match self.lead(descriptor, path)? {
            Lead::Spot(spot) => Ok(spot),
            Lead::Descriptor(_) | Lead::Terminal => Err(Errno::ACCESS),
        }
    }

    /// Where a socket is to be bound that is named by `path`.
    pub(super) fn binding(&self, path: &OsStr) -> Result<Binding, Errno> {
        // Read again by the init, such a name would mean one of its own files.
        if own_file(path).is_some() {
            return Err(Errno::ACCESS);
        }
        let base = self.base_for(CURRENT_FOLDER, path)?;
        let own = rustix::io::fcntl_dupfd_cloexec(&base, 0)?;
        let spot = Spot::below(own, path, Links::default())?;
        Ok(Binding {
            base,
            address: SocketAddrUnix::new(path)?,
            spot,
        })
    }

    /// As [`Self::spot`], but also for names of the caller's own open files.
    pub(super) fn lead(&self, descriptor: u64, path: &OsStr) -> Result<Lead, Errno> {
        self.lead_with(descriptor, path, Links::default())
    }

    fn lead_with(&self, descriptor: u64, path: &OsStr, links: Links) -> Result<Lead, Errno> {
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        match own_file(path) {
            Some(OwnFile::Terminal) => return Ok(Lead::Terminal),
            Some(OwnFile::Descriptor(number, rest)) if rest.is_empty() => {
                return Ok(Lead::Descriptor(number));
            }
            Some(OwnFile::Descriptor(number, rest)) => {
                return Spot::below(self.open_place(number)?, rest, links).map(Lead::Spot);
            }
            None => {}
        }
        Spot::below(self.base_for(descriptor, path)?, path, links).map(Lead::Spot)
    }

    /// Follows links at the end of `spot` until there is none.
    pub(super) fn follow(&self, mut spot: Spot) -> Result<Lead, Errno> {
        loop {
            let Some(target) = spot.link_target()? else {
                return Ok(Lead::Spot(spot));
            };
            spot.links.follow()?;
            let next = match own_file(&target) {
                None if !target.as_bytes().starts_with(b"/") => {
                    Lead::Spot(Spot::below(spot.folder, &target, spot.links)?)
                }
                _ => self.lead_with(CURRENT_FOLDER, &target, spot.links)?,
            };
            match next {
                Lead::Spot(found) => spot = found,
                other => return Ok(other),
            }
        }
    }
}

/// A name for a socket. The kernel takes it as a text, which `getsockname` shows and servers remove
/// it by, so it is read twice: but from the one directory that was judged, since the caller's may
/// be another the next moment.
pub(super) struct Binding {
    base: OwnedFd,
    address: SocketAddrUnix,
    pub(super) spot: Spot,
}

impl Binding {
    /// Binds `socket`, in a thread that has a working directory of its own once it asks for it. It
    /// is waited for, so nothing inside is moved meanwhile.
    pub(super) fn bind(&self, socket: &OwnedFd, umask: u32) -> Result<(), Errno> {
        std::thread::scope(|scope| {
            let bound = std::thread::Builder::new().spawn_scoped(scope, || {
                sys::own_working_folder()?;
                sys::set_umask(umask);
                rustix::process::fchdir(&self.base)?;
                rustix::net::bind(socket, &self.address)
            });
            match bound {
                Ok(bound) => bound.join().unwrap_or(Err(Errno::IO)),
                Err(_) => Err(Errno::AGAIN),
            }
        })
    }
}

impl Spot {
    /// Resolves all of `path` but its last component, from `base`.
    fn below(base: OwnedFd, path: &OsStr, mut links: Links) -> Result<Self, Errno> {
        let trimmed = trim_slashes(path.as_bytes());
        let (folder, name) = match trimmed.iter().rposition(|byte| *byte == b'/') {
            Some(0) => (&b"/"[..], &trimmed[1..]),
            Some(at) => (&trimmed[..at], &trimmed[at + 1..]),
            None => (&b"."[..], trimmed),
        };
        if matches!(name, b"" | b"." | b"..") {
            // No name that could be made or removed.
            return Err(Errno::BUSY);
        }
        if name.len() > 255 {
            return Err(Errno::NAMETOOLONG);
        }
        let written = path_of(&base)?.join(OsStr::from_bytes(trimmed));
        let folder = links.folder(base, folder)?;
        let spot = Self::new(folder, OsStr::from_bytes(name), written)?;
        Ok(Self { links, ..spot })
    }

    fn new(folder: OwnedFd, name: &OsStr, written: PathBuf) -> Result<Self, Errno> {
        let path = path_of(&folder)?.join(name);
        // A file of `/proc` opened by the init would have the init's rights.
        if path.starts_with("/proc") {
            return Err(Errno::ACCESS);
        }
        Ok(Self {
            folder,
            name: name.to_owned(),
            path,
            written,
            links: Links::default(),
        })
    }

    /// The spot of an open place, if it still has the name it was opened by.
    pub(super) fn of_place(place: &OwnedFd) -> Result<Self, Errno> {
        let path = path_of(place)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::NOENT);
        };
        let folder = rustix::fs::openat2(
            rustix::fs::CWD,
            parent,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )?;
        let spot = Self::new(folder, name, path.clone())?;
        let same = spot.status()?.is_some_and(|found| {
            rustix::fs::fstat(place)
                .is_ok_and(|held| FileId::of_stat(&found) == FileId::of_stat(&held))
        });
        if same { Ok(spot) } else { Err(Errno::NOENT) }
    }

    /// The same folder and name with the path they have now.
    pub(super) fn again(&self) -> Result<Self, Errno> {
        let folder = rustix::io::fcntl_dupfd_cloexec(&self.folder, 3)?;
        Self::new(folder, &self.name, self.written.clone())
    }

    /// The whole path, with every link on the way resolved.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole path as the caller wrote it; links in it may have led
    /// elsewhere.
    pub(super) fn written(&self) -> &Path {
        &self.written
    }

    /// What is there now, not following a link.
    pub(super) fn status(&self) -> Result<Option<Stat>, Errno> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Whether the same file is at both.
    pub(super) fn is_same(&self, other: &Self) -> Result<bool, Errno> {
        let id = |spot: &Self| Ok(spot.status()?.as_ref().map(FileId::of_stat));
        Ok(id(self)? == id(other)?)
    }

    /// Whether a link is there.
    pub(super) fn is_link(&self) -> Result<bool, Errno> {
        let status = self.status()?;
        Ok(status
            .is_some_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Symlink))
    }

    fn link_target(&self) -> Result<Option<OsString>, Errno> {
        match self.status()? {
            Some(status) if FileType::from_raw_mode(status.st_mode) == FileType::Symlink => {
                let target = rustix::fs::readlinkat(&self.folder, &self.name, Vec::new())?;
                Ok(Some(OsString::from_vec(target.into_bytes())))
            }
            _ => Ok(None),
        }
    }

    /// Whether anything is, or may be, at `below` under this spot: what cannot
    /// be looked at counts as there.
    pub(super) fn holds(&self, below: &Path) -> bool {
        may_exist(&self.folder, &Path::new(&self.name).join(below))
    }

    /// The identity of the spot's folder.
    pub(super) fn folder_id(&self) -> Result<FileId, Errno> {
        rustix::fs::fstat(&self.folder).map(|status| FileId::of_stat(&status))
    }

    /// The folder `levels` above the spot's own, by descriptor.
    pub(super) fn ancestor(&self, levels: usize) -> Result<OwnedFd, Errno> {
        let up: PathBuf = std::iter::once(".")
            .chain(std::iter::repeat_n("..", levels))
            .collect();
        rustix::fs::openat(
            &self.folder,
            up,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    }
}

/// An open file as a place: nothing can be read, written or waited for with it.
fn as_place(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Whether anything is, or may be, at `path` from `folder`.
pub(super) fn may_exist(folder: &OwnedFd, path: &Path) -> bool {
    !matches!(
        rustix::fs::statat(folder, path, AtFlags::SYMLINK_NOFOLLOW),
        Err(Errno::NOENT | Errno::NOTDIR)
    )
}

/// A name that stands for something only the caller has.
pub(super) enum OwnFile<'a> {
    Descriptor(i32, &'a OsStr),
    Terminal,
}

pub(super) fn own_file(path: &OsStr) -> Option<OwnFile<'_>> {
    let bytes = path.as_bytes();
    match bytes {
        b"/dev/tty" => return Some(OwnFile::Terminal),
        b"/dev/stdin" => return Some(OwnFile::Descriptor(0, OsStr::new(""))),
        b"/dev/stdout" => return Some(OwnFile::Descriptor(1, OsStr::new(""))),
        b"/dev/stderr" => return Some(OwnFile::Descriptor(2, OsStr::new(""))),
        _ => {}
    }
    let rest = [
        &b"/dev/fd/"[..],
        b"/proc/self/fd/",
        b"/proc/thread-self/fd/",
    ]
    .iter()
    .find_map(|prefix| bytes.strip_prefix(*prefix))?;
    let (number, below) = match rest.iter().position(|byte| *byte == b'/') {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &b""[..]),
    };
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    Some(OwnFile::Descriptor(number, OsStr::from_bytes(below)))
}

fn trim_slashes(mut bytes: &[u8]) -> &[u8] {
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes = &bytes[..bytes.len() - 1];
    }
    bytes
}

pub(super) fn as_descriptor(register: u64) -> i32 {
    // The kernel takes the low half of the register as an `int`.
    u32::try_from(register & 0xffff_ffff)
        .unwrap_or(u32::MAX)
        .cast_signed()
}

/// The path that the kernel gives for an open place.
pub(super) fn path_of(place: impl AsFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
    let target = rustix::fs::readlink(link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_recognised() {
        let number = |path: &str| match own_file(OsStr::new(path)) {
            Some(OwnFile::Descriptor(number, rest)) => {
                Some((number, rest.to_str().unwrap().to_owned()))
            }
            _ => None,
        };
        assert_eq!(number("/dev/stdout"), Some((1, String::new())));
        assert_eq!(number("/dev/fd/63"), Some((63, String::new())));
        assert_eq!(number("/proc/self/fd/4/a/b"), Some((4, "a/b".into())));
        assert_eq!(number("/proc/1/fd/4"), None);
        assert_eq!(number("/dev/fd/x"), None);
        assert!(matches!(
            own_file(OsStr::new("/dev/tty")),
            Some(OwnFile::Terminal)
        ));
    }

    #[test]
    fn a_spot_needs_a_name() {
        let here = || rustix::fs::open(".", OFlags::PATH, Mode::empty()).unwrap();
        for path in [".", "..", "a/..", "/", "///"] {
            assert!(
                Spot::below(here(), OsStr::new(path), Links::default()).is_err(),
                "{path}"
            );
        }
        assert_eq!(
            Spot::below(here(), OsStr::new("x//"), Links::default())
                .unwrap()
                .name,
            "x"
        );
    }

    #[test]
    fn spots_in_proc_are_refused() {
        let root = rustix::fs::open("/", OFlags::PATH, Mode::empty()).unwrap();
        assert_eq!(
            Spot::below(root, OsStr::new("/proc/1/mem"), Links::default()).unwrap_err(),
            Errno::ACCESS
        );
    }

    #[test]
    fn what_cannot_be_looked_at_counts_as_there() {
        let folder = tempfile::tempdir().unwrap();
        let opened = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        assert!(!may_exist(&opened, Path::new("none")));
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
        assert!(may_exist(&opened, Path::new("loop/x")));
    }

    #[test]
    fn a_place_is_known_by_its_present_name_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().canonicalize().unwrap().join("f");
        std::fs::write(&file, "").unwrap();
        let place = rustix::fs::open(&file, OFlags::PATH, Mode::empty()).unwrap();
        assert_eq!(Spot::of_place(&place).unwrap().path(), file);
        std::fs::remove_file(&file).unwrap();
        assert!(Spot::of_place(&place).is_err());
    }
}
