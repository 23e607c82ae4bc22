//! [`Limiter`]: which events are written, and which are counted.
//!
//! Events of a group pass until its pace is used up, and all groups together
//! share a pace for each verdict. What does not pass is counted in its group,
//! or, when the group is new, in one that names no destination; so neither
//! memory nor the log grows with a flood.

use std::collections::HashMap;
use std::time::Duration;

use crate::event::{Group, Subject, Summary, Timestamp, Verdict};

use super::clock::Moment;

/// The most groups that are kept apart.
pub(super) const MOST_GROUPS: usize = 4096;
/// How often summaries are written.
pub(super) const WINDOW: Duration = Duration::from_secs(1);

/// 20 in a row, then 10 a second.
const OF_GROUP: Pace = Pace::new(20, 10);
const OF_REFUSALS: Pace = Pace::new(200, 200);
/// A program that does real work may well open many connections.
const OF_ALLOWED: Pace = Pace::new(1000, 1000);
const OF_SUMMARIES: Pace = Pace::new(100, 100);

/// Refusals of one run that are written one by one, so that it cannot fill the
/// log and have what others did rotated away.
const MOST_REFUSALS: u32 = 4000;
/// The same for what was allowed and for its end.
const MOST_ALLOWED: u32 = 20_000;
/// How often summaries are written once a run has had all that.
const LATE_WINDOW: Duration = Duration::from_mins(1);

/// So many at once, and so many a second.
#[derive(Debug, Clone, Copy)]
struct Pace {
    interval: Duration,
    slack: Duration,
}

impl Pace {
    const fn new(burst: u32, per_second: u32) -> Self {
        let interval = Duration::from_nanos(1_000_000_000 / per_second as u64);
        Self {
            interval,
            slack: interval.saturating_mul(burst - 1),
        }
    }
}

/// How much of a pace is used: the time at which it would all be back (the
/// generic cell rate algorithm).
#[derive(Debug, Clone, Copy, Default)]
struct Used(Duration);

impl Used {
    fn admit(&mut self, pace: Pace, now: Duration) -> bool {
        let passes = self.0.saturating_sub(now) <= pace.slack;
        if passes {
            self.0 = self.0.max(now) + pace.interval;
        }
        passes
    }

    fn is_all_back(self, now: Duration) -> bool {
        self.0 <= now
    }
}

/// What events of one verdict have used.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    used: Used,
    written: u32,
}

impl Share {
    fn admit(&mut self, (pace, most): (Pace, u32), now: Duration) -> bool {
        let passes = self.written < most && self.used.admit(pace, now);
        self.written += u32::from(passes);
        passes
    }
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Write,
    Count,
}

/// Which summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Once a window, and no more than their pace lets pass.
    Due,
    /// All of them.
    All,
}

#[derive(Debug)]
struct Counted {
    count: u64,
    first: Timestamp,
    last: Timestamp,
    bytes: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
struct GroupState {
    used: Used,
    counted: Option<Counted>,
}

#[derive(Debug, Default)]
pub(super) struct Limiter {
    groups: HashMap<Group, GroupState>,
    refusals: Share,
    allowed: Share,
    summaries: Used,
    next_window: Duration,
}

impl Limiter {
    /// Says what becomes of an event of `group`, and counts it if that is all.
    pub(super) fn admit(
        &mut self,
        group: &Group,
        bytes: Option<(u64, u64)>,
        now: Moment,
    ) -> Admission {
        let (all, pace) = match group.verdict {
            Verdict::Refused => (&mut self.refusals, (OF_REFUSALS, MOST_REFUSALS)),
            Verdict::Allowed => (&mut self.allowed, (OF_ALLOWED, MOST_ALLOWED)),
        };
        if let Some(state) = self.groups.get_mut(group) {
            if state.used.admit(OF_GROUP, now.steady) && all.admit(pace, now.steady) {
                return Admission::Write;
            }
            state.count(1, (now.wall, now.wall), bytes);
            return Admission::Count;
        }
        if all.admit(pace, now.steady) {
            self.remember(group, now);
            return Admission::Write;
        }
        self.count_unnamed(group.of, group.verdict, bytes, now);
        Admission::Count
    }

    fn remember(&mut self, group: &Group, now: Moment) {
        if self.groups.len() < MOST_GROUPS {
            let state = self.groups.entry(group.clone()).or_default();
            state.used.admit(OF_GROUP, now.steady);
        }
    }

    /// There are as many unnamed groups as subjects with verdicts, so they are
    /// let in beyond the bound.
    fn count_unnamed(
        &mut self,
        of: Subject,
        verdict: Verdict,
        bytes: Option<(u64, u64)>,
        now: Moment,
    ) {
        let state = self.groups.entry(Group::unnamed(of, verdict)).or_default();
        state.count(1, (now.wall, now.wall), bytes);
    }

    /// Takes out what was counted, that of the longest wait first.
    pub(super) fn take(&mut self, which: Which, now: Moment) -> Vec<Summary> {
        if which == Which::Due {
            if now.steady < self.next_window {
                return Vec::new();
            }
            let is_late =
                self.refusals.written == MOST_REFUSALS || self.allowed.written == MOST_ALLOWED;
            self.next_window = now.steady + if is_late { LATE_WINDOW } else { WINDOW };
        }
        let mut waiting: Vec<(Timestamp, Group)> = self
            .groups
            .iter()
            .filter_map(|(group, state)| Some((state.counted.as_ref()?.first, group.clone())))
            .collect();
        waiting.sort_unstable();
        let summaries = waiting
            .into_iter()
            .take_while(|_| which == Which::All || self.summaries.admit(OF_SUMMARIES, now.steady))
            .filter_map(|(_, group)| summary(&mut self.groups, group))
            .collect();
        self.forget_idle(now);
        summaries
    }

