//! Laying copy-on-write layers, over the home directory and others: an overlay that takes all
//! changes, above a mask of names that do not show, above the host's own.
//!
//! The mask is a lower part of the overlay, which nothing inside can change: a name in it shows
//! nothing of the host, also after code inside made and removed a file of its own there. Where the
//! kernel refuses the overlay, the directory stays read-only but for caches in it, which are empty
//! and private then.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_sys::{self as sys, Errno, FsAccess, MountFlags, Ruleset};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::failure::{During, Failure};
use super::mounts::Root;
use super::scratch::Scratch;
use crate::view::{CopyOnWrite, Mask};
use crate::wire::Step;

/// What became of all layers.
#[derive(Debug, Default)]
pub(super) struct LaidLayers {
    /// Directories that have a layer over them, or are private as a whole.
    pub(super) laid: Vec<PathBuf>,
    /// Devices that files of layers show, where those lie on the private storage.
    pub(super) private_devices: Vec<u64>,
    /// What layers' changes are in, where they are gone with the run, by the number of the overlay.
    pub(super) dropped: Vec<(usize, OwnedFd)>,
}

impl LaidLayers {
    /// Takes in what became of one.
    pub(super) fn add(&mut self, index: usize, path: &Path, state: LaidLayer) {
        self.laid
            .extend(state.is_layered.then(|| path.to_path_buf()));
        self.private_devices.extend(state.private_devices);
        self.dropped
            .extend(state.dropped.map(|upper| (index, upper)));
    }
}

/// What became of one layer.
#[derive(Debug, Default)]
pub(super) struct LaidLayer {
    /// Whether there is one, or the directory is private as a whole.
    pub(super) is_layered: bool,
    private_devices: Vec<u64>,
    dropped: Option<OwnedFd>,
}

/// The host's own directory, and where the layer is kept, as detached mounts.
type Given = (Option<OwnedFd>, Option<OwnedFd>);

/// Where an overlay's changes go.
struct Upper {
    folder: OwnedFd,
    work: OwnedFd,
    is_private: bool,
}

/// Lays the layer at `path`.
pub(super) fn lay(
    root: &Root,
    path: &Path,
    layer: &CopyOnWrite,
    (own, store): Given,
    scratch: &Scratch,
) -> Result<LaidLayer, Failure> {
    if layer.store.is_some() != store.is_some() || layer.shown.is_some() != own.is_some() {
        return Err(Errno::BADF).at(Step::CloneMount, path);
    }
    // As a lower part it has to be attached before Linux 6.15, and it shows where there is none.
    if let Some(own) = &own {
        let point = root.mount_point(path, true)?;
        sys::attach(own.as_fd(), point.as_fd()).at(Step::AttachMount, path)?;
    }
    let is_kept = store.is_some();
    match overlay(path, layer, own.as_ref(), store, scratch) {
        Ok((tree, state)) => {
            let point = root.mount_point(path, true)?;
            sys::attach(tree.as_fd(), point.as_fd()).at(Step::AttachMount, path)?;
            Ok(state)
        }
        Err(failure) if is_kept => Err(failure),
        Err(_) => instead(root, path, layer, scratch),
    }
}

fn overlay(
    path: &Path,
    layer: &CopyOnWrite,
    own: Option<&OwnedFd>,
    store: Option<OwnedFd>,
    scratch: &Scratch,
) -> Result<(OwnedFd, LaidLayer), Failure> {
    let upper = match store {
        Some(store) => kept(&store, layer, scratch)?,
        None => private(layer, scratch)?,
    };
    let mask = mask(&layer.mask, layer.mode, scratch)?;
    let parts = Parts {
        upper: &upper,
        mask: &mask,
        own,
        path,
        readable: &layer.readable,
    };
    let tree = parts.mount().during(Step::HomeLayer)?;
    let mut state = LaidLayer {
        is_layered: true,
        ..LaidLayer::default()
    };
    if upper.is_private {
        state.private_devices = devices(&tree).during(Step::HomeLayer)?;
        state.dropped = Some(upper.folder);
    }
    Ok((tree, state))
}

/// What an overlay is made of.
struct Parts<'a> {
    upper: &'a Upper,
    mask: &'a OwnedFd,
    own: Option<&'a OwnedFd>,
    /// Where the directory is.
    path: &'a Path,
    readable: &'a [PathBuf],
}

