//! `ringfence audit tail`: the last events, and those that come.

use std::num::NonZeroUsize;

use ringfence_audit::{Filter, Records};

use super::{WhichRun, ending, folder, stream, tell_skipped};
use crate::error::Failure;
use crate::exit::ExitCode;

/// Print the last events of all runs, or of one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence audit tail                    the last twenty events
  ringfence audit tail --follow           … and each one as it comes
  ringfence audit tail --run 3f2a --json  those of one run, one JSON object a line")]
pub(crate) struct TailArgs {
    /// Go on with each event as it comes, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Only this run: last (in this folder), an id, or how it begins
    #[arg(long, value_name = "ID")]
    run: Option<WhichRun>,
    /// The last so many
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    limit: NonZeroUsize,
    /// Print JSON, one event on each line
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &TailArgs) -> ExitCode {
    ending(tail(arguments), arguments.json)
}

fn tail(arguments: &TailArgs) -> Result<(), Failure> {
    let folder = folder()?;
    let run = arguments.run.as_ref().map(|run| run.prefix(&folder));
    let run = run.transpose()?;
    let filter = Filter {
        run: run.flatten(),
        ..Filter::default()
    };
    let records = Records::open(&folder, filter)?;
    let (past, follower) = stream::last(records, arguments.limit.get(), |_| true)?;
    let past: Vec<_> = past.into();
    if arguments.follow {
        return stream::follow(past, follower, arguments.json, |_| true);
    }
    stream::print(&past, arguments.json);
    tell_skipped(follower.skipped());
    Ok(())
}
