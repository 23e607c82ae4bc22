//! Copy-on-write layers, over the home directory and over directories that hold a single writable
//! file: what of the host's own shows through them, and which names of it never do.
//!
//! Hidden places are left out of the layer by name, whether they are there or not: one that the
//! host makes or replaces during the run stays out of sight, and code inside may have a file of
//! its own by that name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use ringfence_policy::{CACHE_DIRECTORIES, Filesystem, HomeRule, ReadScope};

use super::error::PlanError;
use super::files::{Files, RESERVED, absolute};
use super::ids::Ids;
use super::layout::{ClosedFolders, FOREIGN_TYPES, HiddenPaths, SYSTEM_FOLDERS, grant_around};
use crate::host::Host;
use crate::mount_table::MountTable;
use crate::view::{Content, CopyOnWrite, LayerPurpose, Mask, Overlay, Ownership, Place};
use crate::within::is_within;

/// The mode of a home directory that the host does not show.
const PRIVATE_MODE: u32 = 0o700;
/// The most mounts in a home that are shown.
const MOST_MOUNTED: usize = 32;

/// What layers are made from, beside the places that the policy names.
pub(super) struct Ground<'a> {
    pub(super) rules: &'a Filesystem,
    pub(super) host: &'a Host,
    pub(super) ids: &'a Ids,
    pub(super) mounts: &'a MountTable,
    /// Where the layer over the home is kept, if it is.
    pub(super) kept: Option<&'a Path>,
}

/// The layers: over the home directory, unless it is writable itself, lies below the working
/// directory, or is none; and over directories that hold a single writable file. With them the
/// files that are mounted in the home.
pub(super) fn overlays(files: &mut Files, ground: &Ground<'_>) -> Result<Vec<Overlay>, PlanError> {
    let mut overlays = Vec::new();
    if let Some(path) = layered_home(files, ground) {
        let shown = files.home.clone().filter(|_| is_visible(files, &path));
        let mounted = match &shown {
            Some(home) => {
                show_through(files, home);
                Mounted::below(home, files, ground)?
            }
            None => Mounted::default(),
        };
        overlays.push(over_home(files, ground, path, shown, &mounted.others)?);
        for place in mounted.directories {
            overlays.push(over_mounted(files, ground, place));
        }
        overlays.extend(mounted.files.into_iter().map(|place| Overlay {
            path: place.path.clone(),
            content: Content::Volume(place),
        }));
    }
    for place in directories_of_files(files, ground)? {
        overlays.push(beside_file(files, ground, place));
    }
    Ok(overlays)
}

/// What is mounted in a home by itself, as a container's volumes are: the layer over the home does
/// not show it.
#[derive(Default)]
struct Mounted {
    directories: Vec<Place>,
    files: Vec<Place>,
    /// What is not shown; nor is what they cover.
    others: Vec<PathBuf>,
}

impl Mounted {
    fn below(home: &Place, files: &Files, ground: &Ground<'_>) -> Result<Self, PlanError> {
        let mut mounted = Self::default();
        for point in ground.mounts.points_below(&home.path, &[]) {
            let is_laid = |place: &Place| is_within(&point, &place.path);
            let mut laid = files.hidden.iter().chain(&files.shown);
            if laid.any(is_laid) || files.is_writable(&point) {
                continue;
            }
            let is_foreign = ground.mounts.points_of(&FOREIGN_TYPES).contains(&point);
            let place = Place::find(&point)?;
            let place = place.filter(|place| !is_foreign && place.path == point);
            mounted.add(files, &point, place);
        }
        Ok(mounted)
    }

    fn add(&mut self, files: &Files, point: &Path, place: Option<Place>) {
        let is_full = self.directories.len() + self.files.len() >= MOST_MOUNTED;
        match place.filter(|_| !is_full) {
            Some(place) if place.is_folder && may_be_layered(files, point) => {
                self.directories.push(place);
            }
            Some(place) if is_regular(&place) => self.files.push(place),
            _ => self.others.push(point.to_path_buf()),
        }
    }
}

