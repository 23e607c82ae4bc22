//! Names that must not be made or changed below a writable root, at any depth.
//!
//! Pure text: it is given whole, already resolved paths, and asked about the
//! directories that the run made itself, in which names are free. Whether a
//! repository is old or new is the business of [`crate::git`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use ringfence_policy::PathPatterns;

use crate::git;
use crate::survey::{Survey, UserGit};
use crate::view::FileId;

/// Directories of dependencies and caches: what is in them came from elsewhere
/// and is made anew by tools, so only Git's control files count there.
pub(crate) const DEPENDENCIES: [&str; 15] = [
    "node_modules",
    "bower_components",
    "target",
    "vendor",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".gradle",
    ".terraform",
    ".cache",
    ".pnpm-store",
    ".yarn",
    "Pods",
];

/// What may not be touched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    roots: Vec<PathBuf>,
    names: Vec<String>,
    /// Made of the names when somebody asks.
    table: OnceLock<NameTable>,
    denied: Vec<PathBuf>,
    patterns: PathPatterns,
    git: GitGuard,
    user_git: UserGit,
    /// Whether files that give rights are looked for, because nobody sees them
    /// opened.
    seeks_rights: bool,
    survey: Survey,
}

/// Which control files of Git repositories are guarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GitGuard {
    pub(crate) hooks: bool,
    pub(crate) config: bool,
    /// What has Git read configuration from elsewhere.
    pub(crate) others: bool,
}

impl GitGuard {
    pub(crate) const ALL: Self = Self {
        hooks: true,
        config: true,
        others: true,
    };
}

/// By the first component, in lower case: the components that follow it.
type NameTable = HashMap<Vec<u8>, Vec<Vec<Vec<u8>>>>;

/// Why a path is guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GuardRule {
    /// It is or lies below a protected name, given here.
    Name(String),
    /// The policy denies writing it.
    Denied,
}

/// A directory on the way to a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct On<'a> {
    pub(crate) directory: &'a Path,
    /// How many components of the path follow it, less one.
    pub(crate) above: usize,
}

impl Guard {
    /// Guards `names` (each one or more components) below every root of
    /// `roots`, and the paths and patterns of `denied` wherever they are.
    pub(crate) fn new(
        roots: Vec<PathBuf>,
        names: impl IntoIterator<Item = String>,
        denied: Vec<PathBuf>,
        patterns: &[String],
    ) -> Result<Self, globset::Error> {
        let patterns = PathPatterns::new(patterns.iter().map(String::as_str))?;
        Ok(Self {
            roots,
            names: names.into_iter().collect(),
            table: OnceLock::new(),
            denied,
            patterns,
            git: GitGuard::ALL,
            user_git: UserGit::default(),
            seeks_rights: false,
            survey: Survey::default(),
        })
    }

    /// The writable directories of the host.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The protected names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Says which control files of Git repositories are guarded.
    #[must_use]
    pub(crate) fn with_git(mut self, git: GitGuard) -> Self {
        self.git = git;
        self
    }

    /// Says where the user's own Git configuration is.
    #[must_use]
    pub(crate) fn with_user_git(mut self, user_git: UserGit) -> Self {
        self.user_git = user_git;
        self
    }

    /// Has the survey look for files that give rights to whoever runs them.
    #[must_use]
    pub(crate) fn seeking_rights(mut self, seeks_rights: bool) -> Self {
        self.seeks_rights = seeks_rights;
        self
    }

    /// Whether the survey looks for such files.
    pub(crate) fn seeks_rights(&self) -> bool {
        self.seeks_rights
    }

    /// Where the user's own Git configuration is.
    pub(crate) fn user_git(&self) -> &UserGit {
        &self.user_git
    }

    /// Adds what was there before the start. Where links of protected names
    /// lead is denied from then on.
    #[must_use]
    pub(crate) fn with_survey(mut self, survey: Survey) -> Self {
        self.denied.extend(survey.led_to.iter().cloned());
        self.survey = survey;
        self
    }

    /// What was there before the start.
    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    /// Whether any of Git's control files is guarded.
    pub(crate) fn guards_git(&self) -> bool {
        self.git != GitGuard::default()
    }

    /// Whether `name`, an entry of a Git directory, is guarded.
    pub(crate) fn guards_git_entry(&self, name: &str) -> bool {
        match name.to_ascii_lowercase().as_str() {
            "config" => self.git.config,
            "hooks" => self.git.hooks,
            _ => self.git.others,
        }
    }