impl Parts<'_> {
    /// The kernel reads files of the lower parts with the rights of whoever mounted. So that is
    /// done by a thread that Landlock lets read only what the plan found beside hidden names: what
    /// the host makes there meanwhile, as a new copy of a hidden file, cannot be read through the
    /// layer.
    fn mount(&self) -> Result<OwnedFd, Errno> {
        let Some(own) = self.own.filter(|_| sys::landlock_abi() > 0) else {
            return self.overlay();
        };
        std::thread::scope(|scope| {
            let mounting = std::thread::Builder::new().spawn_scoped(scope, || {
                self.ruleset(own)?.restrict_self()?;
                self.overlay()
            });
            let mounting = mounting.map_err(|_| Errno::AGAIN)?;
            mounting.join().unwrap_or(Err(Errno::IO))
        })
    }

    fn overlay(&self) -> Result<OwnedFd, Errno> {
        let lower = [self.mask].into_iter().chain(self.own);
        let lower: Vec<_> = lower.map(AsFd::as_fd).collect();
        let (folder, work) = (self.upper.folder.as_fd(), self.upper.work.as_fd());
        sys::overlay(&lower, folder, work, MountFlags::PLAIN)
    }

    fn ruleset(&self, own: &OwnedFd) -> Result<Ruleset, Errno> {
        let rules = Ruleset::new()?;
        rules.grant(own.as_fd(), FsAccess::List)?;
        for folder in [self.mask, &self.upper.folder, &self.upper.work] {
            rules.grant(folder.as_fd(), FsAccess::Write)?;
        }
        for path in self.readable {
            let below = path.strip_prefix(self.path).unwrap_or(path);
            let below = if below.as_os_str().is_empty() {
                Path::new(".")
            } else {
                below
            };
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // What is gone since, or shut, cannot be read anyway.
            if let Ok(place) = rustix::fs::openat(own, below, flags, Mode::empty()) {
                rules.grant(place.as_fd(), FsAccess::Read)?;
            }
        }
        Ok(rules)
    }
}

/// On the sandbox's own storage.
fn private(layer: &CopyOnWrite, scratch: &Scratch) -> Result<Upper, Failure> {
    Ok(Upper {
        folder: scratch.folder(&scratch.fresh_name(), layer.mode)?,
        work: scratch.folder(&scratch.fresh_name(), 0o700)?,
        is_private: true,
    })
}

/// On the host's, where the last run left it. Nothing in it is looked at but its two directories,
/// which the supervisor made.
fn kept(store: &OwnedFd, layer: &CopyOnWrite, scratch: &Scratch) -> Result<Upper, Failure> {
    let point = scratch.folder(&scratch.fresh_name(), 0o700)?;
    sys::attach(store.as_fd(), point.as_fd()).during(Step::AttachMount)?;
    let open = |name: &str| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(store, name, flags, Mode::empty()).during(Step::HomeLayer)
    };
    let folder = open("upper")?;
    let mode = Mode::from_raw_mode(layer.mode);
    rustix::fs::chmodat(store, "upper", mode, AtFlags::empty()).during(Step::HomeLayer)?;
    Ok(Upper {
        folder,
        work: open("work")?,
        is_private: false,
    })
}

/// A directory with the names that are left out, as the kernel marks what was removed from a lower
/// part: device nodes of number 0, which anybody may make since Linux 5.8.
fn mask(mask: &Mask, mode: u32, scratch: &Scratch) -> Result<OwnedFd, Failure> {
    let root = scratch.folder(&scratch.fresh_name(), mode)?;
    for (path, mode) in &mask.folders {
        rustix::fs::mkdirat(&root, path, Mode::from_raw_mode(*mode)).at(Step::HomeLayer, path)?;
    }
    for path in &mask.there {
        let nothing = FileType::CharacterDevice;
        rustix::fs::mknodat(&root, path, nothing, Mode::empty(), 0).at(Step::HomeLayer, path)?;
    }
    Ok(root)
}

/// The device numbers of directories and of files in the layer, which differ.
fn devices(tree: &OwnedFd) -> Result<Vec<u64>, Errno> {
    const SAMPLE: &str = ".ringfence-sample";
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let sample = rustix::fs::openat(tree, SAMPLE, flags, Mode::RUSR)?;
    rustix::fs::unlinkat(tree, SAMPLE, AtFlags::empty())?;
    let folder = rustix::fs::fstat(tree)?;
    Ok(vec![folder.st_dev, rustix::fs::fstat(&sample)?.st_dev])
}

/// Without an overlay: private caches in a read-only directory, or a private one where nothing of
/// the host's shows.
fn instead(
    root: &Root,
    path: &Path,
    layer: &CopyOnWrite,
    scratch: &Scratch,
) -> Result<LaidLayer, Failure> {
    let private = || scratch.tree(&scratch.fresh_name(), 0o700);
    if layer.shown.is_none() {
        let point = root.mount_point(path, true)?;
        sys::attach(private()?.as_fd(), point.as_fd()).at(Step::AttachMount, path)?;
        return Ok(LaidLayer {
            is_layered: true,
            ..LaidLayer::default()
        });
    }
    for path in &layer.caches {
        root.cover_folder(path, private)?;
    }
    Ok(LaidLayer::default())
}
