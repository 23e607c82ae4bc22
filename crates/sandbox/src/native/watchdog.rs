//! Watches what all processes of the sandbox use together, where no control
//! group does: memory, CPU time, and the number of tasks.
//!
//! A look is a walk over `/proc` in short slices, so that calls are served
//! meanwhile however many processes there are. The pace of looks follows how
//! much is left. Memory that looks like too much is counted a second time, page
//! by page, before anything is killed for it. Memory in files without a name is
//! looked for when the machine has more shared memory than can be explained.
//! What cannot be looked at is not gone: descriptors are kept for looking, and
//! where many looks in a row could not see everything, the run is ended.

mod census;
mod machine;
mod mappings;
mod nameless;
mod numbers;
mod processor;
mod reserve;
mod segments;
mod stored;
mod tasks;

use std::rc::Rc;
use std::time::{Duration, Instant};

use ringfence_sys::{self as sys, Errno};

use self::census::{Census, Count, Precision};
use self::nameless::Progress;
use self::processor::ProcessorTime;
use self::reserve::Reserve;
use self::stored::Stored;
use self::tasks::{Glance, Tasks};
use crate::limits::{LimitHit, LimitName, Usage, WatchPlan};

/// What processes can take in a second at most, in bytes; for the pace.
const FASTEST: u64 = 4 << 30;
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);
/// One slice of a look takes a quarter of the time since the last, which was
/// spent on calls, but no less and no more than this.
const SHORTEST_SLICE: Duration = Duration::from_micros(300);
const LONGEST_SLICE: Duration = Duration::from_millis(4);
/// Among thousands of busy tasks only who sleeps a little gets the processor
/// again soon.
const BETWEEN_SLICES: Duration = Duration::from_millis(1);
/// So many processes are too many to be counted twice for the peak.
const CROWD: u64 = 64;
/// Between two looks lies at least this many times what the last one took.
const REST: u32 = 4;
/// The same for counts that are made only to make sure that it is not too much.
const REST_AFTER_DOUBT: u32 = 20;
const LEAST_REST_AFTER_DOUBT: Duration = Duration::from_millis(200);

/// Where a process had a part of a peak in files, as large as this one, more of
/// it may have been files.
const PART_OF_PEAK: u64 = 4;

/// So many looks in a row that could not see everything are too many.
const MOST_BLIND: u32 = 100;

