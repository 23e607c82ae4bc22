//! Why layers could not be merged.

use thiserror::Error;

use crate::note::Note;
use crate::origin::Origin;

/// Why layers could not be merged. Each message shows the entry and where it was written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// A setting that cannot be honoured.
    #[error("{}: {}", .0.origin, .0.message)]
    Unsupported(Box<Note>),
    /// `requests` in a request layer.
    #[error("{0}: `requests` can be set only by the operator")]
    RequestsByRequest(Origin),
    /// A key that would widen, in a ceiling.
    #[error("{origin}: `{key}` has no meaning in a ceiling, which only narrows")]
    CeilingWidens {
        /// The key.
        key: &'static str,
        /// Where it was written.
        origin: Origin,
    },
    /// A credential for a host that is not allowed.
    #[error("{origin}: credential {service} is bound to {host}, which no rule allows")]
    CredentialHost {
        /// Name of the service.
        service: String,
        /// The host entry with its ports.
        host: String,
        /// Where the credential was written.
        origin: Origin,
    },
    /// Two credentials for one place of the same requests.
    #[error("{origin}: credential {service} goes where {other} goes already: {place}")]
    CredentialClash {
        /// Name of the service.
        service: String,
        /// Where its credential was written.
        origin: Origin,
        /// The other service, and where its credential was written.
        other: String,
        /// The place in the request, and the host.
        place: String,
    },
    /// `unprotect` names nothing that is protected.
    #[error("{origin}: `unprotect` entry {entry:?} names nothing that is protected")]
    Unprotect {
        /// The entry as written.
        entry: String,
        /// Where it was written.
        origin: Origin,
    },
    /// An allow rule that a deny rule covers whole.
    #[error("{origin}: allow entry {entry:?} can never match: {denied_by} denies all of it")]
    NeverMatches {
        /// The allow entry.
        entry: String,
        /// Where it was written.
        origin: Origin,
        /// Where the deny was written.
        denied_by: Origin,
    },
}

impl PolicyError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsupported(note) => note.code,
            Self::RequestsByRequest(_) => "requests-by-request",
            Self::CeilingWidens { .. } => "ceiling-widens",
            Self::CredentialHost { .. } => "credential-host-not-allowed",
            Self::CredentialClash { .. } => "credential-clash",
            Self::Unprotect { .. } => "unprotect-unknown",
            Self::NeverMatches { .. } => "entry-never-matches",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unsupported(_) => "remove the setting, or use a tool that honours it",
            Self::RequestsByRequest(_) => "set it in your own configuration or with a flag",
            Self::CeilingWidens { .. } => "put it into your own configuration",
            Self::CredentialHost { .. } => {
                "add the host to network.allow, or its port to network.hostPorts"
            }
            Self::CredentialClash { .. } => "keep one, or tell them apart by `paths`",
            Self::Unprotect { .. } => "use a name from `ringfence policy show`, section protect",
            Self::NeverMatches { .. } => "remove the allow entry or the deny entry",
        }
    }
}
