//! Writable places that are not there: a directory is made, anything else is an error. Nothing
//! that somebody named is left out in silence.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use ringfence_policy::{LayerKind, PathRule, Sourced};
use ringfence_sys::Errno;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, ResolveFlags, Uid};

use super::error::PlanError;
use super::files::refuse_link_below;
use crate::view::Place;

/// What a rule of the policy names, if that is there; what is not is noted.
pub(super) fn find<'a>(
    rule: &'a Sourced<PathRule>,
    missing: &mut Vec<&'a Path>,
) -> Result<Option<Place>, PlanError> {
    let PathRule::Literal(path) = &rule.value else {
        return Ok(None);
    };
    let found = Place::find(path)?;
    if found.is_none() && !may_be_missing(rule.origin.layer) {
        if !rule.names_directory() {
            let path: PathBuf = path.components().collect();
            return Err(PlanError::NothingToWrite { path });
        }
        missing.push(path);
    }
    Ok(found)
}

/// srt passes over what is not there, a ceiling only bounds, and of built-in places nobody named
/// one.
fn may_be_missing(layer: LayerKind) -> bool {
    use LayerKind::{Ceiling, Default, Mode, Profile, SrtSettings};
    matches!(layer, Default | Profile | Mode | SrtSettings | Ceiling)
}

/// Makes a directory, and those above it that are missing, by descriptor and never through a link
/// that an earlier command may have left.
pub(super) fn make(path: &Path, working: &Path) -> Result<Place, PlanError> {
    let unmade = |errno: Errno| PlanError::CannotMake {
        path: path.components().collect(),
        errno,
    };
    let (above, place) = nearest(path).map_err(unmade)?;
    refuse_link_below(working, above, &place)?;
    let mut folder = open(CWD, &place.path).map_err(unmade)?;
    let below = path.strip_prefix(above).unwrap_or(path);
    for component in below.components() {
        if let Component::Normal(name) = component {
            folder = make_in(&folder, Path::new(name), place.owner).map_err(unmade)?;
        }
    }
    let real: PathBuf = place.path.join(below).components().collect();
    Place::find(&real)?.ok_or_else(|| unmade(Errno::NOENT))
}

/// The innermost part of the path that is there.
fn nearest(path: &Path) -> Result<(&Path, Place), Errno> {
    let mut above = path.ancestors().skip(1);
    above
        .find_map(|above| Some((above, Place::find(above).ok().flatten()?)))
        .ok_or(Errno::NOENT)
}

fn make_in(folder: &OwnedFd, name: &Path, owner: (u32, u32)) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
        Ok(()) if rustix::process::geteuid().is_root() => {
            // As if whoever owns the directory around it had made it.
            let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(folder, name, Some(uid), Some(gid), flags)?;
        }
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    open(folder.as_fd(), name)
}

fn open(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_as_deep_as_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let place = make(&real.join("a/b/"), &real).unwrap();
        assert_eq!(place.path.as_os_str(), real.join("a/b").as_os_str());
        assert!(place.is_folder && real.join("a/b").is_dir());
    }

    #[test]
    fn g4_nothing_is_made_through_a_link_of_the_working_directory() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(other.path(), real.join("l")).unwrap();
        let refused = make(&real.join("l/b/"), &real);
        assert!(matches!(refused, Err(PlanError::PlaceByLink { .. })));
        // Elsewhere a link is the operator's own.
        make(&real.join("l/b/"), Path::new("/nowhere")).unwrap();
        assert!(other.path().join("b").is_dir());
    }
}
