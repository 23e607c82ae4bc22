//! `ringfence completions`: scripts for shells.

use std::process::ExitCode;

use clap_complete::Shell;

/// Print a completion script
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ringfence completions bash > ~/.local/share/bash-completion/completions/ringfence"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn main(arguments: &CompletionsArgs) -> ExitCode {
    clap_complete::generate(
        arguments.shell,
        &mut super::whole(),
        "ringfence",
        &mut std::io::stdout(),
    );
    ExitCode::SUCCESS
}
