//! The figures as Markdown, fit for `docs/PERFORMANCE.md`, and as JSON.

use serde::Serialize;

use super::audit::Work;
use super::leaks::Kind;
use super::memory::{Memory, Whole};
use super::network::{Comparison, Network, Unit};
use super::scale::Scale;
use super::timing::Timing;
use super::work::{Row as WorkRow, Works};
use super::worker::Measured;
use crate::table::Table;

/// All figures of one run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: String,
    /// How busy the machine was before.
    pub(super) load: String,
    pub(super) scale: Scale,
    pub(super) sections: Vec<Section>,
}

/// The figures of one user.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    pub(super) user: String,
    pub(super) works: Option<Works>,
    pub(super) start: Option<StartFigures>,
    pub(super) network: Option<NetworkFigures>,
    pub(super) interception: Vec<Comparison>,
    pub(super) audit: Vec<Work>,
}

/// What a sandbox without network costs.
#[derive(Debug, Serialize)]
pub(super) struct StartFigures {
    pub(super) measured: Measured,
    pub(super) memory: Vec<Memory>,
}

/// What the way out costs.
#[derive(Debug, Serialize)]
pub(super) struct NetworkFigures {
    pub(super) measured: Network,
    pub(super) memory: Vec<Whole>,
}

impl Report {
    /// Whether anything was left behind.
    pub(super) fn has_leaks(&self) -> bool {
        let mut kinds = self.sections.iter().flat_map(Section::kinds);
        kinds.any(|kind| !kind.left_behind.is_empty())
    }

    /// Sections per user with a table per subject.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "Machine: {}; {}. {} starts each, in turns of changing order, with a rest before each.\n",
            self.machine, self.load, self.scale.starts
        );
        for section in &self.sections {
            text.push_str(&section.markdown(self.scale.starts));
        }
        text
    }
}

impl Section {
    fn kinds(&self) -> impl Iterator<Item = &Kind> {
        let start = self.start.iter().map(|figures| &figures.measured);
        let network = self.network.iter().map(|figures| &figures.measured.start);
        start.chain(network).flat_map(|measured| &measured.leaks)
    }

    fn markdown(&self, runs: usize) -> String {
        let works = self
            .works
            .as_ref()
            .map(|works| worked_at(works, &self.user));
        let start = self.start.as_ref();
        let network = self.network.as_ref();
        let start = start.map(|figures| figures.markdown(&self.user, runs));
        let network = network.map(|figures| figures.markdown(&self.user, runs));
        let interception = self.interception.iter();
        let interception = interception.map(|each| comparison(each, &self.user));
        let audit = self.audit.iter().map(|work| worked(work, &self.user));
        let first = [works, start, network].into_iter().flatten();
        first.chain(interception).chain(audit).collect()
    }
}

impl StartFigures {
    fn markdown(&self, user: &str, runs: usize) -> String {
        [
            format!("\n### Start as {user}\n\n"),
            timings(&self.measured.timings),
            absent(&self.measured.absent),
            format!("\n### Memory while a command sleeps, as {user}\n\n"),
            memory(&self.memory),
            format!("\n### Left behind by {runs} starts as {user}\n\n"),
            leaks(&self.measured.leaks),
        ]
        .concat()
    }
}

impl NetworkFigures {
    fn markdown(&self, user: &str, runs: usize) -> String {
        let start = &self.measured.start;
        let comparisons = self.measured.comparisons.iter();
        let comparisons: Vec<String> = comparisons.map(|each| comparison(each, user)).collect();
        [
            format!("\n### Start with an allow list as {user}\n\n"),
            timings(&start.timings),
            absent(&start.absent),
            format!("\n### Memory of everything while a command sleeps, with an allow list as {user}\n\n"),
            wholes(&self.memory),
            comparisons.concat(),
            format!("\n### Left behind by {runs} starts with an allow list as {user}\n\n"),
            leaks(&start.leaks),
        ]
        .concat()
    }
}

fn worked_at(works: &Works, user: &str) -> String {
    let head = |first| {
        [
            vec![first],
            works.columns.iter().map(String::as_str).collect(),
        ]
        .concat()
    };
    let table = |first, rows: &[WorkRow], figure: &dyn Fn(usize, &WorkRow) -> String| {
        let mut table = Table::new(&head(first));
        for row in rows {
            let figures = (0..row.figures.len()).map(|column| figure(column, row));
            table.row(std::iter::once(row.title.clone()).chain(figures).collect());
        }
        table.render()
    };
    let count =
        |column: usize, row: &WorkRow| shown(row.figures[column], |count| format!("{count}"));
    [
        format!("\n### Ordinary work as {user}\n\n"),
        table("work", &works.tasks, &|column, row| {
            beside_bare(column, row, "s", 2)
        }),
        absent(&works.absent),
        format!("\n### Single calls as {user}\n\n"),
        table("call", &works.calls, &|column, row| {
            beside_bare(column, row, "µs", 1)
        }),
        format!("\n### Failures by interruption as {user}\n\n"),
        table("work", &works.interrupted, &count),
    ]
    .concat()
}

/// A figure, with how often it is the first one.
fn beside_bare(column: usize, row: &WorkRow, unit: &str, digits: usize) -> String {
    let bare = row.figures.first().copied().flatten();
    shown(row.figures[column], |figure| match bare {
        Some(bare) if column > 0 => {
            format!("{figure:.digits$} {unit}, {}", ratio(figure / bare))
        }
        _ => format!("{figure:.digits$} {unit}"),
    })
}

