//! Looking at a group while its sandbox runs, and at its end.

use std::os::fd::BorrowedFd;
use std::sync::PoisonError;
use std::time::Duration;

use ringfence_sys::Errno;

use super::group::Group;
use super::{HeldLimit, LimitHit, LimitName, LimitPlan, Mechanism, ProcessLimits, Usage};

/// How soon a lack of memory that did not end the sandbox must be seen.
const MEMORY_LOOK: Duration = Duration::from_millis(500);
/// How often CPU time is looked at, at most and at least.
const CPU_TIME_LOOK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(2));

/// When a look is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// While the command runs.
    Meanwhile,
    /// When it is over, and what only slowed it down can be told as a whole.
    AtEnd,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    told: Vec<LimitName>,
    /// The most of what the kernel does not keep the most of.
    memory: Option<u64>,
    pids: Option<u64>,
    /// Whether nothing comes after it.
    is_all: bool,
}

impl LimitPlan {
    /// The folder that the sandbox's first process is to be born in.
    pub(crate) fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        self.group.as_ref()?.birthplace()
    }

    /// Moves the calling process, the first of the sandbox, to where its
    /// limits hold.
    pub(crate) fn enter_group(&self) -> Result<(), Errno> {
        match &self.group {
            Some(group) => {
                group.enter()?;
                // What is above the group is nobody's business inside.
                ringfence_sys::own_cgroup_view()
            }
            None => Ok(()),
        }
    }

    /// Removes the groups of sandboxes that are no more.
    pub(crate) fn tidy(&self) {
        if let Some(group) = &self.group {
            group.remove_left_over();
        }
    }

    /// Limits of the command's process.
    pub(crate) fn process(&self) -> &ProcessLimits {
        &self.process
    }

    /// Whether every limit is held by something.
    pub(crate) fn all_hold(&self) -> bool {
        self.held
            .iter()
            .all(|held| held.mechanism != Mechanism::Nothing)
    }

    /// Each limit with what holds it, in a few words.
    pub(crate) fn describe(&self) -> String {
        let each: Vec<String> = self
            .held
            .iter()
            .map(|held| format!("{} by {}", held.limit.as_str(), held.mechanism.as_str()))
            .collect();
        let weaker = if self.all_hold() {
            ""
        } else {
            "; accepted by --weaker limits or by default"
        };
        format!("{}{weaker}", each.join(", "))
    }

    /// What was hit and not told before.
    pub(crate) fn check(&self, moment: Moment) -> Vec<LimitHit> {
        let Some(group) = &self.group else {
            return Vec::new();
        };
        self.keep_peaks(group);
        let mut hits = vec![memory_hit(group), self.cpu_time_hit(group), pids_hit(group)];
        if moment == Moment::AtEnd {
            hits.push(cpu_hit(group));
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_all = moment == Moment::AtEnd;
        let mut hits: Vec<LimitHit> = hits.into_iter().flatten().collect();
        hits.retain(|hit| !seen.told.contains(&hit.limit));
        seen.told.extend(hits.iter().map(|hit| hit.limit));
        hits
    }

    /// When to look next, if looking is needed.
    pub(crate) fn next_check(&self) -> Option<Duration> {
        let group = self.group.as_ref()?;
        let memory = group.outlives_lack_of_memory().then_some(MEMORY_LOOK);
        let cpu_time = self.cpu_time_left(group).map(|left| {
            let cores = u32::try_from(self.cores.max(1)).unwrap_or(u32::MAX);
            (left / cores).clamp(CPU_TIME_LOOK.0, CPU_TIME_LOOK.1)
        });
        memory.into_iter().chain(cpu_time).min()
    }

    /// Whether something was killed for want of memory.
    pub(crate) fn lacked_memory(&self) -> bool {
        self.group
            .as_ref()
            .is_some_and(|group| group.memory_kills() > 0)
    }

    /// Every limit, with the most that was used.
    pub(crate) fn list(&self, inside: &Usage) -> Vec<HeldLimit> {
        if let Some(group) = &self.group {
            self.keep_peaks(group);
        }
        self.list_with(|limit| self.peak(limit, inside))
    }

    /// As they are before anything was used.
    pub(crate) fn list_unused(&self) -> Vec<HeldLimit> {
        self.list_with(|_| None)
    }

    fn list_with(&self, peak: impl Fn(LimitName) -> Option<u64>) -> Vec<HeldLimit> {
        let held = self.held.iter().map(|held| HeldLimit {
            limit: held.limit,
            configured: held.value,
            peak: peak(held.limit),
            mechanism: held.mechanism,
        });
        held.collect()
    }

    fn peak(&self, limit: LimitName, inside: &Usage) -> Option<u64> {
        let group = self.group.as_ref();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            LimitName::Memory => seen.memory.or(inside.memory),
            LimitName::Pids => seen.pids.or(inside.pids),
            LimitName::CpuTime => group
                .and_then(Group::cpu_time)
                .or(inside.cpu_time)
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            LimitName::Disk => inside.disk,
            _ => None,
        }
    }

    fn keep_peaks(&self, group: &Group) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_all {
            return;
        }
        seen.memory = seen.memory.max(group.memory());
        seen.pids = seen.pids.max(group.pids());
    }

    fn value_of(&self, limit: LimitName) -> Option<u64> {
        let held = self.held.iter().find(|held| held.limit == limit);
        held.map(|held| held.value)
    }

    fn cpu_time_left(&self, group: &Group) -> Option<Duration> {
        let used = group.cpu_time()?;
        let most = Duration::from_millis(self.value_of(LimitName::CpuTime)?);
        Some(most.saturating_sub(used))
    }

    fn cpu_time_hit(&self, group: &Group) -> Option<LimitHit> {
        self.cpu_time_left(group)?.is_zero().then(|| LimitHit {
            limit: LimitName::CpuTime,
            evidence: format!(
                "{} ms of CPU time used",
                group.cpu_time().unwrap_or_default().as_millis()
            ),
            ends: true,
        })
    }
}

