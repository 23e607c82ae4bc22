//! Schema version 1: domains, services and sources in three blocks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::Located;
use super::super::error::{Position, SourceError};
use super::builder::{Builder, PROXY_MANAGED, Secret};
use super::fault::KitFault;
use super::shared::{
    Anything, CredentialFileDocument, FileDocument, InstallDocument, PortDocument,
    ResponseFieldsDocument, SecurityDocument, SentinelsDocument, StartupDocument,
    TokenEndpointDocument, Variables,
};
use super::word::Word;
use crate::credential::{Attach, Binding, SecretSource};

/// A sandbox kit of schema version 1.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "sandbox kit, schema version 1")]
pub(crate) struct KitV1 {
    /// Version of the format: 1.
    #[allow(dead_code, reason = "looked at before the rest is read")]
    schema_version: Word,
    /// `mixin` or `sandbox` (formerly `agent`).
    kind: Located<String>,
    /// Lower-case letters, digits and `-`.
    name: Located<String>,
    /// A name for people.
    display_name: Option<String>,
    /// What it is for.
    description: Option<String>,
    /// The kit's own version.
    version: Option<Word>,
    /// Where it is published.
    #[serde(rename = "sourceURL")]
    #[allow(dead_code, reason = "accepted; nobody is shown it")]
    source_url: Option<String>,
    /// The kit that this one is derived from; not applied.
    extends: Option<Located<String>>,
    /// The image and the command of a `sandbox` kit.
    #[serde(alias = "agent")]
    sandbox: Option<Located<SandboxDocument>>,
    /// Where connections may go.
    #[serde(default)]
    network: NetworkDocument,
    /// Where secrets are found outside.
    #[serde(default)]
    credentials: CredentialsDocument,
    /// Variables inside.
    #[serde(default)]
    environment: EnvironmentDocument,
    /// What is run and written first.
    #[serde(default)]
    commands: CommandsDocument,
    /// Tokens that are fetched; not supported.
    oauth: Option<Located<OauthDocument>>,
    /// Text for an agent; not handed on.
    #[serde(alias = "memory")]
    agent_context: Option<Located<String>>,
    /// Settings of an agent; not handed on.
    settings: Option<Located<Anything>>,
    /// The kit's own folder inside; not supported.
    kit_dir: Option<Located<String>>,
    /// Folders in memory.
    tmpfs: Option<BTreeMap<String, Located<Anything>>>,
    /// Folders that are kept.
    volumes: Option<BTreeMap<String, Located<Anything>>>,
    /// Settings of the container.
    security: Option<SecurityDocument>,
    /// Ports that are served; not published.
    published_ports: Option<Located<Vec<PortDocument>>>,
}

/// The image and the command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; images are not supported")]
struct SandboxDocument {
    image: Option<String>,
    ai_filename: Option<String>,
    entrypoint: Option<EntrypointDocument>,
    resources: Option<ResourcesDocument>,
    persistence: Option<String>,
}

/// The command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; images are not supported")]
struct EntrypointDocument {
    run: Option<Vec<Word>>,
    args: Option<Vec<Word>>,
    tty_args: Option<Vec<Word>>,
    pipe_mode: Option<Word>,
}

/// Limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "read strictly; images are not supported")]
struct ResourcesDocument {
    #[serde(rename = "memoryMB")]
    memory_mb: Option<u64>,
}

/// Where connections may go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NetworkDocument {
    /// Allowed hosts.
    #[serde(default)]
    allowed_domains: Vec<Located<String>>,
    /// Denied hosts; a deny holds whatever allows them.
    #[serde(default)]
    denied_domains: Vec<Located<String>>,
    /// Which service's secret a host gets.
    #[serde(default)]
    service_domains: BTreeMap<String, Located<String>>,
    /// How each service's secret is sent.
    #[serde(default)]
    service_auth: BTreeMap<String, Located<ServiceAuthDocument>>,
    /// Ports that are served; not published.
    published_ports: Option<Located<Vec<PortDocument>>>,
}

/// How a secret is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ServiceAuthDocument {
    /// The header.
    header_name: String,
    /// Its value; `%s` stands for the secret.
    value_format: String,
}

/// Where secrets are found outside.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CredentialsDocument {
    /// By service.
    #[serde(default)]
    sources: BTreeMap<String, Located<SourceDocument>>,
}

/// Where one secret is found.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SourceDocument {
    /// Variables, in order.
    #[serde(default)]
    env: Vec<String>,
    /// A file.
    file: Option<FileSourceDocument>,
    /// `env-first` or `file-first`.
    priority: Option<String>,
    /// Without it nothing is run.
    #[serde(default)]
    required: bool,
}

/// A file with a secret.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileSourceDocument {
    /// Absolute or below `~/`.
    path: String,
    /// `json:KEY`; the whole file when absent.
    parser: Option<String>,
}

/// Variables inside.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct EnvironmentDocument {
    /// With their values.
    #[serde(default)]
    variables: Variables,
    /// That stand for a secret.
    #[serde(default)]
    proxy_managed: Vec<Located<String>>,
}

/// What is run and written first.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CommandsDocument {
    /// Run once.
    #[serde(default)]
    install: Vec<InstallDocument>,
    /// Run at every start.
    #[serde(default)]
    startup: Vec<StartupDocument>,
    /// Written at every start.
    #[serde(default)]
    init_files: Vec<FileDocument>,
}

