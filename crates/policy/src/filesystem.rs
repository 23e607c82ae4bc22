//! Filesystem rules: what is read, what is written, which names are protected.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::home::HomeRule;
use crate::origin::Sourced;
use crate::path::PathRule;

/// How much of the host is readable before `read_deny` and `read_allow`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReadScope {
    /// System folders, the working folder, and what `read.allow` names.
    System,
    /// Everything but the hidden places.
    Host,
}

impl ReadScope {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Host => "host",
        }
    }
}

/// How protected names are kept from being made.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum GuardMode {
    /// Calls that make names are carried out by the init, which refuses protected ones at once.
    Live,
    /// Nothing is refused while the command runs; what must not be there is moved to quarantine
    /// when it is over.
    Sweep,
}

impl GuardMode {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Sweep => "sweep",
        }
    }
}

/// The merged filesystem rules.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// Where reading starts from.
    pub scope: Sourced<ReadScope>,
    /// What becomes of the home directory.
    pub home: Sourced<HomeRule>,
    /// Places that are hidden.
    pub read_deny: Vec<Sourced<PathRule>>,
    /// Re-allowed inside a hidden region unless the denying rule is longer.
    pub read_allow: Vec<Sourced<PathRule>>,
    /// Writable places.
    pub write_allow: Vec<Sourced<PathRule>>,
    /// Never writable; wins over `write_allow`.
    pub write_deny: Vec<Sourced<PathRule>>,
    /// Names that may be neither created nor changed below a writable place.
    pub protect: Vec<Sourced<ProtectedName>>,
    /// Entries taken out of the protected names, and parts of git's folder that may be written.
    pub unprotect: Vec<Sourced<String>>,
    /// Files that show a placeholder instead of a secret.
    pub masked: Vec<Sourced<MaskedFile>>,
    /// How protected names are kept from being made.
    pub guard: Sourced<GuardMode>,
}

/// A file whose secret is replaced inside: the file as a whole, or the part that the credential's
/// `extract` finds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct MaskedFile {
    /// The file, absolute.
    pub path: PathBuf,
    /// Service of the credential that the secret belongs to.
    pub service: String,
}

impl fmt::Display for MaskedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (credential {})", self.path.display(), self.service)
    }
}

/// A name that is protected at any depth below a writable place, with all below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtectedName {
    /// One or more trailing path components, compared without ASCII case: `.claude/commands`.
    Components(PathBuf),
    /// Hooks, configuration and the like inside any `.git`, which only the sandbox can recognise.
    GitInternals,
}

impl ProtectedName {
    /// The text of [`GitInternals`](Self::GitInternals) in tables and `unprotect`.
    pub const GIT: &'static str = ".git";

    /// Parses a relative name of plain components.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        match text {
            Self::GIT => Some(Self::GitInternals),
            _ if text.split('/').all(plain) => Some(Self::Components(text.into())),
            _ => None,
        }
    }

    /// True when `path`, or a folder on the way to it, ends in this name. Always false for
    /// [`GitInternals`](Self::GitInternals).
    pub fn matches(&self, path: &Path) -> bool {
        match self {
            Self::Components(name) => path
                .ancestors()
                .any(|part| ends_with_ignoring_case(part, name)),
            Self::GitInternals => false,
        }
    }
}

fn ends_with_ignoring_case(path: &Path, name: &Path) -> bool {
    let mut own = path.components().rev();
    name.components().rev().all(|want| {
        own.next()
            .is_some_and(|have| have.as_os_str().eq_ignore_ascii_case(want.as_os_str()))
    })
}

impl fmt::Display for ProtectedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Components(name) => name.display().fmt(f),
            Self::GitInternals => f.write_str(Self::GIT),
        }
    }
}

impl Serialize for ProtectedName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_protected_names_match_at_any_depth_and_case() {
        let name = |text| ProtectedName::parse(text).unwrap();
        for (text, path, want) in [
            (".bashrc", "/w/a/b/.bashrc", true),
            (".bashrc", "/w/.BASHRC", true),
            (".bashrc", "/w/x.bashrc", false),
            (".vscode", "/w/.vscode/settings.json", true),
            (".claude/commands", "/w/sub/.claude/Commands/x.md", true),
            (".claude/commands", "/w/.claude/notes", false),
            (".claude/commands", "/w/commands", false),
        ] {
            assert_eq!(name(text).matches(Path::new(path)), want, "{text} {path}");
        }
        assert_eq!(ProtectedName::parse("a/../b"), None);
        assert_eq!(name(".git"), ProtectedName::GitInternals);
    }
}