fn memory_hit(group: &Group) -> Option<LimitHit> {
    let kills = group.memory_kills();
    (kills > 0).then(|| LimitHit {
        limit: LimitName::Memory,
        evidence: format!("oom_kill {kills}"),
        ends: true,
    })
}

fn pids_hit(group: &Group) -> Option<LimitHit> {
    let refused = group.pids_refused();
    (refused > 0).then(|| LimitHit {
        limit: LimitName::Pids,
        evidence: format!("pids.events max {refused}"),
        ends: false,
    })
}

fn cpu_hit(group: &Group) -> Option<LimitHit> {
    let (throttled, periods) = group.throttled();
    (throttled > 0).then(|| LimitHit {
        limit: LimitName::Cpu,
        evidence: format!("throttled in {throttled} of {periods} periods"),
        ends: false,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Held;
    use super::super::group::Group;
    use super::super::part::Part;
    use super::super::place::Controller;
    use super::*;

    struct Fake {
        folder: tempfile::TempDir,
        plan: LimitPlan,
    }

    impl Fake {
        /// A group of version 1 with everything in one hierarchy.
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let all = [
                Controller::Cpu,
                Controller::Memory,
                Controller::Pids,
                Controller::CpuTime,
            ];
            let part = Part::fake_v1(folder.path(), &all);
            let plan = LimitPlan {
                held: vec![
                    Held::new(LimitName::Memory, 100, Mechanism::CgroupV1),
                    Held::new(LimitName::CpuTime, 1000, Mechanism::CgroupV1),
                ],
                cores: 2,
                group: Some(Group::fake(vec![part])),
                ..LimitPlan::default()
            };
            Self { folder, plan }
        }

        fn write(&self, file: &str, text: &str) {
            std::fs::write(Path::new(self.folder.path()).join(file), text).unwrap();
        }

        fn hits(&self, moment: Moment) -> Vec<(LimitName, bool)> {
            let hits = self.plan.check(moment).into_iter();
            hits.map(|hit| (hit.limit, hit.ends)).collect()
        }
    }

    #[test]
    fn each_hit_is_told_once() {
        let fake = Fake::new();
        assert_eq!(fake.hits(Moment::Meanwhile), []);
        fake.write("memory.oom_control", "oom_kill 1\n");
        fake.write("pids.events", "max 2\n");
        let both = [(LimitName::Memory, true), (LimitName::Pids, false)];
        assert_eq!(fake.hits(Moment::Meanwhile), both);
        assert_eq!(fake.hits(Moment::AtEnd), []);
    }

    #[test]
    fn being_slowed_down_is_told_at_the_end() {
        let fake = Fake::new();
        fake.write("cpu.stat", "nr_periods 9\nnr_throttled 4\n");
        assert_eq!(fake.hits(Moment::Meanwhile), []);
        assert_eq!(fake.hits(Moment::AtEnd), [(LimitName::Cpu, false)]);
    }

    #[test]
    fn cpu_time_is_looked_at_more_often_the_less_is_left() {
        let fake = Fake::new();
        fake.write("cpuacct.usage", "500000000\n");
        assert_eq!(fake.plan.next_check(), Some(Duration::from_millis(250)));
        fake.write("cpuacct.usage", "999000000\n");
        assert_eq!(fake.plan.next_check(), Some(Duration::from_millis(10)));
        assert_eq!(fake.hits(Moment::Meanwhile), []);
        fake.write("cpuacct.usage", "1000000000\n");
        assert_eq!(fake.hits(Moment::Meanwhile), [(LimitName::CpuTime, true)]);
    }

    #[test]
    fn the_most_that_was_seen_is_listed() {
        let fake = Fake::new();
        for usage in ["70\n", "40\n"] {
            fake.write("memory.max_usage_in_bytes", usage);
            fake.hits(Moment::Meanwhile);
        }
        let inside = Usage {
            memory: Some(5),
            cpu_time: Some(Duration::from_millis(30)),
            ..Usage::default()
        };
        let peaks: Vec<_> = fake
            .plan
            .list(&inside)
            .iter()
            .map(|held| held.peak)
            .collect();
        assert_eq!(peaks, [Some(70), Some(30)]);
    }

    #[test]
    fn without_a_group_nothing_is_looked_at() {
        let plan = LimitPlan::default();
        assert_eq!(plan.next_check(), None);
        assert!(plan.check(Moment::AtEnd).is_empty() && !plan.lacked_memory());
    }
}
