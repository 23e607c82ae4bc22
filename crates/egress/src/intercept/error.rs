//! [`SendError`]: why a request that was allowed got no answer.

use std::error::Error;
use std::io;

use ringfence_audit::CloseReason;
use tokio_rustls::rustls::{self, AlertDescription};

use crate::attempt::Attempt;
use crate::exit::{Exit, OpenError};
use crate::refusal::Refused;

/// Why a server that wants to know its clients gets none, as a code and in words.
const WANTS_CERTIFICATE: (&str, &str) = (
    "upstream-wants-certificate",
    "the server wants a certificate of its client, which cannot be shown where TLS is looked \
     into: leave the host without credential and without rules for methods and paths",
);

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// There is no connection.
    Open(OpenError),
    /// The server's certificate does not hold, or it wants one of us; written down.
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

    /// The same, written down if it is about certificates.
    pub(super) fn noted(self, exit: &Exit, attempt: &Attempt) -> Self {
        let source: Option<&(dyn Error + 'static)> = match &self {
            Self::Tls(error) => Some(error),
            Self::Http(error) => Some(error),
            _ => None,
        };
        if !source.is_some_and(wants_certificate) {
            return self;
        }
        let (code, phrase) = WANTS_CERTIFICATE;
        Self::Certificate(exit.refuse(attempt, code, phrase))
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

/// Whether a server ended TLS because it was shown no certificate. In TLS 1.3
/// that is said after the handshake, and ends the connection.
fn wants_certificate(error: &(dyn Error + 'static)) -> bool {
    // Of the error below it HTTP/2 keeps the words alone.
    let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired).to_string();
    let mut next = Some(error);
    while let Some(error) = next {
        if error.to_string() == alert {
            return true;
        }
        next = error.source();
    }
    false
}
