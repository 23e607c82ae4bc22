//! Covers of files that the host may replace while the command runs.
//!
//! A mount goes away when the host renames another file onto the one that it
//! lies on. The supervisor, who notices, then visits the sandbox's mount
//! namespace and lays the cover on what is there now: the very same file, since
//! that is what Landlock lets be read. Nothing is followed on the way there, and
//! nothing that is inside takes part.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ringfence_sys::{self as sys, Channel, Errno, MountFlags, MountNamespace};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};

use super::child::tell;
use super::scratch::{EMPTY_FOLDER, UNREADABLE_FILE};
use crate::view::{Cover, FileId, Shows};
use crate::wire::Event;

/// Files that are handed over with one message.
const MOST_AT_ONCE: usize = 100;
/// How often what is covered may be replaced while that is done.
const MOST_TRIES: usize = 8;

/// What covers are laid with, as the init has it.
pub(super) struct Sources {
    pub(super) namespace: OwnedFd,
    pub(super) root: OwnedFd,
    pub(super) masked: Vec<(usize, String, OwnedFd)>,
}

impl Sources {
    /// To the supervisor; this process keeps nothing of it.
    pub(super) fn hand_over(self, supervisor: &Channel) -> Result<(), Errno> {
        let mut rest = &self.masked[..];
        loop {
            let (some, more) = rest.split_at(rest.len().min(MOST_AT_ONCE));
            let named = some.iter().map(|(number, name, _)| (*number, name.clone()));
            let files = some.iter().map(|(_, _, file)| file.as_fd());
            let descriptors: Vec<_> = [self.namespace.as_fd(), self.root.as_fd()]
                .into_iter()
                .chain(files)
                .collect();
            tell(supervisor, &Event::Covers(named.collect()), &descriptors)?;
            if more.is_empty() {
                return Ok(());
            }
            rest = more;
        }
    }
}

/// The same, as the supervisor has it.
#[derive(Debug)]
pub(super) struct Covers {
    namespace: MountNamespace,
    root: OwnedFd,
    masked: HashMap<usize, (String, OwnedFd)>,
}

impl Covers {
    /// What came with a message, and with those before.
    pub(super) fn take(
        known: Option<Self>,
        named: Vec<(usize, String)>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Self, Errno> {
        let mut descriptors = descriptors.into_iter();
        let (Some(namespace), Some(root)) = (descriptors.next(), descriptors.next()) else {
            return Err(Errno::BADF);
        };
        let mut covers = match known {
            Some(covers) => covers,
            None => Self {
                namespace: MountNamespace::of(namespace)?,
                root,
                masked: HashMap::new(),
            },
        };
        for ((number, name), file) in named.into_iter().zip(descriptors) {
            covers.masked.insert(number, (name, file));
        }
        Ok(covers)
    }

    /// Lays these on what is at their paths now, where they do not lie there.
    pub(super) fn lay(&self, covers: &[&Cover]) -> Result<(), Errno> {
        self.namespace
            .visit(|| covers.iter().try_for_each(|cover| self.lay_one(cover)))?
    }

    fn lay_one(&self, cover: &Cover) -> Result<(), Errno> {
        for _ in 0..MOST_TRIES {
            let place = match open_in_view(&cover.path) {
                // It is gone, or out of reach of all inside.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => return Ok(()),
                other => other?,
            };
            let status = rustix::fs::fstat(&place)?;
            let name = self.name_for(cover, FileType::from_raw_mode(status.st_mode))?;
            let own = rustix::fs::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileId::of_stat(&own) == FileId::of_stat(&status) {
                return Ok(());
            }
            let tree = sys::clone_entry(self.root.as_fd(), Path::new(name))?;
            sys::set_attributes_of_one(tree.as_fd(), MountFlags::INERT)?;
            match sys::attach(tree.as_fd(), place.as_fd()) {
                // Replaced once more.
                Err(Errno::NOENT) => {}
                other => return other,
            }
        }
        Err(Errno::BUSY)
    }

    /// What is laid on something of this kind.
    fn name_for(&self, cover: &Cover, kind: FileType) -> Result<&str, Errno> {
        match &cover.shows {
            _ if kind == FileType::Directory => Ok(EMPTY_FOLDER),
            Shows::Nothing => Ok(UNREADABLE_FILE),
            Shows::Masked { number, .. } => {
                let known = self.masked.get(number).ok_or(Errno::BADF)?;
                Ok(&known.0)
            }
        }
    }

    /// Has the masked file of this number show these bytes.
    pub(super) fn write(&self, number: usize, bytes: &[u8]) -> Result<(), Errno> {
        let (_, file) = self.masked.get(&number).ok_or(Errno::BADF)?;
        let length = bytes.len() as u64;
        let before = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
        // So that nobody sees the end of the old after all of the new.
        rustix::fs::ftruncate(file, length.min(before))?;
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(file, &bytes[done..], done as u64)? {
                0 => return Err(Errno::NOSPC),
                more => done += more,
            }
        }
        Ok(())
    }
}

/// Opens a place of the view that we visit; a link itself, and none on the way.
fn open_in_view(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve)
}
