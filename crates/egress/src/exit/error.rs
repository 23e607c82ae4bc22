//! [`OpenError`]: why an attempt leads nowhere.

use std::io;

use ringfence_audit::CloseReason;

use crate::refusal::Refused;
use crate::resolve::ResolveError;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// Refused, and written down.
    Refused(Refused),
    /// Allowed, but the name has no address.
    Unresolved(ResolveError),
    /// Allowed, but nobody answers.
    Unreachable(io::Error),
    /// Allowed, but the time is up.
    TimedOut,
}

impl From<Refused> for OpenError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl OpenError {
    /// The HTTP status that says so.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Refused(_) => 403,
            Self::Unresolved(_) | Self::Unreachable(_) => 502,
            Self::TimedOut => 504,
        }
    }

    /// One line for people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Refused(refused) => refused.phrase.clone(),
            Self::Unresolved(error) => error.to_string(),
            Self::Unreachable(error) => format!("cannot connect: {error}"),
            Self::TimedOut => "the destination does not answer".to_owned(),
        }
    }

    /// Why what is allowed leads nowhere, as a stable code.
    pub(super) fn failure(&self) -> Option<&'static str> {
        match self {
            Self::Refused(_) => None,
            _ => Some(self.close_reason().as_str()),
        }
    }

    pub(super) fn close_reason(&self) -> CloseReason {
        match self {
            Self::Refused(_) => CloseReason::Refused,
            Self::Unresolved(_) => CloseReason::Unresolved,
            Self::Unreachable(_) | Self::TimedOut => CloseReason::Unreachable,
        }
    }
}
