//! Time from starting a command to seeing its end. The candidates take turns,
//! so that a slow moment of the machine hits them alike, and each comes after
//! each other one equally often: the kernel clears the namespaces of a command
//! away after its end, which whoever starts next would pay for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use super::bounded;

/// The command that does nothing.
pub(super) const COMMAND: &str = "/bin/true";

/// How long one run may take before it counts as hanging.
const LIMIT: Duration = Duration::from_mins(2);

/// For what the last command left to be cleared away.
const REST: Duration = Duration::from_millis(10);

/// A command line to measure.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    folder: Option<PathBuf>,
}

impl Candidate {
    pub(super) fn new(name: &str, program: &Path, arguments: &[&str]) -> Self {
        Self {
            name: name.to_string(),
            program: program.to_path_buf(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            folder: None,
        }
    }

    /// The same in another working folder.
    pub(super) fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_path_buf());
        self
    }

    /// Runs it once and gives what it printed.
    pub(super) fn printed(&self) -> Result<String> {
        let ended = bounded::output(&mut self.command(), LIMIT)?;
        let printed = ended.success().with_context(|| self.name.clone())?;
        Ok(printed.to_owned())
    }

    /// Runs it once, warming the caches, and fails with what it complained about.
    pub(super) fn check(&self) -> Result<()> {
        bounded::output(&mut self.command(), LIMIT)?.success()?;
        Ok(())
    }

    /// Runs it once and says how long that took.
    pub(super) fn time(&self) -> Result<Duration> {
        let (status, took) = bounded::time(&mut self.command(), LIMIT)?;
        if !status.success() {
            bail!("{} failed: {status}", self.name);
        }
        Ok(took)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}

/// The figures of one candidate, in microseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Timing {
    pub(super) name: String,
    pub(super) min: u64,
    pub(super) median: u64,
    pub(super) p90: u64,
    /// Its median as a multiple of the first candidate's.
    pub(super) ratio: f64,
}

/// Measures `runs` turns of all candidates; the first is what the others are
/// compared with.
pub(super) fn measure(candidates: &[Candidate], runs: usize) -> Result<Vec<Timing>> {
    let mut samples = vec![Vec::with_capacity(runs); candidates.len()];
    for turn in 0..runs {
        for number in order(turn, candidates.len()) {
            std::thread::sleep(REST);
            samples[number].push(candidates[number].time()?);
        }
    }
    let names = candidates.iter().map(|candidate| candidate.name.as_str());
    Ok(summarise(names, samples))
}

/// The order of one turn, by E. J. Williams: over `2 * count` turns, each
/// number comes directly after each other one equally often.
fn order(turn: usize, count: usize) -> Vec<usize> {
    let zigzag = (0..count).map(|at| {
        let step = at.div_ceil(2);
        if at % 2 == 1 { step } else { count - step }
    });
    let mut order: Vec<usize> = zigzag.map(|at| (at + turn / 2) % count).collect();
    if turn % 2 == 1 {
        order.reverse();
    }
    order
}

fn summarise<'name>(
    names: impl Iterator<Item = &'name str>,
    mut samples: Vec<Vec<Duration>>,
) -> Vec<Timing> {
    for taken in &mut samples {
        taken.sort_unstable();
    }
    let base = samples
        .first()
        .map_or(Duration::ZERO, |taken| percentile(taken, 50));
    let summarise = |(name, taken): (&str, &Vec<Duration>)| Timing {
        name: name.to_string(),
        min: micros(percentile(taken, 0)),
        median: micros(percentile(taken, 50)),
        p90: micros(percentile(taken, 90)),
        ratio: percentile(taken, 50).div_duration_f64(base),
    };
    names.zip(&samples).map(summarise).collect()
}

/// The sample below which `percent` of the sorted `samples` lie.
fn percentile(samples: &[Duration], percent: usize) -> Duration {
    let last = samples.len().saturating_sub(1);
    samples
        .get(last * percent / 100)
        .copied()
        .unwrap_or_default()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_ratios_come_from_the_sorted_samples() {
        let base = (1..=101).rev().map(Duration::from_micros).collect();
        let twice = (1..=101)
            .map(|number| Duration::from_micros(2 * number))
            .collect();
        let timings = summarise(["base", "twice"].into_iter(), vec![base, twice]);
        assert_eq!(
            (timings[0].min, timings[0].median, timings[0].p90),
            (1, 51, 91)
        );
        assert_eq!(format!("{:.1}", timings[1].ratio), "2.0");
    }

    #[test]
    fn each_comes_after_each_other_equally_often() {
        for count in 1..7 {
            let mut after = std::collections::BTreeMap::new();
            for turn in 0..2 * count {
                let order = order(turn, count);
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..count).collect::<Vec<_>>());
                for pair in order.windows(2) {
                    *after.entry((pair[0], pair[1])).or_insert(0) += 1;
                }
            }
            assert_eq!(after.len(), count * (count - 1));
            assert!(after.values().all(|often| *often == 2), "{after:?}");
        }
    }

    #[test]
    fn a_command_that_fails_is_not_measured() {
        let failing = Candidate::new("false", Path::new("/bin/false"), &[]);
        assert!(failing.check().is_err());
        assert!(measure(&[failing], 1).is_err());
    }
}
