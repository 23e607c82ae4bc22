//! What is made for one run: one tmpfs that holds it all, and mounts of its
//! parts.

use std::cell::{Cell, OnceCell};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_sys::{self as sys, Errno, MountFlags};
use rustix::fs::{AtFlags, Mode, OFlags};

use super::covers::Sources;
use super::disk::most_names;
use super::failure::{During, Failure};
use super::late::GivenFiles;
use super::mounts::open_folder;
use crate::view::{Cover, OwnContent, OwnFile, Shows};
use crate::wire::Step;

/// What hidden places show.
pub(super) const EMPTY_FOLDER: &str = "empty";
pub(super) const UNREADABLE_FILE: &str = "unreadable";

/// One tmpfs that everything made for this run lives on, so that it has one
/// size. It is mounted below `/dev`, where the real device folder covers it.
pub(super) struct Scratch {
    root: OwnedFd,
    made: Cell<u32>,
    empty_folder: OnceCell<OwnedFd>,
    unreadable_file: OnceCell<OwnedFd>,
    files: GivenFiles,
}

impl Scratch {
    pub(super) fn mount(files: GivenFiles) -> Result<Self, Failure> {
        let tree = sys::tmpfs("0755", None, MountFlags::PLAIN).during(Step::Scratch)?;
        let point = open_folder(Path::new("/dev"))?;
        sys::attach(tree.as_fd(), point.as_fd()).during(Step::Scratch)?;
        Ok(Self {
            root: tree,
            made: Cell::new(0),
            empty_folder: OnceCell::new(),
            unreadable_file: OnceCell::new(),
            files,
        })
    }

    /// Lets so many bytes, and as many names as go with them, be added.
    pub(super) fn limit(&self, bytes: u64) -> Result<(), Failure> {
        // A size of 0 would mean no limit at all.
        const LEAST: u64 = 4096;
        let now = rustix::fs::fstatvfs(&self.root).during(Step::Scratch)?;
        let used = (now.f_blocks - now.f_bfree) * now.f_frsize;
        let names = now.f_files - now.f_ffree;
        sys::limit_tmpfs(
            self.root.as_fd(),
            used.saturating_add(bytes.max(LEAST)),
            names.saturating_add(most_names(bytes)),
        )
        .during(Step::Scratch)
    }

    pub(super) fn fresh_name(&self) -> String {
        self.made.set(self.made.get() + 1);
        format!("made-{}", self.made.get())
    }

