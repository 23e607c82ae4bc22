//! The same work done in several ways, in turns, so that a slow moment of the
//! machine hits them alike.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::bench::bounded::{self, Ended};

/// How long one piece of work may take before it counts as hanging.
const LIMIT: Duration = Duration::from_mins(3);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::bench) enum Unit {
    MebibytesPerSecond,
    RequestsPerSecond,
    Seconds,
}

impl Unit {
    /// The unit's sign.
    pub(in crate::bench) fn sign(self) -> &'static str {
        match self {
            Self::MebibytesPerSecond => "MiB/s",
            Self::RequestsPerSecond => "/s",
            Self::Seconds => "s",
        }
    }

    fn better_first(self, figures: &mut [f64]) {
        figures.sort_unstable_by(f64::total_cmp);
        if self != Self::Seconds {
            figures.reverse();
        }
    }
}

/// Reads a figure from a piece of work that has ended.
pub(super) type Reading = Box<dyn Fn(&Ended) -> Result<f64>>;

/// A way to do the work.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// The command line, or why there is none.
    pub(super) words: Result<Vec<String>>,
    pub(super) standing: Standing,
}

/// What it means when the work fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// There are no figures at all.
    Required,
    /// This way is left out, and the reason told.
    Optional,
}

/// Work to do and the ways to do it; the first is what the others are compared with.
pub(super) struct Contest {
    pub(super) title: String,
    pub(super) unit: Unit,
    pub(super) rounds: usize,
    pub(super) reading: Reading,
    pub(super) entries: Vec<Entry>,
}

/// The figures of a contest.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Comparison {
    pub(in crate::bench) title: String,
    pub(in crate::bench) unit: Unit,
    pub(in crate::bench) rows: Vec<Row>,
    /// Ways that were not measured, and why.
    pub(in crate::bench) absent: Vec<String>,
}

/// The figures of one way.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::bench) struct Row {
    pub(in crate::bench) name: String,
    pub(in crate::bench) best: f64,
    pub(in crate::bench) median: f64,
    /// Its median as a multiple of the first way's.
    pub(in crate::bench) ratio: f64,
}

impl Contest {
    /// Lets everyone try once, then measures those who can.
    pub(super) fn hold(mut self) -> Result<Comparison> {
        eprintln!("  {}", self.title);
        let mut absent = Vec::new();
        let mut runners = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            let (name, standing) = (entry.name, entry.standing);
            match self.admit(entry).context(name) {
                Ok(words) => runners.push((name, words, Vec::new())),
                Err(error) if standing == Standing::Optional => absent.push(format!("{error:#}")),
                Err(error) => return Err(error),
            }
        }
        for _ in 0..self.rounds {
            for (name, words, figures) in &mut runners {
                figures.push(self.work(words).context(*name)?);
            }
        }
        let figures = runners
            .into_iter()
            .map(|(name, _, figures)| (name, figures));
        Ok(Comparison {
            rows: summarise(self.unit, figures),
            title: self.title,
            unit: self.unit,
            absent,
        })
    }

    fn admit(&self, entry: Entry) -> Result<Vec<String>> {
        let words = entry.words?;
        self.work(&words)?;
        Ok(words)
    }

    fn work(&self, words: &[String]) -> Result<f64> {
        let (program, arguments) = words.split_first().context("nothing to run")?;
        let ended = bounded::output(Command::new(program).args(arguments), LIMIT)?;
        ended.success()?;
        (self.reading)(&ended)
    }
}

fn summarise(unit: Unit, all: impl Iterator<Item = (&'static str, Vec<f64>)>) -> Vec<Row> {
    let mut base = None;
    let row = |(name, mut figures): (&str, Vec<f64>)| {
        unit.better_first(&mut figures);
        let median = *figures.get(figures.len() / 2)?;
        Some(Row {
            name: name.to_string(),
            best: *figures.first()?,
            median,
            ratio: median / *base.get_or_insert(median),
        })
    };
    all.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &'static str, script: &str, standing: Standing) -> Entry {
        let words = ["sh", "-c", script].map(str::to_string);
        Entry {
            name,
            words: Ok(words.to_vec()),
            standing,
        }
    }

    fn contest(unit: Unit, entries: Vec<Entry>) -> Contest {
        Contest {
            title: "counting".into(),
            unit,
            rounds: 3,
            reading: Box::new(|ended| Ok(ended.printed.trim().parse()?)),
            entries,
        }
    }

    #[test]
    fn more_is_better_except_for_time() {
        let figures = || [("a", vec![2.0, 8.0, 4.0]), ("b", vec![1.0, 2.0, 3.0])].into_iter();
        let speed = summarise(Unit::MebibytesPerSecond, figures());
        assert_eq!(
            (speed[0].best, speed[0].median, speed[0].ratio),
            (8.0, 4.0, 1.0)
        );
        assert_eq!(
            (speed[1].best, speed[1].median, speed[1].ratio),
            (3.0, 2.0, 0.5)
        );
        let time = &summarise(Unit::Seconds, figures())[0];
        assert_eq!((time.best, time.median), (2.0, 4.0));
    }

    #[test]
    fn an_optional_way_that_fails_is_left_out_with_its_reason() {
        let entries = vec![
            entry("works", "echo 4", Standing::Required),
            entry("fails", "echo broken >&2; exit 1", Standing::Optional),
        ];
        let comparison = contest(Unit::Seconds, entries).hold().unwrap();
        assert_eq!(comparison.rows.len(), 1);
        assert!(
            comparison.absent[0].starts_with("fails: ") && comparison.absent[0].ends_with("broken")
        );
    }

    #[test]
    fn a_required_way_that_fails_is_an_error() {
        let entries = vec![entry("fails", "exit 1", Standing::Required)];
        assert!(contest(Unit::Seconds, entries).hold().is_err());
    }
}
