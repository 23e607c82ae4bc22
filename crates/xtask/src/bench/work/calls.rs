//! Single calls about names, each many times over.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rustix::fs::{CWD, Mode, OFlags};

use super::{Around, Row, Surroundings};
use crate::bench::CALLS;
use crate::bench::scale::Scale;
use crate::outcome::Outcome;

/// What is called, in the order in which it is possible.
const NAMES: [&str; 7] = [
    "create a file",
    "open it for writing",
    "open it for reading",
    "change its mode",
    "rename it",
    "remove it",
    "make a directory",
];

/// Microseconds of each call, in each surrounding: the median of its rounds.
pub(super) fn measure(
    surroundings: &Surroundings<'_>,
    place: &Path,
    scale: Scale,
) -> Result<Vec<Row>> {
    let count = scale.calls.to_string();
    let folder = place.join("calls");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(std::env::current_exe()?, folder.join("worker"))?;
    let mut samples = vec![vec![Vec::new(); Around::ALL.len()]; NAMES.len()];
    for _ in 0..scale.tasks {
        for (column, around) in Around::ALL.into_iter().enumerate() {
            let words = ["./worker", CALLS, count.as_str()];
            let Some(candidate) = surroundings.candidate(around, &folder, &words)? else {
                continue;
            };
            let figures: Vec<f64> = serde_json::from_str(&candidate.printed()?)?;
            for (row, figure) in samples.iter_mut().zip(figures) {
                row[column].push(figure);
            }
        }
    }
    std::fs::remove_dir_all(&folder)?;
    let rows = NAMES.iter().zip(samples);
    let rows = rows.map(|(name, columns)| Row {
        title: (*name).to_owned(),
        figures: columns.into_iter().map(median).collect(),
    });
    Ok(rows.collect())
}

/// The middle one of some figures.
pub(super) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len().saturating_sub(1) / 2).copied()
}

/// Makes the calls in the working folder and prints what one of each took.
pub(crate) fn run(count: &str) -> Result<Outcome> {
    let count: u32 = count.parse().context("how often")?;
    if count == 0 {
        bail!("nothing to measure");
    }
    let figures = [
        time(count, |number| {
            open(number, OFlags::CREATE | OFlags::WRONLY)
        })?,
        time(count, |number| open(number, OFlags::WRONLY))?,
        time(count, |number| open(number, OFlags::RDONLY))?,
        time(count, |number| {
            Ok(rustix::fs::chmod(name(number), Mode::from_raw_mode(0o600))?)
        })?,
        time(count, |number| {
            Ok(rustix::fs::rename(name(number), other_name(number))?)
        })?,
        time(count, |number| Ok(rustix::fs::unlink(other_name(number))?))?,
        time(count, |number| {
            Ok(rustix::fs::mkdir(name(number), Mode::from_raw_mode(0o700))?)
        })?,
    ];
    for number in 0..count {
        rustix::fs::rmdir(name(number))?;
    }
    println!("{}", serde_json::to_string(&figures)?);
    Ok(Outcome::Success)
}

/// Microseconds of one call.
fn time(count: u32, call: impl Fn(u32) -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    for number in 0..count {
        call(number)?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

fn open(number: u32, flags: OFlags) -> Result<()> {
    let mode = Mode::from_raw_mode(0o644);
    rustix::fs::openat(CWD, name(number), flags | OFlags::CLOEXEC, mode)?;
    Ok(())
}

fn name(number: u32) -> String {
    format!("n{number}")
}

fn other_name(number: u32) -> String {
    format!("o{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(1.0));
        assert_eq!(median(Vec::new()), None);
    }
}
