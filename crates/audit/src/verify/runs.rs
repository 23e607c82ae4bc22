//! The records of each run, and whether its seal fits them.

use std::collections::HashMap;

use serde::Serialize;

use crate::chain::{Key, Record};
use crate::event::{Digest, EventKind, Life, RunId, Sealed, Supervisor};

/// The most runs that are kept apart, and told.
const MOST_RUNS: usize = 1 << 20;
const MOST_TOLD: usize = 1000;

/// A run without its last record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unsealed {
    /// The run.
    pub run: RunId,
    /// Whether it still goes on; if not, it was killed.
    pub life: Life,
    /// How many records of it there are.
    pub records: u64,
}

#[derive(Debug, Default)]
struct Tally {
    records: u64,
    last: Option<Digest>,
    is_sealed: bool,
    has_start: bool,
    supervisor: Option<Supervisor>,
    first_seq: u64,
}

/// What a record means for its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Fine,
    /// It comes after the seal.
    AfterSeal,
    WrongSeal,
}

/// The runs of a log.
#[derive(Debug)]
pub(super) struct Runs {
    tallies: HashMap<RunId, Tally>,
    key: Option<Key>,
    /// Whether the log has its first record, and so all of them.
    pub(super) is_complete: bool,
}

impl Runs {
    pub(super) fn new(key: Option<Key>) -> Self {
        Self {
            tallies: HashMap::new(),
            key,
            is_complete: false,
        }
    }

    /// Adds a record.
    pub(super) fn add(
        &mut self,
        (run, seq, kind): (RunId, u64, &str),
        line: &[u8],
        hash: Digest,
    ) -> Standing {
        if self.tallies.len() >= MOST_RUNS && !self.tallies.contains_key(&run) {
            return Standing::Fine;
        }
        let tally = self.tallies.entry(run).or_insert(Tally {
            first_seq: seq,
            ..Tally::default()
        });
        if tally.is_sealed {
            return Standing::AfterSeal;
        }
        if kind == "sealed" {
            tally.is_sealed = true;
            return match parsed(line) {
                Some(EventKind::Sealed(sealed)) if self.fits(run, &sealed) => Standing::Fine,
                _ => Standing::WrongSeal,
            };
        }
        if kind == "run-started" {
            tally.has_start = true;
            if let Some(EventKind::RunStarted(started)) = parsed(line) {
                tally.supervisor = started.supervisor;
            }
        }
        tally.records += 1;
        tally.last = Some(hash);
        Standing::Fine
    }

    /// Whether a seal fits what was seen. Of a run whose first records were
    /// rotated away, there are fewer; if all were, there is nothing to fit.
    fn fits(&self, run: RunId, sealed: &Sealed) -> bool {
        let Some(tally) = self.tallies.get(&run) else {
            return false;
        };
        let may_lack = !self.is_complete && !tally.has_start;
        let fits_number =
            tally.records == sealed.records || (may_lack && tally.records < sealed.records);
        let last = match tally.last {
            Some(last) => last,
            None if may_lack && sealed.records > 0 => return true,
            None => Digest::ZEROS,
        };
        let expected = |key: &Key| key.of_seal(run, sealed.records, last) == sealed.mac;
        fits_number && self.key.as_ref().is_none_or(expected)
    }

    /// How many are sealed, and those that are not, in the order of the log.
    pub(super) fn finish(self) -> (u64, Vec<Unsealed>) {
        let sealed = self
            .tallies
            .values()
            .filter(|tally| tally.is_sealed)
            .count();
        let mut open: Vec<(RunId, Tally)> = self
            .tallies
            .into_iter()
            .filter(|(_, tally)| !tally.is_sealed)
            .collect();
        open.sort_by_key(|(_, tally)| tally.first_seq);
        let unsealed = open
            .into_iter()
            .take(MOST_TOLD)
            .map(|(run, tally)| Unsealed {
                run,
                life: tally.supervisor.map_or(Life::Unknown, |it| it.life()),
                records: tally.records,
            });
        (sealed as u64, unsealed.collect())
    }
}

fn parsed(line: &[u8]) -> Option<EventKind> {
    let record: Record = serde_json::from_slice(line).ok()?;
    Some(record.event.kind)
}
