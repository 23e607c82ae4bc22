//! Carrying out a [`View`] in the sandbox's own mount namespace.
//!
//! Runs in the init before any foreign code exists inside. Other sandboxes may
//! be at work in the same folders, so no path is followed twice: a place is
//! opened once without following links, compared with what the plan saw, and
//! used by descriptor from then on.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_sys::{self as sys, Channel, Errno, MountFlags, Received};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use super::broker::Configurations;
use super::copy_on_write::{self, LaidLayers};
use super::covers::Sources;
use super::failure::{During, Failure};
use super::late::GivenFiles;
use super::scratch::Scratch;
use crate::plan::Plan;
use crate::view::{Base, Content, FileId, Gathered, Overlay, Place, Use, View};
use crate::wire::{Order, Step};

/// Device nodes that every sandbox has.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links in the device folder.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// How often the host may replace a file while it is mounted upon.
const MOST_TRIES: usize = 8;

/// Detached mounts made outside, by the index of their overlay.
pub(super) type GivenTrees = HashMap<usize, OwnedFd>;

/// What there is once a view is built.
pub(super) struct Built {
    pub(super) layers: LaidLayers,
    /// Configuration files that are read-only now, open for writing.
    pub(super) configurations: Configurations,
    /// What covers are laid anew with, where there are any.
    pub(super) sources: Option<Sources>,
}

/// The host's tree, read-only, and what was taken of it before.
pub(super) struct Ground<'a> {
    places: GivenTrees,
    /// Who gives the places, if they are not there yet.
    awaited: Option<&'a Channel>,
    devices: Vec<(&'static str, OwnedFd)>,
    files: GivenFiles,
}

impl<'a> Ground<'a> {
    /// Takes what the view needs of the host and makes the rest read-only.
    pub(super) fn with_places(view: &View) -> Result<Self, Failure> {
        let mut places = GivenTrees::new();
        take_places(view, &mut places)?;
        let ground = Self::without_places()?;
        Ok(Self { places, ..ground })
    }

    /// As [`Self::with_places`] for a view whose places are given from outside.
    /// Makes no file, so it needs no ids.
    pub(super) fn without_places() -> Result<Self, Failure> {
        let devices = take_devices()?;
        sys::make_view_read_only().during(Step::ReadOnlyView)?;
        Ok(Self {
            places: GivenTrees::new(),
            awaited: None,
            devices,
            files: GivenFiles::default(),
        })
    }

    /// Takes what the supervisor gives when the first of it is needed.
    pub(super) fn wait_later(&mut self, supervisor: &'a Channel) {
        self.awaited = Some(supervisor);
    }

    /// Takes what the supervisor gives, until it says that this is all.
    pub(super) fn wait(&mut self, supervisor: &Channel) -> Result<(), Errno> {
        self.awaited = None;
        loop {
            let Received::Message(bytes, descriptors) = supervisor.receive_soon()? else {
                return Err(Errno::PIPE);
            };
            match serde_json::from_slice(&bytes) {
                Ok(Order::Mounts(numbers)) => {
                    self.places.extend(numbers.into_iter().zip(descriptors));
                }
                Ok(Order::Files) => self.files.add(descriptors),
                Ok(Order::Proceed) => return Ok(()),
                _ => return Err(Errno::PIPE),
            }
        }
    }

    /// The place of an overlay, if it has one.
    fn place_of(&mut self, index: usize, overlay: &Overlay) -> Result<Option<OwnedFd>, Failure> {
        let has_place = match &overlay.content {
            Content::Writable(_) | Content::Shown(_) | Content::Volume(_) => true,
            Content::Layered(layer) => layer.shown.is_some() || layer.store.is_some(),
            _ => false,
        };
        if !has_place {
            return Ok(None);
        }
        self.wait_now()?;
        Ok(self.places.remove(&index))
    }

    fn wait_now(&mut self) -> Result<(), Failure> {
        let awaited = self.awaited.take();
        awaited.map_or(Ok(()), |supervisor| {
            self.wait(supervisor).during(Step::CloneMount)
        })
    }

