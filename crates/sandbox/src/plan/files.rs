//! Looking at the places that a policy names, and sorting them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ringfence_policy::{
    Filesystem, GuardMode, LayerKind, PathPatterns, PathRule, ProtectedName, ReadScope, Sourced,
};

use super::entries;
use super::error::PlanError;
use super::late::{self, MaskedPlace};
use super::listing::Listings;
use super::missing;
use crate::guard::{GitGuard, Guard};
use crate::host::Host;
use crate::judge::Judge;
use crate::sensitive::SensitivePlaces;
use crate::survey::{Survey, UserGit};
use crate::trust::OWN_FOLDER;
use crate::view::Place;
use crate::within::is_within;

/// Folders that a sandbox has its own of.
pub const PRIVATE_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];
/// Folders that no host folder may be writable in.
pub(super) const RESERVED: [&str; 3] = ["/proc", "/dev", "/sys"];
/// The most entries that are looked at for one pattern.
const MOST_ENTRIES: usize = 100_000;

/// What becomes of writable directories that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// They are made.
    Make,
    /// They are noted: nothing is to be run.
    Note,
}

/// What there is on this machine of what the policy names.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) scope: ReadScope,
    /// Folders that the sandbox has its own of.
    pub(super) private: Vec<&'static Path>,
    pub(super) working_folder: PathBuf,
    pub(super) working_place: Place,
    pub(super) home: Option<Place>,
    pub(super) writable: Vec<Place>,
    /// What the policy makes writable, also where it is only shown.
    pub(super) roots: Vec<PathBuf>,
    /// Writable directories that a run would make.
    pub(super) unmade: Vec<PathBuf>,
    /// Shown although a folder around them is hidden or the scope is narrow.
    pub(super) shown: Vec<Place>,
    pub(super) hidden: Vec<Place>,
    /// Shown without the secret that is in them.
    pub(super) masked: Vec<MaskedPlace>,
    /// Hidden paths, there or not, that reading is granted around.
    pub(super) fragile: Vec<PathBuf>,
    /// Places below a writable one that stay as they are.
    pub(super) frozen: Vec<PathBuf>,
    /// Paths that the policy denies writing.
    denied: Vec<PathBuf>,
    /// Directories that a copy-on-write layer is over.
    pub(super) layered: Vec<PathBuf>,
    /// The folders that were looked into.
    pub(super) listings: Listings,
}

/// Looks at the file system. Places that do not exist are left out: there is
/// nothing to hide, and nothing that could be written.
pub(super) fn survey(
    rules: &Filesystem,
    host: &Host,
    working_folder: &Path,
    untouchable: Vec<PathBuf>,
    judge: Judge,
    missing: Missing,
) -> Result<Files, PlanError> {
    let private = private_folders(rules, judge);
    let working_place = working_place(working_folder, &private)?;
    let (writable, unmade) = writable_places(rules, &working_place, &private, missing)?;
    let mut listings = Listings::default();
    let (shown, mut hidden) = reading(rules, host, &private, &mut listings)?;
    for path in literals(&rules.read_allow) {
        if let Some(place) = Place::find(path)? {
            refuse_link_below(&working_place.path, path, &place)?;
        }
    }
    if hidden
        .iter()
        .any(|place| working_place.path.starts_with(&place.path))
        && !shown
            .iter()
            .any(|place| working_place.path.starts_with(&place.path))
    {
        return Err(PlanError::WorkingFolderHidden {
            path: working_place.path,
        });
    }
    let roots = writable.iter().map(|place| place.path.clone()).collect();
    let (writable, shown) = match judge {
        Judge::Init => (writable, shown),
        Judge::Nobody => (Vec::new(), with_all_of(writable, shown)),
    };
    let mut masked = late::masked(rules, &working_place.path)?;
    if rules.scope.value == ReadScope::Host {
        masked.extend(late::settings(rules, host, &mut hidden));
    }
    let denied = literals(&rules.write_deny)
        .map(absolute)
        .chain(untouchable)
        .collect();
    let fragile = fragile(rules, host, &private, &shown);
    let mut fragile = with_real_paths(fragile, host, &mut listings);
    fragile.retain(|path| !private.iter().any(|folder| is_within(path, folder)));
    let mut files = Files {
        scope: rules.scope.value,
        working_folder: working_place.path.clone(),
        working_place,
        home: Place::find(&host.home)?,
        writable,
        roots,
        unmade,
        shown,
        hidden,
        masked,
        fragile,
        private,
        frozen: Vec::new(),
        denied,
        layered: Vec::new(),
        listings,
    };
    files.guard_denied();
    Ok(files)
}

