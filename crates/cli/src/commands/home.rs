//! `ringfence home`: layers of home directories that are kept from run to run.

mod list;
mod prune;
mod remove;
mod show;

use ringfence_runtime::{Directories, Homes, HomesError, Size};

use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;

/// Look after home directories that runs have kept
///
/// `ringfence run --home keep` keeps what the command changes in its home, for
/// the next run in the same project; `--home keep=NAME` by a name of yours.
/// They are in ~/.local/state/ringfence/homes, or below `XDG_STATE_HOME` where
/// that is set.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence home list                        names, projects, sizes
  ringfence home show web                    … and what is in one
  ringfence home remove web
  ringfence home prune --older-than 30d      those that no run used for so long"
)]
pub(crate) struct HomeArgs {
    #[command(subcommand)]
    action: HomeAction,
}

#[derive(Debug, clap::Subcommand)]
enum HomeAction {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Remove(remove::RemoveArgs),
    Prune(prune::PruneArgs),
}

pub(crate) fn main(arguments: &HomeArgs) -> ExitCode {
    let (done, json) = match &arguments.action {
        HomeAction::List(arguments) => (list::list(arguments), arguments.json),
        HomeAction::Show(arguments) => (show::show(arguments), arguments.json),
        HomeAction::Remove(arguments) => (remove::remove(arguments), arguments.json),
        HomeAction::Prune(arguments) => (prune::prune(arguments), arguments.json),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(json),
    }
}

/// The kept homes of this user.
fn homes() -> Result<Homes, Failure> {
    let env = environment::own();
    let host = env.look_at_host()?;
    Ok(Homes::new(Directories::of(&env, &host).homes))
}

/// A size in a few characters.
fn in_short(size: &Size) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut number = size.bytes;
    let mut unit = 0;
    while number >= 10 * 1024 && unit + 1 < UNITS.len() {
        number = number.div_ceil(1024);
        unit += 1;
    }
    let more = if size.is_partial { "+" } else { "" };
    format!("{number} {}{more}", UNITS[unit])
}

impl From<HomesError> for Failure {
    fn from(error: HomesError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_and_say_when_there_is_more() {
        let text = |bytes, is_partial| {
            in_short(&Size {
                bytes,
                is_partial,
                entries: 0,
            })
        };
        assert_eq!(text(0, false), "0 B");
        assert_eq!(text(10 * 1024, false), "10 KiB");
        assert_eq!(text(5 << 30, true), "5120 MiB+");
    }
}
