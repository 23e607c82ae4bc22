//! Names that must not be made or changed below a writable root, at any depth.
//!
//! Pure text: it is given whole, already resolved paths. Whether a repository
//! is old or new is the business of [`crate::git`].

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use globset::{Glob, GlobSet, GlobSetBuilder};

/// What may not be touched.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    roots: Vec<PathBuf>,
    names: Vec<String>,
    /// Made of the names when somebody asks.
    table: OnceLock<NameTable>,
    denied: Vec<PathBuf>,
    patterns: GlobSet,
    /// Whether hooks, and whether configuration, of repositories is guarded.
    git_hooks: bool,
    git_config: bool,
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

impl Guard {
    /// Guards `names` (each one or more components) below every root of
    /// `roots`, and the paths and patterns of `denied` wherever they are.
    pub(crate) fn new(
        roots: Vec<PathBuf>,
        names: impl IntoIterator<Item = String>,
        denied: Vec<PathBuf>,
        patterns: &[String],
    ) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            set.add(Glob::new(pattern)?);
        }
        let patterns = set.build()?;
        Ok(Self {
            roots,
            names: names.into_iter().collect(),
            table: OnceLock::new(),
            denied,
            patterns,
            git_hooks: true,
            git_config: true,
        })
    }

    /// The writable folders of the host.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Says whether hooks and configuration of Git repositories are guarded.
    #[must_use]
    pub(crate) fn with_git(mut self, hooks: bool, config: bool) -> Self {
        (self.git_hooks, self.git_config) = (hooks, config);
        self
    }

    /// Whether `name`, an entry of a Git folder, is guarded in old repositories.
    pub(crate) fn guards_git_entry(&self, name: &str) -> bool {
        if name.eq_ignore_ascii_case("config") {
            self.git_config
        } else {
            self.git_hooks
        }
    }

    /// The rule that keeps `path` from being made, changed or removed.
    pub(crate) fn rule_for(&self, path: &Path) -> Option<GuardRule> {
        if self.denied.iter().any(|denied| path.starts_with(denied)) || self.patterns.is_match(path)
        {
            return Some(GuardRule::Denied);
        }
        let components = self.guarded_components(path)?;
        (0..components.len()).find_map(|at| {
            self.sequels(&components[at])
                .find(|sequel| components[at + 1..].starts_with(sequel))
                .map(|sequel| GuardRule::Name(join(&components[at], sequel)))
        })
    }

    /// For a path that would complete a guarded name if the right things were
    /// below it: those things. (`.claude` gives `commands` and others.)
    pub(crate) fn completions(&self, path: &Path) -> Vec<PathBuf> {
        let denied = self
            .denied
            .iter()
            .filter_map(|denied| denied.strip_prefix(path).ok());
        let mut completions: Vec<PathBuf> = denied.map(Path::to_path_buf).collect();
        let Some(components) = self.guarded_components(path) else {
            return completions;
        };
        for at in 0..components.len() {
            let tail = &components[at + 1..];
            for sequel in self.sequels(&components[at]) {
                if sequel.len() > tail.len() && sequel.starts_with(tail) {
                    completions.push(as_path(&sequel[tail.len()..]));
                }
            }
        }
        completions
    }

    /// Whether any pattern is guarded, so that what is moved must be walked.
    pub(crate) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    fn sequels(&self, first: &[u8]) -> impl Iterator<Item = &Vec<Vec<u8>>> {
        let table = self.table.get_or_init(|| table_of(&self.names));
        table.get(first).into_iter().flatten()
    }

    /// The components of `path` below the deepest root it is in, lower case.
    fn guarded_components(&self, path: &Path) -> Option<Vec<Vec<u8>>> {
        let root = self
            .roots
            .iter()
            .filter(|root| path.starts_with(root))
            .max_by_key(|root| root.as_os_str().len())?;
        let below = path.strip_prefix(root).ok()?;
        Some(below.components().filter_map(lower_case).collect())
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

    fn name(text: &str) -> GuardRule {
        GuardRule::Name(text.into())
    }

    #[test]
    fn g4_names_are_guarded_at_any_depth_and_in_any_case() {
        for path in ["/w/.bashrc", "/w/a/b/.bashrc", "/w/.BashRC", "/w/.bashrc/x"] {
            assert_eq!(
                guard().rule_for(Path::new(path)),
                Some(name(".bashrc")),
                "{path}"
            );
        }
        assert_eq!(
            guard().rule_for(Path::new("/w/s/.vscode/a.json")),
            Some(name(".vscode"))
        );
        assert_eq!(
            guard().rule_for(Path::new("/w/.claude/commands/x")),
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
        ] {
            assert_eq!(guard().rule_for(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_root_named_by_the_operator_is_not_guarded_by_its_own_name() {
        assert_eq!(guard().rule_for(Path::new("/w/.vscode/deep/x")), None);
    }

    #[test]
    fn denied_paths_and_patterns_hold() {
        for path in ["/w/secret", "/w/secret/x", "/w/a/b.lock"] {
            assert_eq!(
                guard().rule_for(Path::new(path)),
                Some(GuardRule::Denied),
                "{path}"
            );
        }
    }

    #[test]
    fn completions_name_what_must_not_be_below() {
        let completions = guard().completions(Path::new("/w/x/.claude"));
        assert_eq!(completions, [PathBuf::from("commands")]);
        assert!(guard().completions(Path::new("/w/x")).is_empty());
    }
}
