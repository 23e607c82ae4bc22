//! [`SecretStore`]: secrets in one encrypted file.
//!
//! The file is read anew each time, so that what one process sets the next
//! request of another finds. It is replaced as a whole, by one writer at a
//! time.

mod contents;
mod error;
mod key;
mod name;
mod passphrase;
mod sealed;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ringfence_audit::Timestamp;
use ringfence_egress::Secret;
use serde::Serialize;
use zeroize::Zeroizing;

use self::contents::{Contents, Kept};
use self::key::{KEY_FILE, Key, Recipe};
use self::sealed::{Lock, SealError, Sealed, seal};
use super::folder::{Locked, PrivateFolder};

pub use error::StoreError;
pub use name::{SecretName, SecretNameError};
pub use passphrase::{AskPassphrase, PassphraseError, Purpose};

const FILE: &str = "secrets";
/// The largest file, in bytes.
const LARGEST: usize = 80 * 1024 * 1024;

/// How a store that is not there yet will be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// With a random key in a file beside it.
    KeyFile,
    /// With a passphrase.
    Passphrase,
}

/// One secret, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredSecret {
    /// What it is called.
    pub name: String,
    /// When it was set.
    pub set: Timestamp,
}

/// The secrets of one user.
pub struct SecretStore {
    path: PathBuf,
    ask: Option<AskPassphrase>,
    /// The key that was made from the passphrase, with what it was made by.
    derived: Mutex<Option<(Recipe, Key)>>,
}

impl SecretStore {
    /// The store in a folder, which need not be there. Nothing is read yet.
    pub fn new(folder: &Path, ask: Option<AskPassphrase>) -> Self {
        Self {
            path: folder.to_path_buf(),
            ask,
            derived: Mutex::new(None),
        }
    }

    /// Sets a secret. `protection` is what a store that is made for it gets;
    /// one with a key file does not get a passphrase.
    pub fn set(
        &self,
        name: &SecretName,
        secret: &Secret,
        protection: Protection,
    ) -> Result<(), StoreError> {
        let folder = PrivateFolder::make(&self.path)?;
        let locked = folder.lock()?;
        let (lock, key, mut contents) = match self.open(&folder)? {
            Some(opened) => opened,
            None => self.fresh(&folder, &locked, protection)?,
        };
        if lock == Lock::KeyFile && protection == Protection::Passphrase {
            return Err(StoreError::HasKeyFile);
        }
        let kept = Kept {
            set: Timestamp::now(),
            value: Zeroizing::new(secret.expose().to_owned()),
        };
        if !contents.set(name.clone(), kept) {
            return Err(StoreError::Full);
        }
        Ok(locked.replace(FILE, &seal(&lock, &key, &contents)?)?)
    }

    /// A secret, if there is one of that name.
    pub fn get(&self, name: &SecretName) -> Result<Option<Secret>, StoreError> {
        let contents = self.contents()?;
        let kept = contents.get(name);
        Ok(kept.map(|kept| Secret::new(kept.value.as_str().to_owned())))
    }

    /// Every secret, by name.
    pub fn list(&self) -> Result<Vec<StoredSecret>, StoreError> {
        let contents = self.contents()?;
        let secrets = contents.iter().map(|(name, kept)| StoredSecret {
            name: name.to_string(),
            set: kept.set,
        });
        Ok(secrets.collect())
    }

    /// Removes a secret. With the last one the store and its key go, so that
    /// the next may be locked otherwise.
    pub fn remove(&self, name: &SecretName) -> Result<(), StoreError> {
        let none = || StoreError::NoSuchSecret(name.clone());
        let folder = PrivateFolder::open(&self.path)?.ok_or_else(none)?;
        let locked = folder.lock()?;
        let (lock, key, mut contents) = self.open(&folder)?.ok_or_else(none)?;
        if !contents.remove(name) {
            return Err(none());
        }
        if contents.is_empty() {
            locked.remove(FILE)?;
            return Ok(locked.remove(KEY_FILE)?);
        }
        Ok(locked.replace(FILE, &seal(&lock, &key, &contents)?)?)
    }

    /// Asks for the passphrase now, if the store has one: later there may be
    /// nobody to ask.
    pub fn unlock(&self) -> Result<(), StoreError> {
        let Some(folder) = PrivateFolder::open(&self.path)? else {
            return Ok(());
        };
        self.open(&folder).map(drop)
    }

    fn contents(&self) -> Result<Contents, StoreError> {
        let Some(folder) = PrivateFolder::open(&self.path)? else {
            return Ok(Contents::default());
        };
        let opened = self.open(&folder)?;
        Ok(opened.map(|(_, _, contents)| contents).unwrap_or_default())
    }

    fn open(&self, folder: &PrivateFolder) -> Result<Option<(Lock, Key, Contents)>, StoreError> {
        let Some(bytes) = folder.read(FILE, LARGEST)? else {
            return Ok(None);
        };
        let path = folder.path_of(FILE);
        let sealed = Sealed::read(&bytes).map_err(|error| unfit(error, path.clone()))?;
        match sealed.lock {
            Lock::KeyFile => {
                let path_of_key = folder.path_of(KEY_FILE);
                let key = key::read(folder)?.ok_or(StoreError::NoKey { path: path_of_key })?;
                let contents = sealed.open(&key).map_err(|error| unfit(error, path))?;
                Ok(Some((sealed.lock, key, contents)))
            }
            Lock::Passphrase(recipe) => {
                let key = self.derive(&recipe)?;
                let contents = sealed.open(&key);
                let contents = contents.map_err(|_| StoreError::WrongPassphrase { path })?;
                self.remember(recipe, &key);
                Ok(Some((sealed.lock, key, contents)))
            }
        }
    }

    /// What a store starts from.
    fn fresh(
        &self,
        folder: &PrivateFolder,
        locked: &Locked<'_>,
        protection: Protection,
    ) -> Result<(Lock, Key, Contents), StoreError> {
        let (lock, key) = match protection {
            Protection::KeyFile => {
                // One may be left of a writer that died before its store.
                let key = key::read(folder)?.map_or_else(|| key::make(locked), Ok)?;
                (Lock::KeyFile, key)
            }
            Protection::Passphrase => {
                let recipe = Recipe::fresh()?;
                let key = recipe.derive(&self.ask(Purpose::New)?)?;
                (Lock::Passphrase(recipe), key)
            }
        };
        Ok((lock, key, Contents::default()))
    }

    /// The key by this recipe, asking only when it is not known yet.
    fn derive(&self, recipe: &Recipe) -> Result<Key, StoreError> {
        let known = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((by, key)) = known.as_ref()
            && by == recipe
        {
            return Ok(key.clone());
        }
        drop(known);
        recipe.derive(&self.ask(Purpose::Open)?)
    }

    fn remember(&self, recipe: Recipe, key: &Key) {
        let mut known = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((recipe, key.clone()));
    }

    fn ask(&self, purpose: Purpose) -> Result<Zeroizing<String>, StoreError> {
        let ask = self.ask.as_ref().ok_or(PassphraseError::NobodyToAsk)?;
        let passphrase = ask(purpose)?;
        passphrase::check(&passphrase)?;
        Ok(passphrase)
    }
}

fn unfit(error: SealError, path: PathBuf) -> StoreError {
    match error {
        SealError::Foreign => StoreError::ForeignFile { path },
        SealError::Version(version) => StoreError::Version { path, version },
        SealError::Damaged => StoreError::Damaged { path },
    }
}

#[cfg(test)]
mod tests;