    /// A group that counts nothing and has its whole pace back is as good as
    /// new.
    fn forget_idle(&mut self, now: Moment) {
        self.groups
            .retain(|_, state| state.counted.is_some() || !state.used.is_all_back(now.steady));
    }

    /// Counts again what could not be written.
    pub(super) fn put_back(&mut self, summaries: Vec<Summary>) {
        for summary in summaries {
            let bytes = summary.bytes_up.zip(summary.bytes_down);
            let state = self.groups.entry(summary.group).or_default();
            state.count(summary.count, (summary.first, summary.last), bytes);
        }
    }
}

fn summary(groups: &mut HashMap<Group, GroupState>, group: Group) -> Option<Summary> {
    let counted = groups.get_mut(&group)?.counted.take()?;
    Some(Summary {
        group,
        count: counted.count,
        first: counted.first,
        last: counted.last,
        bytes_up: counted.bytes.map(|(up, _)| up),
        bytes_down: counted.bytes.map(|(_, down)| down),
    })
}

impl GroupState {
    fn count(&mut self, count: u64, span: (Timestamp, Timestamp), bytes: Option<(u64, u64)>) {
        let counted = self.counted.get_or_insert(Counted {
            count: 0,
            first: span.0,
            last: span.1,
            bytes: None,
        });
        counted.count = counted.count.saturating_add(count);
        counted.first = counted.first.min(span.0);
        counted.last = counted.last.max(span.1);
        if let Some((up, down)) = bytes {
            let sum = counted.bytes.unwrap_or_default();
            counted.bytes = Some((sum.0.saturating_add(up), sum.1.saturating_add(down)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::HostText;

    fn group(host: usize) -> Group {
        Group {
            host: Some(HostText::new(&format!("h{host}.example.org"))),
            ..Group::unnamed(Subject::Decision, Verdict::Refused)
        }
    }

    fn at(steady: Duration) -> Moment {
        Moment {
            wall: Timestamp::from_micros(0).plus(steady),
            steady,
        }
    }

    /// How many of `count` events of a group pass at a moment.
    fn passing(limiter: &mut Limiter, host: usize, count: usize, now: Duration) -> usize {
        let group = group(host);
        (0..count)
            .filter(|_| limiter.admit(&group, None, at(now)) == Admission::Write)
            .count()
    }

    #[test]
    fn a_group_passes_twenty_and_then_ten_a_second() {
        let mut limiter = Limiter::default();
        let now = Duration::from_mins(1);
        assert_eq!(passing(&mut limiter, 1, 100, now), 20);
        assert_eq!(
            passing(&mut limiter, 1, 100, now + Duration::from_millis(99)),
            0
        );
        assert_eq!(passing(&mut limiter, 1, 100, now + WINDOW), 10);
        assert_eq!(passing(&mut limiter, 1, 100, now + 60 * WINDOW), 20);
    }

    #[test]
    fn all_refusals_together_pass_two_hundred_a_second() {
        let mut limiter = Limiter::default();
        for second in 1..4 {
            let now = second * WINDOW;
            let passed: usize = (0..300)
                .map(|host| passing(&mut limiter, host, 1, now))
                .sum();
            assert_eq!(passed, 200);
        }
    }

    #[test]
    fn one_run_cannot_fill_the_log() {
        let mut limiter = Limiter::default();
        let (mut written, mut summaries, mut counted) = (0, 0, 0);
        for second in 1..600 {
            let now = second * WINDOW;
            for host in 0..300 {
                written += passing(&mut limiter, second as usize * 300 + host, 1, now);
            }
            let due = limiter.take(Which::Due, at(now));
            summaries += due.len();
            counted += due.iter().map(|summary| summary.count).sum::<u64>();
        }
        assert_eq!(written, MOST_REFUSALS as usize);
        assert!(summaries < 40, "{summaries}");
        let rest = limiter.take(Which::All, at(600 * WINDOW));
        counted += rest.iter().map(|summary| summary.count).sum::<u64>();
        assert_eq!(written as u64 + counted, 599 * 300);
    }

    #[test]
    fn groups_are_forgotten_once_they_are_idle() {
        let mut limiter = Limiter::default();
        for host in 0..10_000 {
            passing(&mut limiter, host, 1, WINDOW);
        }
        // Those that passed, and one for all that did not.
        assert_eq!(limiter.groups.len(), 201);
        let told: u64 = limiter
            .take(Which::Due, at(2 * WINDOW))
            .iter()
            .map(|summary| summary.count)
            .sum();
        assert_eq!(told, 9800);
        assert!(limiter.groups.is_empty());
    }

    #[test]
    fn what_is_put_back_comes_again() {
        let mut limiter = Limiter::default();
        passing(&mut limiter, 1, 50, WINDOW);
        let taken = limiter.take(Which::All, at(WINDOW));
        limiter.put_back(taken.clone());
        assert_eq!(limiter.take(Which::All, at(WINDOW)), taken);
        assert_eq!(limiter.take(Which::All, at(WINDOW)), []);
    }
}
