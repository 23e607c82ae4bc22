//! [`Limiter`]: which events are written, and which are counted.
//!
//! Events that are alike pass until their pace is used up, and all of a kind
//! share a pace, a number and bytes. What does not pass is counted: with those
//! like it, if one of them was written, else with what is in the same folder,
//! else in a group that names nothing. So neither memory nor the log grows with
//! a flood. The last calls of a kind that are like no other are held back to
//! the end and then written: a flood may be there to hide what comes after it.

mod budget;
mod held;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::event::{Call, Group, HostText, Summary, Text, Timestamp};

use super::clock::Moment;
use budget::{Budget, Kind, Pace, Share, Used, kind_of};
use held::Held;

/// The most likenesses that are kept apart.
const MOST_ALIKE: usize = 8192;
/// The most groups that are counted apart, and of them the most folders.
const MOST_GROUPS: usize = 4096;
const MOST_FOLDERS: usize = 256;
/// How often summaries are written.
pub(super) const WINDOW: Duration = Duration::from_secs(1);
/// How often once a run has had all that it may write of something.
const LATE_WINDOW: Duration = Duration::from_mins(1);

const OF_SUMMARIES: Pace = Pace::new(100, 100);

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Write,
    /// It was counted.
    Count,
    /// It is to be handed over to be held back.
    Hold,
}

/// Which summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Once a window, and no more than their pace lets pass.
    Due,
    /// All of them.
    All,
}

/// What there is to know of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sight<'a> {
    /// A decision, or the end of a connection with its bytes.
    Network(&'a Group, Option<(u64, u64)>),
    Call(&'a Call),
}

impl Sight<'_> {
    fn kind(self) -> Kind {
        match self {
            Self::Network(group, _) => kind_of(group),
            Self::Call(call) => (Some(call.action), call.verdict()),
        }
    }

    /// The group of those that name the same.
    fn group(self) -> Group {
        match self {
            Self::Network(group, _) => group.clone(),
            Self::Call(call) => Group::of_call(call),
        }
    }

    /// A wider one.
    fn folder(self) -> Option<Group> {
        match self {
            Self::Network(..) => None,
            Self::Call(call) => Group::of_folder(call),
        }
    }

    /// About how long its line is.
    fn size(self) -> u64 {
        /// What is in every line.
        const FRAME: usize = 320;
        let of_text = |text: Option<&str>| text.map_or(0, str::len);
        let length = match self {
            Self::Network(group, _) => {
                of_text(group.host.as_ref().map(HostText::as_str))
                    + of_text(group.rule.as_ref().map(Text::as_str))
            }
            Self::Call(call) => {
                let words = call.paths.iter().chain(call.argv.iter());
                words.map(|word| word.len() + 3).sum()
            }
        };
        (FRAME + length) as u64
    }

    fn bytes(self) -> Option<(u64, u64)> {
        match self {
            Self::Network(_, bytes) => bytes,
            Self::Call(_) => None,
        }
    }
}

#[derive(Debug)]
struct Counted {
    count: u64,
    first: Timestamp,
    last: Timestamp,
    bytes: Option<(u64, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// By what is the same, what those that are alike have used. The key of
    /// the sums is not known inside, so nobody can make two that meet.
    alike: HashMap<u64, Used>,
    sums: RandomState,
    counted: HashMap<Group, Counted>,
    folders: usize,
    held: Held,
    shares: HashMap<Kind, Share>,
    /// Bytes that the run has written.
    bytes: u64,
    summaries: Used,
    next_window: Duration,
}

impl Limiter {
    /// Says what becomes of an event, and counts it if that is all.
    pub(super) fn admit(&mut self, sight: Sight<'_>, now: Moment) -> Admission {
        let likeness = match sight {
            Sight::Network(group, _) => self.sums.hash_one(group),
            Sight::Call(call) => self.sums.hash_one(call.likeness()),
        };
        let kind = sight.kind();
        let budget = Budget::of(kind);
        let share = self.shares.entry(kind).or_default();
        let has_room = share.has_room(budget, self.bytes);
        let used = self.alike.get_mut(&likeness);
        let is_known = used.is_some();
        let passes = has_room
            && used.is_none_or(|used| used.admit(budget.alike, now.steady))
            && share.admit(budget, sight.size(), now.steady);
        let is_used_up = share.is_used_up(budget, self.bytes);
        if !passes && !is_known && is_used_up && matches!(sight, Sight::Call(_)) {
            return Admission::Hold;
        }
        if !passes {
            let group = self.group_to_count_in(sight, is_known);
            self.count(group, 1, (now.wall, now.wall), sight.bytes());
            return Admission::Count;
        }
        if !is_known && self.alike.len() < MOST_ALIKE {
            let used = self.alike.entry(likeness).or_default();
            used.admit(budget.alike, now.steady);
        }
        Admission::Write
    }

