//! What each kind of event says.

use std::net::IpAddr;

use ringfence_policy::{Decision, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::text::{HostText, MethodText, PathText, ReasonCode, Text};
use super::time::Timestamp;

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

/// Which events a summary counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// Decisions.
    Decision,
    /// Ends of allowed connections.
    Closed,
}

/// What the events behind a summary have in common. A summary of events that
/// were too many to be told apart has the first two fields only.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Which events.
    pub of: Subject,
    /// What came of each.
    pub verdict: Verdict,
    /// How they came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The name that the clients used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostText>,
    /// The address, where no name was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Why, as a stable code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ReasonCode>,
    /// The rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Text<1024>>,
    /// Where that rule was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Text<1024>>,
}

/// Events that were counted and not written one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// What they have in common.
    #[serde(flatten)]
    pub group: Group,
    /// How many, beyond those that were written.
    pub count: u64,
    /// When the first of them happened.
    pub first: Timestamp,
    /// When the last of them happened.
    pub last: Timestamp,
    /// Bytes that left over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    /// Bytes that came over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
}

impl Group {
    /// The group that a decision belongs to.
    pub fn of_decision(decided: &Decided) -> Self {
        Self {
            of: Subject::Decision,
            verdict: decided.verdict,
            via: Some(decided.via),
            host: decided.host.clone(),
            address: decided.address.filter(|_| decided.host.is_none()),
            port: Some(decided.port),
            reason: Some(decided.reason.clone()),
            rule: decided.rule.clone(),
            source: decided.source.clone(),
        }
    }

    /// The group that the end of a connection belongs to.
    pub fn of_closed(closed: &Closed) -> Self {
        Self {
            via: Some(closed.via),
            host: closed.host.clone(),
            address: closed.address.filter(|_| closed.host.is_none()),
            port: Some(closed.port),
            ..Self::unnamed(Subject::Closed, Verdict::Allowed)
        }
    }

    /// The group of what is not told apart.
    pub fn unnamed(of: Subject, verdict: Verdict) -> Self {
        Self {
            of,
            verdict,
            via: None,
            host: None,
            address: None,
            port: None,
            reason: None,
            rule: None,
            source: None,
        }
    }

    /// `host:port`, with an address where there is no name; the name alone for
    /// a question about it; nothing where neither is known.
    pub fn destination(&self) -> Option<String> {
        if self.via == Some(Via::Dns) {
            return self.host.as_ref().map(ToString::to_string);
        }
        let port = self.port?;
        match (&self.host, self.address) {
            (Some(host), _) if host.as_str().contains(':') => Some(format!("[{host}]:{port}")),
            (Some(host), _) => Some(format!("{host}:{port}")),
            (None, Some(IpAddr::V6(address))) => Some(format!("[{address}]:{port}")),
            (None, Some(address)) => Some(format!("{address}:{port}")),
            (None, None) => Some(format!(":{port}")),
        }
    }
}
