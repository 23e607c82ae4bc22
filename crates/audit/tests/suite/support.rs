//! Made-up events, a clock that a test moves, and logs read back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ringfence_audit::{
    Clock, CloseReason, Closed, ConnectionId, Decided, Digest, Event, EventKind, Filter,
    FormatVersion, HostText, Moment, Protocol, ReasonCode, Record, Records, RunId, Timestamp,
    Verdict, Via,
};

pub(crate) const RUN: RunId = RunId::from_bits(0x5eed);

/// 2026-01-02T03:04:05Z.
pub(crate) fn start() -> Timestamp {
    Timestamp::from_micros(1_767_323_045_000_000)
}

/// A refusal of `host` on port 443.
pub(crate) fn refused(host: &str) -> Decided {
    Decided {
        connection: ConnectionId(1),
        process: None,
        via: Via::Transparent,
        host: Some(HostText::new(host)),
        address: None,
        port: 443,
        protocol: Protocol::Tls,
        method: None,
        path: None,
        verdict: Verdict::Refused,
        reason: ReasonCode::new("not-in-allowlist"),
        rule: None,
        source: None,
        credential: None,
    }
}

pub(crate) fn allowed(host: &str) -> Decided {
    Decided {
        verdict: Verdict::Allowed,
        reason: ReasonCode::new("allowed-by-rule"),
        rule: Some(host.into()),
        ..refused(host)
    }
}

pub(crate) fn closed(host: &str, bytes_up: u64, bytes_down: u64) -> Closed {
    Closed {
        connection: ConnectionId(1),
        via: Via::Transparent,
        host: Some(HostText::new(host)),
        address: None,
        port: 443,
        bytes_up,
        bytes_down,
        duration_ms: 12,
        why: CloseReason::Finished,
    }
}

pub(crate) fn event(kind: EventKind) -> Event {
    Event {
        time: start(),
        run: RUN,
        sandbox: None,
        kind,
    }
}

/// A line that tells of `event`, as the first of a log.
pub(crate) fn line(event: &Event) -> String {
    let record = Record {
        version: FormatVersion,
        seq: 1,
        prev: Digest::ZEROS,
        event: event.clone(),
    };
    serde_json::to_string(&record).unwrap()
}

/// The `number`th decision of `writer`.
pub(crate) fn numbered(writer: u64, number: u64) -> Event {
    let decided = Decided {
        connection: ConnectionId(number),
        ..refused(&format!("w{writer}.example.org"))
    };
    event(EventKind::Decision(decided))
}

/// The events of a log, and how many lines are none.
pub(crate) fn read(folder: &Path) -> (Vec<Event>, u64) {
    let mut records = Records::open(folder, Filter::default()).unwrap();
    let events = records.by_ref().map(|record| record.unwrap().event);
    let events = events.collect();
    (events, records.skipped())
}

/// The connection that a decision is about.
pub(crate) fn connection(event: &Event) -> u64 {
    match &event.kind {
        EventKind::Decision(decided) => decided.connection.0,
        other => panic!("no decision: {other:?}"),
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicU64>);

impl TestClock {
    pub(crate) fn advance(&self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap();
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        let steady = Duration::from_micros(self.0.load(Ordering::Relaxed));
        Moment {
            wall: start().plus(steady),
            steady,
        }
    }
}