fn shown(figure: Option<f64>, show: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "–".to_owned(), show)
}

fn worked(work: &Work, user: &str) -> String {
    [
        format!("\n### {} as {user}\n\n", work.title),
        timings(&work.timings),
        absent(&work.absent),
    ]
    .concat()
}

fn comparison(comparison: &Comparison, user: &str) -> String {
    let mut table = Table::new(&["way", "best", "median", "ratio of medians"]);
    let figure = |value: f64| match comparison.unit {
        Unit::Seconds => format!("{value:.2} {}", comparison.unit.sign()),
        unit => format!("{value:.0} {}", unit.sign()),
    };
    for row in &comparison.rows {
        table.row(vec![
            row.name.clone(),
            figure(row.best),
            figure(row.median),
            ratio(row.ratio),
        ]);
    }
    [
        format!("\n### {} as {user}\n\n", comparison.title),
        table.render(),
        absent(&comparison.absent),
    ]
    .concat()
}

fn leaks(kinds: &[Kind]) -> String {
    let mut table = Table::new(&["what", "before", "after", "left behind"]);
    for kind in kinds {
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

fn timings(timings: &[Timing]) -> String {
    let mut table = Table::new(&["command", "min", "median", "p90", "ratio of medians"]);
    for timing in timings {
        table.row(vec![
            timing.name.clone(),
            milliseconds(timing.min),
            milliseconds(timing.median),
            milliseconds(timing.p90),
            ratio(timing.ratio),
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

fn wholes(wholes: &[Whole]) -> String {
    let mut table = Table::new(&["command", "processes", "threads", "PSS", "peak RSS"]);
    for whole in wholes {
        table.row(vec![
            whole.memory.name.clone(),
            whole.processes.to_string(),
            whole.threads.to_string(),
            kib(whole.memory.pss),
            kib(whole.memory.peak_rss),
        ]);
    }
    table.render()
}

fn kib(value: Option<u64>) -> String {
    value.map_or_else(|| "not readable".to_string(), |kib| format!("{kib} KiB"))
}

fn ratio(value: f64) -> String {
    format!("{value:.2}×")
}

fn milliseconds(microseconds: u64) -> String {
    format!("{}.{:02} ms", microseconds / 1000, microseconds % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::super::network::Row;
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

    fn measured(left_behind: &[&str]) -> Measured {
        let kind = Kind {
            name: "mounts".into(),
            before: 3,
            after: 3 + left_behind.len(),
            left_behind: left_behind.iter().map(ToString::to_string).collect(),
        };
        Measured {
            timings: vec![timing("bare", 600, 1.0), timing("ringfence run", 2400, 4.0)],
            absent: vec!["srt: not installed".into()],
            leaks: vec![kind],
        }
    }

    fn memory_of(name: &str) -> Memory {
        Memory {
            name: name.into(),
            pss: Some(7),
            peak_rss: None,
        }
    }

    fn report(start: Option<StartFigures>, network: Option<NetworkFigures>) -> Report {
        let section = Section {
            user: "root".into(),
            works: None,
            start,
            network,
            interception: Vec::new(),
            audit: Vec::new(),
        };
        Report {
            machine: "Linux".into(),
            load: "idle".into(),
            scale: Scale::QUICK,
            sections: vec![section],
        }
    }

    fn start(left_behind: &[&str]) -> StartFigures {
        StartFigures {
            measured: measured(left_behind),
            memory: vec![memory_of("ringfence, supervisor")],
        }
    }

    fn network(left_behind: &[&str]) -> NetworkFigures {
        let rows = vec![Row {
            name: "direct".into(),
            best: 2.5,
            median: 3.125,
            ratio: 1.0,
        }];
        let comparison = Comparison {
            title: "Walking".into(),
            unit: Unit::Seconds,
            rows,
            absent: Vec::new(),
        };
        NetworkFigures {
            measured: Network {
                settings: "start.json".into(),
                start: measured(left_behind),
                comparisons: vec![comparison],
            },
            memory: vec![Whole {
                processes: 3,
                threads: 4,
                memory: memory_of("ringfence run --allow"),
            }],
        }
    }

    #[test]
    fn figures_are_shown_with_their_units() {
        let text = report(Some(start(&[])), None).markdown();
        assert!(text.contains("2.40 ms") && text.contains("4.00×"), "{text}");
        assert!(
            text.contains("7 KiB") && text.contains("not readable"),
            "{text}"
        );
    }

    #[test]
    fn only_what_was_measured_is_shown() {
        let text = report(None, Some(network(&[]))).markdown();
        assert!(text.contains("### Walking as root"), "{text}");
        assert!(text.contains("2.50 s | 3.12 s"), "{text}");
        assert!(!text.contains("### Start as root"), "{text}");
    }

    #[test]
    fn something_left_behind_is_a_leak_with_and_without_network() {
        assert!(!report(Some(start(&[])), Some(network(&[]))).has_leaks());
        assert!(report(Some(start(&["tmpfs on /x"])), None).has_leaks());
        assert!(report(None, Some(network(&["tmpfs on /x"]))).has_leaks());
    }
}
