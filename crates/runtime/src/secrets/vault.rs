//! [`HostVault`]: the secrets of one run, read on the host at each request.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringfence_egress::{Secret, SecretError, Vault};
use ringfence_policy::{Credential, Extract, SecretSource, Sourced};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::sources::{Danger, Source, Surroundings, Variable};
use super::store::{AskPassphrase, PassphraseError, SecretStore, StoreError};
use super::value;
use crate::host_env::HostEnv;

/// Where the secrets of a run are looked for.
#[derive(Default)]
pub struct SecretSettings {
    /// The folder of the secret store.
    pub store: PathBuf,
    /// Asks for the store's passphrase, if it has one.
    pub passphrase: Option<AskPassphrase>,
}

/// Why there are no secrets to be had. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// Others could read our memory.
    #[error("cannot keep other processes from this one's memory: {0}")]
    Memory(Errno),
    /// The store that a credential names cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Code inside could make us run what it likes.
    #[error("the credential {service} cannot be used: the command {error}")]
    UnsafeCommand {
        /// The service.
        service: String,
        /// Why.
        error: String,
    },
    /// Code inside could read what comes to be there.
    #[error("the credential {service} cannot be used: {file} leads through {}, which code inside can read and write to", .place.display())]
    ExposedFile {
        /// The service.
        service: String,
        /// As the policy has it.
        file: String,
        /// What code inside can change.
        place: PathBuf,
    },
    /// Code inside may see the file by another name.
    #[error(
        "the credential {service} cannot be used: {file} has another name, a hard link, that is not hidden"
    )]
    LinkedFile {
        /// The service.
        service: String,
        /// As the policy has it.
        file: String,
    },
    /// A credential that the policy requires.
    #[error("the credential {service} is required: {error}")]
    Required {
        /// The service.
        service: String,
        /// Why there is none.
        error: SecretError,
    },
}

impl VaultError {
    fn danger(service: &str, danger: Danger<'_>) -> Self {
        let service = service.to_owned();
        match danger {
            Danger::Command(error) => Self::UnsafeCommand {
                service,
                error: error.to_string(),
            },
            Danger::File { named, place } => Self::ExposedFile {
                service,
                file: named.to_owned(),
                place: place.to_path_buf(),
            },
            Danger::Linked { named } => Self::LinkedFile {
                service,
                file: named.to_owned(),
            },
        }
    }

    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory-exposed",
            Self::Store(error) => error.code(),
            Self::UnsafeCommand { .. } => "credential-command-unsafe",
            Self::ExposedFile { .. } => "credential-file-exposed",
            Self::LinkedFile { .. } => "credential-file-linked",
            Self::Required { .. } => "credential-unavailable",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Memory(_) => "see what this machine can enforce: ringfence doctor",
            Self::Store(error) => error.hint(),
            Self::ExposedFile { .. } => {
                "keep the file where the sandbox does not write, or use the secret store: ringfence secret set NAME"
            }
            Self::LinkedFile { .. } => {
                "make it a file of its own: cp FILE FILE.new && mv FILE.new FILE; or find the other name: find / -xdev -samefile FILE"
            }
            Self::UnsafeCommand { .. } => {
                "keep the program and its files where the sandbox does not write, or run it in another folder"
            }
            Self::Required { .. } => {
                "put the secret where the policy looks for it, for example: ringfence secret set NAME"
            }
        }
    }
}

/// The secrets that a policy's credentials name.
pub(crate) struct HostVault {
    credentials: BTreeMap<String, Entry>,
    variable: Variable,
    store: SecretStore,
}

struct Entry {
    sources: Vec<Source>,
    extract: Option<Extract>,
    /// It may be one that can be found by trying.
    weak: bool,
}

