//! Schema version 2: each credential says where it goes.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::document::Located;
use super::super::error::{Fault, SourceError};
use super::args::Declared;
use super::builder::{Builder, Secret};
use super::fault::KitFault;
use super::shared::{
    Anything, CredentialFileDocument, FileDocument, InstallDocument, PortDocument,
    ResponseFieldsDocument, SecurityDocument, SentinelsDocument, StartupDocument,
    TokenEndpointDocument, Variables,
};
use super::word::Word;
use crate::credential::{Attach, SecretSource};

/// Beginnings of names that the format keeps for its own.
const RESERVED: [&str; 3] = ["DASH_", "SBX_", "DOCKER_"];

/// A sandbox kit of schema version 2.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(title = "sandbox kit, schema version 2")]
pub(crate) struct KitV2 {
    /// Version of the format: 2.
    #[allow(dead_code, reason = "looked at before the rest is read")]
    schema_version: Word,
    /// `mixin` or `sandbox`.
    kind: Located<String>,
    /// Lower-case letters, digits and `-`.
    name: Located<String>,
    /// The kit's own version.
    version: Option<Word>,
    /// A name for people.
    display_name: Option<String>,
    /// What it is for.
    description: Option<String>,
    /// Where it comes from.
    #[serde(rename = "sourceURL")]
    #[allow(dead_code, reason = "accepted; nobody is shown it")]
    source_url: Option<String>,
    /// Licences of the kit.
    #[allow(dead_code, reason = "accepted; nobody is shown it")]
    licenses: Option<Vec<String>>,
    /// Parts that no other kit may change; kits are not derived from each other here.
    #[allow(dead_code, reason = "accepted; kits are not derived from each other")]
    locked: Option<Vec<String>>,
    /// Settings of the container.
    security: Option<SecurityDocument>,
    /// What may be given with `--kit-arg`.
    #[serde(default)]
    #[allow(dead_code, reason = "taken out before the rest is read")]
    args: Declared,
    /// The image and the command of a `sandbox` kit.
    sandbox: Option<Located<SandboxDocument>>,
    /// The kit that this one is derived from; `sandbox` kits only.
    extends: Option<Located<String>>,
    /// Kits that this one is made with; `sandbox` kits only.
    mixins: Option<Located<Vec<String>>>,
    /// What a `mixin` is made for.
    requires: Option<Located<RequiresDocument>>,
    /// Text for an agent; not handed on.
    agent_instructions: Option<Located<InstructionsDocument>>,
    /// Where connections may go.
    #[serde(default)]
    permissions: PermissionsDocument,
    /// Ports that are served; not published.
    #[serde(alias = "publishedPorts")]
    ports: Option<Located<Vec<PortDocument>>>,
    /// Secrets, and where they go.
    #[serde(default)]
    credentials: Vec<Located<CredentialDocument>>,
    /// Variables inside.
    #[serde(default)]
    environment: EnvironmentDocument,
    /// What is run and written first.
    #[serde(default)]
    setup: SetupDocument,
    /// Folders that are kept, or in memory.
    #[serde(default)]
    volumes: Vec<Located<VolumeDocument>>,
}

/// The image and the command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; images are not supported")]
struct SandboxDocument {
    image: Option<String>,
    build: Option<Anything>,
    entrypoint: Option<Vec<Word>>,
    command: Option<Anything>,
    resources: Option<ResourcesDocument>,
}

/// Limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; images are not supported")]
struct ResourcesDocument {
    cpu: Option<f64>,
    memory: Option<Word>,
    gpu: Option<Word>,
}

/// What a mixin is made for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RequiresDocument {
    /// The agent.
    agent: String,
}

/// Text for an agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; instructions are not handed on")]
struct InstructionsDocument {
    filename: Option<String>,
    content: Option<String>,
}

/// What is permitted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PermissionsDocument {
    /// Where connections may go.
    #[serde(default)]
    network: NetworkDocument,
}

/// Where connections may go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NetworkDocument {
    /// Allowed hosts, `host:port`, `*.name` (one label), `**.name` and address blocks.
    #[serde(default)]
    allow: Vec<Located<String>>,
    /// Denied ones; a deny holds whatever allows them.
    #[serde(default)]
    deny: Vec<Located<String>>,
}

/// A secret and where it goes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CredentialDocument {
    /// Name of the service.
    service: Located<String>,
    /// What it is for.
    #[allow(dead_code, reason = "accepted; nobody is shown it")]
    description: Option<String>,
    /// Without it nothing is run.
    #[serde(default)]
    required: bool,
    /// Has no meaning yet.
    provider: Option<Located<Anything>>,
    /// A key.
    api_key: Option<ApiKeyDocument>,
    /// A token that is fetched; not supported.
    oauth: Option<Located<OauthDocument>>,
}

/// A key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ApiKeyDocument {
    /// The variable that holds it outside, and what stands for it inside.
    name: Located<String>,
    /// `false` leaves the variable out inside.
    proxy_managed: Option<bool>,
    /// Which requests get it.
    #[serde(default)]
    inject: Vec<Located<InjectDocument>>,
}

/// Requests that get a key, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct InjectDocument {
    /// The host.
    domain: String,
    /// The header.
    header: Option<String>,
    /// Its value; `%s` stands for the key.
    format: Option<String>,
    /// `bearer` or `basic`, in place of header and format.
    scheme: Option<String>,
    /// The name that goes with `basic`.
    username: Option<String>,
}

