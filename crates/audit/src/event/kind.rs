//! What is said of connections.

use std::net::IpAddr;

use ringfence_policy::{Decision, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::text::{HostText, MethodText, PathText, ReasonCode, Text};

/// A connection's number within its run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ConnectionId(pub u64);

/// How a connection came in.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// The client dialled the destination and knows of no proxy.
    Transparent,
    /// A request to the HTTP proxy.
    HttpProxy,
    /// A tunnel through the HTTP proxy.
    Connect,
    /// The SOCKS proxy.
    Socks,
    /// A question to the name server.
    Dns,
}

impl Via {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transparent => "transparent",
            Self::HttpProxy => "http-proxy",
            Self::Connect => "connect",
            Self::Socks => "socks",
            Self::Dns => "dns",
        }
    }
}

/// What was spoken, as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Bytes that were not looked into.
    Tcp,
    /// TLS that was not looked into.
    Tls,
    /// HTTP, also inside TLS.
    Http,
    /// A question for a name.
    Dns,
}

/// What came of it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It may leave.
    Allowed,
    /// It may not.
    Refused,
}

impl Verdict {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
        }
    }
}

impl From<ringfence_policy::Verdict> for Verdict {
    fn from(verdict: ringfence_policy::Verdict) -> Self {
        match verdict {
            ringfence_policy::Verdict::Allow => Self::Allowed,
            ringfence_policy::Verdict::Deny => Self::Refused,
        }
    }
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    /// Its id, as the sandbox counts.
    pub pid: u32,
    /// The program it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<Text<1024>>,
    /// The SHA-256 sum of its arguments, each followed by a NUL. The arguments
    /// themselves may hold secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv_sha256: Option<Digest>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// Which connection of the run.
    pub connection: ConnectionId,
    /// Who asked, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// How it came in.
    pub via: Via,
    /// The name that the client used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostText>,
    /// The address that would be dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port that would be dialled.
    pub port: u16,
    /// What is spoken.
    pub protocol: Protocol,
    /// The method of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<MethodText>,
    /// The path of a request, without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathText>,
    /// What came of it.
    pub verdict: Verdict,
    /// Why, as a stable code.
    pub reason: ReasonCode,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text<1024>>,
    /// Where that rule was written: the layer and its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Text<1024>>,
    /// The credentials that the request gets, each by its service and how it is
    /// attached; with the reason `secret-returned`, the one that was hidden in
    /// the answer. Never their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Text<1024>>,
}

impl Decided {
    /// What the policy decided about `request`. The process is not known yet.
    pub fn new(
        connection: ConnectionId,
        via: Via,
        protocol: Protocol,
        request: &Request<'_>,
        decision: &Decision,
    ) -> Self {
        Self {
            connection,
            process: None,
            via,
            host: request.host.map(|host| HostText::new(host.as_str())),
            address: request.addr,
            port: request.port,
            protocol,
            method: request.method.map(MethodText::new),
            path: request.path.map(PathText::new),
            verdict: decision.verdict.into(),
            reason: decision.reason.into(),
            rule: decision.rule.as_deref().map(Text::new),
            source: decision
                .source
                .as_ref()
                .map(|source| Text::new(&source.to_string())),
            credential: None,
        }
    }
}

/// The end of an allowed connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Closed {
    /// Which connection of the run.
    pub connection: ConnectionId,
    /// How it came in.
    pub via: Via,
    /// The name that the client used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostText>,
    /// The address that was dialled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port that was dialled.
    pub port: u16,
    /// Bytes that left.
    pub bytes_up: u64,
    /// Bytes that came.
    pub bytes_down: u64,
    /// How long it was open, in milliseconds.
    pub duration_ms: u64,
    /// Why it ended.
    pub why: CloseReason,
}

/// Why an allowed connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CloseReason {
    /// Both sides had said everything.
    Finished,
    /// The client broke it off.
    ClientReset,
    /// The server broke it off.
    ServerReset,
    /// The name has no address.
    Unresolved,
    /// No address could be reached.
    Unreachable,
    /// TLS with the server or the client failed.
    TlsFailed,
    /// What was said is not the protocol that was agreed on.
    Malformed,
    /// A later decision about it was no.
    Refused,
    /// Nothing was said for too long.
    Idle,
    /// A limit was reached.
    Limit,
    /// The policy that allowed it holds no longer.
    PolicyChanged,
    /// The run ended first.
    RunEnded,
    /// We could not go on.
    Failed,
}

impl CloseReason {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::ClientReset => "client-reset",
            Self::ServerReset => "server-reset",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::TlsFailed => "tls-failed",
            Self::Malformed => "malformed",
            Self::Refused => "refused",
            Self::Idle => "idle",
            Self::Limit => "limit",
            Self::PolicyChanged => "policy-changed",
            Self::RunEnded => "run-ended",
            Self::Failed => "failed",
        }
    }
}
