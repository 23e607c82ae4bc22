//! `ringfence policy log`: what was let out and what was not.

mod follow;
mod table;

use std::num::NonZeroUsize;
use std::path::Path;

use ringfence_audit::{Filter, Grouped, Records, Timestamp, Verdict};
use ringfence_policy::TimeSpan;

use crate::commands::audit::{WhichRun, folder, tell_skipped};
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Show which destinations were allowed or refused, by which rule and how often
///
/// What sandboxes of this user tried to reach is kept in
/// ~/.local/state/ringfence/audit, or below `XDG_STATE_HOME` where that is set.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence policy log                       every destination, the latest last
  ringfence policy log --blocked --since 1h  what was refused in the last hour
  ringfence policy log --run last            what the last run in this folder wanted
  ringfence policy log --follow              each decision as it is made
  ringfence policy log --json | jq '.blocked[].host'")]
pub(crate) struct LogArgs {
    /// Print each event as it comes, until interrupted; older ones first with
    /// --since or --limit
    #[arg(short, long)]
    follow: bool,
    /// Only the sandbox with this name
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    sandbox: Option<String>,
    /// Only this run: last (in this folder), an id, or how it begins
    #[arg(long, value_name = "ID")]
    run: Option<WhichRun>,
    /// Only what was refused
    #[arg(long)]
    blocked: bool,
    /// Only what happened in this time until now, such as 10m or 2h30m
    #[arg(long, value_name = "DURATION")]
    since: Option<TimeSpan>,
    /// Only the last so many
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
    /// Print JSON; with --follow, one event on each line
    #[arg(long)]
    json: bool,
}

impl LogArgs {
    fn filter(&self, folder: &Path) -> Result<Filter, Failure> {
        let run = self.run.as_ref().map(|run| run.prefix(folder));
        Ok(Filter {
            since: self
                .since
                .map(|span| Timestamp::now().minus(span.as_duration())),
            run: run.transpose()?.flatten(),
            sandbox: self.sandbox.clone(),
            verdict: self.blocked.then_some(Verdict::Refused),
        })
    }
}

pub(crate) fn main(arguments: &LogArgs) -> ExitCode {
    let shown = if arguments.follow {
        follow::main(arguments)
    } else {
        show(arguments)
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(arguments.json),
    }
}

fn show(arguments: &LogArgs) -> Result<(), Failure> {
    let folder = folder()?;
    let mut records = Records::open(&folder, arguments.filter(&folder)?)?;
    let mut grouped = Grouped::default();
    for record in records.by_ref() {
        grouped.add(&record?.event);
    }
    let mut rows = table::rows(grouped);
    let most = arguments.limit.map_or(usize::MAX, NonZeroUsize::get);
    rows.drain(..rows.len().saturating_sub(most));
    if arguments.json {
        output::print_json(&table::sections(&rows));
    } else if rows.is_empty() {
        output::tell!("ringfence: the audit log has no such decisions");
    } else {
        output::print_text(&table::table(&rows));
    }
    tell_skipped(records.skipped());
    Ok(())
}
