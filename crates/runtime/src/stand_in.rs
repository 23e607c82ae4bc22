//! What stands for a run's secrets inside: known before the sandbox is made,
//! and worth nothing outside of it.

use std::ffi::OsString;

use ringfence_egress::Placeholder;
use ringfence_policy::{Credential, Policy, Resolved, Unmatched};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::masked::replaced;
use crate::secrets::placeholders;

/// What a managed variable holds for which there is no credential: programs
/// want to see it set.
const MANAGED: &str = "proxy-managed";

/// The placeholders of one sandbox.
pub(crate) struct StandIns {
    pub(crate) placeholders: Vec<Placeholder>,
    /// The variables inside that hold them.
    pub(crate) variables: Vec<(String, String)>,
}

/// Why there is nothing that could stand for a secret.
#[derive(Debug, thiserror::Error)]
pub enum StandInError {
    /// There are no random numbers.
    #[error("cannot make placeholders: {0}")]
    Random(Errno),
    /// A variable in which the part that is the secret is not found.
    #[error("the secret that is to be replaced in variable {variable} is not found in it")]
    NotFound {
        /// Its name.
        variable: String,
    },
}

impl StandInError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Random(_) => "supervisor-failed",
            Self::NotFound { .. } => "variable-not-masked",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Random(_) => "see what this machine can enforce: ringfence doctor",
            Self::NotFound { .. } => {
                "check its `extract`; onExtractNoMatch: \"deny\" leaves the variable out"
            }
        }
    }
}

impl StandIns {
    /// `outside` looks up a variable of the environment outside.
    pub(crate) fn of(
        policy: &Resolved<Policy>,
        outside: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, StandInError> {
        let placeholders = placeholders(policy.credentials()).map_err(StandInError::Random)?;
        let mut variables = Vec::new();
        for name in &policy.environment().managed {
            let mut credentials = policy.credentials().iter().zip(&placeholders);
            let held = credentials.find(|(credential, _)| credential.variables.contains(name));
            let value = match held {
                None => Some(MANAGED.to_owned()),
                Some((credential, own)) => shown(name, credential, &own.text, outside)?,
            };
            variables.extend(value.map(|value| (name.value.clone(), value)));
        }
        Ok(Self {
            placeholders,
            variables,
        })
    }
}

/// What a credential's variable holds inside: the placeholder, with what stands
/// around the secret where that is only a part; `None` leaves it out.
fn shown(
    name: &str,
    credential: &Credential,
    placeholder: &str,
    outside: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<String>, StandInError> {
    if credential.extract.is_none() {
        return Ok(Some(placeholder.to_owned()));
    }
    let Some(text) = outside(name) else {
        return Ok(None);
    };
    // Gone before the sandbox's first process is there, which is a copy of this.
    let text = Zeroizing::new(text.into_encoded_bytes());
    let text = std::str::from_utf8(&text).unwrap_or_default();
    match replaced(text, credential, placeholder) {
        Ok(masked) => Ok(Some(masked.to_string())),
        Err(Unmatched::Hide) => Ok(None),
        Err(Unmatched::Refuse) => Err(StandInError::NotFound {
            variable: name.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_policy::{Attach, Binding, Dialect, Extract, SecretSource};

    fn inside(
        extract: Option<(&str, Unmatched)>,
        outside: Option<&str>,
    ) -> Result<Option<String>, StandInError> {
        let host = Binding::parse_host("db.example.org", Dialect::Native).unwrap();
        let binding = Binding::new(host, Attach::Placeholder { body: true });
        let sources = vec![SecretSource::env("DB_URL").unwrap()];
        let variables = vec!["DB_URL".to_owned()];
        let mut made = Credential::new("db", sources, variables, vec![binding]).unwrap();
        made.extract = extract.map(|(text, unmatched)| Extract::parse(text, unmatched).unwrap());
        shown("DB_URL", &made, "rf-1", &|_| outside.map(OsString::from))
    }

    #[test]
    fn a_whole_secret_is_its_placeholder() {
        assert_eq!(inside(None, Some("s3")).unwrap().unwrap(), "rf-1");
        assert_eq!(inside(None, None).unwrap().unwrap(), "rf-1");
    }

    #[test]
    fn g5_what_stands_around_a_secret_stays() {
        let part = Some(("://u:([^@]+)@", Unmatched::Refuse));
        let text = inside(part, Some("db://u:s3@db.example.org")).unwrap();
        assert_eq!(text.unwrap(), "db://u:rf-1@db.example.org");
        assert_eq!(inside(part, None).unwrap(), None);
    }

    #[test]
    fn g5_a_variable_without_the_secret_is_left_out_or_stops_the_run() {
        let hide = Some(("token=(.+)", Unmatched::Hide));
        assert_eq!(inside(hide, Some("other s3")).unwrap(), None);
        let refuse = Some(("token=(.+)", Unmatched::Refuse));
        let error = inside(refuse, Some("other s3")).unwrap_err();
        assert_eq!(error.code(), "variable-not-masked");
        assert!(!error.to_string().contains("s3"));
    }
}
