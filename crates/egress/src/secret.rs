//! Secrets that are attached outside, and the placeholders that stand for them
//! inside.
//!
//! A [`Secret`] is read for one use and zeroed after it. It has no `Debug` that
//! shows it, no `Display` and no way to be copied by accident.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use zeroize::Zeroizing;

/// The value of a credential, zeroed when it is let go.
#[derive(PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a value over; whoever hands it in keeps no copy.
    pub fn new(value: String) -> Self {
        Self(Zeroizing::new(value))
    }

    /// The value itself, to be sent and never to be shown.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Where secrets come from. It may block (a file, a command), so it is called
/// on a thread of its own unless it says otherwise; it is asked anew for every
/// request, so that a rotated secret takes effect with the next one.
pub trait Vault: Send + Sync {
    /// The secret of `service` as it is now.
    fn secret(&self, service: &str) -> Result<Secret, SecretError>;

    /// Whether [`secret`](Self::secret) may have to wait for something.
    fn may_block(&self, service: &str) -> bool {
        let _ = service;
        true
    }
}

/// Why there is no secret. The texts are for people and hold nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SecretError {
    /// No source has it.
    #[error("there is no secret: {0}")]
    Missing(String),
    /// A source could not be read.
    #[error("the secret cannot be read: {0}")]
    Failed(String),
    /// It was read and cannot be used.
    #[error("the secret cannot be used: {0}")]
    Malformed(String),
    /// It came back so often that it is not given out any more.
    #[error("it is withdrawn for the rest of the run: {0}")]
    Withdrawn(String),
}

impl SecretError {
    /// A stable name for what becomes of a request that needs the secret.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Withdrawn(_) => "credential-withdrawn",
            Self::Missing(_) | Self::Failed(_) | Self::Malformed(_) => "credential-unavailable",
        }
    }
}

/// What the policy's credentials need at work.
#[derive(Clone)]
pub struct Credentials {
    /// Where secrets are read.
    pub vault: Arc<dyn Vault>,
    /// What stands for them inside this sandbox.
    pub placeholders: Vec<Placeholder>,
}

/// The text that stands for one secret inside one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// The service whose secret it stands for.
    pub service: String,
    /// What the variables inside hold.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g5_a_secret_is_not_shown() {
        let shown = format!("{:?}", Some(Secret::new("hunter2-hunter2".to_owned())));
        assert_eq!(shown, "Some(Secret)");
    }
}
