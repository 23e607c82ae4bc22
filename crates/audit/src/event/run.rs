//! What is said of a run: how it began, its limits, and how it ended.

use ringfence_policy::AuditLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::argument::Arguments;
use super::digest::Digest;
use super::supervisor::Supervisor;
use super::text::Text;

/// A short name that is ours: of a limit, a unit or a mechanism.
pub type WordText = Text<32>;

/// The beginning of a run, written before its command starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// The command and its arguments.
    pub command: Arguments,
    /// Where it starts.
    pub working_folder: Text<1024>,
    /// The user, as the host counts.
    pub uid: u32,
    /// What is recorded.
    pub level: AuditLevel,
    /// That it is less than was asked for, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<Reduced>,
    /// The limits of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitSet>,
    /// The sum of the policy as it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Digest>,
    /// The process that records the run; [`crate::Recorder`] fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<Supervisor>,
}

/// Less is recorded than was asked for: of the calls inside none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reduced {
    /// The level that was asked for.
    pub from: AuditLevel,
    /// Why.
    pub reason: Text<256>,
}

/// One limit of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitSet {
    /// Its name, such as `memory`.
    pub limit: WordText,
    /// What is allowed.
    pub configured: u64,
    /// What the number counts, such as `bytes`.
    pub unit: WordText,
    /// What holds it, such as `cgroup-v2`.
    pub mechanism: WordText,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitReached {
    /// Its name.
    pub limit: WordText,
    /// What was allowed.
    pub configured: u64,
    /// What the numbers count.
    pub unit: WordText,
    /// The most that was used, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// What held it.
    pub mechanism: WordText,
    /// How it is known, such as `oom_kill 1`.
    pub evidence: Text<256>,
    /// Whether the run was ended because of it.
    pub ended: bool,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEnded {
    /// The exit code, as the caller sees it.
    pub code: i32,
    /// Why it ended, such as `exited` or `time-limit`.
    pub reason: WordText,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// The most that was used of what is limited, where it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<Peak>,
    /// How much was refused in all.
    pub refusals: u64,
}

/// The most that a run used of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    /// The name of its limit.
    pub limit: WordText,
    /// The most that was used.
    pub peak: u64,
    /// What the number counts.
    pub unit: WordText,
}

/// The last record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// How many records the run has, without this one.
    pub records: u64,
    /// HMAC-SHA256 over the run, that number and the sum of the run's last
    /// record, with the key of the log.
    pub mac: Digest,
}

/// The log was found not to be as it was left. What comes after this record is
/// whole again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainBroken {
    /// What was found.
    pub why: BreakReason,
    /// The number of the last record that is known to be ours; 0 if none is.
    pub after_seq: u64,
    /// Up to where the file was ours, in bytes.
    pub our_bytes: u64,
    /// How large the file was found, in bytes.
    pub found_bytes: u64,
}

/// What a writer found when it came to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakReason {
    /// There is a log, and nothing says where it ends.
    HeadMissing,
    /// What says where the log ends is not by our key.
    HeadAltered,
    /// The file of the log is gone.
    LogMissing,
    /// The end of the file is gone.
    Truncated,
    /// Somebody else has added to the file.
    Appended,
}

impl BreakReason {
    /// What it means.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HeadMissing => "audit.head is missing",
            Self::HeadAltered => "audit.head was altered",
            Self::LogMissing => "the log was taken away",
            Self::Truncated => "the end of the log was cut off",
            Self::Appended => "something was added to the log by somebody else",
        }
    }
}