fn over_home(
    files: &mut Files,
    ground: &Ground<'_>,
    path: PathBuf,
    shown: Option<Place>,
    covered: &[PathBuf],
) -> Result<Overlay, PlanError> {
    let caches = shown.as_ref().map(|_| caches(files, &path));
    let alias = Some(ground.host.home.as_path());
    let layer = CopyOnWrite {
        caches: caches.unwrap_or_default(),
        store: ground.kept.map(store).transpose()?,
        ..layer(files, &path, shown, alias, covered)
    };
    Ok(laid(files, path, layer))
}

fn over_mounted(files: &mut Files, ground: &Ground<'_>, place: Place) -> Overlay {
    let path = place.path.clone();
    let home = files.home.as_ref();
    let below = home.and_then(|home| path.strip_prefix(&home.path).ok());
    let alias = below.map(|below| ground.host.home.join(below));
    let layer = CopyOnWrite {
        ownership: Ownership::OwnerWhereItCan,
        ..layer(files, &path, Some(place), alias.as_deref(), &[])
    };
    laid(files, path, layer)
}

/// The layer over a directory for the sake of a file in it shows it as it is: whoever owns it has
/// not given away the rest. A directory that is closed to others is shown as its owner's anyway.
fn beside_file(files: &mut Files, ground: &Ground<'_>, place: Place) -> Overlay {
    let path = place.path.clone();
    let is_closed =
        ground.ids.mapped_by_supervisor && ClosedFolders::default().outermost(&path).is_some();
    let layer = CopyOnWrite {
        purpose: LayerPurpose::BesideFile,
        ownership: if is_closed {
            Ownership::Owner
        } else {
            Ownership::AsItIs
        },
        ..layer(files, &path, Some(place), None, &[])
    };
    laid(files, path, layer)
}

fn laid(files: &mut Files, path: PathBuf, layer: CopyOnWrite) -> Overlay {
    files.layered.push(path.clone());
    Overlay {
        path,
        content: Content::Layered(Box::new(layer)),
    }
}

/// A layer over a directory, through which the host's own shows if there is one. `alias` is the
/// directory's other name, and nothing at or below `covered` shows.
fn layer(
    files: &mut Files,
    path: &Path,
    shown: Option<Place>,
    alias: Option<&Path>,
    covered: &[PathBuf],
) -> CopyOnWrite {
    let (mut mask_of, mut granted) = (Mask::default(), Vec::new());
    if shown.is_some() {
        mask_of = mask(files, path, alias, covered);
        granted = readable(files, path, &mask_of);
    }
    CopyOnWrite {
        purpose: LayerPurpose::Home,
        ownership: Ownership::Owner,
        mode: shown.as_ref().map_or(PRIVATE_MODE, |own| own.mode & 0o777),
        readable: granted,
        mask: mask_of,
        caches: Vec::new(),
        shown,
        store: None,
    }
}

fn layered_home(files: &Files, ground: &Ground<'_>) -> Option<PathBuf> {
    if ground.rules.home.value == HomeRule::None {
        return None;
    }
    let path = match &files.home {
        Some(place) => place.path.clone(),
        None => missing_home(files, ground.host)?,
    };
    let home = files.home.as_ref();
    let is_folder = home.is_none_or(|place| place.is_folder);
    let through = |place: &Place| home.is_some_and(|home| shows_through(files, home, place));
    let is_free = may_be_layered(files, &path)
        && !holds_read_only(files, &path, &through)
        && !holds_closed(files, ground, &path, home.map(|home| home.owner));
    (is_folder && is_free).then_some(path)
}

/// Directories that stay as they are but for a file in them that is writable. Tools write a new
/// file beside it and rename that, for which the directory has to take names. Not around the
/// home, and not where something else is mounted: a layer would not show it.
fn directories_of_files(files: &Files, ground: &Ground<'_>) -> Result<Vec<Place>, PlanError> {
    let single = files.writable.iter().filter(|place| is_regular(place));
    let mut directories: Vec<&Path> = single.filter_map(|place| place.path.parent()).collect();
    directories.sort_unstable();
    directories.dedup();
    let mut found: Vec<Place> = Vec::new();
    for directory in directories {
        let is_around = |path: &Path| is_within(path, directory);
        let is_taken = files.layered.iter().any(|own| is_within(directory, own))
            || files.private.iter().any(|own| is_within(directory, own))
            || files.home.iter().any(|home| is_around(&home.path))
            || is_around(&ground.host.home)
            || !ground.mounts.points_below(directory, &[]).is_empty();
        if is_taken || !is_visible(files, directory) || !may_be_layered(files, directory) {
            continue;
        }
        let place = Place::find(directory)?.filter(|place| place.path == directory);
        found.extend(place.filter(|place| {
            !holds_read_only(files, &place.path, &|_| false)
                && !holds_closed(files, ground, &place.path, None)
        }));
    }
    Ok(found)
}

