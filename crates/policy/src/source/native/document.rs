//! The document as it is written. Doc comments here are the schema's descriptions.

mod credential;

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};

use super::super::document::Located;
use crate::audit::AuditLevel;
use crate::filesystem::{GuardMode, ReadScope};
use crate::home::HomeRule;
use crate::layer::RequestRule;
use crate::limits::{ByteSize, Cores, Count, TimeSpan};
use crate::rule::NetworkMode;

pub(crate) use credential::{
    BindingDocument, CommandDocument, CredentialDocument, FileDocument, SchemeDocument,
    SourceDocument,
};

/// A ringfence policy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "ringfence policy")]
pub(crate) struct PolicyDocument {
    /// Version of the format: 1.
    pub(crate) version: Located<u32>,
    /// What files of the working folder and of skills may ask for. Operator's files only.
    pub(crate) requests: Option<Located<RequestRule>>,
    /// Presets: what tools and agents need, by name.
    #[serde(default)]
    pub(crate) presets: Vec<Located<String>>,
    /// Where connections may go.
    pub(crate) network: Option<NetworkDocument>,
    /// What may be read and written.
    pub(crate) filesystem: Option<FilesystemDocument>,
    /// Limits.
    pub(crate) resources: Option<ResourcesDocument>,
    /// Environment variables inside.
    pub(crate) environment: Option<EnvironmentDocument>,
    /// Secrets that are attached outside, to requests for their hosts.
    pub(crate) credentials: Option<Vec<Located<CredentialDocument>>>,
    /// What is recorded.
    pub(crate) audit: Option<AuditDocument>,
}

/// Where connections may go.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NetworkDocument {
    /// What happens to destinations that no rule names.
    pub(crate) mode: Option<Located<NetworkMode>>,
    /// Allowed destinations.
    pub(crate) allow: Option<Vec<Located<AllowDocument>>>,
    /// Denied destinations: names, addresses or address blocks. A deny wins over every allow.
    #[serde(default)]
    pub(crate) deny: Vec<Located<String>>,
    /// Ports of the host's own loopback, reachable as `host.ringfence.internal`.
    pub(crate) host_ports: Option<Vec<Located<u16>>>,
    /// Further root certificates for TLS with servers: PEM files. Operator's files only.
    pub(crate) authorities: Option<Vec<Located<String>>>,
}

/// An allowed destination: `host`, `host:port` or a rule.
#[derive(Debug)]
pub(crate) enum AllowDocument {
    Text(String),
    Rule(AllowRuleDocument),
}

/// An allowed destination with its conditions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AllowRuleDocument {
    /// A host name, `*.name` (any depth below) or `**.name` (the name and all below it).
    pub(crate) host: Option<String>,
    /// An address block or one address; IPv6 may stand without brackets here.
    pub(crate) cidr: Option<String>,
    /// Ports and ranges; 80 and 443 when absent.
    pub(crate) ports: Option<Vec<Located<PortDocument>>>,
    /// HTTP methods; any when absent.
    pub(crate) methods: Option<Vec<Located<String>>>,
    /// HTTP paths: `*` within a segment, `**` across segments; any when absent.
    pub(crate) paths: Option<Vec<Located<String>>>,
    /// Look inside TLS although no condition needs it.
    #[serde(default)]
    pub(crate) inspect: bool,
}

/// A port or a range `"8000-8999"`.
#[derive(Debug, Clone)]
pub(crate) struct PortDocument(pub(crate) String);

/// What may be read and written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FilesystemDocument {
    /// Reading.
    pub(crate) read: Option<ReadDocument>,
    /// Writing.
    pub(crate) write: Option<WriteDocument>,
    /// How protected names are kept from being made.
    pub(crate) guard: Option<Located<GuardMode>>,
    /// What becomes of the home directory.
    #[schemars(with = "Option<HomeRule>")]
    pub(crate) home: Option<Located<String>>,
}

/// Reading.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ReadDocument {
    /// Where reading starts from.
    pub(crate) scope: Option<Located<ReadScope>>,
    /// Hidden places; patterns are taken.
    #[serde(default)]
    pub(crate) deny: Vec<Located<String>>,
    /// Places shown again inside hidden ones; patterns are taken.
    pub(crate) allow: Option<Vec<Located<String>>>,
}