    /// Learns how much the run has written by now.
    pub(super) fn note_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Holds a call back, and counts the one that it takes the place of.
    pub(super) fn hold(&mut self, time: Timestamp, call: Call) {
        let kind = Sight::Call(&call).kind();
        if let Some((time, oldest)) = self.held.push(kind, (time, call)) {
            let group = self.group_to_count_in(Sight::Call(&oldest), false);
            self.count(group, 1, (time, time), None);
        }
    }

    /// Takes out what was held back, the oldest first.
    pub(super) fn take_held(&mut self) -> Vec<(Timestamp, Call)> {
        self.held.take()
    }

    /// The narrowest group that there is room for.
    fn group_to_count_in(&self, sight: Sight<'_>, is_known: bool) -> Group {
        let own = sight.group();
        let has_groups = self.counted.len() < MOST_GROUPS;
        if is_known && (has_groups || self.counted.contains_key(&own)) {
            return own;
        }
        let has_bytes = self.bytes < Budget::of(sight.kind()).most_in_all;
        let has_folders = has_bytes && has_groups && self.folders < MOST_FOLDERS;
        let folder = sight.folder();
        let folder = folder.filter(|it| has_folders || self.counted.contains_key(it));
        // There are few groups without names, so they are let in beyond the
        // bounds.
        folder.unwrap_or_else(|| own.without_names())
    }

    fn count(
        &mut self,
        group: Group,
        count: u64,
        span: (Timestamp, Timestamp),
        bytes: Option<(u64, u64)>,
    ) {
        let is_new = !self.counted.contains_key(&group);
        self.folders += usize::from(is_new && is_folder(&group));
        let counted = self.counted.entry(group).or_insert(Counted {
            count: 0,
            first: span.0,
            last: span.1,
            bytes: None,
        });
        counted.add(count, span, bytes);
    }

    /// Whether the run has had all that it may write of something.
    fn is_late(&self) -> bool {
        let is_used_up =
            |(kind, share): (&Kind, &Share)| share.is_used_up(Budget::of(*kind), self.bytes);
        self.shares.iter().any(is_used_up)
    }

    /// Takes out what was counted, that of the longest wait first.
    pub(super) fn take(&mut self, which: Which, now: Moment) -> Vec<Summary> {
        if which == Which::Due {
            if now.steady < self.next_window {
                return Vec::new();
            }
            let window = if self.is_late() { LATE_WINDOW } else { WINDOW };
            self.next_window = now.steady + window;
        }
        let waiting = self.counted.iter();
        let mut waiting: Vec<(Timestamp, Group)> = waiting
            .map(|(group, counted)| (counted.first, group.clone()))
            .collect();
        waiting.sort_unstable();
        let mut summaries = Vec::new();
        for (_, group) in waiting {
            if which == Which::Due && !self.summaries.admit(OF_SUMMARIES, now.steady) {
                break;
            }
            summaries.extend(self.take_one(group));
        }
        self.forget_idle(now);
        summaries
    }

    fn take_one(&mut self, group: Group) -> Option<Summary> {
        let counted = self.counted.remove(&group)?;
        self.folders -= usize::from(is_folder(&group));
        Some(Summary {
            group,
            count: counted.count,
            first: counted.first,
            last: counted.last,
            bytes_up: counted.bytes.map(|(up, _)| up),
            bytes_down: counted.bytes.map(|(_, down)| down),
        })
    }

    /// What has its whole pace back is as good as new.
    fn forget_idle(&mut self, now: Moment) {
        self.alike.retain(|_, used| !used.is_all_back(now.steady));
    }

    /// Counts again what could not be written.
    pub(super) fn put_back(&mut self, summaries: impl IntoIterator<Item = Summary>) {
        for summary in summaries {
            let bytes = summary.bytes_up.zip(summary.bytes_down);
            let span = (summary.first, summary.last);
            self.count(summary.group, summary.count, span, bytes);
        }
    }
}

fn is_folder(group: &Group) -> bool {
    let place = group.place.as_ref();
    place.is_some_and(|place| place.as_str().ends_with('/'))
}

impl Counted {
    fn add(&mut self, count: u64, span: (Timestamp, Timestamp), bytes: Option<(u64, u64)>) {
        self.count = self.count.saturating_add(count);
        self.first = self.first.min(span.0);
        self.last = self.last.max(span.1);
        if let Some((up, down)) = bytes {
            let sum = self.bytes.unwrap_or_default();
            self.bytes = Some((sum.0.saturating_add(up), sum.1.saturating_add(down)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{HostText, Subject, Verdict};
    use budget::REFUSALS;

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
            .filter(|_| limiter.admit(Sight::Network(&group, None), at(now)) == Admission::Write)
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
        // All at first, then one a second.
        assert_eq!(written, REFUSALS.most as usize + 599 - 19);
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
        assert_eq!((limiter.alike.len(), limiter.counted.len()), (200, 1));
        let told: u64 = limiter
            .take(Which::Due, at(2 * WINDOW))
            .iter()
            .map(|summary| summary.count)
            .sum();
        assert_eq!(told, 9800);
        assert!(limiter.alike.is_empty() && limiter.counted.is_empty());
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
