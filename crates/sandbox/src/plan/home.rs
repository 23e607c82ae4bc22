//! The layer over the home directory: what of the host's own shows through it, and which names of
//! it never do.
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
use super::layout::{HiddenPaths, SYSTEM_FOLDERS, grant_around};
use crate::host::Host;
use crate::view::{Content, HomeLayer, Mask, Overlay, Place};
use crate::within::is_within;

/// The mode of a home directory that the host does not show.
const PRIVATE_MODE: u32 = 0o700;

/// The layer over the home directory, if there is one: not where the home is writable itself, lies
/// below the working directory, or is none.
pub(super) fn overlay(
    files: &mut Files,
    rules: &Filesystem,
    host: &Host,
    kept: Option<&Path>,
) -> Result<Option<Overlay>, PlanError> {
    let Some(path) = layered_path(files, rules, host) else {
        return Ok(None);
    };
    let own = files.home.clone().filter(|_| is_visible(files, &path));
    let store = kept.map(store).transpose()?;
    let layer = match own {
        Some(own) => {
            let mask = mask(files, host, &path);
            HomeLayer {
                mode: own.mode & 0o777,
                readable: readable(files, &path, &mask),
                mask,
                caches: caches(files, &path),
                shown: Some(own),
                store,
            }
        }
        None => HomeLayer {
            mode: PRIVATE_MODE,
            mask: Mask::default(),
            readable: Vec::new(),
            caches: Vec::new(),
            shown: None,
            store,
        },
    };
    files.layered = Some(path.clone());
    Ok(Some(Overlay {
        path,
        content: Content::Home(Box::new(layer)),
    }))
}

fn layered_path(files: &Files, rules: &Filesystem, host: &Host) -> Option<PathBuf> {
    if rules.home.value == HomeRule::None {
        return None;
    }
    let path = match &files.home {
        Some(place) => place.path.clone(),
        None => missing_home(files, host)?,
    };
    let is_folder = files.home.as_ref().is_none_or(|place| place.is_folder);
    let is_reserved = RESERVED.iter().any(|own| path.starts_with(own));
    let is_private = files.private.contains(&path.as_path());
    let is_written = files.roots.iter().any(|root| is_within(&path, root));
    let is_worked_in = is_within(&path, &files.working_folder);
    let is_fenced = is_reserved || is_private || is_written || is_worked_in;
    let is_free = !(is_fenced || holds_read_only(files, &path));
    (is_folder && is_free && path != Path::new("/")).then_some(path)
}

/// Whether a directory of the host is shown read-only below the home. Landlock grants writing to
/// all below a layer, and a read-only mount does not stop a named pipe from being written to.
fn holds_read_only(files: &Files, home: &Path) -> bool {
    let is_below = |path: &Path| path != home && is_within(path, home);
    let mut shown = files.shown.iter().filter(|place| !is_regular(place));
    let works_below = is_below(&files.working_folder) && !files.is_writable(&files.working_folder);
    works_below || shown.any(|place| is_below(&place.path))
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

/// Whether the view shows the host's own home: the innermost rule about it says so.
fn is_visible(files: &Files, home: &Path) -> bool {
    let depth = |path: &Path| path.components().count();
    let around = |places: &[Place]| {
        let above = places.iter().filter(|place| is_within(home, &place.path));
        above.map(|place| depth(&place.path)).max()
    };
    let private = files.private.iter().filter(|own| is_within(home, own));
    let private = private.map(|own| depth(own)).max();
    let base = match files.scope {
        ReadScope::Host => Some(0),
        ReadScope::System => SYSTEM_FOLDERS
            .iter()
            .any(|folder| home.starts_with(folder))
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
fn readable(files: &mut Files, home: &Path, mask: &Mask) -> Vec<PathBuf> {
    let hidden: Vec<PathBuf> = mask.left_out.iter().map(|name| home.join(name)).collect();
    let mut granted = Vec::new();
    let hidden = HiddenPaths::new(&hidden);
    grant_around(home, &mut files.listings, &hidden, &mut granted);
    granted
}

/// The names in the home that do not show.
fn mask(files: &mut Files, host: &Host, home: &Path) -> Mask {
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
        .filter_map(|path| below(path, home, host))
        .collect();
    let mut masking = Masking::new(home);
    for name in wanted {
        masking.leave_out(&name, &mut |path| files.listings.may_have(path));
    }
    masking.mask
}

/// The path of what is in the home, from there.
fn below(path: &Path, home: &Path, host: &Host) -> Option<PathBuf> {
    let below = path.strip_prefix(home);
    let below = below.or_else(|_| path.strip_prefix(&host.home)).ok()?;
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
        self.mask.left_out.insert(so_far);
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

/// What Landlock grants for the layer.
#[derive(Debug, Default)]
pub(crate) struct HomeGrants {
    /// The home, where the layer is laid.
    pub(crate) layered: Option<PathBuf>,
    /// The caches, where it is refused.
    pub(crate) caches: Vec<PathBuf>,
    /// What can be read of the home then.
    pub(crate) readable: Vec<PathBuf>,
}

impl HomeGrants {
    pub(super) fn of(overlay: Option<&Overlay>) -> Self {
        match overlay.map(|overlay| (&overlay.path, &overlay.content)) {
            Some((path, Content::Home(layer))) => Self {
                layered: Some(path.clone()),
                caches: layer.caches.clone(),
                readable: layer.readable.clone(),
            },
            _ => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(home: &Path, names: &[&str]) -> Mask {
        let mut masking = Masking::new(home);
        for name in names {
            masking.leave_out(Path::new(name), &mut |_| true);
        }
        masking.mask
    }

    #[test]
    fn g4_what_is_missing_is_left_out_by_its_first_missing_part() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/gh")).unwrap();
        let names = [
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
            [".aws", ".config/gh/hosts.yml", ".config/op", ".netrc"]
        );
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
