//! `ringfence home show`: what is in a kept home.

use ringfence_policy::HomeName;
use ringfence_runtime::Entry;

use super::{homes, list};
use crate::error::Failure;
use crate::output;

/// Show a kept home, and what is at the top of it
///
/// Code inside wrote it: nothing of it is read or followed. `removed` is what
/// it removed of the host's own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence home show web")]
pub(super) struct ShowArgs {
    /// What it is called
    name: HomeName,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn show(arguments: &ShowArgs) -> Result<(), Failure> {
    let (home, entries) = homes()?.show(&arguments.name)?;
    if arguments.json {
        output::print_json(&serde_json::json!({ "home": home, "entries": entries }));
        return Ok(());
    }
    output::print_text(&list::table(&[home]));
    if !entries.is_empty() {
        let cells = |entry: &Entry| vec![entry.kind.as_str().to_owned(), entry.name.clone()];
        let rows: Vec<Vec<String>> = entries.iter().map(cells).collect();
        output::print_text(&format!("\n{}", output::columns(&rows)));
    }
    Ok(())
}
