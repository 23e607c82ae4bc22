//! One attempt to reach something, as it came in from the sandbox.

use ringfence_audit::{ConnectionId, Process, Protocol, Via};
use ringfence_policy::{Request, Target};

/// Method and path of one HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpSeen {
    /// As sent.
    pub(crate) method: String,
    /// As sent, in origin form, with its query.
    pub(crate) path: String,
}

/// One attempt: who, how, and where to.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) connection: ConnectionId,
    pub(crate) via: Via,
    pub(crate) process: Option<Process>,
    pub(crate) target: Target,
    pub(crate) port: u16,
    /// What is spoken, as far as it was seen.
    pub(crate) spoken: Protocol,
    pub(crate) http: Option<HttpSeen>,
}

impl Attempt {
    /// The question to the policy.
    pub(crate) fn request(&self) -> Request<'_> {
        let request = Request::connect(&self.target, self.port);
        match &self.http {
            Some(seen) => request.with_http(&seen.method, &seen.path),
            None => request,
        }
    }

    /// `host:port`.
    pub(crate) fn destination(&self) -> String {
        format!("{}:{}", self.target, self.port)
    }
}
