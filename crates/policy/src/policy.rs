//! [`Policy`]: the merged rules, and [`Resolved`], the proof that they were merged and compiled.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::audit::AuditLevel;
use crate::credential::{Credential, Scheme};
use crate::environment::Environment;
use crate::filesystem::Filesystem;
use crate::index::{BindingIndex, RuleIndex};
use crate::limits::Limits;
use crate::note::Note;
use crate::origin::{Origin, Sourced};
use crate::port::Port;
use crate::rule::{AllowRule, DenyRule, NetworkMode};

/// A value that went through [`resolve`](crate::resolve); there is no other way to make one.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Resolved<T>(T);

impl<T> Resolved<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    pub(crate) fn inner(&self) -> &T {
        &self.0
    }
}

/// The merged policy. Every rule knows where it came from.
#[derive(Debug, Clone, Serialize)]
pub struct Policy {
    pub(crate) presets: Vec<Sourced<String>>,
    pub(crate) network: Network,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ceiling: Option<Network>,
    pub(crate) filesystem: Filesystem,
    pub(crate) limits: Limits,
    pub(crate) environment: Environment,
    pub(crate) credentials: Vec<Sourced<Credential>>,
    pub(crate) withheld: Vec<Sourced<Credential>>,
    pub(crate) authorities: Vec<Sourced<PathBuf>>,
    #[serde(skip)]
    pub(crate) bindings: BindingIndex,
    pub(crate) audit: Sourced<AuditLevel>,
    pub(crate) notes: Vec<Note>,
    #[serde(skip)]
    pub(crate) host_addresses: BTreeSet<IpAddr>,
}

/// Network rules of one side (the layers together, or the ceiling), compiled.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    /// `None` only in a ceiling that does not say what is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Sourced<NetworkMode>>,
    #[serde(serialize_with = "as_list")]
    pub(crate) allow: RuleIndex<AllowRule>,
    #[serde(serialize_with = "as_list")]
    pub(crate) deny: RuleIndex<DenyRule>,
    pub(crate) host_ports: Vec<Sourced<Port>>,
    /// Where the side as a whole was written.
    #[serde(skip)]
    pub(crate) origin: Origin,
}

fn as_list<R, S>(index: &RuleIndex<R>, serializer: S) -> Result<S::Ok, S::Error>
where
    R: Serialize + crate::index::Ruled,
    S: Serializer,
{
    serializer.collect_seq(index.rules())
}

impl Network {
    /// Allow rules, in the order of their layers.
    pub fn allow(&self) -> &[Sourced<AllowRule>] {
        self.allow.rules()
    }

    /// Deny rules, in the order of their layers.
    pub fn deny(&self) -> &[Sourced<DenyRule>] {
        self.deny.rules()
    }

    /// Ports of the host's own loopback that are reachable as [`HOST_ALIAS`](crate::HOST_ALIAS).
    pub fn host_ports(&self) -> &[Sourced<Port>] {
        &self.host_ports
    }

    /// True when there is to be nothing but loopback.
    fn is_absent(&self) -> bool {
        self.mode.as_deref() == Some(&NetworkMode::Deny)
    }

    /// True when no request could be allowed.
    fn is_closed(&self) -> bool {
        match self.mode.as_deref() {
            None | Some(NetworkMode::Open) => false,
            Some(NetworkMode::Deny) => true,
            Some(NetworkMode::Allowlist) => self.allow().is_empty() && self.host_ports.is_empty(),
        }
    }
}

impl Resolved<Policy> {
    /// What happens to a destination that no rule names.
    pub fn network_mode(&self) -> NetworkMode {
        self.0
            .network
            .mode
            .as_deref()
            .copied()
            .unwrap_or(NetworkMode::Deny)
    }

    /// True when a sandbox is to have nothing but its own loopback. A policy that merely allows
    /// nothing has its refusals told by name.
    pub fn network_is_absent(&self) -> bool {
        self.0.network.is_absent() || self.0.ceiling.as_ref().is_some_and(Network::is_absent)
    }

    /// True when nothing at all could be allowed.
    pub fn network_is_closed(&self) -> bool {
        self.0.network.is_closed() || self.0.ceiling.as_ref().is_some_and(Network::is_closed)
    }

    /// The presets that hold, each with who named it. Their rules are among the others.
    pub fn presets(&self) -> &[Sourced<String>] {
        &self.0.presets
    }

    /// The layers' network rules, for listing; decisions go through [`decide`](crate::decide).
    pub fn network(&self) -> &Network {
        &self.0.network
    }

    /// The ceiling's network rules, for listing.
    pub fn ceiling_network(&self) -> Option<&Network> {
        self.0.ceiling.as_ref()
    }

    /// Filesystem rules.
    pub fn filesystem(&self) -> &Filesystem {
        &self.0.filesystem
    }

    /// Limits.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Environment rules.
    pub fn environment(&self) -> &Environment {
        &self.0.environment
    }

    /// Credentials that requests get. Where two would fill one place of a request, the earlier one
    /// counts: stronger layers come first.
    pub fn credentials(&self) -> &[Sourced<Credential>] {
        &self.0.credentials
    }

    /// Credentials that were asked for and not approved, or that the ceiling took away. Their
    /// variables are not taken from outside.
    pub fn withheld(&self) -> &[Sourced<Credential>] {
        &self.0.withheld
    }

    /// Further root certificates for TLS with servers: PEM files, absolute.
    pub fn authorities(&self) -> &[Sourced<PathBuf>] {
        &self.0.authorities
    }

    /// True when TLS to some destination is looked into: a credential goes there, a rule names
    /// methods or paths, or a rule says so.
    pub fn intercepts(&self) -> bool {
        let mut bindings = self.0.credentials.iter().flat_map(|own| &own.bindings);
        let carries = bindings.any(|own| own.scheme == Scheme::Https);
        let sides = [Some(&self.0.network), self.0.ceiling.as_ref()];
        let mut rules = sides.into_iter().flatten().flat_map(Network::allow);
        let looks = rules.any(|rule| rule.inspect || rule.is_restricted());
        (carries || looks) && !self.network_is_closed()
    }

    /// How much is recorded.
    pub fn audit(&self) -> &Sourced<AuditLevel> {
        &self.0.audit
    }

    /// What was accepted without effect, is pending, or was taken away by the ceiling.
    pub fn notes(&self) -> &[Note] {
        &self.0.notes
    }

    /// The same policy with further allow rules among those of the layers: denies, the ceiling and
    /// the guard on special addresses hold as before.
    #[must_use]
    pub fn with_approved(&self, rules: &[Sourced<AllowRule>]) -> Self {
        let mut policy = self.clone();
        let own = policy.0.network.allow.rules().iter();
        let all = own.chain(rules).cloned().collect();
        policy.0.network.allow = RuleIndex::new(all);
        policy
    }

    /// The same policy, knowing the addresses of this host's own interfaces: reaching one of them
    /// needs an exact address rule. Loopback and the like may be listed; they keep their own guard.
    #[must_use]
    pub fn with_host_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.0.host_addresses = addresses
            .into_iter()
            .map(|address| address.to_canonical())
            .collect();
        self
    }
}