/// What was meant to be writable is only shown where nobody judges what is
/// written.
fn with_all_of(writable: Vec<Place>, mut shown: Vec<Place>) -> Vec<Place> {
    for place in writable {
        if !shown.contains(&place) {
            shown.push(place);
        }
    }
    shown
}

/// Those that there are, but for those that srt shows or that its settings name
/// as writable, where the host's own was always meant. What is missing cannot be
/// laid over.
fn private_folders(rules: &Filesystem, judge: Judge) -> Vec<&'static Path> {
    let names = |rules: &[Sourced<PathRule>], folder: &Path| {
        rules.iter().any(|rule| {
            rule.origin.layer == LayerKind::SrtSettings
                && rule.value == PathRule::Literal(folder.to_path_buf())
        })
    };
    // Where nobody judges, nothing of the host is writable.
    let is_shared = |folder: &Path| match judge {
        Judge::Init => names(&rules.write_allow, folder) || names(&rules.read_allow, folder),
        Judge::Nobody => false,
    };
    let folders = PRIVATE_FOLDERS.iter().map(Path::new);
    let is_laid = |folder: &Path| rules.scope.value != ReadScope::Host || is_folder(folder);
    folders
        .filter(|folder| !is_shared(folder) && is_laid(folder))
        .collect()
}

fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn working_place(path: &Path, private: &[&Path]) -> Result<Place, PlanError> {
    let place = Place::find(path)?.ok_or_else(|| PlanError::NoWorkingFolder {
        path: path.to_path_buf(),
    })?;
    if !place.is_folder {
        return Err(PlanError::WorkingFolderIsFile { path: place.path });
    }
    if private.contains(&place.path.as_path()) {
        return Err(PlanError::WorkingFolderIsPrivate { path: place.path });
    }
    Ok(place)
}

fn writable_places(
    rules: &Filesystem,
    working: &Place,
    private: &[&Path],
    if_missing: Missing,
) -> Result<(Vec<Place>, Vec<PathBuf>), PlanError> {
    let mut places: Vec<Place> = Vec::new();
    let (mut missing, mut unmade) = (Vec::new(), Vec::new());
    for rule in &rules.write_allow {
        let Some(place) = missing::find(rule, &mut missing)? else {
            continue;
        };
        if let PathRule::Literal(path) = &rule.value {
            refuse_link_below(&working.path, path, &place)?;
        }
        refuse_reserved(&place.path, working)?;
        if !private.contains(&place.path.as_path()) && !places.contains(&place) {
            places.push(place);
        }
    }
    for path in missing {
        refuse_reserved(path, working)?;
        match if_missing {
            Missing::Make => places.push(missing::make(path, &working.path)?),
            Missing::Note => unmade.push(absolute(path)),
        }
    }
    Ok((places, unmade))
}

fn refuse_reserved(path: &Path, working: &Place) -> Result<(), PlanError> {
    if path == Path::new("/") {
        let what = if working.path == path {
            "the working folder"
        } else {
            "a writable place"
        };
        return Err(PlanError::RootWritable {
            what: what.to_owned(),
        });
    }
    if RESERVED.iter().any(|reserved| path.starts_with(reserved)) {
        return Err(PlanError::ReservedPlace {
            path: path.to_path_buf(),
        });
    }
    Ok(())
}

