//! From the surveyed places to mounts and Landlock rules.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ringfence_policy::{Environment, ReadScope};
use ringfence_sys::FsAccess;
use rustix::fs::Access;

use super::copy_on_write::LayerGrants;
use super::error::PlanError;
use super::files::Files;
use super::ids::{Ids, USER_NAME};
use super::listing::Listings;
use crate::host::Host;
use crate::mount_table::MountTable;
use crate::view::{Base, Content, Overlay, Place, View};
use crate::within::is_within;

/// What a sandbox with a narrow view sees of the host.
pub(super) const SYSTEM_FOLDERS: [&str; 12] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/sys",
];
/// Parts of `/run` that programs need and that hold no sockets.
const RUN_PARTS: [&str; 2] = ["/run/current-system", "/run/opengl-driver"];

/// The mounts of the view.
pub(super) fn view(
    files: &Files,
    ids: &Ids,
    host: &Host,
    mounts: &MountTable,
    made: Vec<Overlay>,
) -> Result<View, PlanError> {
    let base = match files.scope {
        ReadScope::Host => Base::Host,
        ReadScope::System => Base::Only(SYSTEM_FOLDERS.iter().map(PathBuf::from).collect()),
    };
    let mut overlays = Vec::new();
    let mut lay = |path: &Path, content| {
        overlays.push(Overlay {
            path: path.to_path_buf(),
            content,
        });
    };
    for path in &files.private {
        if files.scope == ReadScope::Host || *path == Path::new("/tmp") {
            lay(path, Content::Scratch);
        }
    }
    let mut known = ClosedFolders::default();
    let closed = if ids.mapped_by_supervisor {
        places_of_closed_folders(files, &mut known)?
    } else {
        Vec::new()
    };
    let shown = shown(files)?;
    let owned: Vec<PathBuf> = closed
        .iter()
        .chain(&shown)
        .chain(&files.writable)
        .map(|place| place.path.clone())
        .collect();
    for place in closed {
        lay(&place.path.clone(), Content::Shown(place));
    }
    if ids.mapped_by_supervisor {
        lay(Path::new("/etc/passwd"), Content::File(user_table(host)));
        lay(Path::new("/etc/group"), Content::File(group_table()));
    }
    for path in foreign_mounts(files, mounts) {
        lay(&path, Content::Hidden { is_folder: true });
    }
    for place in visible_hidden(files) {
        if !is_within_reach(place, ids, &owned, &mut known) {
            continue;
        }
        lay(
            &place.path,
            Content::Hidden {
                is_folder: place.is_folder,
            },
        );
    }
    for place in shown {
        lay(&place.path.clone(), Content::Shown(place));
    }
    for place in &files.writable {
        lay(&place.path, Content::Writable(place.clone()));
    }
    for path in &files.frozen {
        lay(path, Content::Frozen);
    }
    overlays.extend(made);
    Ok(View::new(base, overlays))
}

/// File systems that show the machine or talk to it, wherever they are mounted:
/// a second procfs has every process of the host in it.
pub(super) const FOREIGN_TYPES: [&str; 12] = [
    "proc",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "pstore",
    "efivarfs",
    "binfmt_misc",
    "bpf",
    "autofs",
    "fuse.portal",
    "rpc_pipefs",
];

/// Where such file systems are mounted, but for what is replaced anyway.
pub(super) fn foreign_mounts(files: &Files, mounts: &MountTable) -> Vec<PathBuf> {
    if files.scope == ReadScope::System {
        return Vec::new();
    }
    let mut found = mounts.points_of(&FOREIGN_TYPES);
    let replaced = ["/proc", "/dev", "/run"].map(Path::new);
    let replaced = replaced.iter().chain(&files.private);
    found.retain(|path| !replaced.clone().any(|own| path.starts_with(own)));
    found
}