/// Whether a directory is not something that a layer must not be over.
fn may_be_layered(files: &Files, path: &Path) -> bool {
    let is_reserved = RESERVED.iter().any(|own| path.starts_with(own));
    let is_private = files.private.contains(&path);
    let is_written = files.roots.iter().any(|root| is_within(path, root));
    let is_worked_in = is_within(path, &files.working_folder);
    !(is_reserved || is_private || is_written || is_worked_in || path == Path::new("/"))
}

/// Whether a directory of the host is shown read-only below the layer, other than `through` it.
/// Landlock grants writing to all below a layer, and a read-only mount does not stop a named pipe
/// from being written to.
fn holds_read_only(files: &Files, layered: &Path, through: &dyn Fn(&Place) -> bool) -> bool {
    let is_below = |path: &Path| path != layered && is_within(path, layered);
    let works_below = is_below(&files.working_folder) && !files.is_writable(&files.working_folder);
    let mut shown = files.shown.iter();
    works_below || shown.any(|place| is_below(&place.path) && !is_regular(place) && !through(place))
}

/// Whether a place below the layer is used that lies in a directory which is closed to others and
/// is not of `owner`, for whom the layer speaks: it would have to be shown read-only.
fn holds_closed(
    files: &Files,
    ground: &Ground<'_>,
    layered: &Path,
    owner: Option<(u32, u32)>,
) -> bool {
    if !ground.ids.mapped_by_supervisor {
        return false;
    }
    let mut known = ClosedFolders::default();
    let used = files.writable.iter().chain(&files.shown);
    let mut used = used.chain([&files.working_place]);
    used.any(|place| {
        let closed = known.outermost(&place.path);
        let closed = closed.filter(|folder| folder != layered && is_within(folder, layered));
        closed.is_some_and(|folder| {
            let found = Place::find(&folder).ok().flatten();
            let is_spoken_for = owner.is_some() && found.map(|found| found.owner) == owner;
            !is_spoken_for && !files.is_writable(&folder)
        })
    })
}

/// Whether a layer shows a place that is shown by name anyway: it lies in nothing hidden, and
/// belongs to whom the layer speaks for.
fn shows_through(files: &Files, layered: &Place, place: &Place) -> bool {
    let hidden = files.hidden.iter().map(|place| place.path.as_path());
    let mut hidden = hidden.chain(files.fragile.iter().map(PathBuf::as_path));
    place.is_folder
        && place.owner.0 == layered.owner.0
        && files.scope == ReadScope::Host
        && !files.is_writable(&place.path)
        && is_visible(files, &layered.path)
        && !hidden.any(|hidden| is_within(&place.path, hidden))
}

/// Directories that are shown by name need no mount where a layer shows them: as all of the home
/// they can be written to there, and the host sees nothing of it.
fn show_through(files: &mut Files, home: &Place) {
    let through: Vec<Place> = files
        .shown
        .iter()
        .filter(|place| place.path != home.path && is_within(&place.path, &home.path))
        .filter(|place| shows_through(files, home, place))
        .cloned()
        .collect();
    files.shown.retain(|place| !through.contains(place));
}

fn is_regular(place: &Place) -> bool {
    std::fs::symlink_metadata(&place.path).is_ok_and(|found| found.is_file())
}

/// A home that the host does not have, where there is nothing of the host to lay it over.
fn missing_home(files: &Files, host: &Host) -> Option<PathBuf> {
    let path: PathBuf = host.home.components().collect();
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_below_private = files.private.iter().any(|own| path.starts_with(own));
    let is_of_host = |place: &Place| path.starts_with(&place.path);
    let mut of_host = files.shown.iter().chain([&files.working_place]);
    let is_bare = match files.scope {
        ReadScope::System => !SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder)),
        ReadScope::Host => is_below_private,
    };
    (is_plain && is_bare && !of_host.any(is_of_host)).then_some(path)
}

