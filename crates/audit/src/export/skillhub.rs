//! A record as a row of a skillhub's table `audit_log`.

use serde_json::Value;

use crate::chain::Record;
use crate::event::{Action, EventKind, Subject, Verdict};

/// All columns but `id`, which the database gives.
pub(super) const TITLES: [&str; 9] = [
    "actor_user_id",
    "action",
    "target_type",
    "target_id",
    "request_id",
    "client_ip",
    "user_agent",
    "detail_json",
    "created_at",
];

const USER_AGENT: &str = concat!("ringfence/", env!("CARGO_PKG_VERSION"));

/// The cells of a record, by the titles; none of what that table has no word
/// for.
pub(super) fn cells(record: &Record) -> Option<Vec<String>> {
    let action = action_of(&record.event.kind)?;
    Some(vec![
        String::new(),
        action.to_owned(),
        "SKILL_VERSION".to_owned(),
        String::new(),
        record.event.run.to_string(),
        String::new(),
        USER_AGENT.to_owned(),
        detail(record)?,
        record.event.time.to_string(),
    ])
}

fn action_of(kind: &EventKind) -> Option<&'static str> {
    match kind {
        EventKind::RunStarted(_) => Some("SANDBOX_RUN_STARTED"),
        EventKind::RunEnded(_) => Some("SANDBOX_RUN_FINISHED"),
        EventKind::LimitHit(_) => Some("SANDBOX_QUOTA_EXCEEDED"),
        EventKind::Decision(decided) => Some(egress(decided.verdict)),
        EventKind::Call(call) => refused_call(call.verdict(), call.action),
        EventKind::Summary(summary) => match summary.group.of {
            Subject::Decision => Some(egress(summary.group.verdict)),
            Subject::Call => refused_call(summary.group.verdict, summary.group.action?),
            Subject::Closed => None,
        },
        EventKind::Closed(_)
        | EventKind::Calls(_)
        | EventKind::Sealed(_)
        | EventKind::ChainBroken(_) => None,
    }
}

fn egress(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "SANDBOX_EGRESS_ALLOWED",
        Verdict::Refused => "SANDBOX_EGRESS_DENIED",
    }
}

fn refused_call(verdict: Verdict, action: Action) -> Option<&'static str> {
    match (verdict, action) {
        (Verdict::Allowed, _) => None,
        (Verdict::Refused, Action::Connect) => Some(egress(Verdict::Refused)),
        (Verdict::Refused, action) if action.is_about_files() => Some("SANDBOX_FILE_DENIED"),
        (Verdict::Refused, _) => Some("SANDBOX_SYSCALL_DENIED"),
    }
}

/// Everything that has no column of its own.
fn detail(record: &Record) -> Option<String> {
    let mut value = serde_json::to_value(record).ok()?;
    if let Value::Object(fields) = &mut value {
        for name in ["version", "prev", "time", "run"] {
            fields.remove(name);
        }
    }
    serde_json::to_string(&value).ok()
}
