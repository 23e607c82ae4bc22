//! `ringfence secret list`: what is kept, never the values.

use ringfence_runtime::StoredSecret;

use super::StoreArgs;
use crate::error::Failure;
use crate::output;

/// List the secrets that are kept, by name, and when each was set
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence secret list
  ringfence secret list --json | jq -r '.[].name'")]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

pub(super) fn list(arguments: &ListArgs) -> Result<(), Failure> {
    let secrets = arguments.store.open()?.list()?;
    if arguments.store.json {
        output::print_json(&secrets);
    } else if secrets.is_empty() {
        output::tell!("ringfence: there are no secrets");
    } else {
        output::print_text(&table(&secrets));
    }
    Ok(())
}

fn table(secrets: &[StoredSecret]) -> String {
    let titles = vec!["NAME".to_owned(), "SET".to_owned()];
    let cells = |secret: &StoredSecret| vec![secret.name.clone(), secret.set.to_seconds()];
    let rows: Vec<Vec<String>> = std::iter::once(titles)
        .chain(secrets.iter().map(cells))
        .collect();
    output::columns(&rows)
}
