//! Passphrases: asked of whoever is there, only when one is needed.

use zeroize::Zeroizing;

const SHORTEST: usize = 8;
const LONGEST: usize = 1024;

/// What a passphrase is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A new store is locked with it.
    New,
    /// The store is opened with it.
    Open,
}

/// Asks for a passphrase, on a terminal or wherever it comes from.
pub type AskPassphrase =
    Box<dyn Fn(Purpose) -> Result<Zeroizing<String>, PassphraseError> + Send + Sync>;

/// Why there is no passphrase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    /// Nobody can be asked.
    #[error("the secret store needs its passphrase, and there is no terminal to ask on")]
    NobodyToAsk,
    /// It could not be read.
    #[error("cannot read the passphrase: {0}")]
    Unreadable(String),
    /// Two that should be the same are not.
    #[error("the passphrases differ")]
    Differ,
    /// It cannot be used.
    #[error("a passphrase is one line of {SHORTEST} to {LONGEST} bytes")]
    Malformed,
}

impl PassphraseError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NobodyToAsk => "no-passphrase",
            Self::Unreadable(_) => "passphrase-unreadable",
            Self::Differ | Self::Malformed => "bad-passphrase",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NobodyToAsk => "give it through a descriptor: --passphrase-fd 3 3< FILE",
            Self::Unreadable(_) => "check what the descriptor leads to",
            Self::Differ => "type the same one twice",
            Self::Malformed => "choose a longer one, such as several words",
        }
    }
}

/// Checks what was typed.
pub(super) fn check(passphrase: &str) -> Result<(), PassphraseError> {
    let fits = (SHORTEST..=LONGEST).contains(&passphrase.len());
    if fits && !passphrase.contains(char::is_control) {
        Ok(())
    } else {
        Err(PassphraseError::Malformed)
    }
}