/// How soon so much can be used up at such a rate per second.
pub(super) fn pace(left: u64, rate: u64) -> Duration {
    let nanos = u128::from(left) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The watchdog of a sandbox.
pub(super) struct Watchdog {
    plan: WatchPlan,
    stored: Option<Stored>,
    tasks: Option<Tasks>,
    cores: u32,
    census: Option<Census>,
    processor: ProcessorTime,
    last_slice: Instant,
    /// How long the last look took, without what was served meanwhile.
    cost: Duration,
    next_look: Instant,
    peak: Usage,
    /// The most bytes of files that a process had mapped at any look, if there
    /// was one.
    files: Option<u64>,
    /// Shared memory that was mapped at the last look.
    mapped: u64,
    /// The last quick sum of memory that was counted again.
    doubted: u64,
    /// When the next count may be made only to make sure.
    may_doubt: Instant,
    told: Vec<LimitName>,
    reserve: Rc<Reserve>,
    /// How many looks in a row could not see everything.
    blind: u32,
}

impl Watchdog {
    /// A watchdog for what the plan says; to be made before anything is run.
    pub(super) fn new(plan: WatchPlan) -> Result<Self, Errno> {
        let now = Instant::now();
        let reserve = Rc::new(Reserve::new()?);
        let mut watchdog = Self {
            plan,
            stored: plan.memory.map(|_| Stored::open(&reserve)).transpose()?,
            tasks: plan.pids.map(Tasks::new),
            cores: plan.cpu_time.map_or(1, |_| cores()),
            census: None,
            processor: ProcessorTime::default(),
            last_slice: now,
            cost: Duration::ZERO,
            next_look: now,
            peak: Usage::default(),
            files: None,
            mapped: 0,
            doubted: 0,
            may_doubt: now,
            told: Vec::new(),
            reserve,
            blind: 0,
        };
        watchdog.next_look = now + watchdog.interval(0, Duration::ZERO);
        Ok(watchdog)
    }

    fn is_idle(&self) -> bool {
        let plan = &self.plan;
        plan.memory.is_none() && plan.cpu_time.is_none() && plan.pids.is_none()
    }

    /// When to call [`Self::look`]; soon while a look is under way.
    pub(super) fn next_look(&self) -> Option<Instant> {
        if self.is_idle() {
            return None;
        }
        if self.stored.as_ref().is_some_and(Stored::is_looking) {
            return Some(self.next_look.min(self.last_slice + BETWEEN_SLICES));
        }
        let glance = self.counted_tasks().map(Tasks::next_glance);
        glance.into_iter().chain([self.next_look]).min()
    }

    /// The account of tasks, until there is no more to tell.
    fn counted_tasks(&self) -> Option<&Tasks> {
        let is_told = self.told.contains(&LimitName::Pids);
        self.tasks.as_ref().filter(|_| !is_told)
    }

    /// To be called before a call of the command is served: whatever it does
    /// at that moment is still there to be seen.
    pub(super) fn glance(&mut self) -> Option<LimitHit> {
        self.counted_tasks()?;
        let glance = self.tasks.as_mut()?.glance(Instant::now(), &self.reserve);
        if glance == Glance::Crowd && self.census.is_none() {
            self.next_look = self.next_look.min(self.last_slice + self.cost * REST);
        }
        let (limit, evidence, ends) = tasks_hit(glance)?;
        self.hit_once(limit, evidence, ends)
    }

    /// Goes on with the look that is due. What it found at its end.
    pub(super) fn look(&mut self) -> Vec<LimitHit> {
        let now = Instant::now();
        let is_time = self
            .counted_tasks()
            .is_some_and(|it| now >= it.next_glance());
        let mut hits = Vec::from_iter(is_time.then(|| self.glance()).flatten());
        if self.is_idle() {
            return hits;
        }
        let slice = self.slice(now);
        if now >= self.next_look {
            hits.extend(self.go_on(now, slice));
            self.last_slice = Instant::now();
        }
        self.look_for_nameless(slice);
        hits
    }

    fn go_on(&mut self, now: Instant, slice: Duration) -> Vec<LimitHit> {
        let Some(mut census) = self.census.take().or_else(|| self.begin(Precision::Quick)) else {
            self.next_look = now + SHORTEST;
            return Vec::from_iter(self.note_blind(true));
        };
        let is_over = census.go_on(now + slice);
        self.cost += now.elapsed();
        if is_over {
            self.conclude(census.count())
        } else {
            self.census = Some(census);
            self.next_look = Instant::now() + BETWEEN_SLICES;
            Vec::new()
        }
    }

    fn look_for_nameless(&mut self, slice: Duration) {
        let Some(stored) = self.stored.as_mut().filter(|stored| stored.is_looking()) else {
            return;
        };
        if stored.go_on(slice, self.mapped) == Progress::OverWithMore {
            self.next_look = Instant::now();
        }
        self.last_slice = Instant::now();
    }

    fn slice(&self, now: Instant) -> Duration {
        let meanwhile = now.saturating_duration_since(self.last_slice);
        (meanwhile / 4).clamp(SHORTEST_SLICE, LONGEST_SLICE)
    }

    fn begin(&mut self, precision: Precision) -> Option<Census> {
        if precision == Precision::Quick {
            self.cost = Duration::ZERO;
        }
        let census = match precision {
            Precision::Detailed => {
                let known = self.stored.as_ref().map(Stored::known).unwrap_or_default();
                Census::begin_detailed(&self.plan, known, &self.reserve)
            }
            _ => Census::begin(&self.plan, precision, &self.reserve),
        };
        census.ok()
    }

    /// Whoever cannot be watched for long is ended, by a limit that is watched.
    fn note_blind(&mut self, is_blind: bool) -> Option<LimitHit> {
        self.blind = if is_blind { self.blind + 1 } else { 0 };
        if self.blind < MOST_BLIND {
            return None;
        }
        let memory = self.plan.memory.map(|_| LimitName::Memory);
        let limit = memory.or(self.plan.cpu_time.map(|_| LimitName::CpuTime))?;
        let evidence = "processes could not be looked at".to_owned();
        self.hit_once(limit, evidence, true)
    }

    fn conclude(&mut self, mut count: Count) -> Vec<LimitHit> {
        let blind = self.note_blind(!count.is_whole());
        let times = std::mem::take(&mut count.times);
        count.times = self.processor.with_unseen(times, &count.unseen);
        let count = &count;
        let stored = self.stored.as_mut().map_or(0, Stored::bytes);
        let memory = count.memory_with(stored);
        let processor = self.processor_time(count);
        let tasks = self.note_tasks(count);
        self.note_peaks(memory, processor, count);
        let others = [self.processor_hit(processor), tasks_hit(tasks)];
        let again = self.needs_again(stored, count);
        let is_again = again.is_some_and(|precision| self.count_again(memory, precision));
        let memory_hit = if is_again {
            None
        } else {
            self.rest(memory, processor, count);
            self.look_for_more(count, stored);
            self.memory_hit(memory, count.processes)
        };
        let found = others.into_iter().chain([memory_hit]).flatten();
        let found =
            found.filter_map(|(limit, evidence, ends)| self.hit_once(limit, evidence, ends));
        found.chain(blind).collect()
    }

    fn look_for_more(&mut self, count: &Count, stored: u64) {
        self.mapped = count.shared();
        if let (Some(more), Some(limit)) = (&mut self.stored, self.plan.memory) {
            more.look_for_more(stored.max(self.mapped), limit);
        }
    }

    /// Those that were all counted; a count of memory may stop before.
    fn note_tasks(&mut self, count: &Count) -> Glance {
        match &mut self.tasks {
            Some(tasks) if count.precision == Precision::Quick => {
                tasks.note(count.tasks + tasks::workers())
            }
            _ => Glance::Fine,
        }
    }

    fn count_again(&mut self, memory: u64, precision: Precision) -> bool {
        self.doubted = memory;
        self.next_look = Instant::now();
        self.census = self.begin(precision);
        self.census.is_some()
    }

    fn memory_hit(&self, memory: u64, processes: u64) -> Option<(LimitName, String, bool)> {
        self.plan.memory.filter(|limit| memory > *limit)?;
        let evidence = format!("{memory} bytes in {processes} processes");
        Some((LimitName::Memory, evidence, true))
    }

    /// How to count again, if that is needed. Pages shared by many were counted
    /// many times, and shared memory may have been counted where it is mapped
    /// or where it is stored. That matters when it may be too much, and for a
    /// new peak.
    fn needs_again(&self, stored: u64, count: &Count) -> Option<Precision> {
        let limit = self.plan.memory?;
        let memory = count.memory_with(stored);
        let is_too_much = memory > limit;
        let may_be = count.most_with(stored) > limit;
        let is_more = memory > self.doubted.saturating_add(self.doubted / 8);
        let may_doubt = Instant::now() >= self.may_doubt;
        match count.precision {
            Precision::Quick if is_too_much || (may_be && may_doubt) => Some(Precision::Exact),
            Precision::Quick if is_doubtful(count) && is_more => Some(Precision::Exact),
            Precision::Exact if may_be && !is_too_much => Some(Precision::Detailed),
            _ => None,
        }
    }

    fn processor_time(&mut self, count: &Count) -> Duration {
        if self.plan.cpu_time.is_some() && count.precision == Precision::Quick {
            self.processor
                .update(&count.times, sys::children_cpu_time());
        }
        self.processor.total()
    }

    fn processor_hit(&self, used: Duration) -> Option<(LimitName, String, bool)> {
        self.plan.cpu_time.filter(|limit| used >= *limit)?;
        let evidence = format!("{} ms of CPU time", used.as_millis());
        Some((LimitName::CpuTime, evidence, true))
    }

    fn hit_once(&mut self, limit: LimitName, evidence: String, ends: bool) -> Option<LimitHit> {
        if self.told.contains(&limit) {
            return None;
        }
        self.told.push(limit);
        Some(LimitHit {
            limit,
            evidence,
            ends,
        })
    }

    fn rest(&mut self, memory: u64, processor: Duration, count: &Count) {
        let now = Instant::now();
        let interval = if count.is_whole() {
            self.interval(memory, processor)
        } else {
            SHORTEST
        };
        self.next_look = now + interval.max(self.cost * REST);
        if count.precision != Precision::Quick {
            self.may_doubt = now + (self.cost * REST_AFTER_DOUBT).max(LEAST_REST_AFTER_DOUBT);
        }
    }

    fn interval(&self, memory: u64, processor: Duration) -> Duration {
        let memory = self
            .plan
            .memory
            .map(|limit| pace(limit.saturating_sub(memory), FASTEST));
        let processor = self
            .plan
            .cpu_time
            .map(|limit| limit.saturating_sub(processor) / self.cores);
        let soonest = memory.into_iter().chain(processor).min();
        soonest.unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
    }

    fn note_peaks(&mut self, memory: u64, processor: Duration, count: &Count) {
        let plan = &self.plan;
        if plan.memory.is_some() && !is_doubtful(count) {
            self.peak.memory = self.peak.memory.max(Some(memory));
        }
        if plan.memory.is_some() && count.processes > 0 {
            self.files = self.files.max(Some(count.files));
        }
        self.peak.cpu_time = plan.cpu_time.and(Some(processor));
    }

    /// What was passed without being told, once everything is over and reaped.
    pub(super) fn last_hits(&mut self) -> Vec<LimitHit> {
        let passed = passed(&self.plan, &self.usage()).into_iter();
        passed
            .filter_map(|(limit, evidence)| self.hit_once(limit, evidence, false))
            .collect()
    }

    /// The most memory there was, where the largest process had so much at its
    /// peak. That figure of the kernel's has mapped files in it, which are no
    /// memory of anybody's: it is evidence only where the looks saw few of
    /// them. Reading so much through memory takes longer than it is between two
    /// looks.
    fn memory_with(&self, peak: u64, limit: u64) -> u64 {
        let seen = self.peak.memory.unwrap_or(0);
        let few = |files: u64| files < peak / PART_OF_PEAK;
        if peak <= limit || self.files.is_some_and(few) {
            seen.max(peak)
        } else {
            seen
        }
    }

    /// What was used in all, once everything is over and reaped.
    pub(super) fn usage(&self) -> Usage {
        let children = sys::children_cpu_time();
        Usage {
            memory: self
                .plan
                .memory
                .map(|limit| self.memory_with(sys::children_peak_rss(), limit)),
            pids: self.tasks.as_ref().and_then(Tasks::peak),
            cpu_time: Some((children + self.processor.lost()).max(self.processor.total())),
            ..Usage::default()
        }
    }
}

/// What a usage in all has passed that no look has met in time: it ended nothing.
fn passed(plan: &WatchPlan, usage: &Usage) -> Vec<(LimitName, String)> {
    let memory = plan.memory.zip(usage.memory);
    let memory = memory.filter(|(limit, used)| used > limit);
    let memory = memory.map(|(_, used)| (LimitName::Memory, format!("{used} bytes at the peak")));
    let cpu_time = plan.cpu_time.zip(usage.cpu_time);
    let cpu_time = cpu_time.filter(|(limit, used)| used >= limit);
    let cpu_time = cpu_time.map(|(_, used)| {
        let evidence = format!("{} ms of CPU time in all", used.as_millis());
        (LimitName::CpuTime, evidence)
    });
    memory.into_iter().chain(cpu_time).collect()
}

/// How many processes can run at once.
fn cores() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |cpus| cpus.count().max(1))
}

