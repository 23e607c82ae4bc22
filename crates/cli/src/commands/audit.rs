//! `ringfence audit`: what runs did, and whether their record is whole.

mod export;
mod list;
mod show;
mod story;
pub(crate) mod stream;
mod tail;
mod verify;

use std::path::{Path, PathBuf};

use ringfence_audit::{ReadError, RunPrefix, RunSummary, Text, runs};
use ringfence_runtime::Directories;

use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Show what runs did, and check that their record is whole
///
/// The record of this user's runs is in ~/.local/state/ringfence/audit, or below
/// `XDG_STATE_HOME` where that is set.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence audit show               what the last run did
  ringfence audit list               all runs that are on record
  ringfence audit tail --follow      each event as it comes
  ringfence audit verify             whether somebody has altered the record
  ringfence audit export --format csv --since 1h --output events.csv"
)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    action: AuditAction,
}

#[derive(Debug, clap::Subcommand)]
enum AuditAction {
    Show(show::ShowArgs),
    List(list::ListArgs),
    Tail(tail::TailArgs),
    Verify(verify::VerifyArgs),
    Export(export::ExportArgs),
}

pub(crate) fn main(arguments: AuditArgs) -> ExitCode {
    match arguments.action {
        AuditAction::Show(arguments) => show::main(&arguments),
        AuditAction::List(arguments) => list::main(&arguments),
        AuditAction::Tail(arguments) => tail::main(&arguments),
        AuditAction::Verify(arguments) => verify::main(&arguments),
        AuditAction::Export(arguments) => export::main(&arguments),
    }
}

/// Where the record of this user's runs is.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let env = environment::own();
    let host = env.look_at_host()?;
    Ok(Directories::of(&env, &host).audit)
}

/// Says that there was more in the log than could be read.
pub(crate) fn tell_skipped(lines: u64) {
    if lines > 0 {
        output::tell!("ringfence: {lines} lines of the audit log are torn or of another format");
    }
}

/// Shows an error if there is one.
fn ending(done: Result<(), Failure>, json: bool) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(json),
    }
}

/// The run that begins like `wanted`; the last one where none is named.
pub(crate) fn find_run(folder: &Path, wanted: Option<&RunPrefix>) -> Result<RunSummary, Failure> {
    let mut fitting = runs(folder)?;
    let Some(wanted) = wanted else {
        return fitting.pop().ok_or_else(|| {
            Failure::new(
                "audit-no-run",
                "no run is on record",
                "run something first, such as: ringfence run -- true",
            )
        });
    };
    fitting.retain(|run| wanted.matches(run.run));
    match fitting.len() {
        0 => Err(Failure::new(
            "audit-no-run",
            "no such run is on record",
            "ringfence audit list shows those that are",
        )),
        1 => Ok(fitting.remove(0)),
        count => Err(Failure::new(
            "audit-run-ambiguous",
            format!("the ids of {count} runs begin so"),
            "name more of the id; ringfence audit list shows them",
        )),
    }
}

/// The last run that worked in this folder: the log has those of every project.
pub(crate) fn last_run_in(folder: &Path, working: &Path) -> Result<RunSummary, Failure> {
    let working = Text::new(&working.to_string_lossy());
    let mut runs = runs(folder)?;
    runs.retain(|run| run.working_folder.as_ref() == Some(&working));
    runs.pop().ok_or_else(|| {
        Failure::new(
            "audit-no-run",
            "no run in this folder is on record",
            "ringfence audit list shows those that are; name one by its id",
        )
    })
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
