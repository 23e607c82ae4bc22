//! Where things are moved that must not be where they were.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::survey::Looked;
use ringfence_sys::Errno;
use rustix::fs::{CWD, Mode, OFlags, RenameFlags};

/// The most bytes of a name that are kept.
const LONGEST_NAME: usize = 100;

/// A directory for what is taken away, made when it is needed.
pub(super) struct Quarantine {
    path: PathBuf,
    opened: Option<OwnedFd>,
    count: usize,
}

impl Quarantine {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            opened: None,
            count: 0,
        }
    }

    /// Whether a path is where things were moved.
    pub(super) fn is_around(&self, path: &Path) -> bool {
        self.path
            .parent()
            .is_some_and(|parent| path.starts_with(parent))
    }

    /// Moves an entry away; where it is now, or nothing if it is gone already or
    /// cannot be moved.
    pub(super) fn take(
        &mut self,
        directory: &mut Looked,
        path: &Path,
        name: &OsStr,
    ) -> Option<PathBuf> {
        self.count += 1;
        let moved = self.try_to_take(directory, path, name);
        moved.or_else(|| {
            directory.make_writable().ok()?;
            self.try_to_take(directory, path, name)
        })
    }

    fn try_to_take(&mut self, directory: &Looked, path: &Path, name: &OsStr) -> Option<PathBuf> {
        let fresh = self.fresh_name(name);
        let moved = self.open().and_then(|quarantine| {
            let keep = RenameFlags::NOREPLACE;
            rustix::fs::renameat_with(directory, name, quarantine, &fresh, keep)
        });
        match moved {
            Ok(()) => Some(self.path.join(fresh)),
            // Of another file system: beside, where it has no meaning.
            Err(_) => self.set_aside(directory, path, name),
        }
    }

    fn set_aside(&self, directory: &Looked, path: &Path, name: &OsStr) -> Option<PathBuf> {
        let run = self.path.file_name().unwrap_or_default().to_string_lossy();
        let run: String = run.chars().take(8).collect();
        let mut aside = cut(name);
        aside.push(format!(".ringfence-quarantine-{run}-{}", self.count));
        let keep = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(directory, name, directory, &aside, keep).ok()?;
        Some(path.join(aside))
    }

    fn fresh_name(&self, name: &OsStr) -> OsString {
        let mut fresh = OsString::from(format!("{}-", self.count));
        fresh.push(cut(name));
        fresh
    }

    fn open(&mut self) -> Result<&OwnedFd, Errno> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => make(&self.path)?,
        };
        Ok(self.opened.insert(opened))
    }
}

/// The beginning of a name, to which more can be added.
fn cut(name: &OsStr) -> OsString {
    let bytes = name.as_bytes();
    OsStr::from_bytes(&bytes[..bytes.len().min(LONGEST_NAME)]).to_owned()
}

fn make(path: &Path) -> Result<OwnedFd, Errno> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    }
    match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}
