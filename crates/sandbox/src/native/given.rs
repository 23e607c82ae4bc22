//! What the supervisor hands to a sandbox whose ids it maps: pipes, and mounts
//! of places that appear under another owner inside.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringfence_sys::{self as sys, Errno, MountFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Uid};

use super::mounts::{GivenTrees, flags_for};
use super::spawn::SpawnError;
use crate::mappings::Mappings;
use crate::plan::{Ids, Plan};
use crate::view::{Ownership, Place, View};

/// The file system of pipes without a name.
const PIPES: rustix::fs::FsWord = 0x5049_5045;

/// The sandbox's host id must be able to open its own pipes by name, as
/// `/dev/stdin`. A pipe without a name belongs to nobody else.
pub(super) fn hand_over_pipes(plan: &Plan) -> Result<(), SpawnError> {
    let map = plan.ids().map;
    let (uid, gid) = (
        Uid::from_raw(map.outside_uid),
        Gid::from_raw(map.outside_gid),
    );
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let streams = [input.as_fd(), output.as_fd(), error.as_fd()];
    for fd in streams.into_iter().chain(plan.given_streams()) {
        if rustix::fs::fstatfs(fd).is_ok_and(|system| system.f_type == PIPES) {
            rustix::fs::fchown(fd, Some(uid), Some(gid)).map_err(SpawnError::MapIds)?;
        }
    }
    Ok(())
}

pub(super) fn mapped_trees(plan: &Plan, mappings: &mut Mappings) -> Result<GivenTrees, SpawnError> {
    let mut trees = GivenTrees::new();
    for (index, place, how, ownership) in plan.view().places() {
        let flags = flags_for(how);
        let mut mapped = || {
            let mapping = mappings.for_owner(place.owner);
            mapped_tree(place, flags, mapping.map_err(SpawnError::MapIds)?)
        };
        let tree = match ownership {
            Ownership::Owner => mapped(),
            Ownership::AsItIs => tree_as_it_is(place, flags),
            Ownership::OwnerWhereItCan => match mapped() {
                Err(SpawnError::NoIdMappedMounts { .. }) => tree_as_it_is(place, flags),
                other => other,
            },
        };
        trees.insert(index, tree?);
    }
    Ok(trees)
}

/// Whether every place that has to belong to the sandbox can be shown so.
pub(crate) fn can_be_mapped(view: &View, ids: &Ids) -> bool {
    if !ids.mapped_by_supervisor {
        return true;
    }
    let mut mappings = Mappings::new(ids.map);
    let mut places = view.places();
    !places.any(|(_, place, how, ownership)| {
        let Ok(mapping) = mappings.for_owner(place.owner) else {
            return false;
        };
        let tree = mapped_tree(place, flags_for(how), mapping);
        ownership == Ownership::Owner && matches!(tree, Err(SpawnError::NoIdMappedMounts { .. }))
    })
}

fn tree_as_it_is(place: &Place, flags: MountFlags) -> Result<OwnedFd, SpawnError> {
    let tree = open_same(place).and_then(|opened| {
        let tree = sys::clone_tree(opened.as_fd(), true)?;
        sys::set_mount_attributes(tree.as_fd(), flags)?;
        Ok(tree)
    });
    tree.map_err(|errno| SpawnError::Prepare {
        path: place.path.clone(),
        errno,
    })
}

fn mapped_tree(
    place: &Place,
    flags: MountFlags,
    mapping: BorrowedFd<'_>,
) -> Result<OwnedFd, SpawnError> {
    let unusable = |errno| SpawnError::Prepare {
        path: place.path.clone(),
        errno,
    };
    let opened = open_same(place).map_err(unusable)?;
    // Everything below if it can all be mapped, else the place alone: what
    // is mounted below it then does not show.
    for recursive in [true, false] {
        let tree = sys::clone_tree(opened.as_fd(), recursive).map_err(unusable)?;
        sys::set_mount_attributes(tree.as_fd(), flags).map_err(unusable)?;
        match sys::set_id_mapping(tree.as_fd(), mapping, recursive) {
            Ok(()) => return Ok(tree),
            Err(Errno::INVAL | Errno::PERM) => {}
            Err(errno) => return Err(unusable(errno)),
        }
    }
    Err(SpawnError::NoIdMappedMounts {
        path: place.path.clone(),
    })
}

fn open_same(place: &Place) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat2(
        rustix::fs::CWD,
        &place.path,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        rustix::fs::ResolveFlags::NO_SYMLINKS | rustix::fs::ResolveFlags::NO_MAGICLINKS,
    )?;
    let status = rustix::fs::fstat(&opened)?;
    if crate::view::FileId::of_stat(&status) == place.id {
        Ok(opened)
    } else {
        Err(Errno::STALE)
    }
}