/// A token that is fetched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; tokens are not fetched")]
struct OauthDocument {
    token_endpoint: TokenEndpointDocument,
    resource_hosts: Option<Vec<String>>,
    sentinels: Option<SentinelsDocument>,
    credential_file: Option<CredentialFileDocument>,
    response_fields: Option<ResponseFieldsDocument>,
    skip_if_env: Option<Vec<String>>,
    #[serde(default)]
    passthrough: bool,
}

/// Variables inside.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct EnvironmentDocument {
    /// With their values.
    #[serde(default)]
    variables: Variables,
}

/// What is run and written first.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SetupDocument {
    /// Run once.
    #[serde(default)]
    install: Vec<InstallDocument>,
    /// Run at every start.
    #[serde(default)]
    startup: Vec<StartupDocument>,
    /// Written at every start.
    #[serde(default)]
    files: Vec<FileDocument>,
}

/// A folder that is kept, or in memory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; volumes are not made")]
struct VolumeDocument {
    /// Where.
    path: String,
    /// `tmpfs`, or empty.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// How much it takes.
    size: Option<Word>,
    /// Its mode, octal.
    mode: Option<Word>,
}

impl KitV2 {
    pub(super) fn build(&self, kit: &mut Builder<'_>) -> Result<(), SourceError> {
        kit.identity(&self.name, &self.kind)?;
        let version = self.version.as_ref().map(|word| word.0.clone());
        kit.describe(self.display_name.clone(), self.description.clone(), version);
        self.blocks(kit)?;
        kit.allow(&self.permissions.network.allow)?;
        kit.deny(&self.permissions.network.deny)?;
        for item in &self.credentials {
            credential(item, kit)?;
        }
        kit.variables(&self.environment.variables, &RESERVED)?;
        kit.install(&self.setup.install)?;
        kit.startup(&self.setup.startup)?;
        kit.files(&self.setup.files)?;
        kit.privileges(self.security.as_ref());
        for volume in &self.volumes {
            kit.volume(volume.at, &volume.path)?;
        }
        if let Some(ports) = &self.ports {
            kit.ports(ports.at);
        }
        if let Some(text) = &self.agent_instructions {
            kit.not_handed_on(text.at, "agentInstructions");
        }
        Ok(())
    }

    /// Blocks that one kind has and the other has not.
    fn blocks(&self, kit: &mut Builder<'_>) -> Result<(), SourceError> {
        kit.image(self.sandbox.as_ref().map(|block| block.at), self.kind.at)?;
        let extends = self.extends.as_ref().map(|part| part.at);
        kit.only_in_sandbox(extends, "extends")?;
        kit.only_in_sandbox(self.mixins.as_ref().map(|part| part.at), "mixins")?;
        if let Some(requires) = &self.requires {
            kit.only_in_mixin(requires.at, "requires")?;
            kit.made_for(requires.at, &requires.agent);
        }
        Ok(())
    }
}

fn credential(
    item: &Located<CredentialDocument>,
    kit: &mut Builder<'_>,
) -> Result<(), SourceError> {
    let service = &item.service.value;
    if item.api_key.is_none() && item.oauth.is_none() {
        return Err(kit.fail(item.at, KitFault::NoSecret(service.clone())));
    }
    if let Some(provider) = &item.provider {
        kit.not_handed_on(provider.at, "provider");
    }
    if let Some(oauth) = &item.oauth {
        let is_only_way = item.required && item.api_key.is_none();
        kit.oauth(oauth.at, service, oauth.passthrough, is_only_way)?;
    }
    match &item.api_key {
        Some(key) => api_key(item, key, kit),
        None => Ok(()),
    }
}

fn api_key(
    item: &Located<CredentialDocument>,
    key: &ApiKeyDocument,
    kit: &mut Builder<'_>,
) -> Result<(), SourceError> {
    let source = SecretSource::env(&key.name).map_err(|error| kit.fail(key.name.at, error))?;
    let is_inside = key.proxy_managed != Some(false);
    if key.inject.is_empty() {
        kit.unused_credential(item.at, &item.service);
        return Ok(());
    }
    let bindings = key.inject.iter().map(|entry| {
        let attach = attach(entry).map_err(|fault| kit.fail(entry.at, fault))?;
        kit.binding(entry.at, &entry.domain, attach)
    });
    let bindings = bindings.collect::<Result<_, _>>()?;
    kit.credential(
        item.at,
        Secret {
            service: &item.service,
            sources: vec![source],
            variables: is_inside
                .then(|| key.name.value.clone())
                .into_iter()
                .collect(),
            bindings,
            required: item.required,
        },
    )
}

/// `scheme` in place of a format; an explicit header holds beside `bearer`.
fn attach(entry: &InjectDocument) -> Result<Attach, Fault> {
    let header = entry.header.as_deref();
    let username = entry.username.as_deref();
    match (entry.scheme.as_deref(), entry.format.as_deref(), username) {
        (Some("bearer"), None, None) => Ok(Attach::header(
            header.unwrap_or("Authorization"),
            "Bearer %s",
        )?),
        (Some("bearer"), None, Some(_)) | (Some("basic"), None, None) => {
            Err(KitFault::InjectUsername.into())
        }
        (Some("basic") | None, None, Some(name)) if is_authorization(header) => {
            Ok(Attach::basic(name)?)
        }
        (None, Some(format), None) => match header {
            Some(header) => Ok(Attach::header(header, format)?),
            None => Err(KitFault::InjectForm.into()),
        },
        (Some(other), None, _) if !["bearer", "basic"].contains(&other) => {
            Err(KitFault::InjectScheme(other.to_owned()).into())
        }
        _ => Err(KitFault::InjectForm.into()),
    }
}

fn is_authorization(header: Option<&str>) -> bool {
    header.is_none_or(|name| name.eq_ignore_ascii_case("authorization"))
}