/// Shown on purpose: what the policy names, parts of `/run`, and under a
/// narrow scope the working folder.
fn shown(files: &Files) -> Result<Vec<Place>, PlanError> {
    let mut shown = files.shown.clone();
    let is_below_private = files
        .private
        .iter()
        .any(|private| files.working_folder.starts_with(private));
    let mut layered = files.layered.iter();
    let is_below_layer = layered.any(|layered| files.working_folder.starts_with(layered));
    let needs_showing = files.scope == ReadScope::System || is_below_private || is_below_layer;
    if needs_showing && !shown.contains(&files.working_place) {
        shown.push(files.working_place.clone());
    }
    if files.scope == ReadScope::Host {
        for part in RUN_PARTS {
            shown.extend(
                Place::find(Path::new(part))?.filter(|place| place.path == Path::new(part)),
            );
        }
    }
    shown.retain(|place| !files.is_writable(&place.path) || files.shown.contains(place));
    shown.retain(|place| !files.writable.contains(place));
    Ok(shown)
}

/// Hidden places that the view would show otherwise.
fn visible_hidden(files: &Files) -> impl Iterator<Item = &Place> {
    files.hidden.iter().filter(|place| {
        files.scope == ReadScope::Host
            || SYSTEM_FOLDERS
                .iter()
                .any(|folder| place.path.starts_with(folder))
            || files.is_writable(&place.path)
            || files
                .shown
                .iter()
                .any(|shown| place.path.starts_with(&shown.path))
            || place.path.starts_with(&files.working_folder)
    })
}

/// Whether this folder is hidden by an empty one of the sandbox's own.
pub(super) fn hides(files: &Files, ids: &Ids, folder: &Path) -> bool {
    visible_hidden(files)
        .filter(|place| place.path == folder && place.is_folder)
        .any(|place| is_within_reach(place, ids, &[], &mut ClosedFolders::default()))
}

/// Whether the sandbox's host id could read the place at all. What it could
/// not needs no mount to hide it.
fn is_within_reach(place: &Place, ids: &Ids, owned: &[PathBuf], known: &mut ClosedFolders) -> bool {
    if ids.mapped_by_supervisor {
        let is_owned = owned.iter().any(|folder| is_within(&place.path, folder));
        let is_open = place.mode & 0o005 != 0
            && place
                .path
                .parent()
                .is_none_or(|parent| known.outermost(parent).is_none());
        return is_owned || is_open;
    }
    let allows = |access| {
        rustix::fs::accessat(
            rustix::fs::CWD,
            &place.path,
            access,
            rustix::fs::AtFlags::EACCESS,
        )
        .is_ok()
    };
    ids.is_host_root() || allows(Access::READ_OK) || (place.is_folder && allows(Access::EXEC_OK))
}

/// Started as root the sandbox has another host id, for which folders closed
/// to others, such as root's home, would be shut. The outermost closed folder
/// on the way to each place that is meant to be used is shown as its owner's.
fn places_of_closed_folders(
    files: &Files,
    known: &mut ClosedFolders,
) -> Result<Vec<Place>, PlanError> {
    let mut closed: Vec<Place> = Vec::new();
    if files.scope == ReadScope::System {
        return Ok(closed);
    }
    let used = files
        .home
        .iter()
        .chain([&files.working_place])
        .chain(&files.writable)
        .chain(&files.shown);
    for place in used {
        let Some(folder) = known.outermost(&place.path) else {
            continue;
        };
        // There is none but for whom its owner speaks.
        let is_layered = |layered: &PathBuf| *layered != folder && is_within(&folder, layered);
        if let Some(found) = Place::find(&folder)?
            && !files.layered.iter().any(is_layered)
            && !closed.contains(&found)
            && !files.writable.contains(&found)
        {
            closed.push(found);
        }
    }
    Ok(closed)
}

/// Which folders are closed to others, asked once each.
#[derive(Default)]
pub(super) struct ClosedFolders(HashMap<PathBuf, bool>);

