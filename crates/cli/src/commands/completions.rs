//! `ringfence completions`: scripts for shells.

use clap_complete::Shell;

use crate::exit::ExitCode;
use crate::output;

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
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut super::whole(),
        "ringfence",
        &mut script,
    );
    output::print_text(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
