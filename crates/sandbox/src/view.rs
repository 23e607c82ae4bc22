//! What the sandbox sees of the file system: a list of mounts, in order.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use ringfence_sys::Errno;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

use crate::within::is_within;

/// Why a place cannot be part of the view.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// It cannot be looked at.
    #[error("{path}: {error}")]
    Unreadable {
        /// The place.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// The identity of a file, to check that a path still leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn new(device: u64, inode: u64) -> Self {
        Self { device, inode }
    }

    /// The device and the inode.
    pub(crate) fn numbers(self) -> (u64, u64) {
        (self.device, self.inode)
    }

    pub(crate) fn of_stat(stat: &rustix::fs::Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// An existing place of the host with every link on the way resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) id: FileId,
    pub(crate) is_folder: bool,
    pub(crate) owner: (u32, u32),
    pub(crate) mode: u32,
}

impl Place {
    /// Resolves `path`. `None` when nothing is there, or nothing that we may
    /// reach: then the sandbox, which has no more rights, cannot either.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>, ViewError> {
        let unreadable = |errno: Errno| ViewError::Unreadable {
            path: path.to_path_buf(),
            error: errno.into(),
        };
        let (opened, real) = match open_real(path) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => return Ok(None),
            Err(errno) => return Err(unreadable(errno)),
        };
        let status = rustix::fs::fstat(&opened).map_err(unreadable)?;
        Ok(Some(Self {
            path: real,
            id: FileId::of_stat(&status),
            is_folder: FileType::from_raw_mode(status.st_mode) == FileType::Directory,
            owner: (status.st_uid, status.st_gid),
            mode: status.st_mode & 0o7777,
        }))
    }
}

/// Opens what is at `path` and tells its path without links. Most paths have
/// none, which one call shows; otherwise the kernel is asked for it, which is
/// one call for what would be one per component.
fn open_real(path: &Path) -> Result<(OwnedFd, PathBuf), Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if is_plain && path.is_absolute() {
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(opened) => return Ok((opened, path.components().collect())),
            Err(Errno::LOOP) => {}
            Err(errno) => return Err(errno),
        }
    }
    let opened = rustix::fs::open(path, flags, Mode::empty())?;
    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
    let real = rustix::fs::readlink(link, Vec::new())?;
    Ok((opened, OsString::from_vec(real.into_bytes()).into()))
}

/// What the rest of the view is laid upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    /// The host's whole tree, read-only.
    Host,
    /// An empty root with only these, read-only.
    Only(Vec<PathBuf>),
}

/// One mount on top of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overlay {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// The host's own place, writable.
    Writable(Place),
    /// The host's own place, read-only: shown again inside a hidden folder,
    /// or with its owner's rights when the sandbox has another host id.
    Shown(Place),
    /// A file that is mounted in the home by itself, read-only.
    Volume(Place),
    /// What the view shows there so far, but read-only.
    Frozen,
    /// A folder of the host made anew, which cannot be changed.
    Gathered(Gathered),
    /// Nothing: an empty folder or an unreadable file.
    Hidden { is_folder: bool },
    /// A directory under a copy-on-write layer of the sandbox's own.
    Layered(Box<CopyOnWrite>),
    /// A writable folder that exists only for this run.
    Scratch,
    /// A file made for this run.
    File(Vec<u8>),
    /// A folder made for this run, with these files, which cannot be changed.
    Own(Vec<OwnFile>),
    /// A late file instead of one of the host, as far as that is still there.
    Replaced(usize),
    /// A late file instead of one of the host, which must not be seen.
    Masked(usize),
}

/// What lies over a file or directory of the host that the host may replace while the command
/// runs. A mount goes away when another file is renamed onto the one that it lies on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// Where it lies, without links.
    pub path: PathBuf,
    /// What it shows.
    pub shows: Shows,
}

/// What a cover shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shows {
    /// Nothing.
    Nothing,
    /// The file without the secrets of these services, by its number among the late files.
    Masked {
        /// Its number.
        number: usize,
        /// As [`Attendant::masked`](crate::Attendant::masked) is asked for them.
        services: Vec<String>,
    },
}

/// What is in a folder that is made anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gathered {
    /// Names of what the view shows there so far, which it shows again.
    pub(crate) kept: Vec<OsString>,
    /// Names of links, with what they lead to.
    pub(crate) links: Vec<(OsString, PathBuf)>,
}

