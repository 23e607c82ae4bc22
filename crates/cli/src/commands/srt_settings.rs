//! `ringfence srt-settings`: the settings that the environment means, as a
//! file for `srt --settings`.

use std::path::{Path, PathBuf};

use ringfence_policy::variables::kagent_settings;

use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

const EXAMPLES: &str = "Examples:
  KAGENT_ALLOWED_DOMAINS='api.example.org,*.example.com' ringfence srt-settings
  ringfence srt-settings --output settings.json && srt --settings settings.json npm test

The working folder and /tmp are writable. Without KAGENT_ALLOWED_DOMAINS nothing is reachable; a host in
KAGENT_DENIED_DOMAINS never is.";

/// Print the settings of srt that the environment means
///
/// Turns the lists of hosts in the environment, with commas between them, into
/// a settings file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SrtSettingsArgs {
    /// Write them to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn main(arguments: &SrtSettingsArgs) -> ExitCode {
    match show(arguments.output.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(false),
    }
}

fn show(output: Option<&Path>) -> Result<(), Failure> {
    let env = environment::own();
    let settings = kagent_settings(|name| env.text(name))
        .map_err(|error| Failure::new(error.code(), error.to_string(), error.hint()))?;
    let Some(path) = output else {
        output::print_json(&settings);
        return Ok(());
    };
    let text = serde_json::to_string_pretty(&settings).unwrap_or_default();
    std::fs::write(path, text + "\n").map_err(|error| {
        Failure::new(
            "settings-unwritable",
            format!("{}: {error}", path.display()),
            "name a file in an existing folder",
        )
    })
}
