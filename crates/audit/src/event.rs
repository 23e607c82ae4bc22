//! [`Event`]: what a record of the audit log tells, whatever happened.
//!
//! Every text in it is bounded when it is made, because most of them are
//! chosen by code inside a sandbox. A field without a value is not written.

mod argument;
mod call;
mod digest;
mod error_name;
mod group;
mod kind;
mod run;
mod run_id;
mod supervisor;
mod text;
mod texts;
mod time;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use argument::{ArgumentText, Arguments, command_line};
pub use call::{Action, Call, CallCount, CallText, Outcome, Paths};
pub use digest::Digest;
pub use error_name::ErrorName;
pub use group::{Group, Subject, Summary};
pub use kind::{CloseReason, Closed, ConnectionId, Decided, Process, Protocol, Verdict, Via};
pub use run::{
    BreakReason, ChainBroken, LimitReached, LimitSet, Peak, Reduced, RunEnded, RunStarted, Sealed,
    WordText,
};
pub use run_id::{RunId, RunIdError, RunPrefix, RunPrefixError};
pub use supervisor::{Life, Supervisor};
pub(crate) use text::{CUT, without_unseen};
pub use text::{HostText, MethodText, PathText, ReasonCode, SandboxText, Text};
pub use time::{Timestamp, TimestampError};

/// What a record tells. Its first fields have a fixed place in a line, so that
/// a reader finds them without reading the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When it happened.
    pub time: Timestamp,
    /// The run it happened in.
    pub run: RunId,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The name of the sandbox, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxText>,
}

impl Event {
    /// What came of it. What is neither is allowed: it happened.
    pub fn verdict(&self) -> Verdict {
        match &self.kind {
            EventKind::Decision(decided) => decided.verdict,
            EventKind::Call(call) => call.verdict(),
            EventKind::Summary(summary) => summary.group.verdict,
            EventKind::LimitHit(_) => Verdict::Refused,
            EventKind::Closed(_)
            | EventKind::RunStarted(_)
            | EventKind::Calls(_)
            | EventKind::RunEnded(_)
            | EventKind::Sealed(_)
            | EventKind::ChainBroken(_) => Verdict::Allowed,
        }
    }

    /// What came of it, as tables have it.
    pub fn word(&self) -> &'static str {
        match &self.kind {
            EventKind::Call(call) => call.outcome.as_str(),
            EventKind::Summary(summary) => summary.group.word(),
            _ => self.verdict().as_str(),
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventKind {
    /// A run begins; written before its command starts.
    RunStarted(RunStarted),
    /// A connection or a request was judged; written before the verdict takes
    /// effect.
    Decision(Decided),
    /// An allowed connection ended.
    Closed(Closed),
    /// A call to the kernel.
    Call(Call),
    /// Calls to the kernel that are only counted.
    Calls(CallCount),
    /// Events that were counted and not written one by one.
    Summary(Summary),
    /// A limit was reached.
    LimitHit(LimitReached),
    /// A run has ended.
    RunEnded(RunEnded),
    /// The last record of a run.
    Sealed(Sealed),
    /// The log was found not to be as it was left.
    ChainBroken(ChainBroken),
}
