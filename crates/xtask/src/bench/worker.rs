//! What is measured by a process of the user in question: time and leaks.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::leaks::{self, Kind};
use super::timing::{self, Candidate, Timing};
use crate::programs;

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
    let ours = Candidate::new("ringfence run", ringfence, &["run", "--", timing::COMMAND]);
    ours.check().context("ringfence cannot be measured")?;

    let mut candidates = vec![Candidate::new("bare", Path::new(timing::COMMAND), &[])];
    let mut absent = Vec::new();
    for (program, arguments) in timing::ALTERNATIVES {
        match alternative(program, arguments) {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => absent.push(format!("{program}: {error:#}")),
        }
    }
    candidates.push(ours.clone());
    Ok(Measured {
        timings: timing::measure(&candidates, runs)?,
        absent,
        leaks: leaks::measure(&ours, runs)?,
    })
}

fn alternative(program: &str, arguments: &[&str]) -> Result<Candidate> {
    let path = programs::find(program, &programs::public_path()).context("not installed")?;
    let candidate = Candidate::new(program, &path, arguments);
    candidate.check()?;
    Ok(candidate)
}
