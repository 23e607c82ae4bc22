//! [`SecretSource`]: where a secret is found outside.

use std::fmt;

use serde::Serialize;

use super::error::CredentialError;
use crate::environment;
use crate::limits::TimeSpan;

/// One place that may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// A variable of the environment that ringfence was started in.
    Env(String),
    /// A file, absolute or below the home folder (`~/`).
    File {
        /// The path as written.
        path: String,
        /// Dotted path to a text in a JSON file; the whole file when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// A program whose output is the secret. No shell is involved.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// How long its answer is kept; it is run for each request when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        refresh: Option<TimeSpan>,
    },
    /// A name in the store of `ringfence secret`.
    #[serde(rename = "secret")]
    Store(String),
}

impl SecretSource {
    /// A variable, by its name.
    pub fn env(name: &str) -> Result<Self, CredentialError> {
        environment::check_name(name).map_err(|_| CredentialError::Env(name.to_owned()))?;
        Ok(Self::Env(name.to_owned()))
    }

    /// A file: absolute or below `~/`, without `..`.
    pub fn file(path: &str, key: Option<&str>) -> Result<Self, CredentialError> {
        let rooted =
            path.starts_with('/') || path.strip_prefix("~/").is_some_and(|r| !r.is_empty());
        let climbs = path.split('/').any(|part| part == "..");
        if !rooted || climbs || path.contains(char::is_control) {
            return Err(CredentialError::File(path.to_owned()));
        }
        let is_key = |key: &str| key.split('.').all(|part| !part.is_empty());
        if let Some(bad) = key.filter(|key| !is_key(key)) {
            return Err(CredentialError::Key(bad.to_owned()));
        }
        Ok(Self::File {
            path: path.to_owned(),
            key: key.map(str::to_owned),
        })
    }

    /// A program: a bare name or an absolute path, with its arguments.
    pub fn command(argv: &[String], refresh: Option<TimeSpan>) -> Result<Self, CredentialError> {
        let program = argv.first().map(String::as_str).unwrap_or_default();
        let is_program =
            !program.is_empty() && (program.starts_with('/') || !program.contains('/'));
        if !is_program || argv.iter().any(|word| word.contains('\0')) {
            return Err(CredentialError::Command(program.to_owned()));
        }
        Ok(Self::Command {
            argv: argv.to_vec(),
            refresh,
        })
    }

    /// A program in one line, split at spaces. What a shell would read otherwise is refused.
    pub fn command_line(line: &str, refresh: Option<TimeSpan>) -> Result<Self, CredentialError> {
        if line.contains(|c: char| "\"'\\$`|&;<>()*?[]{}~#!\n".contains(c)) {
            return Err(CredentialError::CommandLine(line.to_owned()));
        }
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Self::command(&words, refresh)
    }

    /// A name in the store: letters, digits, `.`, `_` and `-`, at most 64.
    pub fn store(name: &str) -> Result<Self, CredentialError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
            return Err(CredentialError::Store(name.to_owned()));
        }
        Ok(Self::Store(name.to_owned()))
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "${name}"),
            Self::File { path, key: None } => write!(f, "file {path}"),
            Self::File {
                path,
                key: Some(key),
            } => write!(f, "file {path} {key}"),
            Self::Command { argv, .. } => write!(f, "command {}", in_words(argv)),
            Self::Store(name) => write!(f, "secret {name}"),
        }
    }
}

/// A command in one line, its words told apart: one that is more than a plain word is quoted, so
/// that no two commands look alike.
pub(crate) fn in_words(argv: &[String]) -> String {
    let is_plain = |word: &str| {
        let mark = |b: u8| b.is_ascii_graphic() && !b"\"\\".contains(&b);
        !word.is_empty() && word.bytes().all(mark)
    };
    let shown = argv.iter().map(|word| {
        if is_plain(word) {
            word.clone()
        } else {
            format!("{word:?}")
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}