    /// Whether a Git directory was there before the start.
    pub(crate) fn is_old_repository(&self, directory: FileId) -> bool {
        self.survey.repositories.contains(&directory)
    }

    /// The rule that keeps `path` from being made, changed or removed. Names
    /// are free in a directory for which `is_free` holds.
    pub(crate) fn rule_for(
        &self,
        path: &Path,
        is_free: &dyn Fn(On<'_>) -> bool,
    ) -> Option<GuardRule> {
        let is_denied = self.denied.iter().any(|denied| path.starts_with(denied));
        if is_denied || self.is_denied_by_pattern(path) {
            return Some(GuardRule::Denied);
        }
        let below = self.below_root(path)?;
        (0..below.components.len()).find_map(|at| {
            let sequel = self
                .sequels(&below.components[at])
                .find(|sequel| below.components[at + 1..].starts_with(sequel))?;
            let is_guarded = !below.is_free(at, path, is_free);
            is_guarded.then(|| GuardRule::Name(join(&below.components[at], sequel)))
        })
    }

    /// Whether a pattern of the policy denies writing `path`.
    pub(crate) fn is_denied_by_pattern(&self, path: &Path) -> bool {
        self.patterns.matches(path)
    }

    /// For a path that would complete a guarded name if the right things were
    /// below it: those things. (`.claude` gives `commands` and others.)
    pub(crate) fn completions(
        &self,
        path: &Path,
        is_free: &dyn Fn(On<'_>) -> bool,
    ) -> Vec<PathBuf> {
        let denied = self.denied_below(path).map(Path::to_path_buf);
        denied.chain(self.begun_names(path, is_free)).collect()
    }

    fn denied_below(&self, path: &Path) -> impl Iterator<Item = &Path> {
        let denied = self.denied.iter();
        denied.filter_map(move |denied| denied.strip_prefix(path).ok())
    }

    /// What would complete protected names below `path`.
    fn begun_names(&self, path: &Path, is_free: &dyn Fn(On<'_>) -> bool) -> Vec<PathBuf> {
        let mut completions = Vec::new();
        let Some(below) = self.below_root(path) else {
            return completions;
        };
        for at in 0..below.components.len() {
            let tail = &below.components[at + 1..];
            let mut begun: Vec<_> = self
                .sequels(&below.components[at])
                .filter(|sequel| sequel.len() > tail.len() && sequel.starts_with(tail))
                .collect();
            if !begun.is_empty() && below.is_free(at, path, is_free) {
                begun.clear();
            }
            completions.extend(begun.iter().map(|sequel| as_path(&sequel[tail.len()..])));
        }
        completions
    }

    /// Whether `path` is on the way to a protected name, past its first component.
    /// A file there may say where the rest of the name is, as `.jj/repo` does.
    pub(crate) fn is_on_the_way(&self, path: &Path, is_free: &dyn Fn(On<'_>) -> bool) -> bool {
        let Some(below) = self.below_root(path) else {
            return false;
        };
        let mut past_first = 0..below.components.len().saturating_sub(1);
        past_first.any(|at| {
            let tail = &below.components[at + 1..];
            let mut sequels = self.sequels(&below.components[at]);
            sequels.any(|sequel| sequel.len() > tail.len() && sequel.starts_with(tail))
                && !below.is_free(at, path, is_free)
        })
    }

    /// For a directory in which making an ordinary name concerns no rule,
    /// whoever made it: the entries of it that are not ordinary. Neither it
    /// nor a directory around it has a name that a rule is about.
    pub(crate) fn exceptions(&self, directory: &Path) -> Option<Vec<OsString>> {
        let nowhere_free = |_: On<'_>| false;
        let below = self.below_root(directory);
        let mut components = below.iter().flat_map(|below| &below.components);
        if !self.patterns.is_empty()
            || components.any(|name| git::is_control_name(name))
            || self.rule_for(directory, &nowhere_free).is_some()
            || !self.begun_names(directory, &nowhere_free).is_empty()
        {
            return None;
        }
        let denied = self.denied_below(directory).map(first_of);
        Some(denied.collect())
    }

    /// Whether no rule is about a path that ends in this name, in a directory
    /// that is ordinary.
    pub(crate) fn is_ordinary_name(&self, name: &[u8]) -> bool {
        let mut lower = [0; 64];
        // No name of ours is longer.
        let Some(lower) = lower.get_mut(..name.len()) else {
            return !self.has_long_names();
        };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        !git::is_telling_name(lower) && !self.table().contains_key(&*lower)
    }

    fn has_long_names(&self) -> bool {
        self.table().keys().any(|name| name.len() > 64)
    }

    /// Whether any pattern is guarded, so that what is moved must be walked.
    pub(crate) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// The components that complete a name which begins with `first`, in lower
    /// case.
    pub(crate) fn sequels(&self, first: &[u8]) -> impl Iterator<Item = &Vec<Vec<u8>>> {
        self.table().get(first).into_iter().flatten()
    }

    fn table(&self) -> &NameTable {
        self.table.get_or_init(|| table_of(&self.names))
    }

    fn below_root(&self, path: &Path) -> Option<Below> {
        let root = self
            .roots
            .iter()
            .filter(|root| path.starts_with(root))
            .max_by_key(|root| root.as_os_str().len())?;
        let below = path.strip_prefix(root).ok()?;
        let components: Vec<_> = below.components().filter_map(lower_case).collect();
        let first_free = components.iter().position(|name| is_dependency(name));
        Some(Below {
            components,
            first_free,
        })
    }
}

/// Whether a directory of this name holds dependencies or a cache.
pub(crate) fn is_dependency(name: &[u8]) -> bool {
    DEPENDENCIES.iter().any(|known| known.as_bytes() == name)
}

/// A path below the deepest root it is in.
struct Below {
    /// In lower case.
    components: Vec<Vec<u8>>,
    /// The first that is a directory of dependencies.
    first_free: Option<usize>,
}

impl Below {
    /// Whether names are free in the directory that holds component `at`.
    fn is_free(&self, at: usize, path: &Path, is_free: &dyn Fn(On<'_>) -> bool) -> bool {
        if self.first_free.is_some_and(|first| first < at) {
            return true;
        }
        let above = self.components.len() - 1 - at;
        let directory = path.ancestors().nth(above + 1);
        directory.is_some_and(|directory| is_free(On { directory, above }))
    }
}

fn table_of(names: &[String]) -> NameTable {
    let mut table = NameTable::new();
    for name in names {
        let mut parts = name
            .split('/')
            .map(|part| part.to_ascii_lowercase().into_bytes());
        if let Some(first) = parts.next() {
            table.entry(first).or_default().push(parts.collect());
        }
    }
    table
}

fn lower_case(component: Component<'_>) -> Option<Vec<u8>> {
    match component {
        Component::Normal(name) => Some(name.as_encoded_bytes().to_ascii_lowercase()),
        _ => None,
    }
}

fn as_path(components: &[Vec<u8>]) -> PathBuf {
    components
        .iter()
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

fn join(first: &[u8], sequel: &[Vec<u8>]) -> String {
    let mut path = vec![first.to_vec()];
    path.extend_from_slice(sequel);
    as_path(&path).display().to_string()
}

fn first_of(path: &Path) -> OsString {
    let first = path.components().next();
    first.map_or_else(OsString::new, |first| first.as_os_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let names = [".bashrc", ".vscode", ".claude/commands"].map(String::from);
        Guard::new(
            vec!["/w".into(), "/w/.vscode/deep".into()],
            names,
            vec!["/w/secret".into()],
            &["/w/**/*.lock".into()],
        )
        .unwrap()
    }

    fn rule(path: &str) -> Option<GuardRule> {
        guard().rule_for(Path::new(path), &|_| false)
    }

    fn name(text: &str) -> GuardRule {
        GuardRule::Name(text.into())
    }

    #[test]
    fn g4_names_are_guarded_at_any_depth_and_in_any_case() {
        for path in ["/w/.bashrc", "/w/a/b/.bashrc", "/w/.BashRC", "/w/.bashrc/x"] {
            assert_eq!(rule(path), Some(name(".bashrc")), "{path}");
        }
        assert_eq!(rule("/w/s/.vscode/a.json"), Some(name(".vscode")));
        assert_eq!(
            rule("/w/.claude/commands/x"),
            Some(name(".claude/commands"))
        );
    }

    #[test]
    fn other_names_and_places_are_free() {
        for path in [
            "/w/bashrc",
            "/w/.claude/notes",
            "/w/.claude",
            "/tmp/.bashrc",
            "/w/commands",
            "/w/node_modules/a/.vscode/x",
            "/w/a/vendor/.bashrc",
        ] {
            assert_eq!(rule(path), None, "{path}");
        }
    }

    #[test]
    fn g4_names_are_free_only_where_their_own_directory_is() {
        let made = |on: On<'_>| on.directory.starts_with("/w/new");
        let rule = |path: &str| guard().rule_for(Path::new(path), &made);
        assert_eq!(rule("/w/new/.vscode/a"), None);
        assert_eq!(rule("/w/new/.claude/commands"), None);
        assert_eq!(rule("/w/old/.vscode"), Some(name(".vscode")));
        // Made by the run, but its name begins in a directory that was there.
        let made = |on: On<'_>| on.directory.starts_with("/w/.claude");
        let rule = guard().rule_for(Path::new("/w/.claude/commands"), &made);
        assert_eq!(rule, Some(name(".claude/commands")));
        let completions = guard().completions(Path::new("/w/.claude"), &made);
        assert_eq!(completions, [PathBuf::from("commands")]);
    }

    #[test]
    fn g4_the_way_to_a_name_is_known_past_its_first_component() {
        let names = [".jj/repo/config.toml", ".vscode"].map(String::from);
        let guard = Guard::new(vec!["/w".into()], names, Vec::new(), &[]).unwrap();
        let is_on_the_way = |path: &str| guard.is_on_the_way(Path::new(path), &|_| false);
        assert!(is_on_the_way("/w/.jj/repo") && is_on_the_way("/w/a/.JJ/Repo"));
        for path in [
            "/w/.jj",
            "/w/.jj/other",
            "/w/.vscode",
            "/w/.jj/repo/store",
            "/x/.jj/repo",
        ] {
            assert!(!is_on_the_way(path), "{path}");
        }
        assert!(!guard.is_on_the_way(Path::new("/w/.jj/repo"), &|_| true));
    }

    #[test]
    fn a_root_named_by_the_operator_is_not_guarded_by_its_own_name() {
        assert_eq!(rule("/w/.vscode/deep/x"), None);
    }

    #[test]
    fn denied_paths_and_patterns_hold() {
        for path in ["/w/secret", "/w/secret/x", "/w/a/b.lock"] {
            assert_eq!(rule(path), Some(GuardRule::Denied), "{path}");
        }
    }

    #[test]
    fn letting_go_of_hooks_lets_go_of_nothing_else() {
        let guard = guard().with_git(GitGuard {
            hooks: false,
            ..GitGuard::ALL
        });
        let guarded = ["hooks", "config", "config.worktree", "commondir"]
            .map(|name| guard.guards_git_entry(name));
        assert_eq!(guarded, [false, true, true, true]);
        assert!(guard.guards_git());
        assert!(!guard.with_git(GitGuard::default()).guards_git());
    }

    #[test]
    fn completions_name_what_must_not_be_below() {
        let completions = |path: &str| guard().completions(Path::new(path), &|_| false);
        assert_eq!(completions("/w/x/.claude"), [PathBuf::from("commands")]);
        assert!(completions("/w/x").is_empty());
    }

    #[test]
    fn ordinary_places_and_names_concern_no_rule() {
        let names = [".bashrc", ".claude/commands"].map(String::from);
        let guard = Guard::new(vec!["/w".into()], names, vec!["/w/a/secret".into()], &[]).unwrap();
        let exceptions = |path: &str| guard.exceptions(Path::new(path));
        for path in ["/w/src", "/w/.git/objects/ab", "/elsewhere/.claude"] {
            assert_eq!(exceptions(path), Some(Vec::new()), "{path}");
        }
        assert_eq!(exceptions("/w/a"), Some(vec!["secret".into()]));
        assert_eq!(exceptions("/w"), Some(vec!["a".into()]));
        for path in [
            "/w/.claude",
            "/w/.git/hooks",
            "/w/a/secret",
            "/w/x/config/y",
        ] {
            assert_eq!(exceptions(path), None, "{path}");
        }
        assert!(guard.is_ordinary_name(b"main.rs"));
        for name in [".bashrc", ".BASHRC", ".claude", "config", "HEAD", ".Git"] {
            assert!(!guard.is_ordinary_name(name.as_bytes()), "{name}");
        }
    }
}
