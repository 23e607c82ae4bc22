//! Places that hold secrets, sessions or other people's data; hidden from the inside.

use std::path::{Path, PathBuf};

use super::table::rows;
use crate::path::{PathContext, PathRule};

/// The hidden places for this user. No patterns: those would have to be looked up at every start.
pub(super) fn places(context: &PathContext) -> Vec<PathRule> {
    let home = places_in(&context.home);
    let system = of_system().map(|entry| PathRule::Literal(entry.into()));
    home.chain(system)
        .chain(roots_home(&context.home))
        .collect()
}

/// Root's home is its own place when somebody else's run looks at it.
pub(super) fn roots_home(home: &Path) -> Option<PathRule> {
    (home != Path::new("/root")).then(|| PathRule::Literal("/root".into()))
}

/// Those in a home folder alone.
pub(super) fn places_in(home: &Path) -> impl Iterator<Item = PathRule> {
    in_home().map(move |entry| {
        // As `join`, which gets memory twice.
        let mut path = PathBuf::with_capacity(home.as_os_str().len() + 1 + entry.len());
        path.push(home);
        path.push(entry);
        PathRule::Literal(path)
    })
}

/// Of those below the home folder, the ones that hold settings beside tokens: they may be shown
/// without the tokens.
pub const SETTINGS_FILES: [&str; 7] = [
    ".npmrc",
    ".yarnrc.yml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".cargo/config",
    ".cargo/config.toml",
    ".gradle/gradle.properties",
];

/// Below the home folder.
fn in_home() -> impl Iterator<Item = &'static str> {
    rows(TABLE).filter(|path| !path.starts_with('/'))
}

/// Of the system.
fn of_system() -> impl Iterator<Item = &'static str> {
    rows(TABLE).filter(|path| path.starts_with('/'))
}

const TABLE: &str = include_str!("hidden.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_there_once_and_plain() {
        let all: Vec<&str> = rows(TABLE).collect();
        for (at, path) in all.iter().enumerate() {
            assert!(!all[..at].contains(path), "{path} twice");
            let is_plain = |part: &str| !matches!(part, "" | "." | ".." | "~");
            let below = path.strip_prefix('/').unwrap_or(path);
            assert!(
                below.split('/').all(is_plain) && !path.contains('*'),
                "{path}"
            );
        }
        assert!(SETTINGS_FILES.iter().all(|file| all.contains(file)));
    }

    #[test]
    fn roots_home_is_hidden_from_others_only() {
        let at = |home: &str| PathContext {
            home: home.into(),
            base: "/w".into(),
        };
        let root = PathRule::Literal("/root".into());
        assert!(places(&at("/home/u")).contains(&root));
        assert!(!places(&at("/root")).contains(&root));
        assert!(
            places(&at("/root"))
                .iter()
                .any(|rule| rule.matches(Path::new("/root/.ssh/id")))
        );
        assert!(
            places(&at("/root"))
                .iter()
                .any(|rule| rule.matches(Path::new("/etc/ssh/ssh_host_rsa_key")))
        );
    }
}
