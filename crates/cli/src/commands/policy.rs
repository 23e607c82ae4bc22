//! `ringfence policy`: what the policy says, and why.

mod check;
mod explain;
mod log;
mod schema;
mod show;

use crate::exit::ExitCode;

/// Check, explain and show policies, and what they let out
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example:\n  ringfence policy explain api.example.org --allow '*.example.org'"
)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Check(check::CheckArgs),
    Explain(explain::ExplainArgs),
    Log(log::LogArgs),
    Show(show::ShowArgs),
    Schema(schema::SchemaArgs),
}

pub(crate) fn main(arguments: PolicyArgs) -> ExitCode {
    match arguments.action {
        Action::Check(arguments) => check::main(&arguments),
        Action::Explain(arguments) => explain::main(arguments),
        Action::Log(arguments) => log::main(&arguments),
        Action::Show(arguments) => show::main(arguments),
        Action::Schema(arguments) => schema::main(&arguments),
    }
}