/// Whether the view shows the host's own directory: the innermost rule about it says so.
fn is_visible(files: &Files, directory: &Path) -> bool {
    let depth = |path: &Path| path.components().count();
    let around = |places: &[Place]| {
        let above = places
            .iter()
            .filter(|place| is_within(directory, &place.path));
        above.map(|place| depth(&place.path)).max()
    };
    let private = files.private.iter().filter(|own| is_within(directory, own));
    let private = private.map(|own| depth(own)).max();
    let base = match files.scope {
        ReadScope::Host => Some(0),
        ReadScope::System => SYSTEM_FOLDERS
            .iter()
            .any(|folder| directory.starts_with(folder))
            .then_some(0),
    };
    around(&files.shown).max(base) > around(&files.hidden).max(private)
}

/// The directory that a layer is kept in, which was made for it.
fn store(path: &Path) -> Result<Place, PlanError> {
    Place::find(path)?.ok_or_else(|| PlanError::NoKeptHome {
        path: path.to_path_buf(),
    })
}

/// Directories of caches that are there, for when the kernel refuses a layer.
fn caches(files: &Files, home: &Path) -> Vec<PathBuf> {
    let paths = CACHE_DIRECTORIES.iter().map(|name| home.join(name));
    let is_free = |path: &PathBuf| !files.is_writable(path);
    paths.filter(is_free).collect()
}

/// What is beside the names that do not show.
fn readable(files: &mut Files, directory: &Path, mask: &Mask) -> Vec<PathBuf> {
    let hidden = mask.left_out.iter().map(|name| directory.join(name));
    let hidden: Vec<PathBuf> = hidden.collect();
    let mut granted = Vec::new();
    let hidden = HiddenPaths::new(&hidden);
    grant_around(directory, &mut files.listings, &hidden, &mut granted);
    granted
}

/// The names in a directory that do not show.
fn mask(files: &mut Files, directory: &Path, alias: Option<&Path>, covered: &[PathBuf]) -> Mask {
    let shown: Vec<&Path> = files
        .masked
        .iter()
        .map(|file| file.path.as_path())
        .collect();
    let hidden = files.hidden.iter().map(|place| place.path.as_path());
    let wanted: BTreeSet<PathBuf> = files
        .fragile
        .iter()
        .map(PathBuf::as_path)
        .chain(hidden)
        .filter(|path| !shown.contains(path) && !files.is_writable(path))
        .chain(covered.iter().map(PathBuf::as_path))
        .filter_map(|path| below(path, directory, alias))
        .collect();
    let mut masking = Masking::new(directory);
    for name in wanted {
        masking.leave_out(&name, &mut |path| files.listings.may_have(path));
    }
    masking.finish()
}

/// The path of what is in a directory, which may have another name, from there.
fn below(path: &Path, directory: &Path, alias: Option<&Path>) -> Option<PathBuf> {
    let below = path.strip_prefix(directory).ok();
    let below = below.or_else(|| path.strip_prefix(alias?).ok())?;
    (!below.as_os_str().is_empty()).then(|| below.to_path_buf())
}

/// A mask that is being made.
struct Masking<'a> {
    home: &'a Path,
    mask: Mask,
    /// What there is on the way to names, asked once each.
    known: BTreeMap<PathBuf, Found>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Folder,
    Link,
    Nothing,
}

impl<'a> Masking<'a> {
    fn new(home: &'a Path) -> Self {
        Self {
            home,
            mask: Mask::default(),
            known: BTreeMap::new(),
        }
    }

    /// Leaves out `name`, or the first directory on the way to it that is not there: the host may
    /// make both.
    fn leave_out(&mut self, name: &Path, may_have: &mut dyn FnMut(&Path) -> bool) {
        let mut so_far = PathBuf::new();
        let mut components = name.components().peekable();
        while let Some(component) = components.next() {
            so_far.push(component);
            if self.mask.left_out.contains(&so_far) {
                return;
            }
            if components.peek().is_none() {
                break;
            }
            match self.look(&so_far, may_have) {
                Found::Folder => {}
                Found::Nothing => break,
                Found::Link => return self.leave_out_behind_link(name, may_have),
            }
        }
        if may_have(&self.home.join(&so_far)) {
            self.mask.there.push(so_far.clone());
        }
        self.mask.left_out.insert(so_far);
    }

