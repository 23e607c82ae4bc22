//! What somebody who asks about a path is told.

use std::fmt;
use std::path::{Path, PathBuf};

use ringfence_policy::{Origin, PathRule, Sourced, Suggestion, SuggestionFormat, shell_word};
use serde::{Serialize, Serializer};

use crate::plan::files::RESERVED;

/// What a run would make of one path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PathAnswer {
    /// The path, without links on the way.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// Where it leads, where it is a link.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_text_if_any"
    )]
    pub leads_to: Option<PathBuf>,
    /// Whether it is there on the host.
    pub exists: bool,
    /// What becomes of it.
    pub access: PathAccess,
    /// Whether the host's own, or what is there instead, can be read inside.
    pub read: bool,
    /// Whether it can be written or made inside.
    pub write: bool,
    /// Why.
    pub reason: PathReason,
    /// The rule that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Where that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// What the guard of protected names does.
    pub guard: GuardAnswer,
    /// What the file's own permissions take away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<&'static str>,
    /// What would change it.
    pub suggestions: Vec<Suggestion>,
}

/// What becomes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathAccess {
    /// It does not show.
    Hidden,
    /// It is no part of a narrow view.
    Absent,
    /// It shows, and stays as it is.
    ReadOnly,
    /// The host's own can be changed.
    Writable,
    /// It lies in a writable place and stays as it is.
    Protected,
    /// Changes stay in the sandbox and are gone with it.
    Private,
    /// Changes stay in a home that is kept for the next run.
    Kept,
    /// It shows without the secrets that are in it.
    Masked,
    /// The sandbox has a file of its own there.
    Replaced,
}

impl fmt::Display for PathAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "hidden",
            Self::Absent => "absent",
            Self::ReadOnly => "read-only",
            Self::Writable => "writable",
            Self::Protected => "protected",
            Self::Private => "private",
            Self::Kept => "kept",
            Self::Masked => "masked",
            Self::Replaced => "replaced",
        })
    }
}

/// What the guard of protected names does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuardAnswer {
    /// Nothing.
    None,
    /// It is bound read-only before the start.
    Frozen,
    /// Whoever makes, changes or moves it is refused at once.
    JudgedWhenMade,
    /// It can be made, and is moved to quarantine when the run is over.
    Swept,
}

impl fmt::Display for GuardAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Frozen => "frozen at the start",
            Self::JudgedWhenMade => "judged when made: refused at once",
            Self::Swept => "judged by the sweep: moved to quarantine when the run is over",
        })
    }
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the texts say it")]
pub enum PathReason {
    HostView,
    NarrowView,
    Shown,
    Hidden,
    ForeignMount,
    HiddenInHome,
    HomeLayer,
    BesideFile,
    EmptyHome,
    PrivateFolder,
    SandboxOwn,
    MadeForSandbox,
    MaskedFile,
    SettingsFile,
    Writable,
    ProtectedName,
    Denied,
    Untouchable,
    LedTo,
    GitControl,
    GitConfiguration,
}

impl PathReason {
    /// A stable name for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::HostView => "host-view",
            Self::NarrowView => "narrow-view",
            Self::Shown => "shown",
            Self::Hidden => "hidden",
            Self::ForeignMount => "foreign-mount",
            Self::HiddenInHome => "hidden-in-home",
            Self::HomeLayer => "home-layer",
            Self::BesideFile => "beside-file",
            Self::EmptyHome => "empty-home",
            Self::PrivateFolder => "private-folder",
            Self::SandboxOwn => "sandbox-own",
            Self::MadeForSandbox => "made-for-sandbox",
            Self::MaskedFile => "masked-file",
            Self::SettingsFile => "settings-file",
            Self::Writable => "writable",
            Self::ProtectedName => "protected-name",
            Self::Denied => "denied",
            Self::Untouchable => "untouchable",
            Self::LedTo => "led-to",
            Self::GitControl => "git-control",
            Self::GitConfiguration => "git-configuration",
        }
    }
}

