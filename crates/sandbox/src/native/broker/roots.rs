//! Where the writable folders of the host are now.
//!
//! A folder can be renamed while the sandbox works in it, by the host or, below
//! the private `/tmp`, from inside. So nothing is compared with the paths of
//! the start: each root is held open, and its present path is asked for.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};

use super::caller::path_of;

/// The writable folders of the host, and the mounts of this sandbox.
pub(in crate::native) struct Roots {
    roots: Vec<Root>,
    /// Read when first asked for; nothing is mounted after the start.
    own_mounts: OnceCell<HashSet<u64>>,
}

struct Root {
    /// What the guard's rules call it.
    known_as: PathBuf,
    place: OwnedFd,
    mount: u64,
}

impl Roots {
    /// Opens every root of the view, once it is complete.
    pub(in crate::native) fn open(paths: &[PathBuf]) -> Result<Self, Errno> {
        let roots = paths
            .iter()
            .map(|path| {
                let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
                let mount = mount_of(&place)?;
                Ok(Root {
                    known_as: path.clone(),
                    place,
                    mount,
                })
            })
            .collect::<Result<_, Errno>>()?;
        Ok(Self {
            roots,
            own_mounts: OnceCell::new(),
        })
    }

    /// What the guard calls a place that is at `path` now: `None` when it is
    /// in no writable folder of the host, an error when it is in one but
    /// cannot be told where.
    pub(super) fn known_as(&self, place: &OwnedFd, path: &Path) -> Result<Option<PathBuf>, Errno> {
        if let Some(known) = self.by_path(path) {
            return Ok(Some(known));
        }
        let mount = mount_of(place)?;
        if self.roots.iter().any(|root| root.mount == mount) {
            return Err(Errno::STALE);
        }
        Ok(None)
    }

    /// The same by the path alone.
    pub(super) fn by_path(&self, path: &Path) -> Option<PathBuf> {
        self.roots
            .iter()
            .filter_map(|root| {
                let below = path.strip_prefix(path_of(&root.place).ok()?).ok()?;
                Some((root, below))
            })
            .min_by_key(|(_, below)| below.components().count())
            .map(|(root, below)| {
                if below.as_os_str().is_empty() {
                    root.known_as.clone()
                } else {
                    root.known_as.join(below)
                }
            })
    }

    /// Whether a place is a writable file of the host that is a mount of its own.
    pub(super) fn is_mounted_file(&self, place: &OwnedFd) -> Result<bool, Errno> {
        let mount = mount_of(place)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(place)?.st_mode);
        let is_root = self.roots.iter().any(|root| root.mount == mount);
        Ok(is_root && kind == FileType::RegularFile)
    }

    /// Whether a place is part of the sandbox's own view. A file that was
    /// handed in as a standard stream is not.
    pub(super) fn is_in_view(&self, place: &OwnedFd) -> Result<bool, Errno> {
        let own = self.own_mounts.get_or_init(own_mounts);
        Ok(own.contains(&mount_of(place)?))
    }
}

/// The numbers of the mounts of this namespace; none when they cannot be read.
fn own_mounts() -> HashSet<u64> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    table
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse().ok())
        .collect()
}

fn mount_of(place: impl AsFd) -> Result<u64, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    let status = rustix::fs::statx(place, "", flags, StatxFlags::MNT_ID)?;
    Ok(status.stx_mnt_id)
}
