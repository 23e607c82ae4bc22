//! `ringfence audit`: what runs did, and whether their record is whole.

mod export;
mod list;
mod show;
mod story;
pub(crate) mod stream;
mod tail;
mod verify;
mod which;

use std::path::PathBuf;

use ringfence_audit::ReadError;
use ringfence_runtime::Directories;

pub(crate) use self::which::WhichRun;

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

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
