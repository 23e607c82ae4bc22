//! `ringfence secret set`: keeps a value, which is never an argument.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use ringfence_runtime::{Protection, ReadSecretError, Secret, SecretName, read_secret};

use super::{StoreArgs, passphrase};
use crate::error::Failure;
use crate::output;

/// Keep a secret under a name, or another value for one
///
/// The value is one line on standard input, or typed unseen on the terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence secret set forge
  pass show forge/token | ringfence secret set forge
  ringfence secret set --passphrase forge < token.txt")]
pub(super) struct SetArgs {
    /// What to call it: letters, digits, '-', '_' and '.'
    name: SecretName,
    /// Lock a store that is made now with a passphrase, not with a key in a file
    #[arg(long)]
    passphrase: bool,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

pub(super) fn set(arguments: &SetArgs) -> Result<(), Failure> {
    let name = &arguments.name;
    let store = arguments.store.open()?;
    let secret = value(name)?;
    let has_passphrase = arguments.passphrase || arguments.store.passphrase_fd.is_some();
    let protection = if has_passphrase {
        Protection::Passphrase
    } else {
        Protection::KeyFile
    };
    store.set(name, &secret, protection)?;
    if arguments.store.json {
        output::print_json(&serde_json::json!({ "set": name.to_string() }));
    } else {
        output::tell!("ringfence: the secret {name} is set");
    }
    Ok(())
}

fn value(name: &SecretName) -> Result<Secret, Failure> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let typed = passphrase::prompt(&format!("Secret {name}: "));
        let typed = typed.map_err(|error| unreadable(&error))?;
        return read_secret(typed.as_bytes()).map_err(unusable);
    }
    // The standard library's own buffer would keep a copy.
    let input = input.as_fd().try_clone_to_owned();
    let input = File::from(input.map_err(|error| unreadable(&error))?);
    read_secret(input).map_err(unusable)
}

fn unreadable(error: &std::io::Error) -> Failure {
    let message = format!("cannot read the secret: {error}");
    Failure::new("secret-unreadable", message, "give it on standard input")
}

fn unusable(error: ReadSecretError) -> Failure {
    match error {
        ReadSecretError::Read(error) => unreadable(&error),
        ReadSecretError::Value(error) => {
            let message = format!("the secret cannot be used: {error}");
            Failure::new("secret-malformed", message, error.hint())
        }
    }
}
