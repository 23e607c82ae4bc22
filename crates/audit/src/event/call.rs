//! What is said of calls to the kernel.

use std::hash::Hash;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::argument::Arguments;
use super::error_name::ErrorName;
use super::kind::Verdict;
use super::text::Text;
use super::time::Timestamp;

/// The most paths that a call names.
const MOST_PATHS: usize = 2;

/// The short name of a call, such as `openat`.
pub type CallText = Text<32>;

/// A call that is told by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The process, as the sandbox counts.
    pub pid: u32,
    /// The name of the call.
    pub call: CallText,
    /// What it is about.
    pub action: Action,
    /// The paths or the address that it names.
    #[serde(default, skip_serializing_if = "Paths::is_empty")]
    pub paths: Paths,
    /// The words of a program that is started.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub argv: Arguments,
    /// What came of it.
    pub outcome: Outcome,
    /// The rule that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text<1024>>,
}

impl Call {
    /// Refused, if that came of it.
    pub fn verdict(&self) -> Verdict {
        self.outcome.verdict()
    }

    /// What it names, in one text.
    pub fn subject(&self) -> String {
        self.paths.iter().collect::<Vec<_>>().join(" → ")
    }

    /// What is the same for calls that are alike, whoever made them.
    pub(crate) fn likeness(&self) -> impl Hash {
        let named = (&self.call, self.action, &self.paths, &self.argv);
        (named, &self.outcome, &self.rule)
    }
}

/// Calls that are only counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallCount {
    /// The name of the call.
    pub call: CallText,
    /// How many.
    pub count: u64,
    /// When the first of them came.
    pub first: Timestamp,
    /// When the last of them came.
    pub last: Timestamp,
}

/// What a call is about.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Starting a program.
    Exec,
    /// Changing what is in a file, or making one.
    Write,
    /// Reading a file.
    Read,
    /// Giving something another name.
    Rename,
    /// Taking something away.
    Remove,
    /// Giving something one more name, or making a symbolic link.
    Link,
    /// Making a folder or a device.
    Make,
    /// Changing the owner, the mode or other attributes.
    Mode,
    /// Connecting a socket, or sending without that.
    Connect,
    /// Giving a socket its own address.
    Bind,
    /// Looking into another process.
    Trace,
    /// Sending a signal.
    Signal,
    /// Changing mounts.
    Mount,
    /// Changing who a process runs as.
    Identity,
    /// Making or entering namespaces.
    Namespace,
    /// Changing the kernel itself, such as by loading a program into it.
    Kernel,
    /// Anything else.
    Other,
}

impl Action {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Write => "write",
            Self::Read => "read",
            Self::Rename => "rename",
            Self::Remove => "remove",
            Self::Link => "link",
            Self::Make => "make",
            Self::Mode => "mode",
            Self::Connect => "connect",
            Self::Bind => "bind",
            Self::Trace => "trace",
            Self::Signal => "signal",
            Self::Mount => "mount",
            Self::Identity => "identity",
            Self::Namespace => "namespace",
            Self::Kernel => "kernel",
            Self::Other => "other",
        }
    }

    /// Whether it is about files and folders.
    pub fn is_about_files(self) -> bool {
        use Action::{Link, Make, Mode, Read, Remove, Rename, Write};
        matches!(self, Write | Read | Rename | Remove | Link | Make | Mode)
    }
}

/// What came of a call.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It went on in the kernel; how it ended there is not known.
    Continued,
    /// It succeeded.
    Done,
    /// It failed with this error.
    Failed(ErrorName),
    /// It was refused with this error.
    Refused(ErrorName),
}

impl Outcome {
    /// Refused, if it is that.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Refused(_) => Verdict::Refused,
            Self::Continued | Self::Done | Self::Failed(_) => Verdict::Allowed,
        }
    }

    /// The word used in tables. What is not known to have been allowed is only
    /// seen.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Continued => "seen",
            Self::Done => "allowed",
            Self::Failed(_) => "failed",
            Self::Refused(_) => "refused",
        }
    }

    /// The error that it ended with.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) | Self::Refused(error) => Some(error.as_str()),
            Self::Continued | Self::Done => None,
        }
    }
}

/// At most two paths, or an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<Text<1024>>")]
#[schemars(inline)]
pub struct Paths(#[schemars(length(max = MOST_PATHS))] Vec<Text<1024>>);

impl Paths {
    /// Takes as many of `paths` as there is room for.
    pub fn new<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Self {
        let paths = paths.into_iter().take(MOST_PATHS);
        Self(paths.map(|path| Text::new(path.as_ref())).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of them.
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(Text::as_str)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Text::as_str)
    }

    pub(super) fn texts(&mut self) -> &mut [Text<1024>] {
        &mut self.0
    }
}

impl From<Vec<Text<1024>>> for Paths {
    fn from(mut paths: Vec<Text<1024>>) -> Self {
        paths.truncate(MOST_PATHS);
        Self(paths)
    }
}
