//! Secrets and what they are for: where they are kept and read, what stands
//! for them inside, and what the operator has approved.
//!
//! A value is read outside, for one use, and is never part of an error.

mod approvals;
mod digest;
mod folder;
mod placeholder;
mod random;
mod sources;
mod store;
mod value;
mod vault;
mod working_folder;
mod writable;

pub use approvals::{Approval, Approvals, ApprovalsError, Subject};
pub use digest::ContentDigest;
pub use folder::FolderError;
pub use store::{
    AskPassphrase, PassphraseError, Protection, Purpose, SecretName, SecretNameError, SecretStore,
    StoreError, StoredSecret,
};
pub use value::{ReadSecretError, ValueError, read_secret};
pub use vault::{SecretSettings, VaultError};
pub use working_folder::{
    Asked, Candidate, FolderPolicy, WORKING_FOLDER_FILE, WorkingFolderError, working_folder_layer,
};

pub(crate) use placeholder::placeholders;
pub(crate) use sources::Surroundings;
pub(crate) use vault::HostVault;
pub(crate) use writable::WritablePlaces;
