//! What events have in common that are counted and not written one by one.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{Action, Call, CallText, Outcome};
use super::kind::{Closed, Decided, Verdict, Via};
use super::text::{HostText, ReasonCode, Text};
use super::time::Timestamp;

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
    /// Calls to the kernel.
    Call,
}

/// What the events behind a summary have in common. A summary of events that
/// were too many to be told apart has the first two fields only, or, of calls,
/// the action and the outcome as well.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Which events.
    pub of: Subject,
    /// What came of each.
    pub verdict: Verdict,
    /// The name of the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallText>,
    /// What the calls are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// What the calls name; of calls that name many, the folder that it is in,
    /// with a slash at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Text<1024>>,
    /// What came of the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// How they came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
    /// The name that the clients used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostText>,
    /// The address, where no name was used, or for which the name was refused.
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
    /// The credentials that the requests get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<Text<1024>>,
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
            via: Some(decided.via),
            host: decided.host.clone(),
            address: decided.address.filter(|_| is_about_address(decided)),
            port: Some(decided.port),
            reason: Some(decided.reason.clone()),
            rule: decided.rule.clone(),
            source: decided.source.clone(),
            credential: decided.credential.clone(),
            ..Self::unnamed(Subject::Decision, decided.verdict)
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

    /// The group that a call belongs to with those that name the same.
    pub fn of_call(call: &Call) -> Self {
        let subject = call.subject();
        let subject = match subject.trim_end_matches('/') {
            "" => subject.as_str(),
            trimmed => trimmed,
        };
        Self {
            call: Some(call.call.clone()),
            action: Some(call.action),
            place: Some(subject).filter(|it| !it.is_empty()).map(Text::new),
            outcome: Some(call.outcome.clone()),
            rule: call.rule.clone(),
            ..Self::unnamed(Subject::Call, call.verdict())
        }
    }

    /// The group that a call about files belongs to with all in the same
    /// folder, so that a flood of new names is still one group.
    pub(crate) fn of_folder(call: &Call) -> Option<Self> {
        let path = call
            .paths
            .first()
            .filter(|_| call.action.is_about_files())?;
        Some(Self {
            place: Some(Text::new(&folder_of(path))),
            ..Self::of_call(call)
        })
    }

    /// The same without what tells it from others of its kind.
    pub(crate) fn without_names(&self) -> Self {
        Self {
            action: self.action,
            outcome: self.outcome.clone(),
            ..Self::unnamed(self.of, self.verdict)
        }
    }

    /// What came of it, as tables have it.
    pub fn word(&self) -> &'static str {
        let outcome = self.outcome.as_ref();
        outcome.map_or(self.verdict.as_str(), Outcome::as_str)
    }

    /// The group of what is not told apart.
    pub fn unnamed(of: Subject, verdict: Verdict) -> Self {
        Self {
            of,
            verdict,
            call: None,
            action: None,
            place: None,
            outcome: None,
            via: None,
            host: None,
            address: None,
            port: None,
            reason: None,
            rule: None,
            source: None,
            credential: None,
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

/// A name is refused for an address that it has, or by itself.
fn is_about_address(decided: &Decided) -> bool {
    decided.host.is_none() || decided.verdict == Verdict::Refused
}

/// Everything up to the last slash.
fn folder_of(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/"),
        None => "./".to_owned(),
    }
}
