//! `ringfence audit list`: the runs that are on record.

use std::num::NonZeroUsize;

use ringfence_audit::{Life, RunSummary, Timestamp, command_line, runs};

use super::{ending, folder};
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Digits of a run's id that people see.
const SHORT_ID: usize = 12;
/// Characters of a command that people see.
const SHORT_COMMAND: usize = 48;

/// List the runs that are on record, the latest last
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence audit list --limit 10
  ringfence audit list --json | jq '.[] | select(.refusals > 0) | .run'")]
pub(crate) struct ListArgs {
    /// Only the last so many
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &ListArgs) -> ExitCode {
    ending(list(arguments), arguments.json)
}

fn list(arguments: &ListArgs) -> Result<(), Failure> {
    let mut found = runs(&folder()?)?;
    let most = arguments.limit.map_or(usize::MAX, NonZeroUsize::get);
    found.drain(..found.len().saturating_sub(most));
    if arguments.json {
        output::print_json(&found);
    } else if found.is_empty() {
        output::tell!("ringfence: no run is on record");
    } else {
        output::print_text(&table(&found));
    }
    Ok(())
}

fn table(runs: &[RunSummary]) -> String {
    let titles = [
        "RUN", "NAME", "STARTED", "EXIT", "REFUSED", "RECORD", "COMMAND",
    ];
    let rows: Vec<Vec<String>> = std::iter::once(titles.map(str::to_owned).to_vec())
        .chain(runs.iter().map(cells))
        .collect();
    output::columns(&rows)
}

fn cells(run: &RunSummary) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        run.run.to_string().chars().take(SHORT_ID).collect(),
        run.sandbox.clone().unwrap_or_else(dash),
        run.started.map_or_else(dash, Timestamp::to_seconds),
        run.code.map_or_else(dash, |code| code.to_string()),
        run.refusals.map_or_else(dash, |count| count.to_string()),
        state(run).to_owned(),
        shortened(&command_line(&run.command)),
    ]
}

/// What is known about the end of a run's record.
pub(super) fn state(run: &RunSummary) -> &'static str {
    match (run.sealed, run.life) {
        (true, _) => "sealed",
        (false, Life::Running) => "running",
        (false, Life::Ended) => "killed",
        (false, Life::NoRoom) => "disk full",
        (false, Life::Unknown) => "unsealed",
    }
}

fn shortened(command: &str) -> String {
    match command.char_indices().nth(SHORT_COMMAND) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command.to_owned(),
    }
}
