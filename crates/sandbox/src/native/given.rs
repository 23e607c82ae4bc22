//! What the supervisor hands to a sandbox whose ids it maps: pipes, and mounts
//! of places that appear under another owner inside.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use ringfence_sys::{self as sys, Errno, IdMap, IdMapping, MountFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Uid};

use super::mounts::GivenTrees;
use super::spawn::SpawnError;
use crate::plan::Plan;
use crate::view::{Content, Place};

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
        let name = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let is_pipe =
            name.is_ok_and(|name| name.as_os_str().as_encoded_bytes().starts_with(b"pipe:"));
        if is_pipe {
            rustix::fs::fchown(fd, Some(uid), Some(gid)).map_err(SpawnError::MapIds)?;
        }
    }
    Ok(())
}

pub(super) fn mapped_trees(plan: &Plan, mappings: &mut Mappings) -> Result<GivenTrees, SpawnError> {
    let mut trees = GivenTrees::new();
    for (index, overlay) in plan.view().overlays.iter().enumerate() {
        let (place, flags) = match &overlay.content {
            Content::Writable(place) => (place, MountFlags::PLAIN),
            Content::Shown(place) => (place, MountFlags::READ_ONLY),
            _ => continue,
        };
        let mapping = mappings
            .for_owner(place.owner)
            .map_err(SpawnError::MapIds)?;
        trees.insert(index, mapped_tree(place, flags, mapping)?);
    }
    Ok(trees)
}

/// User namespaces that give one owner's files to the sandbox.
pub(super) struct Mappings {
    sandbox: IdMap,
    made: Vec<((u32, u32), IdMapping)>,
}

impl Mappings {
    pub(super) fn new(sandbox: IdMap) -> Self {
        Self {
            sandbox,
            made: Vec::new(),
        }
    }

    fn for_owner(&mut self, owner: (u32, u32)) -> Result<BorrowedFd<'_>, Errno> {
        let known = self.made.iter().position(|(known, _)| *known == owner);
        let at = if let Some(at) = known {
            at
        } else {
            let map = IdMap {
                inside_uid: owner.0,
                inside_gid: owner.1,
                ..self.sandbox
            };
            self.made.push((owner, IdMapping::new(&map)?));
            self.made.len() - 1
        };
        Ok(self.made[at].1.as_fd())
    }
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
