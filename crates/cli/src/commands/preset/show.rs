//! `ringfence preset show`: all that a preset gives.

use ringfence_policy::Preset;

use super::{PresetName, Shown, home};
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// Show what a preset gives: hosts, ports, variables, and what is kept in the home folder
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  ringfence preset show node\n  ringfence preset show claude --json"
)]
pub(crate) struct ShowArgs {
    /// The preset
    #[arg(value_name = "NAME", value_parser = PresetName, hide_possible_values = true)]
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &ShowArgs) -> ExitCode {
    let preset = match Preset::named(&arguments.name) {
        Ok(preset) => preset,
        Err(error) => return Failure::from(error).show(arguments.json),
    };
    if arguments.json {
        output::print_json(&Shown::new(&preset));
    } else {
        output::print_text(&output::columns(&rows(&preset)));
    }
    ExitCode::SUCCESS
}

/// What it gives, one thing a row.
fn rows(preset: &Preset) -> Vec<Vec<String>> {
    let row = |section: &str, entry: String| vec![section.to_owned(), entry];
    let environment = &preset.environment;
    let mut rows = vec![
        row("preset", preset.name.clone()),
        row("for", preset.description.clone()),
        row("kind", preset.kind.as_str().to_owned()),
    ];
    let hosts = preset.hosts.iter();
    rows.extend(hosts.map(|own| row("allow", own.to_string())));
    let ports = preset.host_ports.iter();
    rows.extend(ports.map(|own| row("host port", own.to_string())));
    let pass = environment.pass.iter();
    rows.extend(pass.map(|own| row("pass", own.value.clone())));
    let set = environment.set.iter();
    rows.extend(set.map(|(name, value)| row("set", format!("{name}={}", value.value))));
    rows.extend(home(preset).map(|own| row("home", own)));
    if preset.keep_home {
        let text = "the home's layer, for this preset and the project (--home private: not)";
        rows.push(row("keeps", text.to_owned()));
    }
    let detect = preset.detect.iter();
    rows.extend(detect.map(|own| row("detected by", own.to_string())));
    rows
}