/// What a copy-on-write layer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerPurpose {
    /// Tools find a home directory that they can write to: that itself, or what is mounted in it.
    Home,
    /// Tools write a new file beside a writable one, to rename it.
    BesideFile,
}

/// Whose files a place of the host has inside, where the sandbox has another host id than its
/// starter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// What its owner has is the sandbox's own.
    Owner,
    /// The same, where its file system can show that, or else as it is.
    OwnerWhereItCan,
    /// As on the host, where the sandbox is nobody.
    AsItIs,
}

/// A layer over a directory that takes all changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyOnWrite {
    pub(crate) purpose: LayerPurpose,
    pub(crate) ownership: Ownership,
    /// The host's own below it, where that shows.
    pub(crate) shown: Option<Place>,
    /// What of it does not show.
    pub(crate) mask: Mask,
    /// What of it can be read: what there was beside hidden names at the start, and all below it.
    /// A copy that the host makes of a hidden file during the run is not among it.
    pub(crate) readable: Vec<PathBuf>,
    /// Where it is kept; without one it is gone with the run.
    pub(crate) store: Option<Place>,
    /// Of the directory.
    pub(crate) mode: u32,
    /// What is private instead where the kernel refuses the layer.
    pub(crate) caches: Vec<PathBuf>,
}

impl CopyOnWrite {
    /// Whether nothing of the host's shows at `path` through the layer at `directory`.
    pub(crate) fn leaves_out(&self, directory: &Path, path: &Path) -> bool {
        let below = path.strip_prefix(directory);
        below.is_ok_and(|below| {
            let mut above = below.ancestors();
            above.any(|name| self.mask.left_out.contains(name))
        })
    }
}

/// Names that do not show through a layer, all of them from its root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mask {
    /// Directories on the way to what is there, outer ones first, with their modes.
    pub(crate) folders: Vec<(PathBuf, u32)>,
    /// What cannot be read from inside, there or not.
    pub(crate) left_out: BTreeSet<PathBuf>,
    /// Those of them that are there, or may be: for whoever looks from inside they are not.
    pub(crate) there: Vec<PathBuf>,
}

/// A file in a folder made for this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnFile {
    /// Below the folder.
    pub(crate) path: PathBuf,
    pub(crate) content: OwnContent,
    pub(crate) mode: u32,
}

/// What is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnContent {
    Bytes(Vec<u8>),
    /// A late file, by its number.
    Late(usize),
}

/// What a place is mounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Read,
    Write,
}

/// The whole view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) base: Base,
    /// Outer ones first, so that inner ones end up on top.
    pub(crate) overlays: Vec<Overlay>,
}

/// A layer over a directory whose changes are gone with the run. Its paths are from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateLayer {
    /// Where the directory is.
    pub path: PathBuf,
    /// Its path from the home, where it is that or in it.
    pub in_home: Option<PathBuf>,
    /// Places of the host that are laid on top: what is written there stays.
    pub covered: Vec<PathBuf>,
    /// What of the host's does not show.
    pub hidden: BTreeSet<PathBuf>,
}

impl View {
    /// The layers that are not kept, each with the number of its overlay.
    pub(crate) fn private_layers(&self) -> Vec<(usize, PrivateLayer)> {
        let overlays = self.overlays.iter().enumerate();
        let private = overlays.filter_map(|(index, overlay)| match &overlay.content {
            Content::Layered(layer) if layer.store.is_none() => {
                Some((index, self.private_layer(&overlay.path, layer)))
            }
            _ => None,
        });
        private.collect()
    }

    fn private_layer(&self, path: &Path, layer: &CopyOnWrite) -> PrivateLayer {
        let itself = [(path, layer)];
        let laid = (0..self.overlays.len()).filter(|index| !self.is_left_out(*index, &itself));
        let covered = laid.filter_map(|index| below(&self.overlays[index].path, path));
        let covered = covered.filter(|below| !below.as_os_str().is_empty());
        PrivateLayer {
            path: path.to_path_buf(),
            in_home: self.home().and_then(|home| below(path, home)),
            covered: covered.collect(),
            hidden: layer.mask.left_out.clone(),
        }
    }

