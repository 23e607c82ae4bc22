//! Records one by one, as they come.

use std::collections::VecDeque;
use std::io::{self, Write};

use ringfence_audit::{Follower, Record, Records, line_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::tell_skipped;
use crate::error::Failure;
use crate::output;

/// How long to wait before looking again.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Whether somebody still reads what we print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Which records are shown.
type Shown = fn(&Record) -> bool;

/// Prints `past` and then what comes, until nobody reads the output any more.
pub(crate) fn follow(
    past: Vec<Record>,
    mut follower: Follower,
    json: bool,
    is_shown: Shown,
) -> Result<(), Failure> {
    let mut fresh = past;
    let mut skipped = 0;
    loop {
        let is_idle = fresh.is_empty();
        fresh.retain(is_shown);
        if print(&fresh, json) == Reader::Gone {
            return Ok(());
        }
        tell_skipped(follower.skipped() - skipped);
        skipped = follower.skipped();
        if is_idle && wait() == Reader::Gone {
            return Ok(());
        }
        fresh = follower.poll()?;
    }
}

/// The last `most` records, and what comes after them.
pub(crate) fn last(
    mut records: Records,
    most: usize,
    is_shown: Shown,
) -> Result<(VecDeque<Record>, Follower), Failure> {
    let mut past = VecDeque::new();
    for record in records.by_ref() {
        let record = record?;
        if !is_shown(&record) {
            continue;
        }
        if past.len() == most {
            past.pop_front();
        }
        past.push_back(record);
    }
    Ok((past, records.follow()))
}

/// Prints records, as JSON or for people.
pub(crate) fn print(records: &[Record], json: bool) -> Reader {
    let mut out = io::stdout().lock();
    let written = records.iter().try_for_each(|record| {
        let line = if json {
            serde_json::to_string(record).unwrap_or_default()
        } else {
            output::printable(&line(record))
        };
        writeln!(out, "{line}")
    });
    match written.and_then(|()| out.flush()) {
        Ok(()) => Reader::There,
        Err(_) => Reader::Gone,
    }
}

fn line(record: &Record) -> String {
    let event = &record.event;
    format!("{}  {}", event.time.to_seconds(), line_of(event))
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
