//! Network rules in the one model that every format is translated to.

mod entry;

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::address::Cidr;
use crate::host::{HostName, HostPattern};
use crate::http::{Method, PathPattern};
use crate::port::PortSet;

pub use entry::{Endpoint, EntryError, Side};

/// What happens to a destination that no rule names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum NetworkMode {
    /// Nothing, whatever rules say. The sandbox has its own loopback and no name server, so what
    /// is refused has no name.
    Deny,
    /// Only what a rule allows. Without any rule everything is refused, by name.
    Allowlist,
    /// Every public address; never private, link-local or metadata addresses.
    Open,
}

impl NetworkMode {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Open => "open",
        }
    }
}

/// Whom a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// Every name and address; only denies use it.
    Any,
    /// Names.
    Host(HostPattern),
    /// Addresses.
    Block(Cidr),
}

impl Destination {
    /// True when every destination of `other` is one of `self`.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Host(own), Self::Host(pattern)) => own.covers(pattern),
            (Self::Block(own), Self::Block(block)) => own.covers(block),
            _ => false,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Host(pattern) => pattern.fmt(f),
            Self::Block(block) => block.fmt(f),
        }
    }
}

impl Serialize for Destination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where the addresses of an allowed name may lie without an address rule of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Public addresses: our own meaning.
    Public,
    /// Public and private ones: srt's meaning.
    Private,
    /// Loopback and nothing else: `localhost` in srt settings.
    Loopback,
}

/// One allowed destination.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct AllowRule {
    /// Names or addresses.
    pub destination: Destination,
    /// On these ports.
    pub ports: PortSet,
    /// With these methods; `None` is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<BTreeSet<Method>>,
    /// Below these paths; `None` is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathPattern>>,
    /// Look inside TLS even though nothing in the rule needs it.
    pub inspect: bool,
    /// Names whose TLS is left alone although `inspect` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<HostPattern>,
    /// Where the name's addresses may lie.
    pub reach: Reach,
}

impl AllowRule {
    /// A rule without restrictions on methods and paths.
    pub fn plain(destination: Destination, ports: PortSet) -> Self {
        Self {
            destination,
            ports,
            methods: None,
            paths: None,
            inspect: false,
            except: Vec::new(),
            reach: Reach::Public,
        }
    }

    /// True when the rule can only be held by looking at requests.
    pub fn is_restricted(&self) -> bool {
        self.methods.is_some() || self.paths.is_some()
    }

    /// True when TLS to `name` is looked into because the rule says so.
    pub(crate) fn asks_to_inspect(&self, name: Option<&HostName>) -> bool {
        let left_alone = |name: &HostName| self.except.iter().any(|pattern| pattern.matches(name));
        self.inspect && !name.is_some_and(left_alone)
    }

    /// True when everything `other` allows is allowed by `self`.
    pub fn covers(&self, other: &Self) -> bool {
        let methods = self.methods.is_none() || self.methods == other.methods;
        let paths = self.paths.is_none() || self.paths == other.paths;
        let reach = self.reach == other.reach || other.reach == Reach::Public;
        methods
            && paths
            && reach
            && self.destination.covers(&other.destination)
            && other.ports.is_subset(&self.ports)
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.destination, self.ports)?;
        if let Some(methods) = &self.methods {
            let list: Vec<&str> = methods.iter().map(Method::as_str).collect();
            write!(f, " {}", list.join(","))?;
        }
        if let Some(paths) = &self.paths {
            let list: Vec<&str> = paths.iter().map(PathPattern::as_str).collect();
            write!(f, " {}", list.join(","))?;
        }
        if self.inspect {
            f.write_str(" inspect")?;
        }
        if !self.except.is_empty() {
            let list: Vec<String> = self.except.iter().map(ToString::to_string).collect();
            write!(f, " except {}", list.join(","))?;
        }
        Ok(())
    }
}

/// When a deny applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DenyScope {
    /// Always; nothing lifts it.
    Always,
    /// To an address that an allowed name resolved to, unless an exact address rule lifts it.
    Resolved,
}

/// One denied destination. Wins over every allow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct DenyRule {
    /// Names or addresses.
    pub destination: Destination,
    /// On these ports.
    pub ports: PortSet,
    /// When it applies.
    pub scope: DenyScope,
    /// What people are told, when the format lets the author say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl DenyRule {
    /// A deny that always applies.
    pub fn plain(destination: Destination, ports: PortSet) -> Self {
        Self {
            destination,
            ports,
            scope: DenyScope::Always,
            message: None,
        }
    }
}

impl fmt::Display for DenyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.destination)?;
        if self.ports.is_any() {
            Ok(())
        } else {
            write!(f, ":{}", self.ports)
        }
    }
}