impl HostVault {
    /// Prepares them, and makes sure that those which are required can be had.
    /// After the sandbox was made, so that its init, which begins as a copy of
    /// this process, has none of them in its memory.
    pub(crate) fn open(
        credentials: &[Sourced<Credential>],
        surroundings: &Surroundings,
        settings: SecretSettings,
        env: &HostEnv,
    ) -> Result<Self, VaultError> {
        ringfence_sys::keep_secrets().map_err(VaultError::Memory)?;
        let env = env.clone();
        let variable: Variable = Box::new(move |name| env.variable(name));
        let vault = Self::new(credentials, surroundings, variable, settings);
        vault.refuse_danger()?;
        if credentials.iter().any(|credential| uses_store(credential)) {
            vault.unlock()?;
        }
        vault.check_required(credentials)?;
        Ok(vault)
    }

    fn new(
        credentials: &[Sourced<Credential>],
        surroundings: &Surroundings,
        variable: Variable,
        settings: SecretSettings,
    ) -> Self {
        let entry = |credential: &Sourced<Credential>| {
            let sources = credential.sources.iter();
            let sources = sources.map(|source| Source::new(source, surroundings));
            let entry = Entry {
                sources: sources.collect(),
                extract: credential.extract.clone(),
                weak: credential.weak,
            };
            (credential.service.clone(), entry)
        };
        Self {
            credentials: credentials.iter().map(entry).collect(),
            variable,
            store: SecretStore::new(&settings.store, settings.passphrase),
        }
    }

    /// Code inside has a part in it: better nothing runs at all.
    fn refuse_danger(&self) -> Result<(), VaultError> {
        for (service, entry) in &self.credentials {
            if let Some(danger) = entry.sources.iter().find_map(Source::danger) {
                return Err(VaultError::danger(service, danger));
            }
        }
        Ok(())
    }

    /// Where nobody can be asked, requests that need the store fail and the
    /// rest works.
    fn unlock(&self) -> Result<(), VaultError> {
        match self.store.unlock() {
            Err(StoreError::Passphrase(PassphraseError::NobodyToAsk)) => Ok(()),
            other => Ok(other?),
        }
    }

    fn check_required(&self, credentials: &[Sourced<Credential>]) -> Result<(), VaultError> {
        for credential in credentials.iter().filter(|credential| credential.required) {
            let service = &credential.service;
            self.secret(service).map_err(|error| VaultError::Required {
                service: service.clone(),
                error,
            })?;
        }
        Ok(())
    }

    /// What the first source that has something has.
    fn read(&self, entry: &Entry) -> Result<Zeroizing<String>, SecretError> {
        let mut missing = Vec::new();
        for source in &entry.sources {
            match source.read(&self.variable, &self.store) {
                Err(SecretError::Missing(why)) => missing.push(why),
                other => return other,
            }
        }
        Err(SecretError::Missing(missing.join("; ")))
    }
}

impl Vault for HostVault {
    fn secret(&self, service: &str) -> Result<Secret, SecretError> {
        let entry = self
            .credentials
            .get(service)
            .ok_or_else(|| SecretError::Missing(format!("there is no credential {service}")))?;
        let mut text = self.read(entry)?;
        let malformed = |why: &dyn std::fmt::Display| {
            SecretError::Malformed(format!("the secret of {service}: {why}"))
        };
        match &entry.extract {
            None => value::without_line_end(&mut text),
            Some(extract) => {
                let part = extract.secret(&text).map_err(|error| malformed(&error))?;
                let part = Zeroizing::new(part.to_owned());
                text = part;
            }
        }
        let secret = value::secret(text).map_err(|error| malformed(&error))?;
        if !entry.weak && value::is_weak(secret.expose()) {
            let error = value::ValueError::Weak;
            return Err(malformed(&format!("{error}: {}", error.hint())));
        }
        Ok(secret)
    }

    fn may_block(&self, service: &str) -> bool {
        let entry = self.credentials.get(service);
        let first = entry.and_then(|entry| entry.sources.first());
        !first.is_some_and(|source| source.is_at_hand(&self.variable))
    }
}

fn uses_store(credential: &Credential) -> bool {
    let mut sources = credential.sources.iter();
    sources.any(|source| matches!(source, SecretSource::Store(_)))
}

#[cfg(test)]
mod tests;