    /// The places of the host that are part of it, each with the number of its mount: that of its
    /// overlay, or one beyond them all for where a layer is kept.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, &Place, Use, Ownership)> {
        use Ownership::{Owner, OwnerWhereItCan};
        let overlays = self.overlays.iter().enumerate();
        overlays.flat_map(|(index, overlay)| {
            let (own, kept) = match &overlay.content {
                Content::Writable(place) => (Some((place, Use::Write, Owner)), None),
                Content::Shown(place) => (Some((place, Use::Read, Owner)), None),
                Content::Volume(place) => (Some((place, Use::Read, OwnerWhereItCan)), None),
                Content::Layered(layer) => (
                    layer
                        .shown
                        .as_ref()
                        .map(|place| (place, Use::Read, layer.ownership)),
                    layer.store.as_ref(),
                ),
                _ => (None, None),
            };
            let own = own.map(|(place, how, owner)| (index, place, how, owner));
            let kept = kept.map(|place| (self.store_of(index), place, Use::Write, Owner));
            own.into_iter().chain(kept)
        })
    }

    /// The number of the mount that the layer of an overlay is kept on.
    pub(crate) fn store_of(&self, index: usize) -> usize {
        self.overlays.len() + index
    }

    /// The directory of the layer over the home.
    fn home(&self) -> Option<&Path> {
        let layers = self.layers();
        let mut layers = layers.iter();
        layers.find_map(|(path, layer)| (layer.purpose == LayerPurpose::Home).then_some(*path))
    }

    /// The layers that there are to be, outer ones first, each with its directory.
    pub(crate) fn layers(&self) -> Vec<(&Path, &CopyOnWrite)> {
        let overlays = self.overlays.iter();
        let layers = overlays.filter_map(|overlay| match &overlay.content {
            Content::Layered(layer) => Some((overlay.path.as_path(), &**layer)),
            _ => None,
        });
        layers.collect()
    }

    /// Whether later overlays lie in this one.
    pub(crate) fn holds_others(&self, index: usize) -> bool {
        let path = &self.overlays[index].path;
        let mut others = self.overlays[index..].iter();
        others.any(|other| other.path != *path && is_within(&other.path, path))
    }

    /// Whether this overlay is not laid because a layer shows nothing of the host there: what is
    /// there by that name was made inside, or in an earlier run.
    pub(crate) fn is_left_out(&self, index: usize, layers: &[(&Path, &CopyOnWrite)]) -> bool {
        let overlay = &self.overlays[index];
        let is_hidden = matches!(overlay.content, Content::Hidden { .. });
        let mut layers = layers.iter();
        is_hidden
            && layers.any(|(directory, layer)| {
                layer.leaves_out(directory, &overlay.path)
                    && !self.shows_host_between(directory, &overlay.path)
            })
            && !self.holds_others(index)
    }

    /// Whether a place of the host is laid over what a layer shows at `path`.
    fn shows_host_between(&self, directory: &Path, path: &Path) -> bool {
        let mut overlays = self.overlays.iter();
        overlays.any(|other| {
            let is_of_host = matches!(
                &other.content,
                Content::Writable(_) | Content::Shown(_) | Content::Volume(_) | Content::Layered(_)
            );
            is_of_host
                && other.path != directory
                && is_within(&other.path, directory)
                && is_within(path, &other.path)
        })
    }

    /// Sorts the overlays so that what lies deeper is mounted later. Of two at
    /// the same path the later given one wins.
    pub(crate) fn new(base: Base, mut overlays: Vec<Overlay>) -> Self {
        overlays.sort_by_cached_key(|overlay| overlay.path.components().count());
        Self { base, overlays }
    }
}

fn below(path: &Path, directory: &Path) -> Option<PathBuf> {
    path.strip_prefix(directory).ok().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_overlays_come_after_outer_ones() {
        let overlay = |path: &str| Overlay {
            path: path.into(),
            content: Content::Frozen,
        };
        let view = View::new(
            Base::Host,
            vec![overlay("/a/b/c"), overlay("/a"), overlay("/z/b")],
        );
        let order: Vec<_> = view
            .overlays
            .iter()
            .map(|o| o.path.to_str().unwrap())
            .collect();
        assert_eq!(order, ["/a", "/z/b", "/a/b/c"]);
    }

    #[test]
    fn an_absent_place_is_no_error_and_links_are_resolved() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Place::find(&folder.path().join("none")).unwrap().is_none());
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        std::fs::create_dir(folder.path().join("real")).unwrap();
        let place = Place::find(&folder.path().join("link")).unwrap().unwrap();
        assert!(place.path.ends_with("real") && place.is_folder);
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
        assert!(Place::find(&folder.path().join("loop")).unwrap().is_none());
    }
}
