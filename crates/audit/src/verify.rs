//! Whether the log is as it was written.
//!
//! The chain finds what was changed, taken out or put in between; the head,
//! which needs the key, finds what was cut off or added at the end; the seal of
//! a run finds what was added to it. Who has the key can forge all of it.

mod noted;
mod problem;
mod runs;
mod scan;
mod snapshot;

use std::path::Path;

use serde::Serialize;

use crate::event::Digest;
use crate::log::full;
use crate::read::ReadError;

pub use noted::{Noted, NotedError};
pub use problem::{Place, Problem, ProblemKind};
pub use runs::Unsealed;
use scan::Scan;
use snapshot::Snapshot;

/// What a check of the log has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// How many records there are.
    pub records: u64,
    /// In how many files.
    pub files: usize,
    /// The number of the first record; more than 1 where older ones were
    /// rotated away.
    pub first_seq: Option<u64>,
    /// The number of the last record.
    pub last_seq: Option<u64>,
    /// The sum of its line. Who notes both elsewhere can tell later whether the
    /// log up to there is still the same.
    pub last_sum: Option<Digest>,
    /// How many runs have all of their records vouched for.
    pub sealed_runs: u64,
    /// Runs whose last record is missing.
    pub unsealed_runs: Vec<Unsealed>,
    /// What is wrong, the first place first.
    pub problems: Vec<Problem>,
    /// What else is wrong, beyond those.
    pub more_problems: u64,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn is_fine(&self) -> bool {
        self.problems.is_empty()
    }

    /// The last record, to be noted elsewhere.
    pub fn last(&self) -> Option<Noted> {
        let (seq, sum) = self.last_seq.zip(self.last_sum)?;
        Some(Noted { seq, sum })
    }
}

/// Checks the log in `folder`. Others may write to it meanwhile: what is
/// checked is what was there at the start. A folder that is missing is fine.
pub fn verify(folder: &Path) -> Result<Verification, ReadError> {
    verify_with(folder, None)
}

/// The same, and that the log still has a record that was noted elsewhere.
pub fn verify_with(folder: &Path, noted: Option<Noted>) -> Result<Verification, ReadError> {
    let mut snapshot = Snapshot::take(folder)?;
    let mut scan = Scan::new(&snapshot, noted);
    for (age, file) in snapshot.files.iter_mut().enumerate() {
        scan.begin_file(age, &file.name);
        file.each_line(|line| scan.line(line))?;
    }
    let mut found = scan.finish();
    for run in &mut found.unsealed_runs {
        run.life = full::life(folder, run.run, run.life);
    }
    Ok(found)
}
