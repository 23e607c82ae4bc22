//! [`Event`]: one line of the audit log, whatever happened.
//!
//! Every text in it is bounded when it is made, because most of them are
//! chosen by code inside a sandbox. A field without a value is not written.

mod digest;
mod kind;
mod run_id;
mod text;
mod time;
mod version;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use digest::Digest;
pub use kind::{
    CloseReason, Closed, ConnectionId, Decided, Group, Process, Protocol, Subject, Summary,
    Verdict, Via,
};
pub use run_id::{RunId, RunIdError, RunPrefix, RunPrefixError};
pub use text::{HostText, MethodText, PathText, ReasonCode, SandboxText, Text};
pub use time::{Timestamp, TimestampError};
pub use version::FormatVersion;

/// One line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The version of this format.
    pub version: FormatVersion,
    /// When it happened.
    pub time: Timestamp,
    /// The run it happened in.
    pub run: RunId,
    /// The name of the sandbox, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxText>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// What came of it; the end of a connection is that of an allowed one.
    pub fn verdict(&self) -> Verdict {
        match &self.kind {
            EventKind::Decision(decided) => decided.verdict,
            EventKind::Closed(_) => Verdict::Allowed,
            EventKind::Summary(summary) => summary.group.verdict,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventKind {
    /// A connection or a request was judged; written before the verdict takes
    /// effect.
    Decision(Decided),
    /// An allowed connection ended.
    Closed(Closed),
    /// Events that were counted and not written one by one.
    Summary(Summary),
}

/// The JSON Schema of [`Event`].
pub fn event_schema() -> serde_json::Value {
    schemars::schema_for!(Event).to_value()
}
