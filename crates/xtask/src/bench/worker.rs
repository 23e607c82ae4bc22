//! What is measured by a process of the user in question: time and leaks.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::alternatives::{self, BWRAP, BWRAP_SANDBOX, SRT};
use super::leaks::{self, Kind};
use super::timing::{self, COMMAND, Candidate, Timing};

/// The figures, handed to the reporting process as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) timings: Vec<Timing>,
    /// Alternatives that were not measured, and why.
    pub(super) absent: Vec<String>,
    pub(super) leaks: Vec<Kind>,
}

/// Measures `runs` starts of everything.
pub(super) fn measure(ringfence: &Path, runs: usize) -> Result<Measured> {
    let ours = Candidate::new("ringfence run", ringfence, &["run", "--", COMMAND]);
    let bare = Candidate::new("bare", Path::new(COMMAND), &[]);
    let optional = [
        alternatives::start("bwrap", BWRAP, BWRAP_SANDBOX),
        alternatives::start("srt", SRT, &[]),
    ];
    compare(vec![bare], optional, &[&ours], runs)
}

/// Measures `runs` turns of all: the `first`, the `optional` that work, and
/// ours, the last of which is also looked through for leaks.
pub(super) fn compare(
    first: Vec<Candidate>,
    optional: impl IntoIterator<Item = Result<Candidate>>,
    ours: &[&Candidate],
    runs: usize,
) -> Result<Measured> {
    let mut candidates = first;
    let mut absent = Vec::new();
    for found in optional {
        match found {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => absent.push(format!("{error:#}")),
        }
    }
    for candidate in ours {
        candidate.check().context("ringfence cannot be measured")?;
        candidates.push((*candidate).clone());
    }
    let leaking = ours.last().context("nothing of ours to measure")?;
    Ok(Measured {
        timings: timing::measure(&candidates, runs)?,
        absent,
        leaks: leaks::measure(leaking, runs)?,
    })
}
