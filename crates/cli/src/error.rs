//! Errors as people and programs see them: a stable code, a sentence, a hint.

use ringfence_runtime::{IntentError, KitError, ParentError, PolicyLoadError, RunError};
use ringfence_sandbox::HostError;
use serde::Serialize;

use crate::exit::ExitCode;
use crate::output;

/// The exit code when ringfence itself could not do what was asked of `run`.
pub(crate) const COULD_NOT_START: u8 = 125;

/// An error ready to be shown.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    code: &'static str,
    message: String,
    hint: String,
    /// What an examination of the machine found, one line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<String>,
    #[serde(skip)]
    exit: u8,
}

impl Failure {
    pub(crate) fn new(
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
            findings: None,
            exit: 1,
        }
    }

    /// The same with another exit code.
    pub(crate) fn exiting(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// The same with what an examination of the machine found.
    pub(crate) fn because(mut self, findings: &str) -> Self {
        self.findings = Some(findings.to_owned());
        self
    }

    /// Prints it and gives the exit code.
    pub(crate) fn show(&self, json: bool) -> ExitCode {
        if json {
            output::print_json(&serde_json::json!({ "error": self }));
        } else {
            output::tell!(
                "ringfence: error[{}]: {}",
                self.code,
                output::printable(&self.message)
            );
            if let Some(findings) = &self.findings {
                output::tell!("{findings}");
            }
            output::tell!("  hint: {}", output::printable(&self.hint));
        }
        ExitCode::from(self.exit)
    }
}

impl From<IntentError> for Failure {
    fn from(error: IntentError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

impl From<PolicyLoadError> for Failure {
    fn from(error: PolicyLoadError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

impl From<ParentError> for Failure {
    fn from(error: ParentError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

impl From<KitError> for Failure {
    fn from(error: KitError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