    /// Builds the plan's view and makes it the caller's root. No more than its
    /// limit can be added to what is made for this run. Configuration files
    /// become read-only, but what was opened of them before is returned.
    pub(super) fn build(self, plan: &Plan) -> Result<Built, Failure> {
        let held = &plan.guard().survey().configurations;
        build(plan, held, self)
    }
}

fn build(plan: &Plan, held: &[PathBuf], mut ground: Ground<'_>) -> Result<Built, Failure> {
    let view = plan.view();
    sys::set_umask(0);
    let scratch = Scratch::mount(std::mem::take(&mut ground.files))?;
    let root = match &view.base {
        Base::Host => Root(open_folder(Path::new("/"))?),
        Base::Only(visible) => empty_root(&scratch, visible)?,
    };
    let mut hidden = Vec::new();
    let mut configurations = Configurations::default();
    let mut layers = LaidLayers::default();
    let mut laid = Vec::new();
    for (index, overlay) in view.overlays.iter().enumerate() {
        let given = ground.place_of(index, overlay)?;
        if let Content::Layered(layer) = &overlay.content {
            let path = overlay.path.as_path();
            let store = ground.places.remove(&view.store_of(index));
            let state = copy_on_write::lay(&root, path, layer, (given, store), &scratch)?;
            laid.extend(state.is_layered.then_some((path, &**layer)));
            layers.add(index, path, state);
            continue;
        }
        if overlay.content == Content::Frozen && held.contains(&overlay.path) {
            root.hold(&overlay.path, &mut configurations);
        }
        if view.is_left_out(index, &laid) {
            continue;
        }
        let holds_others = || view.holds_others(index);
        hidden.extend(root.lay(overlay, given, holds_others, &scratch)?);
    }
    ground.wait_now()?;
    root.attach_devices(ground.devices, &scratch)?;
    root.attach_proc()?;
    for tree in hidden {
        sys::set_attributes_of_one(tree.as_fd(), MountFlags::INERT).during(Step::RestrictMount)?;
    }
    let sources = scratch.sources(plan.covers())?;
    if let Some(limit) = plan.limits().watch.disk {
        scratch.limit(limit)?;
    }
    if matches!(view.base, Base::Only(_)) {
        sys::pivot_into(root.0.as_fd()).during(Step::PivotRoot)?;
    }
    Ok(Built {
        layers,
        configurations,
        sources,
    })
}

/// Copies the mounts of the host's places as they are before the view changes.
fn take_places(view: &View, given: &mut GivenTrees) -> Result<(), Failure> {
    let host = Root(open_folder(Path::new("/"))?);
    for (index, place, how, _) in view.places() {
        let flags = flags_for(how);
        let opened = host.open_same(place)?;
        let tree = sys::clone_tree(opened.as_fd(), true).at(Step::CloneMount, &place.path)?;
        sys::set_mount_attributes(tree.as_fd(), flags).at(Step::RestrictMount, &place.path)?;
        given.insert(index, tree);
    }
    Ok(())
}

/// How a place is mounted for this.
pub(super) fn flags_for(how: Use) -> MountFlags {
    match how {
        Use::Read => MountFlags::READ_ONLY,
        Use::Write => MountFlags::PLAIN,
    }
}

fn take_devices() -> Result<Vec<(&'static str, OwnedFd)>, Failure> {
    let mut trees = Vec::with_capacity(DEVICES.len());
    for name in DEVICES {
        let path = Path::new("/dev").join(name);
        let tree = sys::clone_entry(CWD, &path).at(Step::Devices, &path)?;
        let status = rustix::fs::fstat(&tree).at(Step::Devices, &path)?;
        // What was taken must be the device it says (CVE-2025-31133).
        if FileType::from_raw_mode(status.st_mode) != FileType::CharacterDevice {
            return Err(Errno::NODEV).at(Step::Devices, &path);
        }
        trees.push((name, tree));
    }
    Ok(trees)
}