impl ClosedFolders {
    /// The outermost on the way to `path`, itself among them.
    pub(super) fn outermost(&mut self, path: &Path) -> Option<PathBuf> {
        let mut ancestors: Vec<_> = path.ancestors().collect();
        ancestors.reverse();
        ancestors
            .into_iter()
            .find(|ancestor| self.contains(ancestor))
            .map(Path::to_path_buf)
    }

    fn contains(&mut self, path: &Path) -> bool {
        if let Some(is_closed) = self.0.get(path) {
            return *is_closed;
        }
        let is_closed = is_closed_to_others(path);
        self.0.insert(path.to_path_buf(), is_closed);
        is_closed
    }
}

fn is_closed_to_others(path: &Path) -> bool {
    const OTHERS_READ_AND_ENTER: u32 = 0o005;
    std::fs::metadata(path).is_ok_and(|metadata| {
        metadata.is_dir()
            && metadata.permissions().mode() & OTHERS_READ_AND_ENTER != OTHERS_READ_AND_ENTER
    })
}

/// The host's users, after one for the id that the sandbox has.
fn user_table(host: &Host) -> Vec<u8> {
    let mut table =
        format!("{USER_NAME}:x:1000:1000::{}:/bin/sh\n", host.home.display()).into_bytes();
    table.extend(std::fs::read("/etc/passwd").unwrap_or_default());
    table
}

fn group_table() -> Vec<u8> {
    let mut table = format!("{USER_NAME}:x:1000:\n").into_bytes();
    table.extend(std::fs::read("/etc/group").unwrap_or_default());
    table
}

/// The folder for temporary files that the policy names, made if it lies in a
/// private folder, where nothing of the host is.
pub(super) fn temporary_folder(rules: &Environment, files: &Files) -> Option<Overlay> {
    let path = Path::new(&rules.set.get("TMPDIR")?.value);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_private = files
        .private
        .iter()
        .any(|private| path.starts_with(private) && path != *private);
    let mut own = files.writable.iter().chain(&files.shown);
    let is_of_host =
        own.any(|place| path.starts_with(&place.path)) || path.starts_with(&files.working_folder);
    (is_plain && is_private && !is_of_host).then(|| Overlay {
        path: path.to_path_buf(),
        content: Content::Scratch,
    })
}

/// A path, and what may be done there and below.
pub(crate) type Grant = (PathBuf, FsAccess);

/// What Landlock grants, as a second layer under the mounts. It is found out
/// when it is asked for: the init is at work by then.
#[derive(Debug)]
pub(crate) struct Grants {
    files: Files,
    listings: Mutex<Listings>,
    made: Vec<PathBuf>,
    layers: Vec<LayerGrants>,
    rules: OnceLock<Vec<Grant>>,
}

impl Grants {
    pub(super) fn new(mut files: Files, made: Vec<PathBuf>, layers: Vec<LayerGrants>) -> Self {
        Self {
            listings: Mutex::new(std::mem::take(&mut files.listings)),
            files,
            made,
            layers,
            rules: OnceLock::new(),
        }
    }

    /// What is granted for each copy-on-write layer, or instead of it.
    pub(crate) fn layers(&self) -> &[LayerGrants] {
        &self.layers
    }

    /// For the supervisor: the init would look at what the sandbox has.
    pub(crate) fn rules(&self) -> &[Grant] {
        self.rules.get_or_init(|| {
            let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
            landlock_rules(&self.files, &mut listings, &self.made)
        })
    }
}

