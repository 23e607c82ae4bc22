//! [`HostPattern`]: which names an entry covers, and the dialects it may be written in.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use thiserror::Error;

use super::name::{HostName, HostNameError};

/// Whose meaning an entry has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Our own files and flags: `*.x` is any depth below, `**.x` apex and below.
    Native,
    /// srt settings: `*.x` is any depth below; no `**`; no trailing dot; `localhost` allowed.
    Srt,
    /// Sandbox kits of schema 2: `*.x` is exactly one label, `**.x` apex and below.
    Kit,
}

/// A set of names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// That name only.
    Exact(HostName),
    /// Any depth below, not the name itself: `*.example.org`.
    Below(HostName),
    /// Exactly one label below: `*.example.org` in kits.
    OneLabel(HostName),
    /// The name itself and any depth below: `**.example.org`.
    Subtree(HostName),
}

impl HostPattern {
    /// Parses the host part of an entry (no port) in `dialect`.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, PatternError> {
        check_shape(text, dialect)?;
        if let Some(rest) = text.strip_prefix("**.").filter(|_| dialect != Dialect::Srt) {
            return Ok(Self::Subtree(base(text, rest)?));
        }
        if let Some(rest) = text.strip_prefix("*.") {
            let name = base(text, rest)?;
            return Ok(match dialect {
                Dialect::Kit => Self::OneLabel(name),
                Dialect::Native | Dialect::Srt => Self::Below(name),
            });
        }
        if text.contains('*') {
            return Err(PatternError::Wildcard(text.to_owned()));
        }
        exact(text, dialect)
    }

    /// Reads a name in reverse-domain order (`org.example`) as that name and all below it.
    pub fn from_reversed(text: &str) -> Result<Self, PatternError> {
        let labels: Vec<&str> = text.rsplit('.').collect();
        Ok(Self::Subtree(base(text, &labels.join("."))?))
    }

    /// True when the pattern covers `name`.
    pub fn matches(&self, name: &HostName) -> bool {
        match self {
            Self::Exact(own) => own == name,
            Self::Below(own) => name.is_below(own),
            Self::OneLabel(own) => {
                name.is_below(own) && name.label_count() == own.label_count() + 1
            }
            Self::Subtree(own) => own == name || name.is_below(own),
        }
    }

    /// True when every name of `other` is a name of `self`.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Exact(name)) => self.matches(name),
            (Self::OneLabel(own), Self::OneLabel(name)) => own == name,
            (Self::Exact(_) | Self::OneLabel(_), _) => false,
            (Self::Below(own), Self::Subtree(name)) => name.is_below(own),
            (Self::Below(own) | Self::Subtree(own), _) => {
                own == other.name() || other.name().is_below(own)
            }
        }
    }

    /// The name the pattern is about, without its wildcard.
    pub fn name(&self) -> &HostName {
        match self {
            Self::Exact(name) | Self::Below(name) | Self::OneLabel(name) | Self::Subtree(name) => {
                name
            }
        }
    }

    /// True when a wildcard stands directly on a top-level domain: `*.com`.
    pub fn is_too_broad(&self) -> bool {
        !matches!(self, Self::Exact(_)) && self.name().label_count() == 1
    }
}

fn check_shape(text: &str, dialect: Dialect) -> Result<(), PatternError> {
    let owned = || text.to_owned();
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    if text.contains("://") {
        return Err(PatternError::Scheme(owned()));
    }
    if text.contains(['/', '?', '#', '\\']) {
        return Err(PatternError::Path(owned()));
    }
    if text.contains(char::is_whitespace) {
        return Err(PatternError::Space(owned()));
    }
    if text == "*" || text == "**" {
        return Err(PatternError::Everything(owned()));
    }
    if dialect == Dialect::Srt && (text.starts_with('.') || text.ends_with('.')) {
        return Err(PatternError::OuterDot(owned()));
    }
    Ok(())
}

fn base(entry: &str, text: &str) -> Result<HostName, PatternError> {
    if text.contains('*') {
        return Err(PatternError::Wildcard(entry.to_owned()));
    }
    let name = parse_name(entry, text)?;
    if name.is_localhost() {
        return Err(PatternError::BelowLocalhost(entry.to_owned()));
    }
    Ok(name)
}

fn exact(text: &str, dialect: Dialect) -> Result<HostPattern, PatternError> {
    let name = parse_name(text, text)?;
    if name.is_localhost() && dialect != Dialect::Srt {
        return Err(PatternError::Localhost(text.to_owned()));
    }
    if name.label_count() == 1 && !name.is_localhost() {
        return Err(PatternError::SingleLabel(text.to_owned()));
    }
    Ok(HostPattern::Exact(name))
}

fn parse_name(entry: &str, text: &str) -> Result<HostName, PatternError> {
    HostName::parse(text).map_err(|source| PatternError::Name {
        entry: entry.to_owned(),
        source,
    })
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::OneLabel(name) => write!(f, "*.{name} (one label)"),
            Self::Subtree(name) => write!(f, "**.{name}"),
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for HostPattern {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostPattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A host name, \"*.name\" (any depth below) or \"**.name\" (the name and all below it)."
        })
    }
}

