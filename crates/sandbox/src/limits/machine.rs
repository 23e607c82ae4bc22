//! What of this machine limits depend on.

use rustix::thread::CpuSet;

use crate::host::{BusVariables, Host};
use crate::plan::Weaker;

/// Facts about the machine and about the sandbox's id on it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// The CPUs that we may use.
    pub(crate) cpus: Vec<usize>,
    /// Bytes.
    pub(crate) memory: Option<u64>,
    /// Whether the kernel counts the processes of the sandbox's user: it never
    /// refuses one to root's own id.
    pub(crate) counts_processes: bool,
    /// Where the user's bus may listen.
    pub(crate) bus: BusVariables,
}

impl Machine {
    pub(crate) fn look(host: &Host, weaker: Weaker) -> Self {
        let has_other_id = host.uid != 0 || (host.spare_id.is_some() && !weaker.host_root);
        Self {
            cpus: usable_cpus(),
            memory: total_memory(),
            counts_processes: has_other_id,
            bus: host.bus.clone(),
        }
    }

    /// As many CPUs, at a place that differs from process to process so that
    /// sandboxes do not crowd on the first.
    pub(crate) fn some_cpus(&self, count: usize) -> CpuSet {
        let start = usize::try_from(std::process::id()).unwrap_or(0);
        let mut set = CpuSet::new();
        for at in 0..count.min(self.cpus.len()) {
            set.set(self.cpus[(start + at) % self.cpus.len()]);
        }
        set
    }
}

fn usable_cpus() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

fn total_memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    info.totalram.checked_mul(u64::from(info.mem_unit.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_taken_from_those_that_may_be_used() {
        let machine = Machine {
            cpus: vec![2, 5, 7],
            memory: None,
            counts_processes: true,
            bus: BusVariables::default(),
        };
        let set = machine.some_cpus(2);
        assert_eq!(set.count(), 2);
        assert!((0..CpuSet::MAX_CPU).all(|cpu| !set.is_set(cpu) || machine.cpus.contains(&cpu)));
        assert_eq!(machine.some_cpus(9).count(), 3);
    }
}
