//! What was seen of the calls of code inside.

use serde::{Deserialize, Serialize};

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Observed {
    /// A call that is told by itself.
    Call(Observation),
    /// Calls that are only counted.
    Count {
        /// The name of the call.
        call: String,
        /// How many.
        count: u64,
        /// When the first came, in nanoseconds since the epoch.
        first: u64,
        /// When the last came.
        last: u64,
    },
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// When, in nanoseconds since the epoch.
    pub time: u64,
    /// The process, by its id inside.
    pub pid: i32,
    /// The name of the call.
    pub call: String,
    /// What it is about.
    pub action: Action,
    /// The paths or the address it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The words of a program that is started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// The rule that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Action {
    Exec,
    Write,
    Read,
    Rename,
    Remove,
    Link,
    Make,
    Mode,
    Connect,
    Bind,
    Trace,
    Signal,
    Mount,
    Identity,
    Namespace,
    Kernel,
    Other,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It went on in the kernel; how it ended there is not known.
    Continued,
    /// It succeeded.
    Done,
    /// It failed with this error number.
    Failed(i32),
    /// It was refused with this error number.
    Refused(i32),
}
