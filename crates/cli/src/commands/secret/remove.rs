//! `ringfence secret remove`: forgets a secret.

use ringfence_runtime::SecretName;

use super::StoreArgs;
use crate::error::Failure;
use crate::output;

/// Remove a secret; with the last one the store and its key go
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ringfence secret remove forge")]
pub(super) struct RemoveArgs {
    /// What it is called
    name: SecretName,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

pub(super) fn remove(arguments: &RemoveArgs) -> Result<(), Failure> {
    let name = &arguments.name;
    arguments.store.open()?.remove(name)?;
    if arguments.store.json {
        output::print_json(&serde_json::json!({ "removed": name.to_string() }));
    } else {
        output::tell!("ringfence: the secret {name} is removed");
    }
    Ok(())
}
