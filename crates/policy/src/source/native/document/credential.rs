//! Credentials as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Located, PortDocument};
use crate::limits::TimeSpan;

/// A secret, where it is found, and the requests that get it: those of `hosts` in one way, or those
/// of `bindings` in several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct CredentialDocument {
    /// Name of the service: one word. A stronger layer's entry for it takes the place of a weaker.
    pub(crate) service: Located<String>,
    /// Variable that holds the secret outside and a placeholder inside.
    pub(crate) env: Option<Located<String>>,
    /// File that holds it.
    pub(crate) file: Option<Located<FileDocument>>,
    /// Command that prints it.
    pub(crate) command: Option<Located<CommandDocument>>,
    /// Its name in the store of `ringfence secret`.
    pub(crate) secret: Option<Located<String>>,
    /// Several places in order; the first that has it counts.
    pub(crate) sources: Option<Vec<Located<SourceDocument>>>,
    /// Variables that hold the placeholder inside; those named by `env` when absent.
    pub(crate) variables: Option<Vec<Located<String>>>,
    /// Without the secret nothing is run.
    #[serde(default)]
    pub(crate) required: bool,
    /// The secret may be short or of few characters, so that it can be found by trying.
    #[serde(default)]
    pub(crate) weak: bool,
    /// Hosts whose requests get it; each must be allowed.
    pub(crate) hosts: Option<Vec<Located<String>>>,
    /// Ports and ranges; 443 when absent.
    pub(crate) ports: Option<Vec<Located<PortDocument>>>,
    /// HTTP methods; any when absent.
    pub(crate) methods: Option<Vec<Located<String>>>,
    /// HTTP paths: `*` within a segment, `**` across segments; any when absent.
    pub(crate) paths: Option<Vec<Located<String>>>,
    /// `https` when absent; `http` only for `host.ringfence.internal` on a port of `hostPorts`.
    pub(crate) scheme: Option<Located<SchemeDocument>>,
    /// Take the place of a credential that the request already carries.
    pub(crate) replace: Option<bool>,
    /// Header that carries it.
    pub(crate) header: Option<Located<String>>,
    /// The header's value; `%s` stands for the secret. `Bearer %s` for Authorization, `%s` for
    /// others, when absent.
    pub(crate) format: Option<Located<String>>,
    /// Send it as `Authorization: Bearer`.
    pub(crate) bearer: Option<bool>,
    /// Send it as the password of basic authentication.
    pub(crate) basic: Option<Located<BasicDocument>>,
    /// Parameter of the query that carries it.
    pub(crate) query: Option<Located<String>>,
    /// Put it where the client put the placeholder.
    pub(crate) substitute: Option<Located<SubstituteDocument>>,
    /// Several ways to send it.
    pub(crate) bindings: Option<Vec<Located<BindingDocument>>>,
}

/// Which requests get a secret, and how.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct BindingDocument {
    /// Hosts whose requests get it; each must be allowed.
    pub(crate) hosts: Option<Vec<Located<String>>>,
    /// Ports and ranges; 443 when absent.
    pub(crate) ports: Option<Vec<Located<PortDocument>>>,
    /// HTTP methods; any when absent.
    pub(crate) methods: Option<Vec<Located<String>>>,
    /// HTTP paths: `*` within a segment, `**` across segments; any when absent.
    pub(crate) paths: Option<Vec<Located<String>>>,
    /// `https` when absent; `http` only for `host.ringfence.internal` on a port of `hostPorts`.
    pub(crate) scheme: Option<Located<SchemeDocument>>,
    /// Take the place of a credential that the request already carries.
    pub(crate) replace: Option<bool>,
    /// Header that carries it.
    pub(crate) header: Option<Located<String>>,
    /// The header's value; `%s` stands for the secret. `Bearer %s` for Authorization, `%s` for
    /// others, when absent.
    pub(crate) format: Option<Located<String>>,
    /// Send it as `Authorization: Bearer`.
    pub(crate) bearer: Option<bool>,
    /// Send it as the password of basic authentication.
    pub(crate) basic: Option<Located<BasicDocument>>,
    /// Parameter of the query that carries it.
    pub(crate) query: Option<Located<String>>,
    /// Put it where the client put the placeholder.
    pub(crate) substitute: Option<Located<SubstituteDocument>>,
}

/// One place that may hold a secret: one of the four.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SourceDocument {
    /// A variable outside.
    pub(crate) env: Option<Located<String>>,
    /// A file.
    pub(crate) file: Option<Located<FileDocument>>,
    /// A command that prints it.
    pub(crate) command: Option<Located<CommandDocument>>,
    /// A name in the store of `ringfence secret`.
    pub(crate) secret: Option<Located<String>>,
}

/// A file that holds a secret.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FileDocument {
    /// Absolute, or below the home folder: `~/...`.
    pub(crate) path: String,
    /// Dotted path to a text in a JSON file; the whole file when absent.
    pub(crate) key: Option<String>,
}

/// A command that prints a secret: `argv` or `run`. No shell is involved.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct CommandDocument {
    /// The program and its arguments.
    pub(crate) argv: Option<Vec<String>>,
    /// The same in one line, split at spaces.
    pub(crate) run: Option<String>,
    /// How long its answer is kept; it is run for each request when absent.
    #[schemars(with = "Option<TimeSpan>")]
    pub(crate) refresh: Option<Located<String>>,
}

/// How a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SchemeDocument {
    Https,
    Http,
}

/// Basic authentication.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct BasicDocument {
    /// The user name.
    pub(crate) username: String,
}

/// Where the placeholder is replaced: in header values always.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SubstituteDocument {
    /// In bodies too.
    #[serde(default)]
    pub(crate) body: bool,
}

impl CredentialDocument {
    /// What stands beside `service` about requests, if anything.
    pub(crate) fn binding(&self) -> Option<BindingDocument> {
        let own = BindingDocument {
            hosts: self.hosts.clone(),
            ports: self.ports.clone(),
            methods: self.methods.clone(),
            paths: self.paths.clone(),
            scheme: self.scheme.clone(),
            replace: self.replace,
            header: self.header.clone(),
            format: self.format.clone(),
            bearer: self.bearer,
            basic: self.basic.clone(),
            query: self.query.clone(),
            substitute: self.substitute.clone(),
        };
        own.is_stated().then_some(own)
    }
}

impl BindingDocument {
    fn is_stated(&self) -> bool {
        self.hosts.is_some()
            || self.ports.is_some()
            || self.methods.is_some()
            || self.paths.is_some()
            || self.scheme.is_some()
            || self.replace.is_some()
            || self.header.is_some()
            || self.format.is_some()
            || self.bearer.is_some()
            || self.basic.is_some()
            || self.query.is_some()
            || self.substitute.is_some()
    }
}