    pub(super) fn folder(&self, name: &str, mode: u32) -> Result<OwnedFd, Failure> {
        self.make_folder(name, mode)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, name, flags, Mode::empty()).during(Step::Scratch)
    }

    fn make_folder(&self, name: &str, mode: u32) -> Result<(), Failure> {
        let mode = Mode::from_raw_mode(mode);
        rustix::fs::mkdirat(&self.root, name, mode).during(Step::Scratch)
    }

    /// A new folder as a mount of its own.
    pub(super) fn tree(&self, name: &str, mode: u32) -> Result<OwnedFd, Failure> {
        self.make_folder(name, mode)?;
        sys::clone_entry(self.root.as_fd(), Path::new(name)).during(Step::CloneMount)
    }

    /// An empty, sealed folder as a mount of its own.
    pub(super) fn empty_folder(&self) -> Result<OwnedFd, Failure> {
        copy_of(&self.empty_folder, || {
            self.make_folder(EMPTY_FOLDER, 0o555)?;
            self.seal_in_place(EMPTY_FOLDER)
        })
    }

    /// An empty file that nobody may read, as a mount of its own.
    pub(super) fn unreadable_file(&self) -> Result<OwnedFd, Failure> {
        copy_of(&self.unreadable_file, || {
            self.write(Path::new(UNREADABLE_FILE), 0, b"")?;
            self.seal_in_place(UNREADABLE_FILE)
        })
    }

    pub(super) fn file(&self, bytes: &[u8]) -> Result<OwnedFd, Failure> {
        self.seal(&self.new_file(bytes, 0o444)?)
    }

    /// A new folder with these files, as a mount of its own that cannot be
    /// changed.
    pub(super) fn own_folder(&self, files: &[OwnFile]) -> Result<OwnedFd, Failure> {
        let name = self.fresh_name();
        self.make_folder(&name, 0o755)?;
        for file in files {
            let path = Path::new(&name).join(&file.path);
            self.make_folders_to(&name, &file.path)
                .at(Step::Scratch, &file.path)?;
            match &file.content {
                OwnContent::Bytes(bytes) => self.write(&path, file.mode, bytes),
                OwnContent::Late(number) => self.link(*number, &path),
            }?;
        }
        self.restricted(&name, MountFlags::READ_ONLY)
    }

    /// A late file, to lay over one of the host.
    pub(super) fn late(&self, number: usize) -> Result<OwnedFd, Failure> {
        let name = self.files.name(number, |given| self.copy(given))?;
        self.seal(name)
    }

    /// What is needed to lay covers anew: the root, the namespace that it is
    /// mounted in, and of each late file its number, its name, and itself to be
    /// written to.
    pub(super) fn sources(&self, covers: &[Cover]) -> Result<Option<Sources>, Failure> {
        if covers.is_empty() {
            return Ok(None);
        }
        self.empty_folder()?;
        self.unreadable_file()?;
        let masked = covers.iter().filter_map(|cover| match &cover.shows {
            Shows::Masked { number, .. } => Some(self.source(*number)),
            Shows::Nothing => None,
        });
        Ok(Some(Sources {
            namespace: sys::MountNamespace::own().during(Step::Scratch)?,
            root: rustix::io::fcntl_dupfd_cloexec(&self.root, 3).during(Step::Scratch)?,
            masked: masked.collect::<Result<_, _>>()?,
        }))
    }

    fn source(&self, number: usize) -> Result<(usize, String, OwnedFd), Failure> {
        let name = self.files.name(number, |given| self.copy(given))?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.root, name, flags, Mode::empty());
        Ok((number, name.to_owned(), file.during(Step::Scratch)?))
    }

    fn link(&self, number: usize, path: &Path) -> Result<(), Failure> {
        let name = self.files.name(number, |given| self.copy(given))?;
        rustix::fs::linkat(&self.root, name, &self.root, path, AtFlags::empty())
            .at(Step::Scratch, path)
    }

    fn make_folders_to(&self, folder: &str, file: &Path) -> Result<(), Errno> {
        let mut so_far = PathBuf::from(folder);
        for component in file.parent().into_iter().flat_map(Path::components) {
            so_far.push(component);
            match rustix::fs::mkdirat(&self.root, &so_far, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Returns the name of the new file.
    fn new_file(&self, bytes: &[u8], mode: u32) -> Result<String, Failure> {
        let name = self.fresh_name();
        self.write(Path::new(&name), mode, bytes)?;
        Ok(name)
    }

    fn write(&self, path: &Path, mode: u32, bytes: &[u8]) -> Result<(), Failure> {
        let file = self.create(path, mode)?;
        let mut left = bytes;
        while !left.is_empty() {
            match rustix::io::write(&file, left).during(Step::Scratch)? {
                0 => return Err(Errno::NOSPC).during(Step::Scratch),
                written => left = &left[written..],
            }
        }
        Ok(())
    }

    /// A copy of a whole file, which does not pass through our memory. Returns
    /// its name.
    fn copy(&self, source: &OwnedFd) -> Result<String, Failure> {
        const AT_ONCE: usize = 1 << 30;
        let name = self.fresh_name();
        let file = self.create(Path::new(&name), 0o444)?;
        let mut from = 0;
        while rustix::fs::sendfile(&file, source, Some(&mut from), AT_ONCE)
            .during(Step::LateFiles)?
            > 0
        {}
        Ok(name)
    }

    fn create(&self, path: &Path, mode: u32) -> Result<OwnedFd, Failure> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.root, path, flags, Mode::from_raw_mode(mode))
            .at(Step::Scratch, path)
    }

    /// Mounts what is called `name` on itself so that it cannot be changed;
    /// later copies of the mount cannot be either.
    fn seal_in_place(&self, name: &str) -> Result<OwnedFd, Failure> {
        let tree = self.seal(name)?;
        // Only what is attached can be copied before Linux 6.15.
        sys::attach_to_entry(tree.as_fd(), self.root.as_fd(), name).during(Step::AttachMount)?;
        Ok(tree)
    }

    /// A mount of what is called `name` that cannot be changed.
    fn seal(&self, name: &str) -> Result<OwnedFd, Failure> {
        self.restricted(name, MountFlags::INERT)
    }

    fn restricted(&self, name: &str, flags: MountFlags) -> Result<OwnedFd, Failure> {
        let tree = sys::clone_entry(self.root.as_fd(), Path::new(name));
        let tree = tree.during(Step::CloneMount)?;
        sys::set_attributes_of_one(tree.as_fd(), flags).during(Step::RestrictMount)?;
        Ok(tree)
    }
}

/// A copy of a mount that is made once.
fn copy_of(
    once: &OnceCell<OwnedFd>,
    make: impl FnOnce() -> Result<OwnedFd, Failure>,
) -> Result<OwnedFd, Failure> {
    if once.get().is_none() {
        let tree = make()?;
        let _ = once.set(tree);
    }
    let original = once.get().ok_or(Errno::BADF).during(Step::Scratch)?;
    sys::clone_tree(original.as_fd(), false).during(Step::CloneMount)
}
