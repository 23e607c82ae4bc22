//! Why the store cannot be used.

use std::path::PathBuf;

use rustix::io::Errno;

use super::name::SecretName;
use super::passphrase::PassphraseError;
use crate::secrets::folder::FolderError;

/// Why a secret could not be kept, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder or a file of it.
    #[error("secret store: {0}")]
    Folder(#[from] FolderError),
    /// Something else has its name.
    #[error("{}: not a secret store", .path.display())]
    ForeignFile {
        /// The file.
        path: PathBuf,
    },
    /// Another version wrote it.
    #[error("{}: a secret store of version {version}, which this ringfence does not know", .path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// As written there.
        version: u8,
    },
    /// It is cut or altered, or the key is that of another store.
    #[error("{}: damaged, or locked with another key than the one beside it", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The passphrase is wrong; an altered file looks the same.
    #[error("{}: the passphrase is wrong, or the store is damaged", .path.display())]
    WrongPassphrase {
        /// The file.
        path: PathBuf,
    },
    /// There is a store, and no key.
    #[error("{}: the key of the secret store is not there", .path.display())]
    NoKey {
        /// Where it should be.
        path: PathBuf,
    },
    /// The key is none of ours.
    #[error("{}: not a key of a secret store", .path.display())]
    KeySize {
        /// The file.
        path: PathBuf,
    },
    /// There is a store already, with a key file.
    #[error("the secret store has a key file, not a passphrase")]
    HasKeyFile,
    /// There is no passphrase.
    #[error(transparent)]
    Passphrase(#[from] PassphraseError),
    /// The kernel gives nothing.
    #[error("the kernel gives no random numbers: {0}")]
    Random(Errno),
    /// No memory for it.
    #[error("cannot make a key from the passphrase")]
    Derive,
    /// The cipher takes no such length.
    #[error("cannot encrypt the secret store")]
    Encrypt,
    /// There are too many.
    #[error("the secret store is full")]
    Full,
    /// There is none of that name.
    #[error("there is no secret {0}")]
    NoSuchSecret(SecretName),
}

impl StoreError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Folder(_) => "secret-store-unavailable",
            Self::ForeignFile { .. } | Self::Version { .. } | Self::Damaged { .. } => {
                "secret-store-damaged"
            }
            Self::NoKey { .. } | Self::KeySize { .. } => "secret-store-no-key",
            Self::WrongPassphrase { .. } => "wrong-passphrase",
            Self::HasKeyFile => "secret-store-has-key",
            Self::Passphrase(error) => error.code(),
            Self::Random(_) | Self::Derive | Self::Encrypt => "secret-store-failed",
            Self::Full => "secret-store-full",
            Self::NoSuchSecret(_) => "no-such-secret",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Folder(error) => error.hint(),
            Self::ForeignFile { .. } => "move it out of the way and set the secrets again",
            Self::Version { .. } => "use the ringfence that wrote it",
            Self::Damaged { .. } | Self::NoKey { .. } | Self::KeySize { .. } => {
                "restore the store and its key from a copy, or remove both and set the secrets again"
            }
            Self::WrongPassphrase { .. } => "type it again",
            Self::HasKeyFile => {
                "leave the passphrase out; or remove all secrets and set them again with one"
            }
            Self::Passphrase(error) => error.hint(),
            Self::Random(_) | Self::Derive | Self::Encrypt => "make memory free and try again",
            Self::Full => "remove secrets that are not needed: ringfence secret list",
            Self::NoSuchSecret(_) => "ringfence secret list shows those there are",
        }
    }
}
