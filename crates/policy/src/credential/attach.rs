//! [`Attach`]: how a secret is put into a request.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::CredentialError;
use crate::http::is_token;

/// Headers that frame a message or belong to one hop; a secret in them would change what the
/// server takes for the request.
const FRAMING: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
    "content-encoding",
];

/// How a secret is put into a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attach {
    /// A header.
    Header {
        /// Its name, in lower case.
        name: String,
        /// Its value.
        format: HeaderFormat,
    },
    /// `authorization: Basic base64(username:secret)`.
    Basic {
        /// What stands before the colon.
        username: String,
    },
    /// A parameter of the query.
    Query {
        /// Its name.
        name: String,
    },
    /// The placeholder in header values becomes the secret.
    #[serde(rename = "substitute")]
    Placeholder {
        /// In bodies too.
        body: bool,
    },
}

/// What a request has once: two secrets cannot be put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Slot<'a> {
    Header(&'a str),
    Query(&'a str),
}

impl Attach {
    /// A header with a value around the secret.
    pub fn header(name: &str, format: &str) -> Result<Self, CredentialError> {
        if !is_token(name) {
            return Err(CredentialError::Header(name.to_owned()));
        }
        let lower = name.to_ascii_lowercase();
        let framing = FRAMING.contains(&lower.as_str())
            || ["proxy-", "sec-websocket-"]
                .iter()
                .any(|own| lower.starts_with(own));
        if framing {
            return Err(CredentialError::FramingHeader(name.to_owned()));
        }
        Ok(Self::Header {
            name: lower,
            format: HeaderFormat::parse(format)?,
        })
    }

    /// `authorization: Bearer SECRET`.
    pub fn bearer() -> Self {
        Self::Header {
            name: "authorization".to_owned(),
            format: HeaderFormat("Bearer %s".to_owned()),
        }
    }

    /// Basic authentication with the secret as the password.
    pub fn basic(username: &str) -> Result<Self, CredentialError> {
        if username.contains(|c: char| c == ':' || c.is_control()) {
            return Err(CredentialError::Username(username.to_owned()));
        }
        Ok(Self::Basic {
            username: username.to_owned(),
        })
    }

    /// A parameter of the query.
    pub fn query(name: &str) -> Result<Self, CredentialError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(CredentialError::Query(name.to_owned()));
        }
        Ok(Self::Query {
            name: name.to_owned(),
        })
    }

    /// Where it goes in a request; a placeholder stands wherever the client puts it.
    pub(crate) fn slot(&self) -> Option<Slot<'_>> {
        match self {
            Self::Header { name, .. } => Some(Slot::Header(name)),
            Self::Basic { .. } => Some(Slot::Header("authorization")),
            Self::Query { name } => Some(Slot::Query(name)),
            Self::Placeholder { .. } => None,
        }
    }
}

impl fmt::Display for Attach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, format } => write!(f, "header {name}: {}", format.as_str()),
            Self::Basic { username } => write!(f, "basic authentication as {username:?}"),
            Self::Query { name } => write!(f, "query parameter {name}"),
            Self::Placeholder { body: false } => f.write_str("in place of its placeholder"),
            Self::Placeholder { body: true } => {
                f.write_str("in place of its placeholder, bodies too")
            }
        }
    }
}

/// A header value with exactly one `%s`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct HeaderFormat(String);

impl HeaderFormat {
    /// Parses a format: printable ASCII with one `%s` and no other `%`.
    pub fn parse(text: &str) -> Result<Self, CredentialError> {
        let clean = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if text.matches("%s").count() != 1 || text.matches('%').count() != 1 || !clean {
            return Err(CredentialError::Format(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before and after the secret.
    pub fn around(&self) -> (&str, &str) {
        self.0.split_once("%s").unwrap_or((&self.0, ""))
    }
}