    /// Directories on the way to nothing are not needed.
    fn finish(mut self) -> Mask {
        let there = &self.mask.there;
        let is_on_the_way = |folder: &Path| there.iter().any(|name| name.starts_with(folder));
        self.mask
            .folders
            .retain(|(folder, _)| is_on_the_way(folder));
        self.mask
    }

    /// What a link on the way leads to, if that is in the home.
    fn leave_out_behind_link(&mut self, name: &Path, may_have: &mut dyn FnMut(&Path) -> bool) {
        let real = absolute(&self.home.join(name));
        if let Ok(below) = real.strip_prefix(self.home)
            && below != name
            && !below.as_os_str().is_empty()
        {
            self.leave_out(below, may_have);
        }
    }

    fn look(&mut self, name: &Path, may_have: &mut dyn FnMut(&Path) -> bool) -> Found {
        if let Some(found) = self.known.get(name) {
            return *found;
        }
        let path = self.home.join(name);
        let status = may_have(&path)
            .then(|| std::fs::symlink_metadata(&path).ok())
            .flatten();
        let found = status.as_ref().map_or(Found::Nothing, kind);
        if let (Found::Folder, Some(status)) = (found, &status) {
            let mode = status.permissions().mode() & 0o777;
            self.mask.folders.push((name.to_path_buf(), mode));
        }
        self.known.insert(name.to_path_buf(), found);
        found
    }
}

fn kind(status: &Metadata) -> Found {
    match status.file_type() {
        kind if kind.is_dir() => Found::Folder,
        kind if kind.is_symlink() => Found::Link,
        _ => Found::Nothing,
    }
}

/// What Landlock grants for a layer.
#[derive(Debug, Default)]
pub(crate) struct LayerGrants {
    /// The directory, where the layer is laid.
    pub(crate) layered: PathBuf,
    /// The caches, where it is refused.
    pub(crate) caches: Vec<PathBuf>,
    /// What can be read of the directory then.
    pub(crate) readable: Vec<PathBuf>,
}

impl LayerGrants {
    pub(super) fn of(overlays: &[Overlay]) -> Vec<Self> {
        let layers = overlays
            .iter()
            .filter_map(|overlay| match &overlay.content {
                Content::Layered(layer) => Some(Self {
                    layered: overlay.path.clone(),
                    caches: layer.caches.clone(),
                    readable: layer.readable.clone(),
                }),
                _ => None,
            });
        layers.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(home: &Path, names: &[&str]) -> Mask {
        let mut masking = Masking::new(home);
        for name in names {
            masking.leave_out(Path::new(name), &mut |path| {
                path.is_symlink() || path.exists()
            });
        }
        masking.finish()
    }

    #[test]
    fn g4_what_is_missing_is_left_out_by_its_first_missing_part() {
        let home = tempfile::tempdir().unwrap();
        for folder in [".config/gh", ".cache"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join(".config/gh/hosts.yml"), "").unwrap();
        let names = [
            ".cache/tool",
            ".config/gh/hosts.yml",
            ".config/op",
            ".aws/credentials",
            ".aws/x",
            ".netrc",
        ];
        let mask = masked(home.path(), &names);
        let folders: Vec<_> = mask.folders.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(folders, [".config", ".config/gh"].map(PathBuf::from));
        let left_out: Vec<_> = mask
            .left_out
            .iter()
            .map(|path| path.to_str().unwrap())
            .collect();
        assert_eq!(
            left_out,
            [
                ".aws",
                ".cache/tool",
                ".config/gh/hosts.yml",
                ".config/op",
                ".netrc"
            ]
        );
        assert_eq!(mask.there, [PathBuf::from(".config/gh/hosts.yml")]);
    }

    #[test]
    fn g4_links_on_the_way_are_followed_within_the_home() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("dot/config")).unwrap();
        std::os::unix::fs::symlink("dot/config", home.join(".config")).unwrap();
        std::os::unix::fs::symlink("/etc", home.join(".local")).unwrap();
        let mask = masked(&home, &[".config/gh", ".local/share/x"]);
        assert_eq!(
            mask.left_out.into_iter().collect::<Vec<_>>(),
            [PathBuf::from("dot/config/gh")]
        );
    }
}
