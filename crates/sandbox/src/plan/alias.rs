//! A name for something inside that the host does not have, in a folder that it
//! has.
//!
//! The host's tree cannot be written to. So the folder is made anew, with what
//! the host has in it and a link more; it cannot be changed, and no rule of
//! Landlock is about the link.

use std::path::{Component, Path, PathBuf};

use ringfence_policy::ReadScope;
use rustix::fs::FileType;

use super::entries;
use super::files::Files;
use super::layout;
use crate::host::Host;
use crate::mount_table::MountTable;
use crate::view::{Content, Gathered, Overlay, Place};
use crate::within::is_within;

/// The most entries of a folder that is made anew: each of them is a mount.
const MOST_ENTRIES: usize = 256;
/// What others need to see what is in a folder.
const OPEN_TO_OTHERS: u32 = 0o005;

/// A link that the host does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Where it is.
    pub path: PathBuf,
    /// What it leads to.
    pub target: PathBuf,
}

/// The folder with the link, unless the host has something by that name or the
/// folder is not one of the system's own that anybody can look into.
pub(super) fn overlay(
    alias: &Alias,
    files: &Files,
    host: &Host,
    mounts: &MountTable,
) -> Option<Overlay> {
    let (parent, name) = alias.path.parent().zip(alias.path.file_name())?;
    let is_plain = |path: &Path| {
        let mut parts = path.components();
        parts.all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
    };
    if !is_plain(&alias.path) || !alias.target.is_absolute() || !is_plain(&alias.target) {
        return None;
    }
    let (folder, mut gathered) = match files.scope {
        ReadScope::Host => {
            let place = Place::find(parent).ok().flatten()?;
            let gathered = entries_of(&place, files, mounts)?;
            (place.path, gathered)
        }
        ReadScope::System => (parent.to_path_buf(), Gathered::default()),
    };
    let link = folder.join(name);
    let is_missing = std::fs::symlink_metadata(&link)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let leads_to_itself = [&link, &alias.path]
        .iter()
        .any(|link| is_within(&alias.target, link));
    if !is_missing || leads_to_itself || is_taken(&folder, &link, files, host) {
        return None;
    }
    gathered.links.push((name.to_owned(), alias.target.clone()));
    Some(Overlay {
        path: folder,
        content: Content::Gathered(gathered),
    })
}

/// Whether something else is laid over the folder, or where the link would be.
fn is_taken(folder: &Path, link: &Path, files: &Files, host: &Host) -> bool {
    let places = files.writable.iter().chain(&files.shown);
    let places = places.chain([&files.working_place]).chain(&files.home);
    let homes = [&host.home].into_iter().chain(&host.other_home);
    let paths = places.map(|place| &place.path).chain(homes);
    let paths = paths.chain(&files.layered).map(PathBuf::as_path);
    let mut paths = paths.chain(files.private.iter().copied());
    folder == Path::new("/") || paths.any(|path| is_within(folder, path) || is_within(path, link))
}

/// What the host has in a folder; `None` where that cannot be shown as it is.
fn entries_of(folder: &Place, files: &Files, mounts: &MountTable) -> Option<Gathered> {
    let foreign = layout::foreign_mounts(files, mounts);
    let is_foreign = foreign.iter().any(|point| is_within(&folder.path, point));
    let is_open = folder.is_folder && folder.mode & OPEN_TO_OTHERS == OPEN_TO_OTHERS;
    if is_foreign || !is_open {
        return None;
    }
    let mut gathered = Gathered::default();
    for (name, kind) in entries::list(&folder.path, MOST_ENTRIES).ok().flatten()? {
        let path = folder.path.join(&name);
        match kind {
            // What is mounted there is hidden.
            _ if foreign.contains(&path) => {}
            FileType::Directory | FileType::RegularFile => gathered.kept.push(name),
            FileType::Symlink => {
                let target = std::fs::read_link(path).ok();
                gathered.links.extend(target.map(|target| (name, target)));
            }
            _ => {}
        }
    }
    Some(gathered)
}
