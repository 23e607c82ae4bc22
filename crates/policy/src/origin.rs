//! Where a value came from, and how far it is trusted.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

/// The kinds of layer, weakest first: a scalar is taken from the strongest layer that states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// What is built in.
    Default,
    /// A named profile.
    Profile,
    /// A compatibility mode.
    Mode,
    /// A named preset. No layer is of this kind: a preset's rules stand in the layer that names
    /// it, and what it sets has this rank.
    Preset,
    /// `ringfence.toml`.
    Config,
    /// A sandbox kit.
    Kit,
    /// A skill's own policy.
    Skill,
    /// An srt settings file.
    SrtSettings,
    /// A policy file that was named for this run.
    Policy,
    /// Environment variables.
    Environment,
    /// Command-line flags.
    Flag,
    /// What the operator was asked for while a command runs.
    Asked,
    /// The operator's ceiling; it only narrows.
    Ceiling,
}

impl LayerKind {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Profile => "profile",
            Self::Mode => "mode",
            Self::Preset => "preset",
            Self::Config => "config",
            Self::Kit => "kit",
            Self::Skill => "skill",
            Self::SrtSettings => "srt settings",
            Self::Policy => "policy",
            Self::Environment => "environment",
            Self::Flag => "flag",
            Self::Asked => "asked",
            Self::Ceiling => "ceiling",
        }
    }
}

/// Whose word a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Authority {
    /// Flags, user configuration and files the operator named or trusted.
    Operator,
    /// A file inside the working folder or a skill: it narrows freely and widens only what the
    /// operator's layers let it.
    Request,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Origin {
    /// Kind of layer.
    pub layer: LayerKind,
    /// File path, name of a profile or preset, variable or flag as typed.
    pub name: String,
    /// Line in the file, from 1, where the format gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Origin {
    /// An origin without a line.
    pub fn new(layer: LayerKind, name: impl Into<String>) -> Self {
        Self {
            layer,
            name: name.into(),
            line: None,
        }
    }

    /// The same origin at `line`; 0 means unknown.
    #[must_use]
    pub fn at_line(&self, line: u32) -> Self {
        Self {
            line: (line > 0).then_some(line),
            ..self.clone()
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.layer.as_str(), self.name)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// Pairs the two.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

impl<T> Sourced<Vec<T>> {
    /// Each of several values that were written as one.
    pub(crate) fn spread(self) -> impl Iterator<Item = Sourced<T>> {
        let origin = self.origin;
        let each = self.value.into_iter();
        each.map(move |value| Sourced::new(value, origin.clone()))
    }
}

impl<T> Deref for Sourced<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
