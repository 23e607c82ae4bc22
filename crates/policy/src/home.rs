//! What becomes of the home directory: nothing, a private layer, or one that is kept.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// The longest name of a kept home, in bytes.
const LONGEST_NAME: usize = 63;

/// Directories below the home that tools only keep copies in. Where the kernel refuses a layer over
/// the whole home, those of them that there are become private and empty.
pub const CACHE_DIRECTORIES: &[&str] = &[
    ".cache",
    ".npm",
    ".pnpm-store",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    ".cargo/registry",
    ".cargo/git",
    ".rustup/downloads",
    ".rustup/tmp",
    "go/pkg/mod",
    ".gradle/caches",
    ".m2/repository",
    ".ivy2/cache",
    ".sbt/boot",
    ".nuget/packages",
    ".composer/cache",
    ".gem/specs",
    ".bundle/cache",
    ".ccache",
    ".node-gyp",
    ".electron",
    ".deno",
    ".conda/pkgs",
    ".local/share/virtualenv",
];

/// What else tools keep for themselves in a home directory: settings, states, histories, locks.
/// Nobody misses what a run wrote there, or a tool says itself that it has to be set up again.
const TOOL_STATES: &[&str] = &[
    ".config",
    ".local/share",
    ".local/state",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".rustup/update-hashes",
    ".rustup/settings.toml",
    ".pnpm-state",
    ".yarn",
    ".yarnrc",
    ".bun",
    ".gradle",
    ".m2",
    ".ivy2",
    ".sbt",
    ".nuget",
    ".dotnet",
    ".java",
    ".node_repl_history",
    ".python_history",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
    ".sqlite_history",
    ".lesshst",
    ".viminfo",
    ".wget-hsts",
    ".zcompdump",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".copilot",
    ".cursor",
    ".vscode-server",
    ".ipython",
    ".jupyter",
    ".keras",
    ".matplotlib",
    ".docker",
    ".kube/cache",
    ".android",
    ".dbus",
    ".pki",
    ".mozilla",
    ".nv",
    ".gnupg",
    ".ssh/known_hosts",
    ".Xauthority",
    ".ICEauthority",
    ".sudo_as_admin_successful",
    "go/pkg",
];

/// Names anywhere below a home that programs write beside their work.
const BESIDE_WORK: &[&str] = &["__pycache__", ".DS_Store"];

/// Whether what lies at `path`, from the home directory, is a copy or a state that a tool keeps
/// for itself. The file that such a one is written to first (`NAME.tmp`, `NAME.lock`) is too.
pub fn is_tool_state(path: &Path) -> bool {
    let is_beside = |name: &&OsStr| BESIDE_WORK.iter().any(|known| *name == *known);
    tool_states().any(|known| path.starts_with(known) || is_beside_file(path, known))
        || path.iter().any(|name| is_beside(&name))
}

/// Whether there is a directory at `path` only for what [`is_tool_state`] tells of.
pub fn leads_to_tool_state(path: &Path) -> bool {
    tool_states().any(|known| known != path && known.starts_with(path))
}

fn tool_states() -> impl Iterator<Item = &'static Path> {
    let all = CACHE_DIRECTORIES.iter().chain(TOOL_STATES);
    all.map(Path::new)
}

fn is_beside_file(path: &Path, known: &Path) -> bool {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.as_encoded_bytes().to_vec())
    };
    let (Some(name), Some(known_name)) = (name(path), name(known)) else {
        return false;
    };
    let rest = name.strip_prefix(known_name.as_slice());
    path.parent() == known.parent()
        && rest
            .and_then(<[u8]>::first)
            .is_some_and(|next| b".-~".contains(next))
}

/// What becomes of the home directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HomeRule {
    /// The host's own, read-only.
    None,
    /// The host's own under a layer that takes all changes and is gone with the run.
    Private,
    /// The same, with the layer kept for the next run, by this name or by the working directory's.
    Keep(Option<HomeName>),
}

impl HomeRule {
    /// How much it gives: a kept layer more than a private one, that more than none.
    pub fn width(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Private => 1,
            Self::Keep(_) => 2,
        }
    }
}

impl fmt::Display for HomeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Private => f.write_str("private"),
            Self::Keep(None) => f.write_str("keep"),
            Self::Keep(Some(name)) => write!(f, "keep={name}"),
        }
    }
}

impl FromStr for HomeRule {
    type Err = HomeError;

    fn from_str(text: &str) -> Result<Self, HomeError> {
        match (text, text.strip_prefix("keep=")) {
            ("none", _) => Ok(Self::None),
            ("private", _) => Ok(Self::Private),
            ("keep", _) => Ok(Self::Keep(None)),
            (_, Some(name)) => Ok(Self::Keep(Some(name.parse()?))),
            _ => Err(HomeError::Unknown(text.to_owned())),
        }
    }
}

impl Serialize for HomeRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for HomeRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HomeRule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`none`: read-only; `private`: changes are gone with the run; `keep` or `keep=NAME`: changes are kept for the next run.",
            "type": "string",
            "pattern": "^(none|private|keep(=[A-Za-z0-9][A-Za-z0-9_.-]{0,62})?)$"
        })
    }
}

