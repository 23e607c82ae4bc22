//! Events one by one, as they come.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use ringfence_audit::{EventKind, Follower, Record, Records, Subject};

use super::LogArgs;
use crate::commands::audit::{folder, stream};
use crate::error::Failure;

/// Follows the log until nobody reads the output any more.
pub(super) fn main(arguments: &LogArgs) -> Result<(), Failure> {
    let (past, follower) = start(arguments)?;
    stream::follow(past.into(), follower, arguments.json, is_about_the_network)
}

/// The older events that were asked for, and what comes after them.
fn start(arguments: &LogArgs) -> Result<(VecDeque<Record>, Follower), Failure> {
    let folder = folder()?;
    if arguments.since.is_none() && arguments.limit.is_none() {
        let follower = Follower::open(&folder, arguments.filter(&folder)?)?;
        return Ok((VecDeque::new(), follower));
    }
    let most = arguments.limit.map_or(usize::MAX, NonZeroUsize::get);
    let records = Records::open(&folder, arguments.filter(&folder)?)?;
    stream::last(records, most, is_about_the_network)
}

/// Whether a record is one of those that this command shows.
fn is_about_the_network(record: &Record) -> bool {
    match &record.event.kind {
        EventKind::Decision(_) | EventKind::Closed(_) => true,
        EventKind::Summary(summary) => summary.group.of != Subject::Call,
        _ => false,
    }
}
