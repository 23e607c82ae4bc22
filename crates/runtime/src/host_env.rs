//! What a front end hands in of the process that it runs in.
//!
//! Nothing else in this crate reads variables or the current directory, so one
//! process can serve several callers, each with an environment of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_policy::Environment;
use ringfence_sandbox::{Host, HostError};

/// Environment variables. They are looked up one by one and never copied as a
/// whole: they may hold secrets, and a sandbox's first process begins as a copy
/// of the one that reads them.
pub trait Variables: Send + Sync {
    /// The value of one.
    fn value(&self, name: &str) -> Option<OsString>;

    /// Those with a name that is `wanted`.
    fn matching(&self, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<(OsString, OsString)>;
}

/// Variables and the current directory.
#[derive(Clone)]
pub struct HostEnv {
    variables: Arc<dyn Variables>,
    directory: Option<PathBuf>,
}

impl HostEnv {
    /// `directory` is the current one, unless that is gone.
    pub fn new(variables: impl Variables + 'static, directory: Option<PathBuf>) -> Self {
        Self {
            variables: Arc::new(variables),
            directory,
        }
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.value(name)
    }

    /// The same as text. What is no text must not count as missing: it may be
    /// a list of denials.
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.variable(name)?;
        Some(value.to_string_lossy().into_owned())
    }

    /// The current directory, unless it is gone.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The variables that pass into a sandbox.
    pub fn passing(&self, rules: &Environment) -> Vec<(OsString, OsString)> {
        self.variables
            .matching(&|name| match std::str::from_utf8(name) {
                Ok(name) => rules.passes(name),
                Err(_) => rules.pass_all,
            })
    }

    /// Looks at the machine, as this user sees it.
    pub fn look_at_host(&self) -> Result<Host, HostError> {
        Host::look(&|name| self.variable(name))
    }
}

/// Variables that somebody named.
impl Variables for Vec<(OsString, OsString)> {
    fn value(&self, name: &str) -> Option<OsString> {
        let found = self.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone())
    }

    fn matching(&self, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<(OsString, OsString)> {
        let all = self.iter();
        let wanted = all.filter(|(name, _)| wanted(name.as_encoded_bytes()));
        wanted.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(variables: &[(&str, &str)]) -> HostEnv {
        let pairs = variables.iter();
        let pairs: Vec<(OsString, OsString)> = pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        HostEnv::new(pairs, None)
    }

    #[test]
    fn the_first_of_two_variables_counts_as_it_does_for_getenv() {
        let env = env(&[("A", "1"), ("A", "2")]);
        assert_eq!(env.text("A").as_deref(), Some("1"));
        assert_eq!(env.variable("B"), None);
    }

    #[test]
    fn only_what_is_wanted_is_copied() {
        let env = env(&[("LANG", "C"), ("TOKEN", "x")]);
        let found = env.variables.matching(&|name| name == b"LANG");
        assert_eq!(found, [("LANG".into(), "C".into())]);
    }
}
