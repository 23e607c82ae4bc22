//! [`Batch`]: records that are written together.

use std::collections::HashMap;

use super::error::LogError;
use crate::chain::{End, Key, sum, write_header};
use crate::event::{Digest, Event, EventKind, RunId, Sealed};

/// What was written of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    records: u64,
    last: Digest,
}

/// Tallies by run: one log has one, but for tests.
pub(super) type Tallies = HashMap<RunId, Tally>;

/// Lines to be appended, and where the log ends with them.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) lines: Vec<u8>,
    pub(super) end: End,
    pub(super) tallies: Tallies,
}

impl Batch {
    pub(super) fn new(end: End, tallies: Tallies) -> Self {
        Self {
            lines: Vec::new(),
            end,
            tallies,
        }
    }

    /// Ends a line that was left torn.
    pub(super) fn end_torn_line(&mut self) {
        self.lines.push(b'\n');
        self.end.length += 1;
    }

    pub(super) fn push(&mut self, event: &Event) -> Result<(), LogError> {
        let start = self.lines.len();
        let seq = self.end.seq.saturating_add(1);
        write_header(&mut self.lines, seq, self.end.hash);
        // The event's opening brace is in the place of the comma.
        let comma = self.lines.len() - 1;
        self.lines.truncate(comma);
        serde_json::to_writer(&mut self.lines, event).map_err(|_| LogError::Encode)?;
        self.lines[comma] = b',';
        self.lines.push(b'\n');
        let line = &self.lines[start..];
        self.end = End {
            seq,
            hash: sum(line),
            length: self.end.length + line.len() as u64,
        };
        let tally = self.tallies.entry(event.run).or_insert(Tally {
            records: 0,
            last: Digest::ZEROS,
        });
        tally.records += 1;
        tally.last = self.end.hash;
        Ok(())
    }

    /// Adds the last record of a run.
    pub(super) fn seal(&mut self, like: &Event, key: &Key) -> Result<(), LogError> {
        let tally = self.tallies.get(&like.run).copied();
        let (records, last) = tally.map_or((0, Digest::ZEROS), |it| (it.records, it.last));
        let sealed = Sealed {
            records,
            mac: key.of_seal(like.run, records, last),
        };
        self.push(&Event {
            kind: EventKind::Sealed(sealed),
            ..like.clone()
        })
    }
}
