//! `ringfence policy show`: the policy that holds, rule by rule.

use ringfence_policy::rows;

use crate::commands::scope::ScopeArgs;
use crate::environment;
use crate::exit::ExitCode;
use crate::output;

/// Show the policy that holds, and where each rule comes from
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ringfence policy show --profile restrictive --allow api.example.org"
)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: ShowArgs) -> ExitCode {
    let policy = match arguments.scope.resolve(&environment::own()) {
        Ok(scope) => scope.policy,
        Err(failure) => return failure.show(arguments.json),
    };
    if arguments.json {
        output::print_json(&policy);
        return ExitCode::SUCCESS;
    }
    let table: Vec<Vec<String>> = rows(&policy)
        .into_iter()
        .map(|row| vec![row.section.to_owned(), row.entry, row.origin.to_string()])
        .collect();
    output::print_text(&output::columns(&table));
    for note in policy.notes() {
        output::print_text(&output::note_line(note));
    }
    ExitCode::SUCCESS
}
