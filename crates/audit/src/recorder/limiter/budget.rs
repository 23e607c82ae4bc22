//! How much of each kind of event is written one by one.

use std::time::Duration;

use crate::event::{Action, Group, Verdict};

/// What shares a budget: what was decided by its verdict, a call by its action
/// and its verdict.
pub(super) type Kind = (Option<Action>, Verdict);

pub(super) fn kind_of(group: &Group) -> Kind {
    (group.action, group.verdict)
}

/// How much of one kind of event is written one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Of those that are alike.
    pub(super) alike: Pace,
    /// Of all of the kind.
    pub(super) all: Pace,
    /// In the whole run, so that it cannot fill the log and have what others
    /// did rotated away.
    pub(super) most: u32,
    /// Bytes of the kind, so that it leaves room for others.
    pub(super) most_bytes: u64,
    /// While the run has written no more than this, of whatever kind.
    pub(super) most_in_all: u64,
}

/// Once a kind has had its number, one passes now and then as long as there
/// are bytes left.
const LATE: Pace = Pace::new(1, 1);

pub(super) const REFUSALS: Budget = Budget {
    alike: Pace::new(20, 10),
    all: Pace::new(200, 200),
    most: 4000,
    most_bytes: 6 << 20,
    most_in_all: 24 << 20,
};
/// A program that does real work may well open many connections.
const ALLOWED: Budget = Budget {
    alike: Pace::new(20, 10),
    all: Pace::new(1000, 1000),
    most: 20_000,
    most_bytes: 8 << 20,
    most_in_all: 18 << 20,
};
/// What was started is the skeleton of a run's story.
const STARTS: Budget = Budget {
    alike: Pace::new(500, 100),
    most_bytes: 8 << 20,
    most_in_all: 20 << 20,
    ..Budget::of_calls(6000)
};
/// The same for each action.
pub(super) const REFUSED_CALLS: Budget = Budget {
    most_in_all: 24 << 20,
    ..Budget::of_calls(4000)
};
pub(super) const OTHER_CALLS: Budget = Budget::of_calls(4000);

impl Budget {
    /// Calls that differ have no pace, or one could be hidden behind a few
    /// others: nothing but the number in the whole run holds them back.
    const fn of_calls(most: u32) -> Self {
        Self {
            alike: Pace::new(20, 1),
            all: Pace::new(most, most),
            most,
            most_bytes: 4 << 20,
            most_in_all: 16 << 20,
        }
    }

    pub(super) fn of((action, verdict): Kind) -> Self {
        match (action, verdict) {
            (None, Verdict::Refused) => REFUSALS,
            (None, Verdict::Allowed) => ALLOWED,
            (Some(Action::Exec), _) => STARTS,
            (Some(_), Verdict::Refused) => REFUSED_CALLS,
            (Some(_), Verdict::Allowed) => OTHER_CALLS,
        }
    }
}

/// So many at once, and so many a second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    interval: Duration,
    slack: Duration,
}

impl Pace {
    pub(super) const fn new(burst: u32, per_second: u32) -> Self {
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
pub(super) struct Used(Duration);

impl Used {
    pub(super) fn admit(&mut self, pace: Pace, now: Duration) -> bool {
        let passes = self.0.saturating_sub(now) <= pace.slack;
        if passes {
            self.0 = self.0.max(now) + pace.interval;
        }
        passes
    }

    pub(super) fn is_all_back(self, now: Duration) -> bool {
        self.0 <= now
    }
}

/// What events of one kind have used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    used: Used,
    late: Used,
    written: u32,
    bytes: u64,
}

impl Share {
    /// Whether there is room for something while the run has written
    /// `in_all` bytes.
    pub(super) fn has_room(&self, budget: Budget, in_all: u64) -> bool {
        self.bytes < budget.most_bytes && in_all < budget.most_in_all
    }

    /// Whether the kind has had all that it may write one by one.
    pub(super) fn is_used_up(&self, budget: Budget, in_all: u64) -> bool {
        self.written >= budget.most || !self.has_room(budget, in_all)
    }

    pub(super) fn admit(&mut self, budget: Budget, size: u64, now: Duration) -> bool {
        let passes = if self.written < budget.most {
            self.used.admit(budget.all, now)
        } else {
            self.late.admit(LATE, now)
        };
        if passes {
            self.written = self.written.saturating_add(1);
            self.bytes = self.bytes.saturating_add(size);
        }
        passes
    }
}
