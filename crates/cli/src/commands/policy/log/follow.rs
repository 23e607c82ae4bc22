//! Events one by one, as they come.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZeroUsize;

use ringfence_audit::{Closed, Decided, Event, EventKind, Follower, Group, Records, Summary};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{LogArgs, folder, tell_skipped};
use crate::error::Failure;
use crate::output;

/// How long to wait before looking again.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Whether somebody still reads what we print.
#[derive(PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Follows the log until nobody reads the output any more.
pub(super) fn main(arguments: &LogArgs) -> Result<(), Failure> {
    let (past, mut follower) = start(arguments)?;
    let mut fresh: Vec<Event> = past.into();
    let mut skipped = 0;
    loop {
        if print(&fresh, arguments.json) == Reader::Gone {
            return Ok(());
        }
        tell_skipped(follower.skipped() - skipped);
        skipped = follower.skipped();
        if fresh.is_empty() && wait() == Reader::Gone {
            return Ok(());
        }
        fresh = follower.poll()?;
    }
}

/// The older events that were asked for, and what comes after them.
fn start(arguments: &LogArgs) -> Result<(VecDeque<Event>, Follower), Failure> {
    let folder = folder()?;
    if arguments.since.is_none() && arguments.limit.is_none() {
        let follower = Follower::open(&folder, arguments.filter())?;
        return Ok((VecDeque::new(), follower));
    }
    let most = arguments.limit.map_or(usize::MAX, NonZeroUsize::get);
    let mut records = Records::open(&folder, arguments.filter())?;
    let mut past = VecDeque::new();
    for event in records.by_ref() {
        if past.len() == most {
            past.pop_front();
        }
        past.push_back(event?);
    }
    Ok((past, records.follow()))
}

fn print(events: &[Event], json: bool) -> Reader {
    let mut out = io::stdout().lock();
    let written = events.iter().try_for_each(|event| {
        let line = if json {
            serde_json::to_string(event).unwrap_or_default()
        } else {
            output::printable(&line(event))
        };
        writeln!(out, "{line}")
    });
    match written.and_then(|()| out.flush()) {
        Ok(()) => Reader::There,
        Err(_) => Reader::Gone,
    }
}

/// Waits a moment, or until the reading end of a pipe is closed.
fn wait() -> Reader {
    let out = io::stdout();
    let mut watched = [PollFd::new(&out, PollFlags::empty())];
    match poll(&mut watched, Some(&PAUSE)) {
        Ok(count) if count > 0 => Reader::Gone,
        _ => Reader::There,
    }
}

/// An event as people read it.
fn line(event: &Event) -> String {
    let what = match &event.kind {
        EventKind::Decision(decided) => decision(decided),
        EventKind::Closed(closed) => end(closed),
        EventKind::Summary(summary) => counted(summary),
    };
    format!("{}  {what}", event.time.to_seconds())
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

fn counted(summary: &Summary) -> String {
    let times = format!("{} more", summary.count);
    with_rule(&summary.group, &times)
}

/// `refused  a.example.org:443 (connect) GET /: not-in-allowlist, rule …`
fn with_rule(group: &Group, detail: &str) -> String {
    let mut line = format!("{}  {}", group.verdict.as_str(), destination(group));
    if !detail.is_empty() {
        line.extend([" ", detail]);
    }
    if let Some(reason) = &group.reason {
        line.extend([": ", reason.as_str()]);
    }
    if let Some(rule) = &group.rule {
        line.extend([", rule ", rule.as_str()]);
    }
    line
}

fn destination(group: &Group) -> String {
    let host = group.destination().unwrap_or_else(|| "others".to_owned());
    match group.via {
        Some(via) => format!("{host} ({})", via.as_str()),
        None => host,
    }
}
