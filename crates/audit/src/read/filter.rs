//! [`Filter`]: which events are wanted.

use crate::event::{Event, EventKind, RunPrefix, Timestamp, Verdict};

/// Which events are wanted: those that fit everything that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Not before this. A summary counts until its last event.
    pub since: Option<Timestamp>,
    /// Of this run.
    pub run: Option<RunPrefix>,
    /// Of the sandbox with this name.
    pub sandbox: Option<String>,
    /// With this verdict.
    pub verdict: Option<Verdict>,
}

impl Filter {
    /// Whether `event` fits.
    pub fn matches(&self, event: &Event) -> bool {
        self.since.is_none_or(|since| last_time(event) >= since)
            && self.run.as_ref().is_none_or(|run| run.matches(event.run))
            && self
                .sandbox
                .as_deref()
                .is_none_or(|name| has_name(event, name))
            && self
                .verdict
                .is_none_or(|verdict| event.verdict() == verdict)
    }
}

fn has_name(event: &Event, name: &str) -> bool {
    event
        .sandbox
        .as_ref()
        .is_some_and(|own| own.as_str() == name)
}

fn last_time(event: &Event) -> Timestamp {
    match &event.kind {
        EventKind::Summary(summary) => summary.last,
        EventKind::Calls(counted) => counted.last,
        _ => event.time,
    }
}
