//! `ringfence secret`: secrets kept for credentials, in an encrypted file.

mod list;
pub(crate) mod passphrase;
mod remove;
mod set;

use ringfence_runtime::{Directories, SecretStore, StoreError};

use crate::descriptor;
use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;

/// Keep secrets that credentials name, outside of every sandbox
///
/// They are in an encrypted file in ~/.local/share/ringfence/secrets, or below
/// `XDG_DATA_HOME` where that is set; its key is in a file beside it, or made
/// from a passphrase. A policy names one with `secret: NAME`.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  ringfence secret set forge                 type the value, unseen
  ringfence secret set forge < token.txt     … or read it from a file
  ringfence secret list                      names, and when each was set
  ringfence secret remove forge"
)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    action: SecretAction,
}

#[derive(Debug, clap::Subcommand)]
enum SecretAction {
    Set(set::SetArgs),
    List(list::ListArgs),
    Remove(remove::RemoveArgs),
}

/// How the store is opened, and who reads what is said about it.
#[derive(Debug, clap::Args)]
struct StoreArgs {
    /// Read the store's passphrase from this descriptor; without it, it is asked for on the
    /// terminal
    #[arg(long, value_name = "N", value_parser = descriptor::number)]
    passphrase_fd: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl StoreArgs {
    /// The store of this user. From here on nobody else can look into this
    /// process.
    fn open(&self) -> Result<SecretStore, Failure> {
        ringfence_sys::keep_secrets().map_err(|errno| {
            let message = format!("cannot keep other processes from this one's memory: {errno}");
            Failure::new("memory-exposed", message, "see: ringfence doctor")
        })?;
        let env = environment::own();
        let host = env.look_at_host()?;
        let folder = Directories::of(&env, &host).secrets;
        let ask = passphrase::asking(self.passphrase_fd);
        Ok(SecretStore::new(&folder, Some(ask)))
    }
}

pub(crate) fn main(arguments: &SecretArgs) -> ExitCode {
    let (done, json) = match &arguments.action {
        SecretAction::Set(arguments) => (set::set(arguments), arguments.store.json),
        SecretAction::List(arguments) => (list::list(arguments), arguments.store.json),
        SecretAction::Remove(arguments) => (remove::remove(arguments), arguments.store.json),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(json),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
