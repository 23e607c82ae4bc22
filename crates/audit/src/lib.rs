//! What code in a sandbox tried and what came of it: the types of events, the
//! append-only log, its readers, and bounded collections for reports.
//!
//! A decision is recorded before it takes effect. [`Log`] is the only writer.
#![forbid(unsafe_code)]

mod chain;
mod event;
mod export;
mod log;
mod read;
mod recorder;
mod redact;
mod refusal;
mod story;
mod verify;

pub use chain::{FormatVersion, Record, event_schema};
pub use event::{
    Action, ArgumentText, Arguments, BreakReason, Call, CallCount, CallText, ChainBroken,
    CloseReason, Closed, ConnectionId, Decided, Digest, ErrorName, Event, EventKind, Group,
    HostText, Life, LimitReached, LimitSet, MethodText, Outcome, PathText, Paths, Peak, Process,
    Protocol, ReasonCode, Reduced, RunEnded, RunId, RunIdError, RunPrefix, RunPrefixError,
    RunStarted, SandboxText, Sealed, Subject, Summary, Supervisor, Text, Timestamp, TimestampError,
    Verdict, Via, WordText, command_line,
};
pub use export::{ExportFormat, Exporter};
pub use log::{Log, LogError, Rotation, Stamp};
pub use read::{Filter, Follower, Grouped, ReadError, Records, RunSummary, Sightings, runs};
pub use recorder::{Clock, Moment, Observer, Recorder, SystemClock, Totals, Traffic};
pub use refusal::{Refusal, RefusalKind, Refusals};
pub use story::{
    ConnectionLine, FileLine, LimitLine, ProgramLine, RefusalLine, SeenLine, Story, amount, line_of,
};
pub use verify::{
    Noted, NotedError, Place, Problem, ProblemKind, Unsealed, Verification, verify, verify_with,
};
