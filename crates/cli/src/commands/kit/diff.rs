//! `ringfence kit diff`: what another content of a kit would change.

use ringfence_policy::{Change, Difference};
use ringfence_runtime::LoadedKit;
use serde::Serialize;

use super::ReadArgs;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Show what a kit has otherwise than another, and what that widens
///
/// Exits with 1 when the new kit can do more: a new allow, a removed deny, a new
/// credential or a new source or host of one, a new command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringfence kit diff git+https://forge.example.org/kits.git#ref=v1 git+https://forge.example.org/kits.git#ref=v2")]
pub(crate) struct DiffArgs {
    /// The kit as it was
    #[arg(value_name = "OLD")]
    old: String,
    /// The kit as it would be
    #[arg(value_name = "NEW")]
    new: String,
    #[command(flatten)]
    read: ReadArgs,
}

/// A comparison, as programs read it.
#[derive(Serialize)]
struct Compared<'a> {
    widened: bool,
    differences: &'a [Difference],
}

pub(crate) fn main(arguments: &DiffArgs) -> ExitCode {
    match compare(arguments) {
        Ok(differences) => show(&differences, arguments.read.json),
        Err(failure) => failure.exiting(2).show(arguments.read.json),
    }
}

fn compare(arguments: &DiffArgs) -> Result<Vec<Difference>, Failure> {
    let kits = [arguments.old.clone(), arguments.new.clone()];
    let loaded = arguments.read.read(&kits)?;
    let surfaces: Vec<_> = loaded.iter().map(LoadedKit::surface).collect();
    Ok(match surfaces.as_slice() {
        [old, new] => old.differences(new),
        _ => Vec::new(),
    })
}

fn show(differences: &[Difference], json: bool) -> ExitCode {
    let widened = differences.iter().any(|own| own.widens);
    if json {
        output::print_json(&Compared {
            widened,
            differences,
        });
    } else if differences.is_empty() {
        output::print_text("no difference");
    } else {
        let rows: Vec<Vec<String>> = differences.iter().map(cells).collect();
        output::print_text(&output::columns(&rows));
    }
    ExitCode::from(u8::from(widened))
}

fn cells(difference: &Difference) -> Vec<String> {
    let sign = match difference.change {
        Change::Added => "+",
        Change::Removed => "-",
        Change::Changed => "~",
    };
    let widens = if difference.widens { "wider" } else { "" };
    vec![
        sign.to_owned(),
        difference.part.clone(),
        difference.entry.clone(),
        widens.to_owned(),
    ]
}
