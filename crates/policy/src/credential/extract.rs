//! [`Extract`]: the part of a text that is the secret.

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use thiserror::Error;

use super::error::CredentialError;

/// Bytes a compiled expression may take.
const SIZE_LIMIT: usize = 1 << 20;

/// An expression whose first group is the secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Extract {
    expression: String,
    unmatched: Unmatched,
}

/// What happens when a file or a variable does not hold the one secret that is to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unmatched {
    /// The file is hidden, the variable is not set.
    Hide,
    /// Nothing is run.
    Refuse,
}

impl Extract {
    /// Parses an expression with at least one group. It has neither look-around nor back
    /// references, so it runs in linear time.
    pub fn parse(text: &str, unmatched: Unmatched) -> Result<Self, CredentialError> {
        let bad = |reason: String| CredentialError::Extract {
            entry: text.to_owned(),
            reason,
        };
        let expression = compile(text).map_err(|error| bad(error.to_string()))?;
        if expression.captures_len() < 2 {
            return Err(bad("it has no group".to_owned()));
        }
        Ok(Self {
            expression: text.to_owned(),
            unmatched,
        })
    }

    /// What happens to a text without the secret.
    pub fn unmatched(&self) -> Unmatched {
        self.unmatched
    }

    /// The secret in `text`: what the first group of every match holds.
    pub fn secret<'t>(&self, text: &'t str) -> Result<&'t str, ExtractError> {
        let expression = compile(&self.expression).map_err(|_| ExtractError::NotFound)?;
        let found = expression.captures_iter(text);
        let mut secrets = found.filter_map(|groups| groups.get(1).map(|group| group.as_str()));
        let first = secrets.next().filter(|secret| !secret.is_empty());
        let first = first.ok_or(ExtractError::NotFound)?;
        if secrets.all(|other| other == first) {
            Ok(first)
        } else {
            Err(ExtractError::Several)
        }
    }

    /// `text` with `placeholder` wherever the secret stands.
    pub fn masked(&self, text: &str, placeholder: &str) -> Result<String, ExtractError> {
        let secret = self.secret(text)?;
        Ok(text.replace(secret, placeholder))
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(SIZE_LIMIT).build()
}

/// Why there is no single secret in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ExtractError {
    /// The expression matches nowhere.
    #[error("the expression of `extract` finds nothing")]
    NotFound,
    /// It finds different texts, of which one alone would be hidden.
    #[error("the expression of `extract` finds more than one secret")]
    Several,
}