/// Why an entry names no set of hosts. Each message shows the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// No text.
    #[error("the entry is empty")]
    Empty,
    /// A URL.
    #[error("entry {0:?} has a scheme")]
    Scheme(String),
    /// A URL path, a query or a CIDR.
    #[error("entry {0:?} has a '/', a query or a fragment")]
    Path(String),
    /// White space.
    #[error("entry {0:?} has a space in it and could never match")]
    Space(String),
    /// A bare `*`.
    #[error("entry {0:?} would cover every host")]
    Everything(String),
    /// A wildcard on a top-level domain.
    #[error("entry {0:?} would cover a whole top-level domain")]
    TooBroad(String),
    /// A `*` somewhere else than as the first label.
    #[error("entry {0:?} has a '*' that is not a whole first label")]
    Wildcard(String),
    /// Leading or trailing dot where the dialect forbids it.
    #[error("entry {0:?} starts or ends with a dot")]
    OuterDot(String),
    /// A wildcard below `localhost`.
    #[error("entry {0:?} is below localhost and could never match")]
    BelowLocalhost(String),
    /// `localhost` in our own format.
    #[error("entry {0:?} would mean the sandbox's own loopback")]
    Localhost(String),
    /// The name of the host's own loopback in an allow list.
    #[error("entry {0:?} names the host's own loopback and could never match")]
    HostAlias(String),
    /// One label.
    #[error("entry {0:?} is a single label")]
    SingleLabel(String),
    /// Not a name.
    #[error("entry {entry:?}: {source}")]
    Name {
        /// The entry as written.
        entry: String,
        /// What is wrong with the name.
        source: HostNameError,
    },
}

impl PatternError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "pattern-empty",
            Self::Scheme(_) => "pattern-scheme",
            Self::Path(_) => "pattern-path",
            Self::Space(_) => "pattern-space",
            Self::Everything(_) => "pattern-everything",
            Self::TooBroad(_) => "pattern-too-broad",
            Self::Wildcard(_) => "pattern-wildcard",
            Self::OuterDot(_) => "pattern-dot",
            Self::BelowLocalhost(_) | Self::Localhost(_) => "pattern-localhost",
            Self::HostAlias(_) => "pattern-host-alias",
            Self::SingleLabel(_) => "pattern-single-label",
            Self::Name { source, .. } => source.code(),
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "remove the entry, or name a host",
            Self::Scheme(_) => "write the host only, with an optional :port",
            Self::Path(_) => {
                "write the host only; address blocks go into {cidr: ...}, paths into {host: ..., paths: [...]}"
            }
            Self::Space(_) => "remove the space",
            Self::Everything(_) => "use `mode: open` for every public host, `mode: deny` for none",
            Self::TooBroad(_) => "name the domain below it: *.example.com",
            Self::Wildcard(_) => "a wildcard is a whole first label: *.example.com",
            Self::OuterDot(_) => "remove the dot",
            Self::BelowLocalhost(_) | Self::Localhost(_) | Self::HostAlias(_) => {
                "to reach the host's own loopback use hostPorts and host.ringfence.internal"
            }
            Self::SingleLabel(_) => "write the full name with its domain",
            Self::Name { source, .. } => source.hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text, Dialect::Native).unwrap()
    }

    #[test]
    fn wildcards_by_dialect() {
        let kit = HostPattern::parse("*.example.org", Dialect::Kit).unwrap();
        for (host, below, subtree, one) in [
            ("example.org", false, true, false),
            ("a.example.org", true, true, true),
            ("a.b.example.org", true, true, false),
            ("aexample.org", false, false, false),
        ] {
            let name = HostName::parse(host).unwrap();
            assert_eq!(pattern("*.example.org").matches(&name), below, "{host}");
            assert_eq!(pattern("**.example.org").matches(&name), subtree, "{host}");
            assert_eq!(kit.matches(&name), one, "{host}");
        }
    }

    #[test]
    fn refused_entries_name_their_fault() {
        for (text, code) in [
            ("", "pattern-empty"),
            ("https://example.org", "pattern-scheme"),
            ("example.org/x", "pattern-path"),
            ("10.0.0.0/8", "pattern-path"),
            ("exa mple.org", "pattern-space"),
            ("example.org ", "pattern-space"),
            ("*", "pattern-everything"),
            ("a*.com", "pattern-wildcard"),
            ("*.*.example.org", "pattern-wildcard"),
            ("a.*.example.org", "pattern-wildcard"),
            ("*.localhost", "pattern-localhost"),
            ("localhost", "pattern-localhost"),
            ("intranet", "pattern-single-label"),
            (".example.org", "malformed-host"),
        ] {
            let error = HostPattern::parse(text, Dialect::Native).unwrap_err();
            assert_eq!(error.code(), code, "{text}: {error}");
            assert!(
                text.is_empty() || error.to_string().contains(text),
                "{error}"
            );
        }
    }

    #[test]
    fn covering() {
        for (wide, narrow, want) in [
            ("**.example.org", "*.example.org", true),
            ("*.example.org", "**.example.org", false),
            ("*.example.org", "**.a.example.org", true),
            ("*.example.org", "a.b.example.org", true),
            ("a.example.org", "*.a.example.org", false),
        ] {
            assert_eq!(
                pattern(wide).covers(&pattern(narrow)),
                want,
                "{wide} {narrow}"
            );
        }
    }
}