/// A link below the working folder may have been left there by an earlier
/// command, to be taken for the place that the operator names.
pub(super) fn refuse_link_below(
    working: &Path,
    given: &Path,
    place: &Place,
) -> Result<(), PlanError> {
    if given.starts_with(working) && given != place.path {
        return Err(PlanError::PlaceByLink {
            path: given.to_path_buf(),
        });
    }
    Ok(())
}

/// The places to show and to hide. Of an allow and a deny for nested places
/// the longer one holds; for the same place the allow does.
fn reading(
    rules: &Filesystem,
    host: &Host,
    private: &[&Path],
    listings: &mut Listings,
) -> Result<(Vec<Place>, Vec<Place>), PlanError> {
    let mut shown = places(&rules.read_allow, host, private, listings)?;
    shown.retain(|place| !private.contains(&place.path.as_path()));
    let mut hidden = places(&rules.read_deny, host, private, listings)?;
    hidden.retain(|place| !shown.iter().any(|other| other.path == place.path));
    Ok((shown, hidden))
}

/// A mount over a file goes away when the host replaces the file, and what is
/// not there yet cannot be mounted over. So reading is granted beside the
/// hidden paths of the home folder and those that somebody named, not above
/// them: whatever comes to be there stays unreadable. The same goes for masked
/// files. Not below the private folders, which are granted as a whole.
fn fragile(rules: &Filesystem, host: &Host, private: &[&Path], shown: &[Place]) -> Vec<PathBuf> {
    let is_named =
        |path: &Path| literals(&rules.read_allow).any(|own| own == path) || is_in(shown, path);
    let is_at_home = |path: &Path| homes(host).any(|home| is_within(path, home));
    rules
        .read_deny
        .iter()
        .filter_map(|rule| match &rule.value {
            PathRule::Literal(path) => Some((path, rule.origin.layer)),
            PathRule::Glob(_) => None,
        })
        .filter(|(path, layer)| is_at_home(path) || *layer != LayerKind::Default)
        .filter(|(path, _)| !is_named(path))
        .flat_map(|(path, _)| parts_of_root(path, private))
        .chain(rules.masked.iter().map(|file| absolute(&file.path).into()))
        .map(Cow::into_owned)
        .collect()
}

/// Paths with what they are without links, as they show in the view: whatever comes to be there is
/// hidden under both. Of the many in a home, only those behind a link have to be resolved.
fn with_real_paths(paths: Vec<PathBuf>, host: &Host, listings: &mut Listings) -> Vec<PathBuf> {
    let real_homes: Vec<(&PathBuf, PathBuf)> =
        homes(host).map(|home| (home, absolute(home))).collect();
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let home = real_homes.iter().find(|(home, _)| is_within(&path, home));
        let real = match home {
            Some((home, real)) => in_home(&path, home, real, listings),
            None => absolute(&path),
        };
        if real != path {
            all.push(real);
        }
        all.push(path);
    }
    all
}

/// The real path of one in a home.
fn in_home(path: &Path, home: &Path, real: &Path, listings: &mut Listings) -> PathBuf {
    let below = path.strip_prefix(home).unwrap_or(path);
    let way = below.components().count().saturating_sub(1);
    let real = if real == home {
        path.to_path_buf()
    } else {
        real.join(below)
    };
    if way > 0 && listings.has_link_on_the_way(&real, way) {
        return absolute(&real);
    }
    real
}

fn is_in(places: &[Place], path: &Path) -> bool {
    places.iter().any(|place| place.path == path)
}

/// The user's home folder, and that of the user database if it is another.
fn homes(host: &Host) -> impl Iterator<Item = &PathBuf> {
    [&host.home].into_iter().chain(&host.other_home)
}

