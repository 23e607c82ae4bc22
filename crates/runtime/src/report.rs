//! The record of one run, as `--report` writes it.

use ringfence_audit::Refusal;
use ringfence_policy::{AuditLevel, HomeRule, Sourced};
use ringfence_sandbox::Judge;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happened in one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Report {
    /// The version of this format: 1.
    pub version: u32,
    /// The command, with what is not Unicode replaced.
    pub command: Vec<String>,
    /// The folder it ran in.
    pub working_folder: String,
    /// How it ended.
    pub exit: Exit,
    /// Signals that were passed on to the command, by number.
    pub signals: Vec<i32>,
    /// From the start to the end, in milliseconds.
    pub duration_ms: u64,
    /// Each layer of enforcement and what became of it.
    pub enforcement: Vec<Enforcement>,
    /// How much was recorded.
    pub audit: AuditReport,
    /// What was refused.
    pub refusals: Vec<Refusal>,
    /// Refusals beyond those listed.
    pub more_refusals: u64,
    /// What became of the home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeReport>,
    /// Programs that tried to make a sandbox of their own, by name, as far as it was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<String>,
    /// The name of this run in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What passed to and from each destination.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<Destination>,
    /// Each limit, what was used of it, and what held it.
    pub limits: Vec<LimitReport>,
    /// The limits that were reached.
    #[serde(rename = "limits_hit")]
    pub limits_hit: Vec<LimitHitReport>,
    /// The largest resident size of any process inside, in bytes.
    pub peak_memory_bytes: u64,
    /// The largest resident size of the supervisor itself, in bytes: the process that makes the
    /// sandbox's connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor_peak_bytes: Option<u64>,
}

/// What became of the home directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HomeReport {
    /// The rule that held: none, private, keep or keep=NAME.
    pub rule: String,
    /// Where that was written.
    pub origin: String,
    /// The name of the home that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// Why it was private although a preset keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// What was written to a private home, or beside a single writable file, and is gone, but for
    /// copies and states of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<DroppedReport>,
}

/// What was written to private layers and is gone with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DroppedReport {
    /// Each by its topmost path.
    pub changes: Vec<DroppedChange>,
    /// Changes beyond those listed.
    pub more: u64,
    /// Whether there was too much to look at all of it.
    pub is_partial: bool,
}

/// One change in a private layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DroppedChange {
    /// Where, with what is not Unicode replaced, and cut at 1024 characters.
    pub path: String,
    /// What became of it.
    pub change: Change,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// How many changes below it this stands for.
    pub entries: u64,
    /// Whether to propose that it be writable: the path is whole, nothing of the host is hidden
    /// there, and it is not a shell's or a tool's own, whose names begin with a dot.
    pub may_be_proposed: bool,
    /// Whether it is in the home, which can be kept.
    #[serde(default = "is_in_home")]
    pub is_in_home: bool,
}

/// Older reports know no other layer.
fn is_in_home() -> bool {
    true
}

impl DroppedReport {
    /// What two layers had.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.changes.extend(other.changes);
        self.more += other.more;
        self.is_partial |= other.is_partial;
        self
    }
}

/// What became of a path, compared with the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The host has nothing there.
    Made,
    /// The host has something else there.
    Changed,
    /// The host still has it.
    Removed,
}

impl Change {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl HomeReport {
    pub(crate) fn of(rule: &Sourced<HomeRule>) -> Self {
        Self {
            rule: rule.value.to_string(),
            origin: rule.origin.to_string(),
            kept: None,
            not_kept: None,
            dropped: None,
        }
    }
}

/// How much of a run was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AuditReport {
    /// The level that the policy asks for.
    pub level: AuditLevel,
    /// The level that held.
    pub effective: AuditLevel,
    /// Why no call inside was recorded, also none that the level that held
    /// stands for.
    pub reason: Option<String>,
}

impl AuditReport {
    /// What of `level` holds where `judge` judges the command's calls.
    pub(crate) fn of(level: AuditLevel, judge: Judge) -> Self {
        match judge {
            Judge::Init => Self {
                level,
                effective: level,
                reason: None,
            },
            Judge::Nobody => Self {
                level,
                effective: level.min(AuditLevel::Network),
                reason: Some(UNSEEN.to_owned()),
            },
        }
    }
}

/// Why calls are not recorded.
const UNSEEN: &str = "another sandbox has the listener for system calls: calls inside are not seen, also not the \
                      programs that are started (--weaker listener)";

/// One limit of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitReport {
    /// Its name, as in a policy's `resources`.
    pub limit: String,
    /// What was allowed, in `unit`.
    pub configured: u64,
    /// The most that was used, where it is known.
    pub peak: Option<u64>,
    /// What the numbers count: bytes, tasks, milliseconds, millicores or files.
    pub unit: String,
    /// What held it: cgroup-v2, systemd-scope, cgroup-v1, rlimit, watchdog, affinity,
    /// tmpfs, account, timer, relay, machine or nothing.
    pub mechanism: String,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitHitReport {
    /// Its name.
    pub limit: String,
    /// How it is known.
    pub evidence: String,
    /// Whether the command was ended because of it.
    pub ended: bool,
}

/// What passed to and from one destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Destination {
    /// `host:port`; `others` for all beyond those that are told apart.
    pub destination: String,
    /// How many connections.
    pub connections: u64,
    /// Bytes that left.
    pub bytes_up: u64,
    /// Bytes that came.
    pub bytes_down: u64,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exit {
    /// The exit code of `ringfence run`.
    pub code: u8,
    /// Why it is that one.
    pub reason: ExitReason,
    /// The signal that ended the command.
    pub signal: Option<i32>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitReason {
    /// The command ended by itself; the code is its own.
    Exited,
    /// A signal ended it; the code is 128 and the signal's number.
    Signalled,
    /// It was not found: 127.
    NotFound,
    /// It could not be executed: 126.
    NotExecutable,
    /// It ran longer than allowed: 124.
    TimeLimit,
    /// It was ended by another limit: 137.
    Limit,
    /// It was ended because what it did could not be recorded any more: 125.
    AuditFailed,
    /// The same, because there was no room for it.
    AuditFull,
}

/// One layer of enforcement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Enforcement {
    /// Its name.
    pub layer: String,
    /// Whether it holds.
    pub applied: bool,
    /// How.
    pub detail: String,
}

impl Report {
    /// The end could not be recorded; the command's own status must not make
    /// it look as if all were well.
    pub(crate) fn lose_evidence(&mut self) {
        self.exit.code = 125;
        self.exit.reason = ExitReason::AuditFailed;
    }

    /// Says that evidence was lost for want of room, if it was lost.
    pub(crate) fn blame_full_disk(&mut self) {
        if self.exit.reason == ExitReason::AuditFailed {
            self.exit.reason = ExitReason::AuditFull;
        }
    }
}

/// The JSON Schema of [`Report`].
pub fn report_schema() -> serde_json::Value {
    schemars::schema_for!(Report).to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_listener_no_more_than_the_network_is_recorded() {
        use AuditLevel::{All, Network, Off, Security, Standard};
        for (level, held) in [
            (Off, Off),
            (Network, Network),
            (Standard, Network),
            (Security, Network),
            (All, Network),
        ] {
            let judged = AuditReport::of(level, Judge::Init);
            assert_eq!((judged.effective, judged.reason), (level, None));
            let unjudged = AuditReport::of(level, Judge::Nobody);
            assert_eq!((unjudged.level, unjudged.effective), (level, held));
            assert!(unjudged.reason.is_some());
        }
    }
}
