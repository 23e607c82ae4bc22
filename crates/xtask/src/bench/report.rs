//! The figures as Markdown, fit for `docs/PERFORMANCE.md`, and as JSON.

use serde::Serialize;

use super::memory::Memory;
use super::timing::Timing;
use super::worker::Measured;
use crate::table::Table;

/// All figures of one run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    /// Starts of each command.
    pub(super) runs: usize,
    pub(super) sections: Vec<Section>,
}

/// The figures of one user.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) user: String,
    pub(super) measured: Measured,
    pub(super) memory: Vec<Memory>,
}

impl Report {
    /// Whether anything was left behind.
    pub(super) fn has_leaks(&self) -> bool {
        let mut kinds = self
            .sections
            .iter()
            .flat_map(|section| &section.measured.leaks);
        kinds.any(|kind| !kind.left_behind.is_empty())
    }

    /// Sections per user with a table per subject.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "Machine: {}. {} starts each, in turns.\n",
            self.machine, self.runs
        );
        for section in &self.sections {
            text.push_str(&section.markdown(self.runs));
        }
        text
    }
}

impl Section {
    fn markdown(&self, runs: usize) -> String {
        let user = &self.user;
        [
            format!("\n### Start as {user}\n\n"),
            timings(&self.measured.timings),
            absent(&self.measured.absent),
            format!("\n### Memory while a command sleeps, as {user}\n\n"),
            memory(&self.memory),
            format!("\n### Left behind by {runs} starts as {user}\n\n"),
            self.leaks(),
        ]
        .concat()
    }

    fn leaks(&self) -> String {
        let mut table = Table::new(&["what", "before", "after", "left behind"]);
        for kind in &self.measured.leaks {
            table.row(vec![
                kind.name.clone(),
                kind.before.to_string(),
                kind.after.to_string(),
                if kind.left_behind.is_empty() {
                    "nothing".to_string()
                } else {
                    kind.left_behind.join(", ")
                },
            ]);
        }
        table.render()
    }
}

fn timings(timings: &[Timing]) -> String {
    let mut table = Table::new(&["command", "min", "median", "p90", "ratio of medians"]);
    for timing in timings {
        table.row(vec![
            timing.name.clone(),
            milliseconds(timing.min),
            milliseconds(timing.median),
            milliseconds(timing.p90),
            format!("{:.1}×", timing.ratio),
        ]);
    }
    table.render()
}

fn absent(reasons: &[String]) -> String {
    if reasons.is_empty() {
        return String::new();
    }
    format!("\nNot measured: {}\n", reasons.join("; "))
}

fn memory(memory: &[Memory]) -> String {
    let kib = |value: Option<u64>| {
        value.map_or_else(|| "not readable".to_string(), |kib| format!("{kib} KiB"))
    };
    let mut table = Table::new(&["process", "PSS", "peak RSS"]);
    for process in memory {
        table.row(vec![
            process.name.clone(),
            kib(process.pss),
            kib(process.peak_rss),
        ]);
    }
    table.render()
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:02} ms", microseconds / 1000, microseconds % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::super::leaks::Kind;
    use super::*;

    fn timing(name: &str, median: u64, ratio: f64) -> Timing {
        Timing {
            name: name.into(),
            min: median - 100,
            median,
            p90: median + 100,
            ratio,
        }
    }

    fn report(left_behind: &[&str]) -> Report {
        let kind = Kind {
            name: "mounts".into(),
            before: 3,
            after: 3 + left_behind.len(),
            left_behind: left_behind.iter().map(ToString::to_string).collect(),
        };
        let measured = Measured {
            timings: vec![timing("bare", 600, 1.0), timing("ringfence run", 2400, 4.0)],
            absent: vec!["srt: not installed".into()],
            leaks: vec![kind],
        };
        let memory = vec![Memory {
            name: "ringfence, supervisor".into(),
            pss: Some(7),
            peak_rss: None,
        }];
        let section = Section {
            user: "root".into(),
            measured,
            memory,
        };
        Report {
            machine: "Linux".into(),
            runs: 20,
            sections: vec![section],
        }
    }

    #[test]
    fn figures_are_shown_with_their_units() {
        let text = report(&[]).markdown();
        assert!(text.contains("2.40 ms") && text.contains("4.0×"), "{text}");
        assert!(
            text.contains("7 KiB") && text.contains("not readable"),
            "{text}"
        );
    }

    #[test]
    fn something_left_behind_is_a_leak() {
        assert!(!report(&[]).has_leaks());
        assert!(report(&["tmpfs on /x"]).has_leaks());
    }
}
