//! The CPU time of all processes together.
//!
//! What a process used passes to its parent when it is reaped, so the sum over
//! the living stays whole, but for those whose parents ignore their end: what
//! was last seen of these is kept here.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A process by its number and its start, since numbers are used again.
pub(super) type Key = (u32, u64);
/// The CPU time of every process, in ticks.
pub(super) type Times = HashMap<Key, Stamp>;

/// The CPU time of one process, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) own: u64,
    /// Of children that it has reaped, and theirs.
    pub(super) reaped: u64,
}

impl Stamp {
    fn all(self) -> u64 {
        self.own.saturating_add(self.reaped)
    }
}

/// The account of CPU time.
#[derive(Debug, Default)]
pub(super) struct ProcessorTime {
    seen: Times,
    /// What the init itself has reaped.
    reaped: Duration,
    /// What vanished without being reaped, in ticks.
    lost: u64,
}

impl ProcessorTime {
    /// Takes what a look has found.
    pub(super) fn update(&mut self, now: &Times, reaped: Duration) {
        let vanished: u64 = self
            .seen
            .iter()
            .filter(|(key, _)| !now.contains_key(*key))
            .map(|(_, stamp)| stamp.all())
            .sum();
        let passed_on: u64 = now
            .iter()
            .map(|(key, stamp)| {
                let before = self.seen.get(key).map_or(0, |before| before.reaped);
                stamp.reaped.saturating_sub(before)
            })
            .sum();
        let to_init = ticks(reaped.saturating_sub(self.reaped));
        let accounted = passed_on.saturating_add(to_init);
        self.lost = self.lost.saturating_add(vanished.saturating_sub(accounted));
        self.seen.clone_from(now);
        self.reaped = reaped;
    }

    /// Adds to what a look has found those that it could not look at, as they
    /// were seen last: they are not over.
    pub(super) fn with_unseen(&self, mut now: Times, unseen: &HashSet<u32>) -> Times {
        let before = self.seen.iter().filter(|(key, _)| unseen.contains(&key.0));
        for (key, stamp) in before {
            now.entry(*key).or_insert(*stamp);
        }
        now
    }

    /// All CPU time used so far, as of the last look.
    pub(super) fn total(&self) -> Duration {
        let living: u64 = self.seen.values().map(|stamp| stamp.all()).sum();
        duration(living) + self.reaped + self.lost()
    }

    /// The part that no process was ever charged with.
    pub(super) fn lost(&self) -> Duration {
        duration(self.lost)
    }
}

fn duration(ticks: u64) -> Duration {
    super::pace(ticks, ringfence_sys::ticks_per_second())
}

fn ticks(time: Duration) -> u64 {
    let per_second = u128::from(ringfence_sys::ticks_per_second());
    // Rounded up: a tick more is charged to nobody twice.
    u64::try_from((time.as_nanos() * per_second).div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn times(entries: &[(u32, u64, u64)]) -> Times {
        let per_second = ringfence_sys::ticks_per_second();
        let stamp = |own, reaped| Stamp {
            own: own * per_second,
            reaped: reaped * per_second,
        };
        entries
            .iter()
            .map(|(process, own, reaped)| ((*process, 0), stamp(*own, *reaped)))
            .collect()
    }

    #[test]
    fn a_reaped_child_is_not_counted_twice() {
        let mut time = ProcessorTime::default();
        time.update(&times(&[(2, 1, 0), (3, 5, 0)]), Duration::ZERO);
        assert_eq!(time.total(), 6 * SECOND);
        time.update(&times(&[(2, 1, 5)]), Duration::ZERO);
        assert_eq!(time.total(), 6 * SECOND);
        time.update(&times(&[]), 6 * SECOND);
        assert_eq!((time.total(), time.lost()), (6 * SECOND, Duration::ZERO));
    }

    #[test]
    fn g9_what_vanished_unreaped_is_kept() {
        let mut time = ProcessorTime::default();
        time.update(&times(&[(2, 1, 0), (3, 5, 0)]), Duration::ZERO);
        time.update(&times(&[(2, 1, 0), (4, 2, 0)]), Duration::ZERO);
        assert_eq!(time.total(), 8 * SECOND);
        assert_eq!(time.lost(), 5 * SECOND);
    }

    #[test]
    fn g9_what_could_not_be_looked_at_is_not_over() {
        let mut time = ProcessorTime::default();
        time.update(&times(&[(2, 1, 0), (3, 5, 0)]), Duration::ZERO);
        let now = time.with_unseen(times(&[(2, 2, 0)]), &HashSet::from([2, 3]));
        assert_eq!(now, times(&[(2, 2, 0), (3, 5, 0)]));
        time.update(&now, Duration::ZERO);
        assert_eq!((time.total(), time.lost()), (7 * SECOND, Duration::ZERO));
    }

    #[test]
    fn a_number_used_again_is_another_process() {
        let mut time = ProcessorTime::default();
        time.update(&times(&[(3, 5, 0)]), Duration::ZERO);
        let again = Times::from([((3, 9), Stamp::default())]);
        time.update(&again, Duration::ZERO);
        assert_eq!(time.total(), 5 * SECOND);
    }
}