fn landlock_rules(files: &Files, listings: &mut Listings, made: &[PathBuf]) -> Vec<Grant> {
    let mut rules = vec![
        (PathBuf::from("/"), FsAccess::List),
        (PathBuf::from("/dev"), FsAccess::Device),
    ];
    rules.extend(
        files
            .private
            .iter()
            .chain(&[Path::new("/dev/shm")])
            .map(|path| (path.to_path_buf(), FsAccess::Write)),
    );
    let mut hidden = HiddenPaths::new(&files.fragile);
    // The init grants what is in it, once it knows whether there is a layer.
    hidden.leave_out(&files.layered);
    rules.extend(
        readable(files, listings, &hidden)
            .into_iter()
            .map(|path| (path, FsAccess::Read)),
    );
    for place in &files.shown {
        let mut granted = Vec::new();
        grant_around(&place.path, listings, &hidden, &mut granted);
        rules.extend(granted.into_iter().map(|path| (path, FsAccess::Read)));
    }
    rules.extend(
        files
            .writable
            .iter()
            .map(|place| (place.path.clone(), FsAccess::Write)),
    );
    rules.extend(made.iter().map(|path| (path.clone(), FsAccess::Read)));
    rules
}

fn readable(files: &Files, listings: &mut Listings, hidden: &HiddenPaths<'_>) -> Vec<PathBuf> {
    if files.scope == ReadScope::System {
        let mut roots: Vec<_> = SYSTEM_FOLDERS.iter().map(PathBuf::from).collect();
        roots.extend([PathBuf::from("/proc"), files.working_folder.clone()]);
        return roots;
    }
    let mut granted = Vec::new();
    grant_around(Path::new("/"), listings, hidden, &mut granted);
    granted
}

/// Grants `folder`, or its parts if a hidden path lies somewhere in it.
pub(super) fn grant_around(
    folder: &Path,
    listings: &mut Listings,
    hidden: &HiddenPaths<'_>,
    granted: &mut Vec<PathBuf>,
) {
    if hidden.paths.contains(folder.as_os_str()) {
        return;
    }
    if !hidden.above.contains(folder.as_os_str()) {
        granted.push(folder.to_path_buf());
        return;
    }
    for entry in listings.without_links(folder) {
        grant_around(&entry, listings, hidden, granted);
    }
}

/// Hidden paths, and every folder above one, by their text: all are absolute
/// and without `.`, and a text is found faster than its parts.
pub(super) struct HiddenPaths<'a> {
    paths: HashSet<&'a OsStr>,
    above: HashSet<&'a OsStr>,
}

impl<'a> HiddenPaths<'a> {
    fn leave_out(&mut self, paths: &'a [PathBuf]) {
        self.paths.extend(paths.iter().map(|path| path.as_os_str()));
        self.above.extend(folders_above(paths));
    }

    pub(super) fn new(paths: &'a [PathBuf]) -> Self {
        Self {
            paths: paths.iter().map(|path| path.as_os_str()).collect(),
            above: folders_above(paths),
        }
    }
}

fn folders_above(paths: &[PathBuf]) -> HashSet<&OsStr> {
    let mut above = HashSet::new();
    for path in paths {
        for folder in path.ancestors().skip(1) {
            // What is above a known one is known.
            if !above.insert(folder.as_os_str()) {
                break;
            }
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_reading_is_granted_beside_hidden_files_only() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "sub"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in ["secret", "sub/secret", "sub/plain"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let secrets = ["secret", "sub/secret"].map(|name| folder.path().join(name));
        let mut granted = Vec::new();
        grant_around(
            folder.path(),
            &mut Listings::default(),
            &HiddenPaths::new(&secrets),
            &mut granted,
        );
        granted.sort();
        assert_eq!(
            granted,
            ["a", "b", "sub/plain"].map(|name| folder.path().join(name))
        );
    }

    #[test]
    fn the_outermost_closed_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        open(folder.path(), 0o755);
        let (outer, inner) = (folder.path().join("o"), folder.path().join("o/i"));
        std::fs::create_dir_all(&inner).unwrap();
        let outermost = |path: &Path| ClosedFolders::default().outermost(path);
        assert_eq!(outermost(&inner), None);
        open(&inner, 0o700);
        open(&outer, 0o711);
        assert_eq!(outermost(&inner), Some(outer));
    }
}
