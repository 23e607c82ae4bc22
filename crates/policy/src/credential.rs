//! Credential bindings: which secret is attached to requests for which hosts. Names only; the
//! secret itself never enters a policy.

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use crate::environment;
use crate::host::{Dialect, HostPattern, PatternError};
use crate::http::is_token;

/// One credential and where it may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CredentialBinding {
    /// Name of the service, for people and logs.
    pub service: String,
    /// Variable that holds the secret outside and a placeholder inside.
    pub env: String,
    /// Hosts whose requests get it.
    pub hosts: Vec<HostPattern>,
    /// Header that carries it.
    pub header: String,
    /// The header's value; `%s` stands for the secret.
    pub format: HeaderFormat,
}

/// A header value with exactly one `%s`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct HeaderFormat(String);

impl HeaderFormat {
    /// Parses a format. It may hold no other `%` and no control character.
    pub fn parse(text: &str) -> Result<Self, CredentialError> {
        let clean = !text.contains(|c: char| c.is_control());
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

impl CredentialBinding {
    /// Checks every part. `hosts` are exact names or wildcards of our own dialect, without ports.
    pub fn new(
        service: &str,
        env: &str,
        hosts: &[String],
        header: &str,
        format: &str,
    ) -> Result<Self, CredentialError> {
        if service.is_empty() || service.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(CredentialError::Service(service.to_owned()));
        }
        environment::check_name(env).map_err(|_| CredentialError::Env(env.to_owned()))?;
        if hosts.is_empty() {
            return Err(CredentialError::NoHosts(service.to_owned()));
        }
        if !is_token(header) {
            return Err(CredentialError::Header(header.to_owned()));
        }
        Ok(Self {
            service: service.to_owned(),
            env: env.to_owned(),
            hosts: hosts
                .iter()
                .map(|text| bound_host(text))
                .collect::<Result<_, _>>()?,
            header: header.to_owned(),
            format: HeaderFormat::parse(format)?,
        })
    }
}

fn bound_host(text: &str) -> Result<HostPattern, CredentialError> {
    let pattern = HostPattern::parse(text, Dialect::Native)?;
    if pattern.is_too_broad() {
        Err(PatternError::TooBroad(text.to_owned()).into())
    } else {
        Ok(pattern)
    }
}

/// Why a binding is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CredentialError {
    /// Empty, or with spaces.
    #[error("{0:?} is not a service name")]
    Service(String),
    /// Not a variable name.
    #[error("{0:?} is not a name of an environment variable")]
    Env(String),
    /// Nowhere to send it.
    #[error("credential {0} is bound to no host")]
    NoHosts(String),
    /// A host entry that cannot be used.
    #[error(transparent)]
    Host(#[from] PatternError),
    /// Not a header name.
    #[error("{0:?} is not a header name")]
    Header(String),
    /// Not a value with one `%s`.
    #[error("format {0:?} does not hold exactly one %s, or holds a line break")]
    Format(String),
}

impl CredentialError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Service(_) => "credential-service",
            Self::Env(_) => "credential-env",
            Self::NoHosts(_) => "credential-no-hosts",
            Self::Host(error) => error.code(),
            Self::Header(_) => "credential-header",
            Self::Format(_) => "credential-format",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Service(_) => "a service name is one word, such as github",
            Self::Env(_) => "name the variable that holds the secret, such as GITHUB_TOKEN",
            Self::NoHosts(_) => "list the hosts that may get it",
            Self::Host(error) => error.hint(),
            Self::Header(_) => "a header name is letters, digits and '-', such as Authorization",
            Self::Format(_) => "write for example \"Bearer %s\"",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(
        host: &str,
        header: &str,
        format: &str,
    ) -> Result<CredentialBinding, CredentialError> {
        CredentialBinding::new("forge", "FORGE_TOKEN", &[host.to_owned()], header, format)
    }

    #[test]
    fn g5_bindings_are_checked() {
        let good = binding("api.example.org", "Authorization", "Bearer %s").unwrap();
        assert_eq!(good.format.around(), ("Bearer ", ""));
        for (host, header, format) in [
            ("*.com", "Authorization", "%s"),
            ("api.example.org", "Auth\r\nX: y", "%s"),
            ("api.example.org", "", "%s"),
            ("api.example.org", "Authorization", "Bearer"),
            ("api.example.org", "Authorization", "%s %s"),
            ("api.example.org", "Authorization", "%s\r\nX: y"),
            ("api.example.org", "Authorization", "%d %s"),
        ] {
            assert!(
                binding(host, header, format).is_err(),
                "{host} {header:?} {format:?}"
            );
        }
        assert!(CredentialBinding::new("a b", "X", &[], "A", "%s").is_err());
        assert!(CredentialBinding::new("a", "X", &[], "A", "%s").is_err());
    }
}
