//! `ringfence home prune`: removes kept homes that are not used any more.

use ringfence_policy::TimeSpan;

use super::homes;
use crate::error::Failure;
use crate::output;

/// Remove the kept homes that no run used for a while
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence home prune
  ringfence home prune --older-than 7d --json")]
pub(super) struct PruneArgs {
    /// For how long no run used it
    #[arg(long, value_name = "SPAN", default_value = "30d")]
    older_than: TimeSpan,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn prune(arguments: &PruneArgs) -> Result<(), Failure> {
    let removed = homes()?.prune(arguments.older_than.as_duration())?;
    if arguments.json {
        output::print_json(&serde_json::json!({ "removed": removed }));
    } else if removed.is_empty() {
        output::tell!("ringfence: there is nothing to remove");
    } else {
        output::tell!("ringfence: removed {}", removed.join(", "));
    }
    Ok(())
}