/// Writing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct WriteDocument {
    /// Writable places; `.` is the working folder.
    pub(crate) allow: Option<Vec<Located<String>>>,
    /// Places that stay unwritable; patterns are taken.
    #[serde(default)]
    pub(crate) deny: Vec<Located<String>>,
    /// Further names that are protected at any depth, such as `.npmrc`, or `ci` for the
    /// definitions of continuous integration.
    #[serde(default)]
    pub(crate) protect: Vec<Located<String>>,
    /// Names taken out of the protected ones, by exact text. Operator's files only.
    #[serde(default)]
    pub(crate) unprotect: Vec<Located<String>>,
}

/// Limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ResourcesDocument {
    /// CPU cores at once.
    #[schemars(with = "Option<Cores>")]
    pub(crate) cpu: Option<Located<f64>>,
    /// Memory.
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) memory: Option<Located<String>>,
    /// Processes and threads.
    #[schemars(with = "Option<Count>")]
    pub(crate) pids: Option<Located<u64>>,
    /// Bytes added to private storage and to writable folders.
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) disk: Option<Located<String>>,
    /// Wall-clock time.
    #[schemars(with = "Option<TimeSpan>")]
    pub(crate) time: Option<Located<String>>,
    /// CPU time of all processes together.
    #[schemars(with = "Option<TimeSpan>")]
    pub(crate) cpu_time: Option<Located<String>>,
    /// Bytes of output; the command is ended when it writes more.
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) output: Option<Located<String>>,
    /// Open files per process.
    #[schemars(with = "Option<Count>")]
    pub(crate) open_files: Option<Located<u64>>,
    /// Size of one file.
    #[schemars(with = "Option<ByteSize>")]
    pub(crate) file_size: Option<Located<String>>,
    /// Network connections at once; 1024 when absent.
    #[schemars(with = "Option<Count>")]
    pub(crate) connections: Option<Located<u64>>,
    /// How long a connection may be quiet; 15 minutes when absent.
    #[schemars(with = "Option<TimeSpan>")]
    pub(crate) connection_idle: Option<Located<String>>,
    /// How long a connection may last.
    #[schemars(with = "Option<TimeSpan>")]
    pub(crate) connection_time: Option<Located<String>>,
    /// Different names below one wildcard that are looked up in one run; 1000 when absent.
    #[schemars(with = "Option<Count>")]
    pub(crate) wildcard_names: Option<Located<u64>>,
    /// Whether cpu, memory, pids and cpuTime must be held by a control group; without one, nothing is run.
    pub(crate) required: Option<Located<bool>>,
}

/// Environment variables inside.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct EnvironmentDocument {
    /// Variables taken from outside; `LC_*` is a prefix, `*` alone is every variable.
    pub(crate) pass: Option<Vec<Located<String>>>,
    /// Variables with their values.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Located<String>>,
    /// Variables that hold a placeholder inside.
    #[serde(default)]
    pub(crate) managed: Vec<Located<String>>,
}

/// What is recorded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct AuditDocument {
    /// How much.
    pub(crate) level: Located<AuditLevel>,
}

impl<'de> Deserialize<'de> for AllowDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AllowVisitor)
    }
}

/// Written out, because an untagged enum would lose the message and the place of a mistake.
struct AllowVisitor;

impl<'de> Visitor<'de> for AllowVisitor {
    type Value = AllowDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a host or a rule {host: ...} or {cidr: ...}")
    }

    fn visit_str<E>(self, text: &str) -> Result<AllowDocument, E> {
        Ok(AllowDocument::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<AllowDocument, A::Error> {
        AllowRuleDocument::deserialize(MapAccessDeserializer::new(entries)).map(AllowDocument::Rule)
    }
}

impl JsonSchema for AllowDocument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AllowEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rule = generator.subschema_for::<AllowRuleDocument>();
        json_schema!({
            "description": "A destination: a host, host:port, or a rule with conditions.",
            "anyOf": [{"type": "string"}, rule]
        })
    }
}

impl<'de> Deserialize<'de> for PortDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PortVisitor)
    }
}

struct PortVisitor;

impl Visitor<'_> for PortVisitor {
    type Value = PortDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a port or a range \"8000-8999\"")
    }

    fn visit_u64<E>(self, number: u64) -> Result<PortDocument, E> {
        Ok(PortDocument(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<PortDocument, E> {
        Ok(PortDocument(text.to_owned()))
    }
}

impl JsonSchema for PortDocument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PortEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A port, or a range such as \"8000-8999\".",
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$"}
            ]
        })
    }
}
