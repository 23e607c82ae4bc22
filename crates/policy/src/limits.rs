//! Limits and the units they are written in.

mod cores;
mod count;
mod size;
mod span;

use serde::Serialize;

use crate::origin::Sourced;

pub use cores::{Cores, CoresError};
pub use count::{Count, CountError};
pub use size::{ByteSize, SizeError};
pub use span::{SpanError, TimeSpan};

/// Limits on one sandbox; what is `None` is not limited.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// CPU cores at once.
    pub cpu: Option<Sourced<Cores>>,
    /// Memory, page cache included.
    pub memory: Option<Sourced<ByteSize>>,
    /// Processes and threads.
    pub pids: Option<Sourced<Count>>,
    /// Bytes added to private storage and to writable folders.
    pub disk: Option<Sourced<ByteSize>>,
    /// Wall-clock time.
    pub time: Option<Sourced<TimeSpan>>,
    /// CPU time of all processes together.
    pub cpu_time: Option<Sourced<TimeSpan>>,
    /// Bytes of output.
    pub output: Option<Sourced<ByteSize>>,
    /// Open files per process.
    pub open_files: Option<Sourced<Count>>,
    /// Size of one file.
    pub file_size: Option<Sourced<ByteSize>>,
    /// Network connections at once.
    pub connections: Option<Sourced<Count>>,
    /// How long a connection may be quiet.
    pub connection_idle: Option<Sourced<TimeSpan>>,
    /// How long a connection may last.
    pub connection_time: Option<Sourced<TimeSpan>>,
    /// Different names below one wildcard that are looked up.
    pub wildcard_names: Option<Sourced<Count>>,
    /// Whether CPU, memory, processes and CPU time must be held by a control
    /// group, for all processes together, and by nothing less.
    pub required: Option<Sourced<bool>>,
}

impl Limits {
    /// Takes each limit from `stronger` where it states one.
    #[must_use]
    pub(crate) fn overridden_by(self, stronger: Self) -> Self {
        self.combined(stronger, Pick::Other)
    }

    /// Takes the lower of the two for each limit.
    #[must_use]
    pub(crate) fn lowered_by(self, other: Self) -> Self {
        self.combined(other, Pick::Lower)
    }

    fn combined(self, other: Self, rule: Pick) -> Self {
        Self {
            cpu: rule.pick(self.cpu, other.cpu),
            memory: rule.pick(self.memory, other.memory),
            pids: rule.pick(self.pids, other.pids),
            disk: rule.pick(self.disk, other.disk),
            time: rule.pick(self.time, other.time),
            cpu_time: rule.pick(self.cpu_time, other.cpu_time),
            output: rule.pick(self.output, other.output),
            open_files: rule.pick(self.open_files, other.open_files),
            file_size: rule.pick(self.file_size, other.file_size),
            connections: rule.pick(self.connections, other.connections),
            connection_idle: rule.pick(self.connection_idle, other.connection_idle),
            connection_time: rule.pick(self.connection_time, other.connection_time),
            wildcard_names: rule.pick(self.wildcard_names, other.wildcard_names),
            required: rule.pick_stricter(self.required, other.required),
        }
    }
}

/// Which of two stated limits holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pick {
    Other,
    Lower,
}

impl Pick {
    /// As `pick`, for a demand: here the lower of two is the one that is made.
    fn pick_stricter(
        self,
        own: Option<Sourced<bool>>,
        other: Option<Sourced<bool>>,
    ) -> Option<Sourced<bool>> {
        match (own, other) {
            (Some(own), Some(_)) if self == Self::Lower && own.value => Some(own),
            (own, other) => other.or(own),
        }
    }

    fn pick<T: Ord>(
        self,
        own: Option<Sourced<T>>,
        other: Option<Sourced<T>>,
    ) -> Option<Sourced<T>> {
        match (own, other) {
            (Some(a), Some(b)) if self == Self::Lower && a.value <= b.value => Some(a),
            (own, other) => other.or(own),
        }
    }
}
