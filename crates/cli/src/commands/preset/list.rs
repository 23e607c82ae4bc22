//! `ringfence preset list`: every preset, in one line each.

use ringfence_policy::Preset;

use super::Shown;
use crate::exit::ExitCode;
use crate::output;

/// List the presets and what each is for
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence preset list --json")]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(arguments: &ListArgs) -> ExitCode {
    let presets: Vec<Preset> = Preset::all().collect();
    if arguments.json {
        let shown: Vec<Shown<'_>> = presets.iter().map(Shown::new).collect();
        output::print_json(&shown);
    } else {
        output::print_text(&output::columns(&rows(&presets)));
    }
    ExitCode::SUCCESS
}

fn rows(presets: &[Preset]) -> Vec<Vec<String>> {
    let head = ["NAME", "KIND", "FOR"].map(str::to_owned).to_vec();
    let row = |preset: &Preset| {
        let kind = preset.kind.as_str().to_owned();
        vec![preset.name.clone(), kind, preset.description.clone()]
    };
    std::iter::once(head)
        .chain(presets.iter().map(row))
        .collect()
}
