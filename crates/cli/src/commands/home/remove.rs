//! `ringfence home remove`: removes a kept home.

use ringfence_policy::HomeName;

use super::homes;
use crate::error::Failure;
use crate::output;

/// Remove a kept home, unless a run uses it
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence home remove web")]
pub(super) struct RemoveArgs {
    /// What it is called
    name: HomeName,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn remove(arguments: &RemoveArgs) -> Result<(), Failure> {
    let name = &arguments.name;
    homes()?.remove(name)?;
    if arguments.json {
        output::print_json(&serde_json::json!({ "removed": [name.as_str()] }));
    } else {
        output::tell!("ringfence: the kept home {name} is removed");
    }
    Ok(())
}
