//! A record as a row of a table.

use crate::chain::Record;
use crate::event::{EventKind, Group, Outcome};
use crate::story::line_of;

pub(super) const TITLES: [&str; 12] = [
    "seq",
    "time",
    "run",
    "sandbox",
    "kind",
    "verdict",
    "action",
    "subject",
    "reason",
    "rule",
    "count",
    "description",
];

/// The cells of a record, by the titles.
pub(super) fn cells(record: &Record) -> Vec<String> {
    let event = &record.event;
    let about = About::of(&event.kind);
    vec![
        record.seq.to_string(),
        event.time.to_string(),
        event.run.to_string(),
        event
            .sandbox
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        about.kind.to_owned(),
        event.word().to_owned(),
        about.action,
        about.subject,
        about.reason,
        about.rule,
        about.count.to_string(),
        line_of(event),
    ]
}

/// What a record is about.
struct About {
    kind: &'static str,
    action: String,
    subject: String,
    reason: String,
    rule: String,
    count: u64,
}

impl About {
    fn new(kind: &'static str, action: &str, subject: String) -> Self {
        Self {
            kind,
            action: action.to_owned(),
            subject,
            reason: String::new(),
            rule: String::new(),
            count: 1,
        }
    }

    fn of(kind: &EventKind) -> Self {
        match kind {
            EventKind::RunStarted(started) => {
                Self::new("run-started", "run", started.command.to_string())
            }
            EventKind::Decision(decided) => {
                Self::of_group("decision", &Group::of_decision(decided), 1)
            }
            EventKind::Closed(closed) => Self {
                reason: closed.why.as_str().to_owned(),
                ..Self::of_group("closed", &Group::of_closed(closed), 1)
            },
            EventKind::Call(call) => Self {
                subject: call.subject(),
                ..Self::of_group("call", &Group::of_call(call), 1)
            },
            EventKind::Calls(counted) => Self {
                count: counted.count,
                ..Self::new("calls", "call", counted.call.to_string())
            },
            EventKind::Summary(summary) => Self::of_group("summary", &summary.group, summary.count),
            EventKind::LimitHit(hit) => Self {
                reason: hit.evidence.to_string(),
                rule: format!("{} {}", hit.configured, hit.unit),
                ..Self::new("limit-hit", "limit", hit.limit.to_string())
            },
            EventKind::RunEnded(ended) => Self {
                reason: ended.reason.to_string(),
                ..Self::new("run-ended", "run", ended.code.to_string())
            },
            EventKind::Sealed(sealed) => Self {
                count: sealed.records,
                ..Self::new("sealed", "run", String::new())
            },
            EventKind::ChainBroken(broken) => Self {
                reason: broken.why.as_str().to_owned(),
                ..Self::new("chain-broken", "log", String::new())
            },
        }
    }

    fn of_group(kind: &'static str, group: &Group, count: u64) -> Self {
        let action = group.action.map_or("connect", |action| action.as_str());
        let place = group.place.as_ref().map(ToString::to_string);
        let error = group.outcome.as_ref().and_then(Outcome::error);
        let error = error.map(str::to_owned);
        let text = |it: Option<String>| it.unwrap_or_default();
        Self {
            reason: text(group.reason.as_ref().map(ToString::to_string).or(error)),
            rule: text(group.rule.as_ref().map(ToString::to_string)),
            count,
            ..Self::new(kind, action, text(place.or_else(|| group.destination())))
        }
    }
}
