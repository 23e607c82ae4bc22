//! Environment rules: which variables pass, which are set, which hold a placeholder.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use crate::origin::Sourced;

/// The merged environment rules. Inside, the environment is built from nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Names taken from outside; a trailing `*` covers a prefix: `LC_*`.
    pub pass: Vec<Sourced<String>>,
    /// Names with their values.
    pub set: BTreeMap<String, Sourced<String>>,
    /// Names that hold a placeholder inside; the value stays outside.
    pub managed: Vec<Sourced<String>>,
    /// Names that are never taken from outside: where a secret stands, or may stand.
    pub withheld: Vec<Sourced<String>>,
    /// Every variable passes, as srt does.
    pub pass_all: bool,
}

impl Environment {
    /// True when `name` is taken from outside. A managed or withheld name never is.
    pub fn passes(&self, name: &str) -> bool {
        let mut kept_out = self.managed.iter().chain(&self.withheld);
        !kept_out.any(|own| own.value == name)
            && (self.pass_all || self.pass.iter().any(|own| covers_name(own, name)))
    }
}

/// True when the pass entry `pattern` covers `name`, itself a name or a pattern.
pub(crate) fn covers_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

/// Checks a variable name: letters, digits and underscores, not starting with a digit.
pub(crate) fn check_name(text: &str) -> Result<(), EnvError> {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if text.is_empty() || !plain || text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(EnvError::Name(text.to_owned()));
    }
    Ok(())
}

/// Checks a pass entry: a name, or a prefix followed by `*`.
pub(crate) fn check_pass(text: &str) -> Result<(), EnvError> {
    check_name(text.strip_suffix('*').unwrap_or(text))
}

/// Checks a value: the kernel would cut it at a NUL.
pub(crate) fn check_value(name: &str, value: &str) -> Result<(), EnvError> {
    if value.contains('\0') {
        Err(EnvError::Value(name.to_owned()))
    } else {
        Ok(())
    }
}

/// Why an environment entry is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnvError {
    /// Not a variable name.
    #[error("{0:?} is not a name of an environment variable")]
    Name(String),
    /// A NUL in a value.
    #[error("the value of {0} has a NUL byte")]
    Value(String),
    /// `NAME=value` without the `=`.
    #[error("{0:?} is not NAME=value")]
    Assignment(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{LayerKind, Origin};

    #[test]
    fn names() {
        for text in ["PATH", "_x", "LC_ALL", "a1"] {
            assert!(check_name(text).is_ok(), "{text}");
        }
        for text in ["", "1A", "A=B", "A B", "A\0", "LC_*", "É"] {
            assert!(check_name(text).is_err(), "{text:?}");
        }
        assert!(check_pass("LC_*").is_ok());
        assert!(check_pass("*").is_err());
        assert!(check_pass("A*B").is_err());
    }

    #[test]
    fn g5_a_managed_name_never_passes() {
        let sourced = |text: &str| Sourced::new(text.to_owned(), Origin::new(LayerKind::Flag, "t"));
        let environment = Environment {
            pass: vec![sourced("LC_*"), sourced("TOKEN")],
            managed: vec![sourced("TOKEN")],
            pass_all: true,
            ..Environment::default()
        };
        assert!(!environment.passes("TOKEN"));
        assert!(environment.passes("LC_ALL"));
    }
}