fn places(
    rules: &[Sourced<PathRule>],
    host: &Host,
    private: &[&Path],
    listings: &mut Listings,
) -> Result<Vec<Place>, PlanError> {
    let mut found: Vec<Place> = Vec::new();
    let mut known = HashSet::new();
    for rule in rules {
        let paths = match &rule.value {
            PathRule::Literal(path) => parts_of_root(path, private),
            PathRule::Glob(pattern) => expand(pattern)?.into_iter().map(Cow::Owned).collect(),
        };
        for path in paths {
            // Most of what is named in a home folder is not there.
            let is_at_home = homes(host).any(|home| is_within(&path, home));
            if is_at_home && !listings.may_have(&path) {
                continue;
            }
            if let Some(place) = Place::find(&path)?
                && known.insert(place.path.clone())
            {
                found.push(place);
            }
        }
    }
    Ok(found)
}

/// The root cannot be mounted over: instead of it, all that is in it, but for
/// what the sandbox has its own of. Any other path is itself.
fn parts_of_root<'a>(path: &'a Path, private: &[&Path]) -> Vec<Cow<'a, Path>> {
    if path != Path::new("/") {
        return vec![path.into()];
    }
    let is_own =
        |path: &Path| RESERVED.iter().any(|own| path == Path::new(own)) || private.contains(&path);
    let mut parts = entries::without_links(path);
    parts.retain(|path| !is_own(path));
    parts.into_iter().map(Cow::Owned).collect()
}

fn literals(rules: &[Sourced<PathRule>]) -> impl Iterator<Item = &Path> {
    rules.iter().filter_map(|rule| match &rule.value {
        PathRule::Literal(path) => Some(path.as_path()),
        PathRule::Glob(_) => None,
    })
}