impl fmt::Display for PathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostView => "the view shows the host's own, read-only",
            Self::NarrowView => "the view shows only system folders and what is named",
            Self::Shown => "it is shown by name, read-only",
            Self::Hidden => "it is a hidden place",
            Self::ForeignMount => "its file system shows the machine or talks to it",
            Self::HiddenInHome => {
                "it is a hidden place; a file of the sandbox's own can have the name"
            }
            Self::HomeLayer => "changes go to the layer over the home, never to the host's own",
            Self::BesideFile => {
                "it is beside a writable file: changes go to a layer that is gone with the run"
            }
            Self::EmptyHome => "the host's home does not show; the sandbox has an empty one",
            Self::PrivateFolder => "the sandbox has its own, empty at the start",
            Self::SandboxOwn => "the sandbox has its own",
            Self::MadeForSandbox => "a file made for the sandbox is there instead",
            Self::MaskedFile => "a placeholder stands for the secret in it",
            Self::SettingsFile => "settings with tokens: it shows without them",
            Self::Writable => "it lies in a writable place",
            Self::ProtectedName => "its name is protected",
            Self::Denied => "the policy denies writing it",
            Self::Untouchable => "ringfence itself needs it: a policy, a report or a record",
            Self::LedTo => "a protected name, or Git's configuration, leads to it",
            Self::GitControl => "it decides which programs Git runs",
            Self::GitConfiguration => {
                "it decides which programs Git runs; harmless settings can be changed by git config"
            }
        })
    }
}

impl PathAnswer {
    pub(super) fn because(&mut self, reason: PathReason, rule: Option<&Sourced<PathRule>>) {
        self.reason = reason;
        self.rule = rule.map(|rule| rule.value.to_string());
        self.source = rule.map(|rule| rule.origin.clone());
    }

    pub(super) fn unprotect(&mut self, name: Option<String>) {
        let name = name.map(|name| flag("--unprotect", Path::new(&name)));
        self.suggestions.extend(name);
    }

    /// What would change it, from what it is.
    pub(super) fn suggest(&mut self, real: &Path) {
        // No flag gives what the file's own permissions keep, or belongs to the sandbox.
        let is_reserved = RESERVED.iter().any(|own| real.starts_with(own));
        if self.permissions.is_some() || is_reserved || real == Path::new("/") {
            return;
        }
        let target = writable_target(real);
        let lines = match self.access {
            PathAccess::Hidden if self.reason == PathReason::ForeignMount => Vec::new(),
            PathAccess::Hidden | PathAccess::Masked if self.exists => vec![flag("--read", real)],
            PathAccess::Absent if self.exists => {
                vec![flag("--read", real), flag("--write", target)]
            }
            PathAccess::ReadOnly | PathAccess::Kept => vec![flag("--write", target)],
            PathAccess::Private if self.reason == PathReason::BesideFile => {
                vec![flag("--write", target)]
            }
            PathAccess::Private if self.reason == PathReason::HomeLayer => vec![
                flag("--write", target),
                suggestion("--home keep".to_owned()),
            ],
            _ => Vec::new(),
        };
        self.suggestions.extend(lines);
    }
}

/// The path itself, if it is there; else the directory that it would be made in.
fn writable_target(real: &Path) -> &Path {
    let mut ancestors = real.ancestors();
    let found = ancestors.find(|path| path.symlink_metadata().is_ok());
    found.filter(|path| path.parent().is_some()).unwrap_or(real)
}

fn flag(name: &str, value: &Path) -> Suggestion {
    suggestion(format!("{name} {}", shell_word(&value.to_string_lossy())))
}

fn suggestion(line: String) -> Suggestion {
    Suggestion {
        format: SuggestionFormat::Flag,
        place: "",
        line,
    }
}

/// Also where it is no UTF-8.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[allow(clippy::ref_option, reason = "serde hands it over so")]
fn as_text_if_any<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => as_text(path, serializer),
        None => serializer.serialize_none(),
    }
}
