//! Presets: what a tool or an agent needs, by name. Hosts, variables, and where it keeps its state.
//!
//! A preset is data: a file in `src/presets`, compiled in, with hosts in reverse-domain order. It
//! counts as if the layer that names it had written its allows, but each rule's origin is the
//! preset. What it sets is weaker than what any file, variable or flag sets. It passes no secret
//! and denies nothing.

mod document;
mod read;
mod suggest;
mod table;

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::error::SourceError;
use crate::environment::Environment;
use crate::home::HomeRule;
use crate::host::{HostName, HostPattern};
use crate::layer::{EnvironmentLayer, Layer};
use crate::origin::{LayerKind, Origin, Sourced};
use crate::port::{Port, PortSet};
use crate::rule::{AllowRule, Destination};

pub(crate) use document::PresetDocument;
pub use suggest::{project_kinds, suggest};

/// How alike a name must be to be offered instead of one that does not exist.
const ALIKE: f64 = 0.8;

/// What a tool or an agent needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// What it is called.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// What sort of thing it opens.
    pub kind: PresetKind,
    /// The hosts that it allows.
    pub hosts: Vec<PresetHost>,
    /// The ports of the host's own loopback that it opens.
    pub host_ports: Vec<Port>,
    /// The variables that it passes and sets.
    pub environment: Environment,
    /// Where the tool keeps caches and state, below the home directory.
    pub home: Vec<PathBuf>,
    /// Whether it works only if that is there again in the next run: the layer over the home
    /// directory is kept then, for it and the project.
    pub keep_home: bool,
    /// What tells a project of this kind.
    pub detect: Vec<ProjectMark>,
    /// The preset of the more usual tool for the same packages.
    pub alternative_to: Option<String>,
}

/// What sort of thing a preset opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PresetKind {
    /// Packages of a language or a distribution.
    Packages,
    /// Code hosts, from which packages are often installed too.
    Code,
    /// What an agent needs to work.
    Agent,
    /// Other things that are downloaded: models, browsers, providers.
    Data,
}

impl PresetKind {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::Code => "code",
            Self::Agent => "agent",
            Self::Data => "data",
        }
    }
}

/// A host that a preset allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PresetHost {
    /// Names.
    pub host: HostPattern,
    /// On these ports.
    pub ports: PortSet,
}

/// A file's or directory's name, or `*` and how it ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProjectMark(String);

/// Why there is no such preset, or why its file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PresetError {
    /// It does not exist.
    #[error("there is no preset {name:?}{}", near_names(.near))]
    Unknown {
        /// As given.
        name: String,
        /// Names that are much like it, the nearest first.
        near: Vec<&'static str>,
    },
    /// A path that is not plainly below the home directory.
    #[error("{0:?} is not a path below the home directory")]
    Home(String),
    /// A mark that could never match, or would match everything.
    #[error("{0:?} is neither a file's name nor '*' and its end")]
    Mark(String),
    /// The file of a preset cannot be read.
    #[error(transparent)]
    Malformed(Box<SourceError>),
}

impl PresetError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown-preset",
            Self::Home(_) | Self::Mark(_) => "malformed-preset",
            Self::Malformed(error) => error.code(),
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "use a name from `ringfence preset list`",
            Self::Home(_) => "write it as \".cache/tool\"",
            Self::Mark(_) => "write a name such as \"package.json\" or \"*.csproj\"",
            Self::Malformed(error) => error.hint(),
        }
    }
}

fn near_names(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

impl Preset {
    /// The preset called `name`.
    pub fn named(name: &str) -> Result<Self, PresetError> {
        let found = table::FILES.iter().find(|(own, _)| *own == name);
        let (name, text) = found.ok_or_else(|| unknown(name))?;
        read::read(name, text).map_err(|error| PresetError::Malformed(Box::new(error)))
    }

    /// Every preset, by name.
    pub fn all() -> impl Iterator<Item = Self> {
        // A test reads each of them.
        Self::names().filter_map(|name| Self::named(name).ok())
    }

    /// The names of all presets, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        table::FILES.iter().map(|(name, _)| *name)
    }

    /// True when it allows connections to `name` on `port`.
    pub fn covers(&self, name: &HostName, port: u16) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.any(|own| own.ports.contains(port) && own.host.matches(name))
    }

    /// Adds it to `layer`, which names it at `named`. In a ceiling it bounds and sets nothing.
    pub(crate) fn add_to(&self, layer: &mut Layer, named: &Origin) {
        let origin = Origin::new(LayerKind::Preset, &self.name);
        let hosts = self.hosts.iter().map(|own| own.sourced(&origin));
        let allow = &mut layer.network.allow;
        allow.get_or_insert_default().extend(hosts);
        if !self.host_ports.is_empty() {
            let ports = self.host_ports.iter();
            let ports = ports.map(|port| Sourced::new(*port, origin.clone()));
            let listed = &mut layer.network.host_ports;
            listed.get_or_insert_default().extend(ports);
        }
        if layer.origin.layer == LayerKind::Ceiling {
            self.bound(&mut layer.environment, &origin);
        } else {
            self.widen(&mut layer.environment);
            let home = &mut layer.filesystem.home;
            if self.keep_home && home.is_none() {
                *home = Some(Sourced::new(HomeRule::Keep(None), origin));
            }
        }
        let name = Sourced::new(self.name.clone(), named.clone());
        layer.presets.push(name);
    }

    fn widen(&self, environment: &mut EnvironmentLayer) {
        let pass = self.environment.pass.iter().cloned();
        environment.pass.get_or_insert_default().extend(pass);
        for (name, value) in &self.environment.set {
            let set = environment.set.entry(name.clone());
            set.or_insert_with(|| value.clone());
        }
    }

    /// A ceiling that bounds variables lets those of its presets pass.
    fn bound(&self, environment: &mut EnvironmentLayer, origin: &Origin) {
        let Some(pass) = &mut environment.pass else {
            return;
        };
        let set = self.environment.set.keys().cloned();
        let set = set.map(|name| Sourced::new(name, origin.clone()));
        pass.extend(self.environment.pass.iter().cloned().chain(set));
    }
}

/// The hosts of every preset of these kinds.
pub(super) fn hosts_of(kinds: &[PresetKind]) -> impl Iterator<Item = HostPattern> {
    let presets = Preset::all().filter(|preset| kinds.contains(&preset.kind));
    presets.flat_map(|preset| preset.hosts).map(|own| own.host)
}

fn unknown(name: &str) -> PresetError {
    let alike = |own: &'static str| (strsim::jaro_winkler(name, own), own);
    let mut near: Vec<_> = Preset::names().map(alike).collect();
    near.retain(|(likeness, _)| *likeness > ALIKE);
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    PresetError::Unknown {
        name: name.to_owned(),
        near: near.into_iter().map(|(_, own)| own).take(3).collect(),
    }
}

impl PresetHost {
    fn sourced(&self, origin: &Origin) -> Sourced<AllowRule> {
        let destination = Destination::Host(self.host.clone());
        let rule = AllowRule::plain(destination, self.ports.clone());
        Sourced::new(rule, origin.clone())
    }
}

impl fmt::Display for PresetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.ports)
    }
}

impl ProjectMark {
    /// True when it is about an entry called `name`.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_prefix('*') {
            Some(end) => name.len() > end.len() && name.ends_with(end),
            None => name == self.0,
        }
    }
}

impl fmt::Display for ProjectMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ProjectMark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
