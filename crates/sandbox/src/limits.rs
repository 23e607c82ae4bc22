//! Limits on a sandbox: what holds each of them here, what was used, and what
//! was hit.
//!
//! A control group holds CPU, memory and processes together where one can be
//! made; otherwise each limit is held by the best that there is for it alone.
//! What was chosen is named in every result.

mod bus;
mod choose;
mod files;
mod group;
mod inside;
mod machine;
mod name;
mod part;
mod place;
mod scope;
mod site;
mod watch;

use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::choose::{Unheld, limit_mechanisms};
use self::group::Group;
pub(crate) use self::inside::OomScore;
use self::inside::ProcessLimits;
pub(crate) use self::watch::Moment;
use self::watch::Seen;
use crate::judge::Judge;

/// The limits by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum LimitName {
    Cpu,
    Memory,
    Pids,
    Disk,
    Time,
    CpuTime,
    Output,
    OpenFiles,
    FileSize,
}

impl LimitName {
    /// The word used in policies and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Time => "time",
            Self::CpuTime => "cpuTime",
            Self::Output => "output",
            Self::OpenFiles => "openFiles",
            Self::FileSize => "fileSize",
        }
    }

    /// What its numbers count.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Cpu => "millicores",
            Self::Memory | Self::Disk | Self::Output | Self::FileSize => "bytes",
            Self::Pids => "tasks",
            Self::Time | Self::CpuTime => "milliseconds",
            Self::OpenFiles => "files",
        }
    }
}

/// What holds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Mechanism {
    CgroupV2,
    SystemdScope,
    CgroupV1,
    Rlimit,
    Watchdog,
    Affinity,
    Tmpfs,
    /// The private storage's size, and an account of what is written elsewhere.
    Account,
    Timer,
    Relay,
    /// The machine has no more than this.
    Machine,
    /// Nothing; accepted by name.
    Nothing,
}

impl Mechanism {
    /// The word used in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CgroupV2 => "cgroup-v2",
            Self::SystemdScope => "systemd-scope",
            Self::CgroupV1 => "cgroup-v1",
            Self::Rlimit => "rlimit",
            Self::Watchdog => "watchdog",
            Self::Affinity => "affinity",
            Self::Tmpfs => "tmpfs",
            Self::Account => "account",
            Self::Timer => "timer",
            Self::Relay => "relay",
            Self::Machine => "machine",
            Self::Nothing => "nothing",
        }
    }
}

/// One limit of a run, in its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLimit {
    /// Which.
    pub limit: LimitName,
    /// What was allowed.
    pub configured: u64,
    /// The most that was used, where it is known.
    pub peak: Option<u64>,
    /// What holds it.
    pub mechanism: Mechanism,
}

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitHit {
    /// Which.
    pub limit: LimitName,
    /// How it is known, such as `oom_kill 1`.
    pub evidence: String,
    /// Whether the sandbox ends because of it; otherwise the kernel refused
    /// something and the command went on.
    pub ends: bool,
}

/// What was used, as far as it was measured inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// Memory of all processes together, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// CPU time of all processes together.
    pub cpu_time: Option<Duration>,
    /// Bytes added to storage.
    pub disk: Option<u64>,
    /// Files, folders and links added to storage.
    pub inodes: Option<u64>,
}

/// What the init has to watch itself, because nothing outside does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WatchPlan {
    /// Memory of all processes together.
    pub(crate) memory: Option<u64>,
    /// CPU time of all processes together.
    pub(crate) cpu_time: Option<Duration>,
    /// Processes and threads, which `RLIMIT_NPROC` holds.
    pub(crate) pids: Option<u64>,
    /// Growth of storage, in bytes.
    pub(crate) disk: Option<u64>,
}

/// A limit and what holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    limit: LimitName,
    value: u64,
    mechanism: Mechanism,
}

impl Held {
    fn new(limit: LimitName, value: u64, mechanism: Mechanism) -> Self {
        Self {
            limit,
            value,
            mechanism,
        }
    }
}

/// What holds each limit, for as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct LimitPlan {
    pub(crate) watch: WatchPlan,
    held: Vec<Held>,
    process: ProcessLimits,
    group: Option<Group>,
    /// CPUs that may be used at once.
    cores: usize,
    seen: Mutex<Seen>,
}

impl LimitPlan {
    /// With nothing of the host writable, the size of the private storage is
    /// all that holds its growth.
    pub(crate) fn judged_by(mut self, judge: Judge) -> Self {
        let of_storage = |held: &&mut Held| held.limit == LimitName::Disk;
        if let (Judge::Nobody, Some(disk)) = (judge, self.held.iter_mut().find(of_storage)) {
            disk.mechanism = Mechanism::Tmpfs;
        }
        self
    }
}