/// With the links on the way resolved as far as the path exists.
pub(super) fn absolute(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(ancestor) {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    path.to_path_buf()
}

/// The places that a pattern matches now.
fn expand(pattern: &str) -> Result<Vec<PathBuf>, PlanError> {
    let matcher = PathPatterns::new([pattern]).map_err(|error| PlanError::Pattern {
        pattern: pattern.to_owned(),
        error,
    })?;
    let mut visited = 0;
    let mut found = Vec::new();
    let mut folders = vec![fixed_part(pattern)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            visited += 1;
            if visited > MOST_ENTRIES {
                return Err(PlanError::PatternTooWide {
                    pattern: pattern.to_owned(),
                    limit: MOST_ENTRIES,
                });
            }
            let path = entry.path();
            if matcher.names(&path) {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

/// The folders of a pattern before its first wildcard.
fn fixed_part(pattern: &str) -> PathBuf {
    let is_fixed = |part: &&str| !part.contains(['*', '?', '[', '{', '\\']);
    let parts: Vec<_> = pattern.split('/').collect();
    let fixed = parts
        .iter()
        .take(parts.len().saturating_sub(1))
        .copied()
        .take_while(is_fixed);
    let path: PathBuf = fixed.collect::<Vec<_>>().join("/").into();
    if path.as_os_str().is_empty() {
        PathBuf::from("/")
    } else {
        path
    }
}

impl Files {
    /// Notes which of the paths that the policy denies are there now.
    fn guard_denied(&mut self) {
        // Nothing is mounted over a link; the init guards its name.
        let exists = |path: &&PathBuf| path.exists() && !path.is_symlink();
        let existing = self.denied.iter().filter(exists);
        self.frozen = existing
            .filter(|path| self.is_writable(path))
            .cloned()
            .collect();
    }

    /// Looks for what the guard protects, which is read-only from then on.
    fn freeze(&mut self, guard: Guard) -> Guard {
        let mut survey = Survey::take(&guard);
        self.note_denied(&mut survey);
        let found = survey.frozen.iter();
        let fresh = found.filter(|path| self.is_writable(path) && !self.frozen.contains(path));
        let fresh: Vec<_> = fresh.cloned().collect();
        self.frozen.extend(fresh);
        guard.with_survey(survey)
    }

    /// What is denied can be replaced with its directory where nobody looks at once, and a link
    /// cannot be bound on itself.
    fn note_denied(&self, survey: &mut Survey) {
        for path in self.denied.iter().filter(|path| self.is_writable(path)) {
            if let Ok(target) = std::fs::read_link(path) {
                survey.links.push((path.clone(), target));
            }
            // What is missing of our own directories the user's next command may make.
            let is_ours = path.iter().any(|name| name == "ringfence");
            if !is_ours || path.exists() {
                survey.denied.push(path.clone());
            }
        }
    }

    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.writable
            .iter()
            .any(|place| is_within(path, &place.path))
    }

    /// Hidden places, there or not.
    pub(super) fn sensitive(&self, rules: &Filesystem) -> SensitivePlaces {
        fn paths(places: &[Place]) -> impl Iterator<Item = &Path> {
            places.iter().map(|place| place.path.as_path())
        }
        SensitivePlaces::new(
            paths(&self.hidden).chain(literals(&rules.read_deny)),
            paths(&self.shown)
                .chain(literals(&rules.read_allow))
                .chain([Path::new(OWN_FOLDER)]),
            self.masked.iter().map(|file| file.path.as_path()),
        )
    }

    /// What the init guards while the command runs.
    pub(super) fn guard(
        &mut self,
        rules: &Filesystem,
        judge: Judge,
        user_git: UserGit,
    ) -> Result<Guard, PlanError> {
        let guard = self.plain_guard(rules)?.with_user_git(user_git);
        Ok(match judge {
            Judge::Init => self.freeze(guard),
            Judge::Nobody => guard,
        })
    }

    fn plain_guard(&self, rules: &Filesystem) -> Result<Guard, PlanError> {
        let names = rules.protect.iter().filter_map(|name| match &name.value {
            ProtectedName::Components(name) => name.to_str().map(str::to_owned),
            ProtectedName::GitInternals => None,
        });
        let patterns: Vec<String> = rules
            .write_deny
            .iter()
            .filter_map(|rule| match &rule.value {
                PathRule::Glob(pattern) => Some(pattern.clone()),
                PathRule::Literal(_) => None,
            })
            .collect();
        let git = rules
            .protect
            .iter()
            .any(|name| name.value == ProtectedName::GitInternals);
        let git = GitGuard {
            hooks: git && !may_write(rules, ".git/hooks"),
            config: git && !may_write(rules, ".git/config"),
            others: git,
        };
        Guard::new(self.roots.clone(), names, self.untouchable(), &patterns)
            .map(|guard| guard.with_git(git))
            // Otherwise they are seen when they are opened.
            .map(|guard| guard.seeking_rights(rules.guard.value == GuardMode::Sweep))
            .map_err(|error| PlanError::Pattern {
                pattern: patterns.join(", "),
                error,
            })
    }
}

impl Files {
    /// What the policy denies writing, and hidden and masked places in writable
    /// ones: with a folder around them moved away, they would not be hidden the
    /// next time.
    fn untouchable(&self) -> Vec<PathBuf> {
        let hidden = self.hidden.iter().map(|place| &place.path);
        let hidden = hidden.chain(self.masked.iter().map(|file| &file.path));
        let hidden = hidden.filter(|path| self.is_writable(path));
        self.denied.iter().chain(hidden).cloned().collect()
    }
}

/// Whether a part of git's folder is let go of by name.
fn may_write(rules: &Filesystem, part: &str) -> bool {
    rules.unprotect.iter().any(|name| name.value == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_part_of_a_pattern_ends_before_its_wildcard() {
        assert_eq!(fixed_part("/a/b/*.c"), Path::new("/a/b"));
        assert_eq!(fixed_part("/a/*/c"), Path::new("/a"));
        assert_eq!(fixed_part("/*"), Path::new("/"));
    }

    #[test]
    fn patterns_match_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("d")).unwrap();
        for name in ["a.key", "b.txt", "d/c.key"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut found = expand(&format!("{}/**/*.key", folder.path().display())).unwrap();
        found.sort();
        assert_eq!(
            found,
            [folder.path().join("a.key"), folder.path().join("d/c.key")]
        );
    }

    #[test]
    fn missing_paths_are_resolved_as_far_as_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        assert_eq!(absolute(&real.join("link/none/x")), real.join("none/x"));
    }
}
