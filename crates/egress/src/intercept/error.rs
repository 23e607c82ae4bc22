//! [`SendError`]: why a request that was allowed got no answer.

use std::io;

use ringfence_audit::CloseReason;

use crate::exit::OpenError;
use crate::refusal::Refused;

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// There is no connection.
    Open(OpenError),
    /// The server's certificate does not hold; written down.
    Certificate(Refused),
    /// TLS with the server failed otherwise.
    Tls(io::Error),
    /// The server no longer speaks the version of HTTP that the client was
    /// told.
    Version,
    /// The connection broke, or what came over it is not HTTP.
    Http(hyper::Error),
    /// One connection after the other was closed before the request was sent.
    Busy,
    /// The policy no longer allows it.
    Revoked,
}

impl From<hyper::Error> for SendError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}

impl SendError {
    /// The policy refuses it by now.
    pub(super) fn refused(refused: Refused) -> Self {
        Self::Open(refused.into())
    }

    /// The HTTP status that says so.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Open(error) => error.status(),
            Self::Tls(error) if error.kind() == io::ErrorKind::TimedOut => 504,
            Self::Revoked => 403,
            Self::Certificate(_) | Self::Tls(_) | Self::Version | Self::Http(_) | Self::Busy => 502,
        }
    }

    /// A stable reason code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Open(OpenError::Refused(refused)) | Self::Certificate(refused) => refused.code,
            Self::Open(_) => "upstream-unreachable",
            Self::Tls(_) => "upstream-tls",
            Self::Version | Self::Http(_) | Self::Busy => "upstream-failed",
            Self::Revoked => "policy-changed",
        }
    }

    /// One line for people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Open(error) => error.text(),
            Self::Certificate(refused) => refused.phrase.clone(),
            Self::Tls(error) => format!("TLS with the server failed: {error}"),
            Self::Version => "the server no longer speaks this version of HTTP".to_owned(),
            Self::Http(error) => format!("the server did not answer: {error}"),
            Self::Busy => "the server closes every connection".to_owned(),
            Self::Revoked => "the policy no longer allows it".to_owned(),
        }
    }

    pub(super) fn close_reason(&self) -> CloseReason {
        match self {
            Self::Open(_) => CloseReason::Unreachable,
            Self::Certificate(_) | Self::Tls(_) => CloseReason::TlsFailed,
            Self::Version | Self::Http(_) | Self::Busy => CloseReason::ServerReset,
            Self::Revoked => CloseReason::PolicyChanged,
        }
    }
}
