//! Why a source could not be read.

use std::fmt;

use thiserror::Error;

use super::kit::KitFault;
use super::preset::PresetError;
use crate::credential::CredentialError;
use crate::environment::EnvError;
use crate::home::HomeError;
use crate::http::{MethodError, PathPatternError};
use crate::limits::{CoresError, CountError, SizeError, SpanError};
use crate::origin::Origin;
use crate::path::PathRuleError;
use crate::port::PortError;
use crate::rule::EntryError;

/// A place in a text, from 1; 0 is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError {
    /// File, variable or flag, with the line where the format gives it.
    pub origin: Origin,
    /// Column, from 1, where the format gives it.
    pub column: Option<u32>,
    /// What is wrong there.
    pub fault: Fault,
}

impl SourceError {
    pub(crate) fn new(origin: &Origin, fault: impl Into<Fault>) -> Self {
        Self {
            origin: origin.clone(),
            column: None,
            fault: fault.into(),
        }
    }

    pub(crate) fn at(origin: &Origin, at: Position, fault: impl Into<Fault>) -> Self {
        Self {
            origin: origin.at_line(at.line),
            column: (at.column > 0).then_some(at.column),
            fault: fault.into(),
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

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "{}:{column}: {}", self.origin, self.fault),
            None => write!(f, "{}: {}", self.origin, self.fault),
        }
    }
}

impl std::error::Error for SourceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.fault)
    }
}

/// What is wrong with an entry of a source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not YAML or TOML, an unknown key, a missing key or a wrong type.
    #[error("{0}")]
    Document(String),
    /// A version this program does not know.
    #[error("version {0} is not known; this is version 1")]
    Version(u32),
    /// An allow or deny entry.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// An allow rule with both or neither of `host` and `cidr`.
    #[error("a rule names either `host` or `cidr`")]
    HostOrCidr,
    /// Allow entries under `mode: deny`.
    #[error("entry {0:?} could never match under `mode: deny`")]
    AllowUnderDeny(String),
    /// A block that covers the whole address space.
    #[error("entry {0:?} would cover every address")]
    EveryAddress(String),
    /// Ports.
    #[error(transparent)]
    Port(#[from] PortError),
    /// Methods.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// Paths of requests.
    #[error(transparent)]
    HttpPath(#[from] PathPatternError),
    /// Paths of the filesystem.
    #[error(transparent)]
    Path(#[from] PathRuleError),
    /// An entry of `protect` that names nothing.
    #[error("{0:?} cannot be protected: give a name of plain components, such as .npmrc, or `ci`")]
    ProtectedName(String),
    /// The home directory.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// CPU.
    #[error("cpu: {0}")]
    Cores(#[from] CoresError),
    /// A size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// A count.
    #[error(transparent)]
    Count(#[from] CountError),
    /// A length of time.
    #[error(transparent)]
    Span(#[from] SpanError),
    /// Environment.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Credentials.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// A kit as a whole.
    #[error(transparent)]
    Kit(#[from] KitFault),
    /// A preset.
    #[error(transparent)]
    Preset(#[from] PresetError),
}

impl Fault {
    fn code(&self) -> &'static str {
        match self {
            Self::Document(_) => "malformed-document",
            Self::Version(_) => "unknown-version",
            Self::Entry(error) => error.code(),
            Self::HostOrCidr => "host-or-cidr",
            Self::AllowUnderDeny(_) => "entry-never-matches",
            Self::EveryAddress(_) => "pattern-everything",
            Self::Port(_) => "malformed-port",
            Self::Method(_) => "malformed-method",
            Self::HttpPath(_) => "malformed-path-pattern",
            Self::Path(error) => error.code(),
            Self::ProtectedName(_) => "malformed-protected-name",
            Self::Home(error) => error.code(),
            Self::Cores(_) | Self::Size(_) | Self::Count(_) | Self::Span(_) => "malformed-limit",
            Self::Env(_) => "malformed-environment",
            Self::Credential(error) => error.code(),
            Self::Kit(fault) => fault.code(),
            Self::Preset(error) => error.code(),
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Document(_) => "`ringfence policy schema` prints every key and its type",
            Self::Version(_) => "write `version: 1`",
            Self::Entry(error) => error.hint(),
            Self::HostOrCidr => "write {host: api.example.org} or {cidr: 10.1.0.0/16}",
            Self::AllowUnderDeny(_) => "write `mode: allowlist`, or remove the entry",
            Self::EveryAddress(_) => "use `mode: open` for every public address",
            Self::Port(_) => "a port is 1-65535, a range \"8000-8999\"",
            Self::Method(_) => "methods are GET, POST and the like",
            Self::HttpPath(_) => {
                "paths start with '/', '*' is within a segment, '**' across segments"
            }
            Self::Path(error) => error.hint(),
            Self::ProtectedName(_) => "write a name such as .npmrc or .config/tool, or `ci`",
            Self::Home(error) => error.hint(),
            Self::Cores(_) => "write a number such as 1.5",
            Self::Size(_) => "write a size such as 512MiB",
            Self::Count(_) => "write a whole number such as 128",
            Self::Span(_) => "write a time such as 10m or 2h30m",
            Self::Env(_) => "names are letters, digits and '_'; values hold no NUL",
            Self::Credential(error) => error.hint(),
            Self::Kit(fault) => fault.hint(),
            Self::Preset(error) => error.hint(),
        }
    }
}