/// The name of a kept home: it is a directory's name and stands in one column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeName(String);

impl HomeName {
    /// A name for the home of the project in this directory: readable, and different for different
    /// paths.
    pub fn of_project(path: &Path) -> Self {
        const LONGEST: usize = 40;
        Self::of_directory(path, LONGEST)
    }

    /// The same for what a preset keeps there: no other tool's, and no other project's.
    pub fn of_preset(preset: &str, path: &Path) -> Self {
        const LONGEST: usize = 20;
        let name = Self::of_directory(path, LONGEST);
        let preset = preset.chars().take(LONGEST);
        Self(format!("{}-{name}", preset.collect::<String>()))
    }

    fn of_directory(path: &Path, longest: usize) -> Self {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let plain = name.iter().map(|byte| {
            if is_plain(*byte) {
                char::from(*byte)
            } else {
                '-'
            }
        });
        let text: String = plain
            .skip_while(|first| !first.is_ascii_alphanumeric())
            .take(longest)
            .collect();
        let text = if text.is_empty() { "home" } else { &text };
        let digest = fnv(path.as_os_str().as_encoded_bytes());
        Self(format!("{text}-{digest:016x}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

/// FNV-1a: it tells paths apart, and nobody gains by two that are alike.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl FromStr for HomeName {
    type Err = HomeError;

    fn from_str(text: &str) -> Result<Self, HomeError> {
        let starts_well = text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric());
        if starts_well && text.len() <= LONGEST_NAME && text.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HomeError::Name(text.to_owned()))
        }
    }
}

impl fmt::Display for HomeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text says nothing about the home directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// None of the words.
    #[error("{0:?} is neither none, private, keep nor keep=NAME")]
    Unknown(String),
    /// No name of a kept home.
    #[error("{0:?} is no name of a kept home")]
    Name(String),
}

impl HomeError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown-home",
            Self::Name(_) => "malformed-home-name",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "write none, private, keep or keep=NAME",
            Self::Name(_) => {
                "use 1 to 63 letters, digits, '-', '_' or '.', a letter or digit first"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        for text in ["none", "private", "keep", "keep=a", "keep=web.1_x-y"] {
            assert_eq!(text.parse::<HomeRule>().unwrap().to_string(), text);
        }
        for text in [
            "", "Keep", "keep=", "keep=.", "keep=..", "keep=a/b", "keep=-a", "keep=a b",
        ] {
            assert!(text.parse::<HomeRule>().is_err(), "{text}");
        }
        assert!("x".repeat(64).parse::<HomeName>().is_err());
    }

    #[test]
    fn keeping_is_wider_than_private_and_that_than_none() {
        let width = |text: &str| text.parse::<HomeRule>().unwrap().width();
        assert!(width("keep=a") == width("keep") && width("keep") > width("private"));
        assert!(width("private") > width("none"));
    }

    #[test]
    fn cache_directories_are_plain_paths_below_the_home() {
        for path in CACHE_DIRECTORIES.iter().chain(TOOL_STATES) {
            assert!(
                path.split('/').all(|part| !matches!(part, "" | "." | "..")),
                "{path}"
            );
        }
    }

    #[test]
    fn what_tools_keep_for_themselves_is_told_from_what_was_asked_for() {
        for path in [
            ".cache",
            ".cache/x/y",
            ".claude.json.tmp.17",
            ".bash_history-00042.tmp",
            "src/lib/__pycache__/x.pyc",
            "go/pkg/mod/cache",
        ] {
            assert!(is_tool_state(Path::new(path)), "{path}");
        }
        for path in [
            "x.tgz",
            ".bashrc",
            ".cached",
            ".cargo/bin/x",
            ".local/bin/x",
            "go/bin",
            "src/.cache",
        ] {
            assert!(!is_tool_state(Path::new(path)), "{path}");
        }
        for (path, leads) in [
            (".cargo", true),
            ("go", true),
            (".config", false),
            ("src", false),
        ] {
            assert_eq!(leads_to_tool_state(Path::new(path)), leads, "{path}");
        }
    }

    #[test]
    fn homes_of_two_projects_have_two_names() {
        let paths = ["/a/web", "/b/web", "/", "/x/..y", "/x/-ü ö"];
        let names = paths.map(|path| HomeName::of_project(Path::new(path)));
        assert!(names[0].as_str().starts_with("web-") && names[0] != names[1]);
        let presets = paths.map(|path| HomeName::of_preset("claude", Path::new(path)));
        assert!(presets[0].as_str().starts_with("claude-web-") && presets[0] != presets[1]);
        assert_ne!(
            presets[0],
            HomeName::of_preset("codex", Path::new(paths[0]))
        );
        let long = HomeName::of_preset(&"p".repeat(90), Path::new(&format!("/{}", "x".repeat(90))));
        for name in names.into_iter().chain(presets).chain([long]) {
            assert_eq!(name.as_str().parse(), Ok(name.clone()));
        }
    }
}
