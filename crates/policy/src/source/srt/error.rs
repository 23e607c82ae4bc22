//! Why a settings file is refused.

use std::fmt;

use thiserror::Error;

use crate::address::CidrError;
use crate::credential::CredentialError;
use crate::origin::Origin;
use crate::path::PathRuleError;
use crate::rule::EntryError;

/// What is wrong with a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrtError {
    /// The file.
    pub origin: Origin,
    /// What is wrong there.
    pub fault: Box<SrtFault>,
}

impl SrtError {
    pub(super) fn new(origin: &Origin, fault: SrtFault) -> Self {
        Self {
            origin: origin.clone(),
            fault: Box::new(fault),
        }
    }

    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        self.fault.code()
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        self.fault.hint()
    }
}

impl fmt::Display for SrtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.fault)
    }
}

impl std::error::Error for SrtError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

/// One fault of a settings file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SrtFault {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// Required objects or arrays that are not there.
    #[error("missing: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// A field of the wrong type, or an unknown key in a strict object.
    #[error("{0}")]
    Shape(String),
    /// An entry of `allowedDomains` or `deniedDomains`.
    #[error("{field}: {source}")]
    Domain {
        /// The list.
        field: &'static str,
        /// What is wrong with the entry.
        source: EntryError,
    },
    /// An entry of `deniedResolvedAddresses`.
    #[error("network.deniedResolvedAddresses: {0}")]
    Address(#[from] CidrError),
    /// An entry of a filesystem list.
    #[error("{field}: {source}")]
    Path {
        /// The list.
        field: &'static str,
        /// What is wrong with the entry.
        source: PathRuleError,
    },
    /// A deny pattern that ends in a slash.
    #[error("{field}: pattern {entry:?} ends with '/'")]
    TrailingSlash {
        /// The list.
        field: &'static str,
        /// The entry as written.
        entry: String,
    },
    /// `mitmProxy` without domains.
    #[error("network.mitmProxy.domains is empty")]
    MitmDomains,
    /// Two ways to look inside TLS.
    #[error("network.mitmProxy and network.tlsTerminate exclude each other")]
    MitmAndTerminate,
    /// Half of a certificate authority.
    #[error("network.tlsTerminate needs caCertPath and caKeyPath together")]
    HalfAuthority,
    /// A wildcard in the middle.
    #[error("network.allowMachLookup: {0:?} may have a '*' only at its end")]
    MachLookup(String),
    /// A depth beyond 1–10.
    #[error("mandatoryDenySearchDepth {0} is not within 1 and 10")]
    SearchDepth(u8),
    /// A relative path where an absolute one is needed.
    #[error("javaAgentJarPath {0:?} is not absolute")]
    RelativeJar(String),
    /// A secret without the one thing that says which.
    #[error("{field}: each entry names one {key} and nothing else")]
    Subject {
        /// The list.
        field: &'static str,
        /// What each entry has.
        key: &'static str,
    },
    /// A secret that cannot be masked.
    #[error("{field}: {source}")]
    Credential {
        /// The list.
        field: &'static str,
        /// What is wrong with the entry.
        source: CredentialError,
    },
    /// A host that gets a secret and is not allowed.
    #[error("credentials.injectHosts: {0:?} is not a name that network.allowedDomains covers")]
    InjectHost(String),
    /// Masked credentials without TLS termination.
    #[error("credentials with mode mask need network.tlsTerminate")]
    MaskWithoutTerminate,
}

impl SrtFault {
    fn code(&self) -> &'static str {
        match self {
            Self::Json(_) => "srt-json",
            Self::Missing(_) => "srt-missing",
            Self::Shape(_) => "srt-shape",
            Self::Domain { source, .. } => source.code(),
            Self::Address(source) => source.code(),
            Self::Path { source, .. } => source.code(),
            Self::TrailingSlash { .. } => "srt-trailing-slash",
            Self::MitmDomains => "srt-mitm-domains",
            Self::MitmAndTerminate => "srt-mitm-and-terminate",
            Self::HalfAuthority => "srt-half-authority",
            Self::MachLookup(_) => "srt-mach-lookup",
            Self::SearchDepth(_) => "srt-search-depth",
            Self::RelativeJar(_) => "srt-relative-jar",
            Self::Subject { .. } => "srt-credential-subject",
            Self::Credential { source, .. } => source.code(),
            Self::InjectHost(_) => "srt-inject-host",
            Self::MaskWithoutTerminate => "srt-mask-without-terminate",
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Json(_) => "settings are plain JSON without comments",
            Self::Missing(_) => "write the missing lists, empty ones too: \"denyRead\": []",
            Self::Shape(_) => {
                "`ringfence policy schema srt-settings` prints every field and its type"
            }
            Self::Domain { source, .. } => source.hint(),
            Self::Address(source) => source.hint(),
            Self::Path { source, .. } => source.hint(),
            Self::TrailingSlash { .. } => "remove the slash",
            Self::MitmDomains => "list the domains that go to the proxy",
            Self::MitmAndTerminate => "keep one of the two",
            Self::HalfAuthority => "give both paths, or neither for an own authority",
            Self::MachLookup(_) => "write com.example.*",
            Self::SearchDepth(_) => "write a number from 1 to 10",
            Self::RelativeJar(_) => "give an absolute path",
            Self::Subject { .. } => {
                "write {\"name\": \"TOKEN\", \"mode\": \"mask\"}, or \"path\" for a file"
            }
            Self::Credential { source, .. } => source.hint(),
            Self::InjectHost(_) => "add the host to network.allowedDomains",
            Self::MaskWithoutTerminate => "add \"tlsTerminate\": {}",
        }
    }
}
