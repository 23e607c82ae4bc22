//! One event as people read it, in one line.

use super::amount::amount;
use crate::event::{
    Call, Closed, Decided, Event, EventKind, Group, LimitReached, Outcome, ReasonCode, RunEnded,
    Subject, Summary,
};

/// An event in one line, without its time.
pub fn line_of(event: &Event) -> String {
    match &event.kind {
        EventKind::RunStarted(started) => format!("started  {}", started.command),
        EventKind::Decision(decided) => decision(decided),
        EventKind::Closed(closed) => end(closed),
        EventKind::Call(made) => call(made),
        EventKind::Calls(counted) => format!("counted  {} {}", counted.call, counted.count),
        EventKind::Summary(summary) => summarized(summary),
        EventKind::LimitHit(hit) => limit_hit(hit),
        EventKind::RunEnded(ended) => run_end(ended),
        EventKind::Sealed(sealed) => format!("sealed   {} records", sealed.records),
        EventKind::ChainBroken(broken) => format!(
            "BROKEN   {} after record {}",
            broken.why.as_str(),
            broken.after_seq
        ),
    }
}

fn limit_hit(hit: &LimitReached) -> String {
    let configured = amount(hit.configured, hit.unit.as_str());
    format!(
        "limit    {} of {configured} ({}): {}",
        hit.limit, hit.mechanism, hit.evidence
    )
}

fn run_end(ended: &RunEnded) -> String {
    let duration = amount(ended.duration_ms, "milliseconds");
    format!(
        "ended    {} with {} after {duration}, {} refused",
        ended.reason, ended.code, ended.refusals
    )
}

fn decision(decided: &Decided) -> String {
    let request = [
        decided.method.as_ref().map(ToString::to_string),
        decided.path.as_ref().map(ToString::to_string),
    ];
    let request: Vec<String> = request.into_iter().flatten().collect();
    with_rule(&Group::of_decision(decided), &request.join(" "))
}

fn end(closed: &Closed) -> String {
    let group = Group::of_closed(closed);
    format!(
        "closed   {}: {}, {} bytes up, {} bytes down, {} ms",
        destination(&group),
        closed.why.as_str(),
        closed.bytes_up,
        closed.bytes_down,
        closed.duration_ms
    )
}

fn call(call: &Call) -> String {
    let named = if call.argv.is_empty() {
        call.subject()
    } else {
        call.argv.to_string()
    };
    let error = call.outcome.error().map(|error| format!(": {error}"));
    let rule = call.rule.as_ref().map(|rule| format!(", rule {rule}"));
    format!(
        "{:<7}  {} {named} ({}, pid {}){}{}",
        call.outcome.as_str(),
        call.action.as_str(),
        call.call,
        call.pid,
        error.unwrap_or_default(),
        rule.unwrap_or_default()
    )
}

fn summarized(summary: &Summary) -> String {
    let times = format!("{} more", summary.count);
    with_rule(&summary.group, &times)
}

/// `refused  a.example.org:443 (connect) GET /: not-in-allowlist, rule …`
fn with_rule(group: &Group, detail: &str) -> String {
    let mut line = format!("{:<7}  {}", group.word(), destination(group));
    if !detail.is_empty() {
        line.extend([" ", detail]);
    }
    let error = group.outcome.as_ref().and_then(Outcome::error);
    if let Some(reason) = group.reason.as_ref().map(ReasonCode::as_str).or(error) {
        line.extend([": ", reason]);
    }
    if let Some(rule) = &group.rule {
        line.extend([", rule ", rule.as_str()]);
    }
    line
}

fn destination(group: &Group) -> String {
    if group.of == Subject::Call {
        let action = group.action.map_or("call", |action| action.as_str());
        let place = group
            .place
            .as_ref()
            .map_or("others", |place| place.as_str());
        return match &group.call {
            Some(call) => format!("{action} {place} ({call})"),
            None => format!("{action} {place}"),
        };
    }
    let host = group.destination().unwrap_or_else(|| "others".to_owned());
    match group.via {
        Some(via) => format!("{host} ({})", via.as_str()),
        None => host,
    }
}
