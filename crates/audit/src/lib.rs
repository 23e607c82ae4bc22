//! What code in a sandbox tried and what came of it: the types of events, the
//! append-only log, its readers, and bounded collections for reports.
//!
//! A decision is recorded before it takes effect. [`Log`] is the only writer.
#![forbid(unsafe_code)]

mod event;
mod log;
mod read;
mod recorder;
mod refusal;

pub use event::{
    CloseReason, Closed, ConnectionId, Decided, Digest, Event, EventKind, FormatVersion, Group,
    HostText, MethodText, PathText, Process, Protocol, ReasonCode, RunId, RunIdError, RunPrefix,
    RunPrefixError, SandboxText, Subject, Summary, Text, Timestamp, TimestampError, Verdict, Via,
    event_schema,
};
pub use log::{Log, LogError, Rotation};
pub use read::{Filter, Follower, Grouped, ReadError, Records, Sightings};
pub use recorder::{Clock, Moment, Observer, Recorder, SystemClock, Totals, Traffic};
pub use refusal::{Refusal, RefusalKind, Refusals};
