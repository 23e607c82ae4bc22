//! `ringfence audit show`: the story of one run.

use ringfence_audit::{Event, Filter, Records, RunSummary, Story};
use serde::Serialize;

use super::which::{WhichRun, last_run};
use super::{ending, folder, list, story, tell_skipped};
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Tell the story of one run: what it ran, reached, wrote, and was refused
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence audit show             the last run of all
  ringfence audit show last        the last run in this folder
  ringfence audit show 3f2a        the run whose id begins like this
  ringfence audit show --json | jq .refused")]
pub(crate) struct ShowArgs {
    /// The run's id, how it begins, or last (in this folder); the last run of all if it is not named
    run: Option<WhichRun>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    state: &'static str,
    #[serde(flatten)]
    story: &'a Story,
}

pub(crate) fn main(arguments: &ShowArgs) -> ExitCode {
    ending(show(arguments), arguments.json)
}

fn show(arguments: &ShowArgs) -> Result<(), Failure> {
    let folder = folder()?;
    let run = match &arguments.run {
        Some(run) => run.find(&folder, None)?,
        None => last_run(&folder)?,
    };
    let filter = Filter {
        run: run.run.to_string().parse().ok(),
        ..Filter::default()
    };
    let mut records = Records::open(&folder, filter)?;
    let events = events(&mut records)?;
    let told = Story::of(run.run, &events);
    print(&run, &told, arguments.json);
    tell_skipped(records.skipped());
    Ok(())
}

fn events(records: &mut Records) -> Result<Vec<Event>, Failure> {
    let events = records.by_ref().map(|record| Ok(record?.event));
    events.collect()
}

fn print(run: &RunSummary, told: &Story, json: bool) {
    let state = list::state(run);
    if json {
        output::print_json(&Answer { state, story: told });
    } else {
        output::print_text(&story::tell(told, state));
    }
}