/// Tokens that are fetched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; tokens are not fetched")]
struct OauthDocument {
    service: String,
    token_endpoint: TokenEndpointDocument,
    sentinels: SentinelsDocument,
    credential_file: Option<CredentialFileDocument>,
    skip_if_env: Option<Vec<String>>,
    response_fields: Option<ResponseFieldsDocument>,
    #[serde(default)]
    passthrough_response: bool,
}

impl KitV1 {
    pub(super) fn build(&self, kit: &mut Builder<'_>) -> Result<(), SourceError> {
        kit.identity(&self.name, &self.kind)?;
        let version = self.version.as_ref().map(|word| word.0.clone());
        kit.describe(self.display_name.clone(), self.description.clone(), version);
        kit.image(self.sandbox.as_ref().map(|block| block.at), self.kind.at)?;
        kit.allow(&self.network.allowed_domains)?;
        kit.deny(&self.network.denied_domains)?;
        Services {
            network: &self.network,
            sources: &self.credentials.sources,
            managed: &self.environment.proxy_managed,
        }
        .build(kit)?;
        kit.variables(&self.environment.variables, &[])?;
        self.oauth.iter().try_for_each(|part| {
            let known = self.credentials.sources.get(&part.service);
            let required = known.is_some_and(|source| source.required);
            kit.oauth(part.at, &part.service, part.passthrough_response, required)
        })?;
        kit.install(&self.commands.install)?;
        kit.startup(&self.commands.startup)?;
        kit.files(&self.commands.init_files)?;
        kit.privileges(self.security.as_ref());
        for (path, options) in self.volumes.iter().chain(&self.tmpfs).flatten() {
            kit.volume(options.at, path)?;
        }
        let ports = [&self.published_ports, &self.network.published_ports];
        for ports in ports.into_iter().flatten() {
            kit.ports(ports.at);
        }
        self.remark(kit);
        Ok(())
    }

    fn remark(&self, kit: &mut Builder<'_>) {
        let context = self.agent_context.as_ref().map(|part| part.at);
        let parts = [
            ("extends", self.extends.as_ref().map(|part| part.at)),
            ("agentContext", context),
            ("settings", self.settings.as_ref().map(|part| part.at)),
            ("kitDir", self.kit_dir.as_ref().map(|part| part.at)),
        ];
        for (key, at) in parts {
            if let Some(at) = at {
                kit.not_handed_on(at, key);
            }
        }
    }
}

/// The three blocks that together say what one credential is.
struct Services<'a> {
    network: &'a NetworkDocument,
    sources: &'a BTreeMap<String, Located<SourceDocument>>,
    managed: &'a [Located<String>],
}

impl Services<'_> {
    fn build(&self, kit: &mut Builder<'_>) -> Result<(), SourceError> {
        let bound: std::collections::BTreeSet<&str> = self
            .network
            .service_domains
            .values()
            .map(|service| service.as_str())
            .collect();
        for service in bound {
            self.service(service, kit)?;
        }
        for (service, source) in self.sources {
            if !kit.has_credential(service) {
                kit.unused_credential(source.at, service);
            }
        }
        for name in self.managed {
            if !kit.stands_for_credential(name) {
                kit.variable(name.at, name, PROXY_MANAGED)?;
            }
        }
        Ok(())
    }

    fn service(&self, service: &str, kit: &mut Builder<'_>) -> Result<(), SourceError> {
        let domains = &self.network.service_domains;
        let own = domains.iter().filter(|(_, to)| to.as_str() == service);
        let mut own = own.peekable();
        let at = own.peek().map_or(Position::default(), |(_, to)| to.at);
        let Some(auth) = self.network.service_auth.get(service) else {
            return Err(kit.fail(at, KitFault::NoServiceAuth(service.to_owned())));
        };
        let attach = Attach::header(&auth.header_name, &auth.value_format)
            .map_err(|error| kit.fail(auth.at, error))?;
        let bindings: Vec<Binding> = own
            .map(|(domain, to)| kit.binding(to.at, domain, attach.clone()))
            .collect::<Result<_, _>>()?;
        let source = self.sources.get(service);
        let (place, sources) = match source {
            Some(source) => (
                source.at,
                sources(source).map_err(|fault| kit.fail(source.at, fault))?,
            ),
            None => (at, Vec::new()),
        };
        let of_service =
            |name: &&Located<String>| source.is_some_and(|source| source.env.contains(&name.value));
        let managed = self.managed.iter().filter(of_service);
        kit.credential(
            place,
            Secret {
                service,
                sources,
                variables: managed.map(|name| name.value.clone()).collect(),
                bindings,
                required: source.is_some_and(|source| source.required),
            },
        )
    }
}

fn sources(source: &SourceDocument) -> Result<Vec<SecretSource>, super::super::error::Fault> {
    let variables = source.env.iter().map(|name| SecretSource::env(name));
    let mut found: Vec<SecretSource> = variables.collect::<Result<_, _>>()?;
    let Some(file) = &source.file else {
        return Ok(found);
    };
    let key = match file.parser.as_deref() {
        None => None,
        Some(parser) => match parser.strip_prefix("json:") {
            Some(key) => Some(key),
            None => return Err(KitFault::Parser(parser.to_owned()).into()),
        },
    };
    let file = SecretSource::file(&file.path, key)?;
    match source.priority.as_deref() {
        None | Some("env-first") => found.push(file),
        Some("file-first") => found.insert(0, file),
        Some(other) => return Err(KitFault::Priority(other.to_owned()).into()),
    }
    Ok(found)
}