/// Whether what several processes share may have been counted several times,
/// and a second count for the peak alone is worth it. Each process could make
/// it wait for its own memory to be changed, by a fork for instance, and among
/// many busy ones that takes long: the peak of a crowd is what it was at most.
fn is_doubtful(count: &Count) -> bool {
    count.precision == Precision::Quick && (2..=CROWD).contains(&count.processes)
}

fn tasks_hit(glance: Glance) -> Option<(LimitName, String, bool)> {
    match glance {
        Glance::Full(tasks) => Some((LimitName::Pids, format!("{tasks} tasks seen"), false)),
        Glance::Fine | Glance::Crowd => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watchdog(plan: WatchPlan) -> Watchdog {
        Watchdog::new(plan).unwrap()
    }

    #[test]
    fn the_pace_follows_what_is_left() {
        let limit = 8 << 30;
        let dog = watchdog(WatchPlan {
            memory: Some(limit),
            ..WatchPlan::default()
        });
        let after = |memory| dog.interval(memory, Duration::ZERO);
        assert_eq!(after(0), LONGEST);
        assert_eq!(after(limit - (1 << 30)), Duration::from_millis(250));
        assert_eq!(after(limit), SHORTEST);
    }

    #[test]
    fn nothing_to_watch_means_no_looks() {
        let mut dog = watchdog(WatchPlan {
            disk: Some(1),
            ..WatchPlan::default()
        });
        assert_eq!(dog.next_look(), None);
        assert_eq!(dog.look(), []);
        assert_eq!(dog.usage().memory, None);
    }

    fn run_to_end(dog: &mut Watchdog) -> Vec<LimitHit> {
        dog.next_look = Instant::now();
        let mut hits = dog.look();
        while dog.census.is_some() {
            hits.extend(dog.look());
        }
        hits
    }

    #[test]
    fn g9_too_much_memory_is_counted_twice_and_reported_once() {
        let mut dog = watchdog(WatchPlan {
            memory: Some(1),
            ..WatchPlan::default()
        });
        let hits = run_to_end(&mut dog);
        assert!(hits.len() == 1 && hits[0].ends, "{hits:?}");
        assert_eq!(hits[0].limit, LimitName::Memory);
        assert_eq!(run_to_end(&mut dog), []);
        assert!(dog.usage().memory > Some(1));
    }

    #[test]
    fn g9_tasks_at_the_limit_are_reported_and_end_nothing() {
        let mut dog = watchdog(WatchPlan {
            pids: Some(1),
            ..WatchPlan::default()
        });
        let hits = run_to_end(&mut dog);
        assert!(hits.len() == 1 && !hits[0].ends, "{hits:?}");
        let mut dog = watchdog(WatchPlan {
            pids: Some(u64::MAX),
            ..WatchPlan::default()
        });
        assert_eq!(run_to_end(&mut dog), []);
        assert!(dog.usage().pids > Some(1));
    }

    #[test]
    fn g9_what_was_passed_unseen_is_told_at_the_end() {
        let plan = WatchPlan {
            memory: Some(100),
            cpu_time: Some(Duration::from_secs(2)),
            ..WatchPlan::default()
        };
        let told = |memory, seconds| {
            let usage = Usage {
                memory: Some(memory),
                cpu_time: Some(Duration::from_secs(seconds)),
                ..Usage::default()
            };
            let passed = passed(&plan, &usage).into_iter();
            passed.map(|(limit, _)| limit).collect::<Vec<_>>()
        };
        assert_eq!(told(100, 1), []);
        assert_eq!(told(101, 1), [LimitName::Memory]);
        assert_eq!(told(1, 12), [LimitName::CpuTime]);
        assert_eq!(passed(&WatchPlan::default(), &Usage::default()), []);
    }

    #[test]
    fn g9_a_peak_is_memory_unless_it_may_have_been_files() {
        let mut dog = watchdog(WatchPlan {
            memory: Some(100),
            ..WatchPlan::default()
        });
        dog.peak.memory = Some(50);
        // Whoever was quicker than the first look is known by its peak alone.
        assert_eq!(dog.memory_with(400, 100), 50);
        assert_eq!(dog.memory_with(90, 100), 90);
        for (files, peak) in [(0, 400), (99, 400), (100, 50), (400, 50)] {
            dog.files = Some(files);
            assert_eq!(dog.memory_with(400, 100), peak, "{files}");
        }
    }

    #[test]
    fn g9_a_peak_is_told_once_and_ended_nothing() {
        let mut dog = watchdog(WatchPlan {
            memory: Some(1),
            ..WatchPlan::default()
        });
        dog.peak.memory = Some(2);
        let hits = dog.last_hits();
        assert!(hits.len() == 1 && !hits[0].ends, "{hits:?}");
        assert_eq!(dog.last_hits(), []);
    }

    #[test]
    fn g9_whoever_cannot_be_looked_at_for_long_is_ended() {
        let mut dog = watchdog(WatchPlan {
            memory: Some(1 << 60),
            ..WatchPlan::default()
        });
        for _ in 1..MOST_BLIND {
            assert_eq!(dog.note_blind(true), None);
        }
        assert_eq!(dog.note_blind(false), None);
        let hits = (0..MOST_BLIND).filter_map(|_| dog.note_blind(true));
        let hits: Vec<LimitHit> = hits.collect();
        assert!(hits.len() == 1 && hits[0].ends, "{hits:?}");
    }
}
