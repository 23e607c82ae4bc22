//! [`Layer`]: what one source says, before it is merged with the others.
//!
//! A list that is `None` was not written; an empty one was, which matters in a ceiling.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::AuditLevel;
use crate::credential::Credential;
use crate::filesystem::{GuardMode, MaskedFile, ProtectedName, ReadScope};
use crate::home::HomeRule;
use crate::limits::Limits;
use crate::note::Note;
use crate::origin::{Authority, LayerKind, Origin, Sourced};
use crate::path::PathRule;
use crate::port::Port;
use crate::rule::{AllowRule, DenyRule, NetworkMode};

/// One source's word, in the one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Where it came from; its kind is its rank.
    pub origin: Origin,
    /// Whose word it is.
    pub authority: Authority,
    /// The presets that it names, whose rules are among its own.
    pub presets: Vec<Sourced<String>>,
    /// Network rules.
    pub network: NetworkLayer,
    /// Filesystem rules.
    pub filesystem: FilesystemLayer,
    /// Limits.
    pub limits: Limits,
    /// Environment rules.
    pub environment: EnvironmentLayer,
    /// Credentials.
    pub credentials: Option<Vec<Sourced<Credential>>>,
    /// Services whose credentials the operator approved, where this layer needs that.
    pub approved: BTreeSet<String>,
    /// Where the text lies; code that ran earlier may have written what lies in a working folder.
    pub kept: Kept,
    /// How much is recorded.
    pub audit: Option<Sourced<AuditLevel>>,
    /// What request layers may do.
    pub requests: Option<Sourced<RequestRule>>,
    /// Remarks of the source.
    pub notes: Vec<Note>,
}

impl Layer {
    /// A layer that says nothing, with the operator's authority.
    pub fn empty(origin: Origin) -> Self {
        Self {
            origin,
            authority: Authority::Operator,
            presets: Vec::new(),
            network: NetworkLayer::default(),
            filesystem: FilesystemLayer::default(),
            limits: Limits::default(),
            environment: EnvironmentLayer::default(),
            credentials: None,
            approved: BTreeSet::new(),
            kept: Kept::Outside,
            audit: None,
            requests: None,
            notes: Vec::new(),
        }
    }

    /// The same layer as a request: a file of the working folder or of a skill.
    #[must_use]
    pub fn as_request(self) -> Self {
        Self {
            authority: Authority::Request,
            ..self
        }
    }

    /// Approves this layer's credential for `service`: it counts like the operator's own.
    pub fn approve(&mut self, service: &str) {
        self.approved.insert(service.to_owned());
    }

    /// True when credentials of this layer are withheld until they are approved: those of request
    /// layers and of files in the working folder, and those of kits and skills whoever named them.
    pub fn asks_for_credentials(&self) -> bool {
        let foreign = matches!(self.origin.layer, LayerKind::Kit | LayerKind::Skill);
        foreign || self.authority == Authority::Request || self.kept == Kept::InWorkingFolder
    }

    /// The services that this layer asks for and that were not approved.
    pub fn unapproved_services(&self) -> impl Iterator<Item = &str> {
        let asked = self.credentials.iter().flatten();
        let asked = asked.filter(|_| self.asks_for_credentials());
        let asked = asked.map(|credential| credential.service.as_str());
        asked.filter(|service| !self.approved.contains(*service))
    }

    /// Pairs `value` with this layer's origin.
    pub(crate) fn sourced<T>(&self, value: T) -> Sourced<T> {
        Sourced::new(value, self.origin.clone())
    }
}

/// Where the text of a layer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Where no sandbox writes.
    Outside,
    /// In the working folder.
    InWorkingFolder,
}

/// Network part of a layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkLayer {
    /// The mode, when stated.
    pub mode: Option<Sourced<NetworkMode>>,
    /// Allowed destinations.
    pub allow: Option<Vec<Sourced<AllowRule>>>,
    /// Denied destinations.
    pub deny: Vec<Sourced<DenyRule>>,
    /// Ports of the host's own loopback.
    pub host_ports: Option<Vec<Sourced<Port>>>,
    /// Further root certificates for TLS with servers: PEM files.
    pub authorities: Option<Vec<Sourced<PathBuf>>>,
}

/// Filesystem part of a layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilesystemLayer {
    /// Where reading starts from.
    pub scope: Option<Sourced<ReadScope>>,
    /// What becomes of the home directory.
    pub home: Option<Sourced<HomeRule>>,
    /// Hidden places.
    pub read_deny: Vec<Sourced<PathRule>>,
    /// Re-allowed places.
    pub read_allow: Option<Vec<Sourced<PathRule>>>,
    /// Writable places.
    pub write_allow: Option<Vec<Sourced<PathRule>>>,
    /// Never writable places.
    pub write_deny: Vec<Sourced<PathRule>>,
    /// Protected names.
    pub protect: Vec<Sourced<ProtectedName>>,
    /// Entries taken out of the protected names.
    pub unprotect: Vec<Sourced<String>>,
    /// Files that show a placeholder instead of a secret.
    pub masked: Vec<Sourced<MaskedFile>>,
    /// How protected names are kept from being made.
    pub guard: Option<Sourced<GuardMode>>,
}

/// Environment part of a layer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EnvironmentLayer {
    /// Names taken from outside.
    pub pass: Option<Vec<Sourced<String>>>,
    /// Every variable passes.
    pub pass_all: Option<Sourced<bool>>,
    /// Names with their values.
    pub set: BTreeMap<String, Sourced<String>>,
    /// Names that hold a placeholder inside.
    pub managed: Vec<Sourced<String>>,
    /// Names that are never taken from outside.
    pub withhold: Vec<Sourced<String>>,
}

/// What the operator lets request layers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RequestRule {
    /// They narrow; what they ask for beyond the operator's rules stays pending.
    Narrow,
    /// They count like the operator's own layers, except for metadata addresses, protected names,
    /// root certificates, credentials and this setting.
    Allow,
}
