//! What a file's own permissions let the sandbox do.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use super::Ids;
use crate::view::Place;

/// Reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Permissions {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// Of a path, or where there is nothing, of making it. An ordinary user keeps the own rights. Root's
/// sandbox has another id: in a place that is given to it the owner's, elsewhere everybody's.
pub(super) fn of(real: &Path, place: Option<&Place>, ids: &Ids) -> Permissions {
    let is_there = real.symlink_metadata().is_ok();
    let nearest = real
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let subject = nearest.unwrap_or(Path::new("/"));
    let found = if ids.mapped_by_supervisor {
        by_mode(subject, place)
    } else {
        by_asking(subject)
    };
    if is_there {
        return found;
    }
    // There is nothing to be read, and nothing that forbids it.
    Permissions {
        read: true,
        write: found.write,
    }
}

fn by_asking(path: &Path) -> Permissions {
    let may = |access| match rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS) {
        // A layer over it can be written.
        Ok(()) | Err(Errno::ROFS) => true,
        Err(_) => false,
    };
    Permissions {
        read: may(Access::READ_OK),
        write: may(Access::WRITE_OK),
    }
}

fn by_mode(path: &Path, place: Option<&Place>) -> Permissions {
    let root = place.map_or(Path::new("/"), |place| &place.path);
    let owner = place.map(|place| place.owner);
    let bits = |path: &Path| {
        let Ok(found) = path.metadata() else {
            return 0;
        };
        match owner {
            Some((uid, _)) if uid == found.uid() => found.mode() >> 6,
            Some((_, gid)) if gid == found.gid() => found.mode() >> 3,
            _ => found.mode(),
        }
    };
    let mut above = path.ancestors().skip(1);
    let is_open = above.all(|folder| !folder.starts_with(root) || bits(folder) & 1 != 0);
    Permissions {
        read: is_open && bits(path) & 4 != 0,
        write: is_open && bits(path) & 2 != 0,
    }
}
