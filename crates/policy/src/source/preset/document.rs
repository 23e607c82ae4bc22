//! A preset as it is written. Doc comments here are the schema's descriptions.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};

use super::PresetKind;
use crate::source::document::Located;

/// A ringfence preset.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "ringfence preset")]
pub(crate) struct PresetDocument {
    /// What it is called; the file has the same name.
    pub(super) name: String,
    /// What it is for, in one line.
    pub(super) description: String,
    /// What sort of thing it opens.
    pub(super) kind: PresetKind,
    /// Allowed hosts in reverse-domain order, sorted.
    #[serde(default)]
    pub(super) hosts: Vec<Located<HostEntry>>,
    /// Ports of the host's own loopback.
    #[serde(default)]
    pub(super) host_ports: Vec<Located<u16>>,
    /// Environment variables inside.
    #[serde(default)]
    pub(super) environment: PresetVariables,
    /// Where the tool keeps caches and state, below the home directory, sorted.
    #[serde(default)]
    pub(super) home: Vec<Located<String>>,
    /// Whether the layer over the home directory is kept for the next run in the same project,
    /// unless somebody says otherwise.
    #[serde(default)]
    pub(super) keep_home: bool,
    /// Names of files or directories that tell a project of this kind; `*.suffix` is taken. Sorted.
    #[serde(default)]
    pub(super) detect: Vec<Located<String>>,
    /// The preset of the more usual tool for the same packages, which is suggested before this one
    /// where nothing tells them apart.
    pub(super) alternative_to: Option<String>,
}

/// Environment variables inside. None holds a secret.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct PresetVariables {
    /// Variables taken from outside, each by its whole name.
    #[serde(default)]
    pub(super) pass: Vec<Located<String>>,
    /// Variables with their values, unless somebody else sets them.
    #[serde(default)]
    pub(super) set: BTreeMap<String, Located<String>>,
}

/// A host, alone or with its match and ports.
#[derive(Debug)]
pub(crate) enum HostEntry {
    Name(String),
    Rule(HostRule),
}

/// A host with its match and ports.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct HostRule {
    /// The name in reverse-domain order: `org.example.api`.
    pub(super) host: String,
    /// Which names are meant.
    #[serde(default, rename = "match")]
    pub(super) covers: HostMatch,
    /// Ports; 80 and 443 when absent.
    pub(super) ports: Option<Vec<u16>>,
}

/// Which names an entry means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HostMatch {
    /// The name and all below it.
    #[default]
    Subtree,
    /// That name only.
    Exact,
}

impl<'de> Deserialize<'de> for HostEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HostVisitor)
    }
}

/// Written out, because an untagged enum would lose the message and the place of a mistake.
struct HostVisitor;

impl<'de> Visitor<'de> for HostVisitor {
    type Value = HostEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reversed host name or a rule {host = ...}")
    }

    fn visit_str<E>(self, text: &str) -> Result<HostEntry, E> {
        Ok(HostEntry::Name(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<HostEntry, A::Error> {
        HostRule::deserialize(MapAccessDeserializer::new(entries)).map(HostEntry::Rule)
    }
}

impl JsonSchema for HostEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HostEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<HostRule>();
        json_schema!({
            "description": "A name in reverse-domain order, with all below it, or a rule.",
            "anyOf": [{"type": "string"}, rule]
        })
    }
}