/// An empty root that shows only `visible`, with links kept as links.
fn empty_root(scratch: &Scratch, visible: &[PathBuf]) -> Result<Root, Failure> {
    let folder = scratch.folder("root", 0o755)?;
    let tree = sys::clone_tree(folder.as_fd(), false).during(Step::CloneMount)?;
    sys::attach(tree.as_fd(), folder.as_fd()).during(Step::AttachMount)?;
    let root = Root(tree);
    for path in visible {
        match std::fs::read_link(path) {
            Ok(target) => root.link(path, &target)?,
            Err(_) => root.show(path)?,
        }
    }
    Ok(root)
}

/// The root that overlays are laid upon.
pub(super) struct Root(OwnedFd);

impl Root {
    fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let below = if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        };
        rustix::fs::openat2(
            &self.0,
            below,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
    }

    /// Opens a place and checks that it is the one the plan saw.
    fn open_same(&self, place: &Place) -> Result<OwnedFd, Failure> {
        let opened = self.open(&place.path).at(Step::OpenPlace, &place.path)?;
        let status = rustix::fs::fstat(&opened).at(Step::OpenPlace, &place.path)?;
        if FileId::of_stat(&status) == place.id {
            Ok(opened)
        } else {
            Err(Errno::STALE).at(Step::SamePlace, &place.path)
        }
    }

    /// Opens the place to mount on, making it where only scratch is below.
    pub(super) fn mount_point(&self, path: &Path, is_folder: bool) -> Result<OwnedFd, Failure> {
        match self.open(path) {
            Err(Errno::NOENT) => {
                self.make(path, is_folder).at(Step::OpenPlace, path)?;
                self.open(path).at(Step::OpenPlace, path)
            }
            other => other.at(Step::OpenPlace, path),
        }
    }

    fn make(&self, path: &Path, is_folder: bool) -> Result<(), Errno> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let folders = if is_folder {
            Some(below)
        } else {
            below.parent()
        };
        let mut so_far = PathBuf::new();
        for component in folders.into_iter().flat_map(Path::components) {
            so_far.push(component);
            match rustix::fs::mkdirat(&self.0, &so_far, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
        }
        if is_folder {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(0o444);
        rustix::fs::mknodat(&self.0, below, FileType::RegularFile, mode, 0)
    }

    fn link(&self, path: &Path, target: &Path) -> Result<(), Failure> {
        let below = path.strip_prefix("/").unwrap_or(path);
        rustix::fs::symlinkat(target, &self.0, below).at(Step::AttachMount, path)
    }

    /// Shows a place of the (already read-only) host in this empty root.
    fn show(&self, path: &Path) -> Result<(), Failure> {
        let host = Root(open_folder(Path::new("/"))?);
        let source = match host.open(path) {
            Err(Errno::NOENT) => return Ok(()),
            other => other.at(Step::OpenPlace, path)?,
        };
        let is_folder = is_folder(source.as_fd()).at(Step::OpenPlace, path)?;
        let tree = sys::clone_tree(source.as_fd(), true).at(Step::CloneMount, path)?;
        let point = self.mount_point(path, is_folder)?;
        sys::attach(tree.as_fd(), point.as_fd()).at(Step::AttachMount, path)
    }

    /// Lays one overlay. Returns the mount of a hidden folder that holds other
    /// overlays, which is sealed once they are made.
    fn lay(
        &self,
        overlay: &Overlay,
        given: Option<OwnedFd>,
        holds_others: impl Fn() -> bool,
        scratch: &Scratch,
    ) -> Result<Option<OwnedFd>, Failure> {
        let path = &overlay.path;
        let (tree, is_folder) = match (&overlay.content, given) {
            (
                Content::Writable(place) | Content::Shown(place) | Content::Volume(place),
                Some(tree),
            ) => (tree, place.is_folder),
            (Content::Writable(place) | Content::Shown(place) | Content::Volume(place), None) => {
                return Err(Errno::BADF).at(Step::CloneMount, &place.path);
            }
            // It is laid by itself.
            (Content::Layered(_), _) => return Ok(None),
            (Content::Frozen, _) => return self.freeze(path).map(|()| None),
            (Content::Gathered(gathered), _) => {
                return self.gather(path, gathered, scratch).map(Some);
            }
            (Content::Hidden { is_folder: true }, _) if holds_others() => {
                return self.hide_folder(path, scratch).map(Some);
            }
            (Content::Hidden { is_folder: true }, _) => {
                return self.hide(path, || scratch.empty_folder()).map(|()| None);
            }
            (Content::Hidden { is_folder: false }, _) => {
                return self.hide(path, || scratch.unreadable_file()).map(|()| None);
            }
            (Content::Masked(number), _) => {
                return self.mask(path, || scratch.late(*number)).map(|()| None);
            }
            (Content::Replaced(number), _) => {
                return self.hide(path, || scratch.late(*number)).map(|()| None);
            }
            (Content::Own(files), _) => (scratch.own_folder(files)?, true),
            (Content::Scratch, _) => (scratch.tree(&scratch.fresh_name(), 0o1777)?, true),
            (Content::File(bytes), _) => (scratch.file(bytes)?, false),
        };
        let point = self.mount_point(path, is_folder)?;
        sys::attach(tree.as_fd(), point.as_fd()).at(Step::AttachMount, path)?;
        Ok(None)
    }

    /// Mounts over a place that the host may replace at any moment, as a shell
    /// does with its history. What is gone needs no hiding.
    pub(super) fn hide(
        &self,
        path: &Path,
        cover: impl Fn() -> Result<OwnedFd, Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..MOST_TRIES {
            let place = match self.open(path) {
                // What this process cannot reach, with all its rights, nothing
                // inside can.
                Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
                other => other.at(Step::OpenPlace, path)?,
            };
            match sys::attach(cover()?.as_fd(), place.as_fd()) {
                Err(Errno::NOENT) => {}
                other => return other.at(Step::AttachMount, path),
            }
        }
        Err(Errno::BUSY).at(Step::AttachMount, path)
    }

    /// Mounts over a file that the host may replace at any moment, as what
    /// refreshes tokens does. Where a layer leaves it out it is made.
    fn mask(
        &self,
        path: &Path,
        cover: impl Fn() -> Result<OwnedFd, Failure>,
    ) -> Result<(), Failure> {
        for _ in 0..MOST_TRIES {
            let place = self.mount_point(path, false)?;
            match sys::attach(cover()?.as_fd(), place.as_fd()) {
                Err(Errno::NOENT) => {}
                other => return other.at(Step::AttachMount, path),
            }
        }
        Err(Errno::BUSY).at(Step::AttachMount, path)
    }

    /// Opens a file for writing that is about to become read-only. One that
    /// cannot be opened stays as it is.
    fn hold(&self, path: &Path, configurations: &mut Configurations) {
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return;
        };
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(directory) = self.open(parent)
            && let Ok(file) = rustix::fs::openat(&directory, name, flags, Mode::empty())
        {
            configurations.keep(&directory, file);
        }
    }

    /// Mounts over a directory, if that is what is there.
    pub(super) fn cover_folder(
        &self,
        path: &Path,
        cover: impl Fn() -> Result<OwnedFd, Failure>,
    ) -> Result<(), Failure> {
        let place = match self.open(path) {
            Err(Errno::NOENT | Errno::ACCESS | Errno::LOOP | Errno::NOTDIR) => return Ok(()),
            other => other.at(Step::OpenPlace, path)?,
        };
        if !is_folder(place.as_fd()).at(Step::OpenPlace, path)? {
            return Ok(());
        }
        sys::attach(cover()?.as_fd(), place.as_fd()).at(Step::AttachMount, path)
    }

    fn freeze(&self, path: &Path) -> Result<(), Failure> {
        for _ in 0..MOST_TRIES {
            let place = match self.open(path) {
                // Gone since it was looked at: then it is a missing name, which
                // the init guards as well. Or out of reach for all inside.
                Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
                other => other.at(Step::OpenPlace, path)?,
            };
            let tree = sys::clone_tree(place.as_fd(), true).at(Step::CloneMount, path)?;
            sys::set_mount_attributes(tree.as_fd(), MountFlags::READ_ONLY)
                .at(Step::RestrictMount, path)?;
            match sys::attach(tree.as_fd(), place.as_fd()) {
                // The host has replaced it, as editors do.
                Err(Errno::NOENT) => {}
                other => return other.at(Step::AttachMount, path),
            }
        }
        Err(Errno::BUSY).at(Step::AttachMount, path)
    }

    fn hide_folder(&self, path: &Path, scratch: &Scratch) -> Result<OwnedFd, Failure> {
        let tree = scratch.tree(&scratch.fresh_name(), 0o755)?;
        let point = self.mount_point(path, true)?;
        sys::attach(tree.as_fd(), point.as_fd()).at(Step::AttachMount, path)?;
        Ok(tree)
    }

    /// Covers a folder with a new one that shows the same entries, and links.
    fn gather(
        &self,
        path: &Path,
        gathered: &Gathered,
        scratch: &Scratch,
    ) -> Result<OwnedFd, Failure> {
        let mut kept = Vec::new();
        for name in &gathered.kept {
            let path = path.join(name);
            let opened = match self.open(&path) {
                // It is gone, or out of reach.
                Err(Errno::NOENT | Errno::ACCESS) => continue,
                other => other.at(Step::OpenPlace, &path)?,
            };
            let status = rustix::fs::fstat(&opened).at(Step::OpenPlace, &path)?;
            let is_folder = match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => true,
                FileType::RegularFile => false,
                // Put in its place meanwhile.
                _ => continue,
            };
            let tree = sys::clone_tree(opened.as_fd(), true).at(Step::CloneMount, &path)?;
            kept.push((path, is_folder, tree));
        }
        let folder = self.hide_folder(path, scratch)?;
        for (path, is_folder, tree) in kept {
            let point = self.mount_point(&path, is_folder)?;
            sys::attach(tree.as_fd(), point.as_fd()).at(Step::AttachMount, &path)?;
        }
        for (name, target) in &gathered.links {
            rustix::fs::symlinkat(target, &folder, name).at(Step::AttachMount, path)?;
        }
        Ok(folder)
    }

    fn attach_devices(
        &self,
        devices: Vec<(&'static str, OwnedFd)>,
        scratch: &Scratch,
    ) -> Result<(), Failure> {
        let path = Path::new("/dev");
        let folder = scratch.tree("dev", 0o755)?;
        let point = self.mount_point(path, true)?;
        sys::attach(folder.as_fd(), point.as_fd()).at(Step::AttachMount, path)?;
        let inside = Root(rustix::io::fcntl_dupfd_cloexec(&folder, 0).during(Step::Devices)?);
        for (name, tree) in devices {
            inside.place(name, &tree, false)?;
        }
        for (name, target) in DEVICE_LINKS {
            rustix::fs::symlinkat(target, &folder, name).during(Step::Devices)?;
        }
        inside.place("pts", &sys::devpts().during(Step::Devices)?, true)?;
        inside.place("shm", &scratch.tree("shm", 0o1777)?, true)?;
        sys::set_attributes_of_one(folder.as_fd(), MountFlags::READ_ONLY).during(Step::Devices)
    }

    /// Attaches a mount to a new name in this root, which only we know.
    fn place(&self, name: &str, tree: &OwnedFd, is_folder: bool) -> Result<(), Failure> {
        let path = Path::new(name);
        self.make(path, is_folder).at(Step::Devices, path)?;
        sys::attach_to_entry(tree.as_fd(), self.0.as_fd(), name).at(Step::Devices, path)
    }

    fn attach_proc(&self) -> Result<(), Failure> {
        let path = Path::new("/proc");
        let tree = sys::procfs().during(Step::Proc)?;
        let point = self.mount_point(path, true)?;
        sys::attach(tree.as_fd(), point.as_fd()).at(Step::Proc, path)
    }
}

pub(super) fn open_folder(path: &Path) -> Result<OwnedFd, Failure> {
    rustix::fs::open(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .at(Step::OpenPlace, path)
}

fn is_folder(place: BorrowedFd<'_>) -> Result<bool, Errno> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
    Ok(kind == FileType::Directory)
}
