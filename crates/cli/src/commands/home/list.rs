//! `ringfence home list`: which homes are kept.

use ringfence_runtime::KeptHome;

use super::{homes, in_short};
use crate::error::Failure;
use crate::output;

/// List the kept homes: which project used each last, when, and what it takes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence home list
  ringfence home list --json | jq -r '.[].name'")]
pub(super) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn list(arguments: &ListArgs) -> Result<(), Failure> {
    let kept = homes()?.list()?;
    if arguments.json {
        output::print_json(&kept);
    } else if kept.is_empty() {
        output::tell!("ringfence: there are no kept homes");
    } else {
        output::print_text(&table(&kept));
    }
    Ok(())
}

/// A table of kept homes.
pub(super) fn table(kept: &[KeptHome]) -> String {
    let titles = ["NAME", "PROJECT", "USED", "SIZE", "ENTRIES"].map(str::to_owned);
    let cells = |home: &KeptHome| {
        let used = match home.used {
            _ if home.in_use => "now".to_owned(),
            Some(used) => used.to_seconds(),
            None => "-".to_owned(),
        };
        vec![
            home.name.clone(),
            home.project.clone().unwrap_or_else(|| "-".to_owned()),
            used,
            in_short(&home.size),
            home.size.entries.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(titles.to_vec())
        .chain(kept.iter().map(cells))
        .collect();
    output::columns(&rows)
}
