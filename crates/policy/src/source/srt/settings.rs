//! The settings as they are written. Doc comments here are the schema's descriptions.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Keys that srt drops without a word; kept to be reported.
pub type UnknownKeys = BTreeMap<String, Value>;

/// An srt settings file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "srt settings")]
pub struct SrtSettings {
    /// Network rules.
    pub network: SrtNetwork,
    /// Filesystem rules; without them nothing is hidden or written.
    #[serde(default)]
    pub filesystem: SrtFilesystem,
    /// Secrets to withhold or to mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SrtCredentials>,
    /// Violations not to report: command pattern to paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_violations: Option<BTreeMap<String, Vec<String>>>,
    /// Weaker isolation inside containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_weaker_nested_sandbox: Option<bool>,
    /// User namespaces inside the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_nested_user_namespaces: Option<bool>,
    /// How deep protected files are searched for, 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mandatory_deny_search_depth: Option<u8>,
    /// The ripgrep program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ripgrep: Option<SrtRipgrep>,
    /// The seccomp helper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<SrtSeccomp>,
    /// The bubblewrap program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bwrap_path: Option<String>,
    /// The socat program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socat_path: Option<String>,
    /// The Java agent, absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub java_agent_jar_path: Option<String>,
    /// Git settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<SrtGit>,
    /// Pseudo-terminals (macOS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_pty: Option<bool>,
    /// Apple events (macOS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_apple_events: Option<bool>,
    /// Weaker network isolation (macOS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_weaker_network_isolation: Option<bool>,
    /// Windows settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Value>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// Network rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtNetwork {
    /// Allowed hosts with optional port; empty is no network.
    pub allowed_domains: Vec<String>,
    /// Denied hosts; checked first.
    pub denied_domains: Vec<String>,
    /// Texts shown for entries of `deniedDomains`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub denied_domain_reasons: BTreeMap<String, String>,
    /// No callback may widen the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_allowlist: Option<bool>,
    /// Addresses that an allowed name must not resolve to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_resolved_addresses: Vec<String>,
    /// Unix sockets (macOS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unix_sockets: Option<Vec<String>>,
    /// All Unix sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_all_unix_sockets: Option<bool>,
    /// Listening on loopback (macOS, Windows).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_local_binding: Option<bool>,
    /// Mach services (macOS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_mach_lookup: Option<Vec<String>>,
    /// Port of an external HTTP proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy_port: Option<NonZeroU16>,
    /// Port of an external SOCKS proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socks_proxy_port: Option<NonZeroU16>,
    /// External proxy that looks inside TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitm_proxy: Option<SrtMitmProxy>,
    /// Upstream proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_proxy: Option<SrtParentProxy>,
    /// TLS termination in srt itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_terminate: Option<SrtTlsTerminate>,
    /// Headers may be set on plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_plaintext_header_set: Option<bool>,
    /// Response headers to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strip_response_headers: Vec<String>,
    /// Refuse tunnels that are not TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse_opaque_tunnels: Option<bool>,
    /// Refuse requests whose `Host` differs from the tunnel's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_host_match: Option<bool>,
    /// What happens to request targets with two readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ambiguous_request_target: Option<SrtAmbiguousTarget>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// What happens to request targets with two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SrtAmbiguousTarget {
    /// Refused.
    Refuse,
    /// Sent as spelled.
    AsSpelled,
    /// Sent in normal form.
    Normalize,
}

/// External proxy that looks inside TLS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtMitmProxy {
    /// Its Unix socket.
    pub socket_path: String,
    /// Domains that go to it, at least one.
    pub domains: Vec<String>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// Upstream proxy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtParentProxy {
    /// For plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// For HTTPS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<String>,
    /// Hosts that bypass it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// TLS termination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtTlsTerminate {
    /// Certificate of the authority; with `caKeyPath`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert_path: Option<String>,
    /// Key of the authority; with `caCertPath`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_key_path: Option<String>,
    /// Domains left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_domains: Vec<String>,
    /// More roots to trust upstream.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_ca_cert_paths: Vec<String>,
    /// Tunnels at once; 256 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tunnels: Option<u32>,
    /// Time for the handshake; 10000 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_timeout_ms: Option<u32>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// Filesystem rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtFilesystem {
    /// Hidden places; globs are taken.
    pub deny_read: Vec<SrtPath>,
    /// Shown again inside hidden places; globs are taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_read: Vec<SrtPath>,
    /// Writable places.
    pub allow_write: Vec<SrtPath>,
    /// Never writable places; win over `allowWrite`.
    pub deny_write: Vec<SrtPath>,
    /// `.git/config` may be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_git_config: Option<bool>,
    /// No filesystem rules at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// A path: text, in which globs may count, or an object whose path means itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SrtPath {
    /// Text; `~` is home, relative paths start from the working folder.
    Text(String),
    /// A path whose characters mean themselves.
    Literal(SrtLiteralPath),
}

/// A path whose characters mean themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SrtLiteralPath {
    /// The path.
    pub path: String,
    /// Always true.
    pub literal: True,
}

/// The constant `true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "bool", into = "bool")]
#[schemars(with = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value {
            Ok(Self)
        } else {
            Err("literal must be true")
        }
    }
}

impl From<True> for bool {
    fn from(_: True) -> Self {
        true
    }
}

/// The ripgrep program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SrtRipgrep {
    /// The command.
    pub command: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its name for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv0: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// The seccomp helper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtSeccomp {
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_path: Option<String>,
    /// Its name for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv0: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// Git settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SrtGit {
    /// Folders git trusts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safe_directories: Vec<String>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub unknown: UnknownKeys,
}

/// Secrets to withhold or to mask. Unknown keys are errors here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SrtCredentials {
    /// Secrets in variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_vars: Vec<SrtCredential>,
    /// Secrets in files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SrtCredential>,
    /// Pairs of access key and secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aws_pairs: Vec<Value>,
    /// How signed requests are treated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigv4: Option<SrtSigv4>,
}

/// One secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SrtCredential {
    /// Name of the variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Path of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Withheld or masked.
    pub mode: SrtCredentialMode,
    /// Expression whose first group is the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
    /// Decoding before masking: `jwt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<SrtDecode>,
    /// Claims to mask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mask_claims: Vec<String>,
    /// Mask every occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_duplicates: Option<bool>,
    /// What happens when `extract` finds nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_extract_no_match: Option<SrtNoMatch>,
    /// Hosts that get the real value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inject_hosts: Option<Vec<String>>,
    /// Also over plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_plaintext_inject: Option<bool>,
}

/// Withheld or masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SrtCredentialMode {
    /// Not visible inside.
    Deny,
    /// Replaced by a stand-in inside.
    Mask,
}

/// Decoding before masking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SrtDecode {
    /// A JSON web token.
    Jwt,
}

/// What happens when `extract` finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SrtNoMatch {
    /// A warning.
    Warn,
    /// The secret is withheld.
    Deny,
    /// The run is refused.
    Error,
}

/// How signed requests are treated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub struct SrtSigv4 {
    /// Streamed bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<SrtSigned>,
    /// Signatures in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presigned: Option<SrtSigned>,
    /// The asymmetric variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigv4a: Option<SrtSigned>,
}

/// What happens to one kind of signed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SrtSigned {
    /// Refused.
    Deny,
    /// Sent unchanged.
    Passthrough,
}
