//! Parts of the document that both versions have. Doc comments here are the schema's descriptions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::super::document::Located;
use super::word::Word;

/// A line of shell, run once when the sandbox is made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct InstallDocument {
    /// The line, given to `bash`, or to `sh` where there is none.
    pub(crate) command: Located<String>,
    /// Who runs it; here always the sandbox's own user.
    pub(crate) user: Option<Word>,
    /// What it does.
    pub(crate) description: Option<String>,
}

/// A command that is run at every start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct StartupDocument {
    /// The program and its arguments.
    pub(crate) command: Located<Vec<Word>>,
    /// Who runs it; here always the sandbox's own user.
    pub(crate) user: Option<Word>,
    /// The command of the run does not wait for it.
    #[serde(default)]
    pub(crate) background: bool,
    /// What it does.
    pub(crate) description: Option<String>,
}

/// A file that is written when the sandbox is made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FileDocument {
    /// Where, below `/home/agent`, `${WORKDIR}` or `/tmp`.
    pub(crate) path: Located<String>,
    /// What is in it; `${WORKDIR}` is the working folder.
    pub(crate) content: String,
    /// Its mode, octal; 0644 when absent.
    pub(crate) mode: Option<Located<Word>>,
    /// One that is there is left alone.
    #[serde(default)]
    pub(crate) only_if_missing: bool,
    /// What it is for.
    #[allow(dead_code, reason = "accepted; nobody is shown it")]
    pub(crate) description: Option<String>,
}

/// Settings of the container.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SecurityDocument {
    /// Never granted.
    pub(crate) privileged: Option<Located<bool>>,
}

/// A port that the sandbox serves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; ports are not published")]
pub(crate) struct PortDocument {
    /// The port inside.
    pub(crate) container: u16,
    /// The port outside.
    pub(crate) host: Option<u16>,
    /// The address outside.
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: Option<String>,
    /// `tcp` or `udp`.
    pub(crate) protocol: Option<String>,
    /// A name for people.
    pub(crate) name: Option<String>,
}

/// Where a token is fetched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; tokens are not fetched")]
pub(crate) struct TokenEndpointDocument {
    /// The host.
    pub(crate) host: String,
    /// The path.
    pub(crate) path: String,
}

/// What stands for the tokens inside.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; tokens are not fetched")]
pub(crate) struct SentinelsDocument {
    /// For the access token.
    pub(crate) access_token: Option<String>,
    /// For the refresh token.
    pub(crate) refresh_token: Option<String>,
}

/// A file with the tokens in it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; tokens are not fetched")]
pub(crate) struct CredentialFileDocument {
    /// Where.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) template: Option<String>,
    /// The same as a map.
    pub(crate) structure: Option<Anything>,
}

/// Names of the fields of a token endpoint's answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[allow(dead_code, reason = "read strictly; tokens are not fetched")]
pub(crate) struct ResponseFieldsDocument {
    /// Of the access token.
    pub(crate) access_token: Option<String>,
    /// Of the refresh token.
    pub(crate) refresh_token: Option<String>,
    /// Of the time it lasts.
    pub(crate) expires_in: Option<String>,
    /// Of the scope.
    pub(crate) scope: Option<String>,
}

/// A value of any shape.
#[derive(Debug, Deserialize)]
pub(crate) struct Anything(
    #[allow(dead_code, reason = "its shape does not matter")] serde_json::Value,
);

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// Variables with their values.
pub(crate) type Variables = BTreeMap<String, Located<Word>>;
