//! The lines of a story.

use serde::Serialize;

use super::subject_of;
use crate::event::{Action, Group, LimitSet, Outcome, Subject, Via, WordText};

/// A program that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgramLine {
    /// The process, as the sandbox counts.
    pub pid: Option<u32>,
    /// The program.
    pub program: String,
    /// Its words.
    pub argv: Vec<String>,
    /// How often in a row.
    pub count: u64,
    /// Whether that was refused.
    pub refused: bool,
}

/// A destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionLine {
    /// The destination, as `host:port`.
    pub destination: String,
    /// How it was asked for.
    pub via: Option<Via>,
    /// How often it was allowed.
    pub count: u64,
    /// Bytes that left.
    pub bytes_up: u64,
    /// Bytes that came.
    pub bytes_down: u64,
    /// The rule that allowed it.
    pub rule: Option<String>,
    /// The credential that was added last, by its service and how.
    pub credential: Option<String>,
    /// How many requests got one.
    pub credential_count: u64,
}

/// What was done to a file, or to several in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileLine {
    /// What was done.
    pub action: Action,
    /// The file or the folder.
    pub path: String,
    /// How many files that are told apart; 1 for a file.
    pub files: u64,
    /// How often.
    pub count: u64,
}

/// Something that was let go on and is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenLine {
    /// What was tried.
    pub action: String,
    /// The path, the process or the ids.
    pub subject: String,
    /// The name of the call.
    pub call: Option<String>,
    /// The rule that makes it worth knowing.
    pub rule: Option<String>,
    /// How often.
    pub count: u64,
}

/// Something that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalLine {
    /// What was tried.
    pub action: String,
    /// The destination, the path or the program.
    pub subject: String,
    /// The rule or the reason.
    pub rule: String,
    /// The name of the call, if it was one.
    pub call: Option<String>,
    /// The error that it got.
    pub error: Option<String>,
    /// How often.
    pub count: u64,
}

/// A limit and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitLine {
    /// Its name.
    pub limit: String,
    /// What was allowed.
    pub configured: Option<u64>,
    /// The most that was used.
    pub peak: Option<u64>,
    /// What the numbers count.
    pub unit: String,
    /// What held it.
    pub mechanism: Option<String>,
    /// How often it was hit.
    pub hits: u64,
    /// How the last hit is known.
    pub evidence: Option<String>,
    /// Whether it ended the run.
    pub ended: bool,
}

fn text_of(text: Option<&impl ToString>) -> Option<String> {
    text.map(ToString::to_string)
}

impl SeenLine {
    /// The line of a group, with nothing counted.
    pub(super) fn of(group: &Group) -> Self {
        Self {
            action: action_of(group).to_owned(),
            subject: subject_of(group),
            call: text_of(group.call.as_ref()),
            rule: text_of(group.rule.as_ref()),
            count: 0,
        }
    }
}

impl RefusalLine {
    /// The line of a group, with nothing counted.
    pub(super) fn of(group: &Group) -> Self {
        let error = group.outcome.as_ref().and_then(Outcome::error);
        let rule = text_of(group.rule.as_ref()).or(text_of(group.reason.as_ref()));
        Self {
            action: action_of(group).to_owned(),
            subject: subject_of(group),
            rule: rule.unwrap_or_default(),
            call: text_of(group.call.as_ref()),
            error: error.map(str::to_owned),
            count: 0,
        }
    }
}

/// What was tried.
fn action_of(group: &Group) -> &'static str {
    match (group.of, group.via) {
        (Subject::Call, _) => group.action.map_or("call", Action::as_str),
        (_, Some(Via::Dns)) => "look-up",
        _ => "connect",
    }
}

impl LimitLine {
    pub(super) fn new(limit: &WordText, unit: &WordText) -> Self {
        Self {
            limit: limit.to_string(),
            configured: None,
            peak: None,
            unit: unit.to_string(),
            mechanism: None,
            hits: 0,
            evidence: None,
            ended: false,
        }
    }
}

impl From<&LimitSet> for LimitLine {
    fn from(limit: &LimitSet) -> Self {
        Self {
            configured: Some(limit.configured),
            mechanism: Some(limit.mechanism.to_string()),
            ..Self::new(&limit.limit, &limit.unit)
        }
    }
}
