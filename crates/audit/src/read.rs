//! Reading the log: all files from the oldest on, and then what is added.
//!
//! A line that is no record, because it is torn, foreign or newer than this
//! program, is counted and passed over.

mod cursor;
mod filter;
mod grouped;
mod lines;
mod runs;

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::chain::Record;

use cursor::Cursor;
pub use filter::Filter;
pub use grouped::{Grouped, Sightings};
pub use runs::{RunSummary, runs};

/// The most records that [`Follower::poll`] returns at once.
const BATCH: usize = 1024;

/// Why the log cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {}: {error}", .path.display())]
pub struct ReadError {
    /// The folder or the file.
    pub path: PathBuf,
    /// Why.
    pub error: Errno,
}

impl ReadError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        "audit-log-unreadable"
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "check that you may read it, or set XDG_STATE_HOME to where your log is"
    }
}

/// The records that are in the log, oldest first.
#[derive(Debug)]
pub struct Records {
    cursor: Cursor,
    filter: Filter,
}

impl Records {
    /// Reads the log in `folder`. A folder that is missing has no records.
    pub fn open(folder: &Path, filter: Filter) -> Result<Self, ReadError> {
        let cursor = Cursor::at_start(folder)?;
        Ok(Self { cursor, filter })
    }

    /// How many lines so far were no records.
    pub fn skipped(&self) -> u64 {
        self.cursor.skipped()
    }

    /// What comes after those that were read.
    pub fn follow(self) -> Follower {
        Follower {
            cursor: self.cursor,
            filter: self.filter,
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_match(&mut self.cursor, &self.filter).transpose()
    }
}

/// The records that are added to the log, through its rotations.
#[derive(Debug)]
pub struct Follower {
    cursor: Cursor,
    filter: Filter,
}

impl Follower {
    /// Starts at the end of the log in `folder`, which may not exist yet.
    pub fn open(folder: &Path, filter: Filter) -> Result<Self, ReadError> {
        let cursor = Cursor::at_end(folder)?;
        Ok(Self { cursor, filter })
    }

    /// What was added since the last call, without waiting. There may be more
    /// at once unless it is empty.
    pub fn poll(&mut self) -> Result<Vec<Record>, ReadError> {
        let mut records = Vec::new();
        while records.len() < BATCH {
            match next_match(&mut self.cursor, &self.filter)? {
                Some(record) => records.push(record),
                None if self.cursor.look_for_newer()? => {}
                None => break,
            }
        }
        Ok(records)
    }

    /// How many lines so far were no records.
    pub fn skipped(&self) -> u64 {
        self.cursor.skipped()
    }
}

fn next_match(cursor: &mut Cursor, filter: &Filter) -> Result<Option<Record>, ReadError> {
    while let Some(record) = cursor.next_record(filter.run.as_ref())? {
        if filter.matches(&record.event) {
            return Ok(Some(record));
        }
    }
    Ok(None)
}
