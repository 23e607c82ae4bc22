//! Credentials: where a secret is found outside, what stands for it inside, and which requests get
//! it. Names only; the secret itself never enters a policy.

mod attach;
mod binding;
mod error;
mod extract;
mod source;

use serde::Serialize;

use crate::environment;

pub use attach::{Attach, HeaderFormat};
pub use binding::{Binding, Scheme};
pub use error::CredentialError;
pub use extract::{Extract, ExtractError, Unmatched};
pub use source::SecretSource;
pub(crate) use source::in_words;

/// One secret: where it is found outside, what stands for it inside, where it goes.
///
/// In a ceiling it is a bound: no sources or no bindings is no bound on these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Credential {
    /// Name of the service, one word, for people and logs. One credential of a policy has it.
    pub service: String,
    /// Where the secret is found; the first that has it counts.
    pub sources: Vec<SecretSource>,
    /// The part of what the source gives that is the secret; all of it when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<Extract>,
    /// Variables that hold the placeholder inside, with what stands around the secret when only a
    /// part is one.
    pub variables: Vec<String>,
    /// Which requests get it, and how.
    pub bindings: Vec<Binding>,
    /// Without the secret nothing is run.
    pub required: bool,
    /// It may be one that can be found by trying.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
}

impl Credential {
    /// A credential that is not required. Checks the names; sources and bindings are checked
    /// where they are made.
    pub fn new(
        service: &str,
        sources: Vec<SecretSource>,
        variables: Vec<String>,
        bindings: Vec<Binding>,
    ) -> Result<Self, CredentialError> {
        check_service(service)?;
        if sources.is_empty() {
            return Err(CredentialError::NoSource(service.to_owned()));
        }
        if bindings.is_empty() {
            return Err(CredentialError::NoHosts(service.to_owned()));
        }
        for name in &variables {
            environment::check_name(name).map_err(|_| CredentialError::Env(name.clone()))?;
        }
        Ok(Self {
            service: service.to_owned(),
            sources,
            extract: None,
            variables,
            bindings,
            required: false,
            weak: false,
        })
    }

    /// A ceiling's word about a service.
    pub(crate) fn bound(service: &str, sources: Vec<SecretSource>, bindings: Vec<Binding>) -> Self {
        Self {
            service: service.to_owned(),
            sources,
            extract: None,
            variables: Vec::new(),
            bindings,
            required: false,
            weak: false,
        }
    }

    /// Names of variables whose value outside is, or may be, the secret.
    pub fn outer_variables(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().filter_map(|source| match source {
            SecretSource::Env(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Every variable of which nothing may pass from outside.
    pub(crate) fn withheld_variables(&self) -> impl Iterator<Item = &str> {
        let inside = self.variables.iter().map(String::as_str);
        inside.chain(self.outer_variables())
    }
}

/// Checks the name of a service: one word of at most 64 printable ASCII characters.
pub(crate) fn check_service(text: &str) -> Result<(), CredentialError> {
    let plain = text.bytes().all(|b| b.is_ascii_graphic());
    if text.is_empty() || text.len() > 64 || !plain {
        return Err(CredentialError::Service(text.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
