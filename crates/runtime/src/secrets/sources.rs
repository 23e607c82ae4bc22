//! Where a secret is found: variables, files, programs and the store, each
//! read when it is needed.

mod command;
mod file;
mod json;
mod shared;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_egress::SecretError;
use ringfence_policy::SecretSource;
use zeroize::Zeroizing;

use self::command::SecretCommand;
use self::file::SecretFile;
use super::store::{SecretName, SecretStore};
use super::writable::WritablePlaces;

use self::command::ProgramError;

/// What secrets are looked for in.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The home folder.
    pub(crate) home: PathBuf,
    /// Where programs are looked for, as the variable `PATH` has it.
    pub(crate) path: Option<OsString>,
    /// What code inside can change.
    pub(crate) writable: WritablePlaces,
    /// Files that are shown inside without their secrets, wherever they lie.
    pub(crate) masked: Vec<PathBuf>,
}

/// What code inside could do about a source.
#[derive(Debug, Clone, Copy)]
pub(super) enum Danger<'a> {
    /// Have what it likes run outside.
    Command(&'a ProgramError),
    /// See what takes the file's place: it is hidden by a mount, which goes
    /// with the file when another is renamed to its name.
    File {
        /// As the policy has it.
        named: &'a str,
        /// What code inside can change.
        place: &'a Path,
    },
    /// See the file by another of its names.
    Linked {
        /// As the policy has it.
        named: &'a str,
    },
}

/// Looks up a variable of the environment.
pub(crate) type Variable = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// A source, ready to be read.
pub(super) enum Source {
    Variable(String),
    File(SecretFile),
    Command(SecretCommand),
    Store(String),
}

impl Source {
    pub(super) fn new(source: &SecretSource, surroundings: &Surroundings) -> Self {
        match source {
            SecretSource::Env(name) => Self::Variable(name.clone()),
            SecretSource::File { path, key } => {
                Self::File(SecretFile::new(path, key.as_deref(), surroundings))
            }
            SecretSource::Command { argv, refresh } => {
                let refresh = refresh.map(ringfence_policy::TimeSpan::as_duration);
                Self::Command(SecretCommand::new(argv, refresh, surroundings))
            }
            SecretSource::Store(name) => Self::Store(name.clone()),
        }
    }

    /// Why it must not be used, if code inside could have a say in it.
    pub(super) fn danger(&self) -> Option<Danger<'_>> {
        match self {
            Self::Command(command) => command.danger().map(Danger::Command),
            Self::File(file) => file.danger(),
            Self::Variable(_) | Self::Store(_) => None,
        }
    }

    /// Whether it has something that can be read without waiting.
    pub(super) fn is_at_hand(&self, variable: &Variable) -> bool {
        match self {
            Self::Variable(name) => of_variable(name, variable).is_ok(),
            Self::File(_) | Self::Command(_) | Self::Store(_) => false,
        }
    }

    /// What it holds now, as it is there.
    pub(super) fn read(
        &self,
        variable: &Variable,
        store: &SecretStore,
    ) -> Result<Zeroizing<String>, SecretError> {
        match self {
            Self::Variable(name) => of_variable(name, variable),
            Self::File(file) => file.read(),
            Self::Command(command) => command.read(),
            Self::Store(name) => of_store(name, store),
        }
    }
}

/// An empty variable is as good as none.
fn of_variable(name: &str, variable: &Variable) -> Result<Zeroizing<String>, SecretError> {
    let value = variable(name).filter(|value| !value.is_empty());
    let value =
        value.ok_or_else(|| SecretError::Missing(format!("the variable {name} is not set")))?;
    value.into_string().map(Zeroizing::new).map_err(|value| {
        drop(Zeroizing::new(value.into_encoded_bytes()));
        SecretError::Malformed(format!("the variable {name} is not UTF-8 text"))
    })
}

fn of_store(name: &str, store: &SecretStore) -> Result<Zeroizing<String>, SecretError> {
    let missing = || SecretError::Missing(format!("the secret store has no {name}"));
    let name: SecretName = name.parse().map_err(|_| missing())?;
    let secret = store
        .get(&name)
        .map_err(|error| SecretError::Failed(error.to_string()))?;
    let secret = secret.ok_or_else(missing)?;
    Ok(Zeroizing::new(secret.expose().to_owned()))
}
