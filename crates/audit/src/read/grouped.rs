//! [`Grouped`]: decisions put together by what they have in common.

use std::collections::HashMap;

use crate::event::{Event, EventKind, Group, Subject, Timestamp};

/// How often a decision was made, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sightings {
    /// How often, those in summaries included.
    pub count: u64,
    /// The first time.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
}

/// Decisions by what they have in common.
#[derive(Debug, Default)]
pub struct Grouped {
    groups: HashMap<Group, Sightings>,
}

impl Grouped {
    /// Adds a decision, or a summary of some; other events are left out.
    pub fn add(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Decision(decided) => {
                let seen = Sightings {
                    count: 1,
                    first: event.time,
                    last: event.time,
                };
                self.merge(Group::of_decision(decided), seen);
            }
            EventKind::Summary(summary) if summary.group.of == Subject::Decision => {
                let seen = Sightings {
                    count: summary.count,
                    first: summary.first,
                    last: summary.last,
                };
                self.merge(summary.group.clone(), seen);
            }
            _ => {}
        }
    }

    fn merge(&mut self, group: Group, seen: Sightings) {
        let sum = self
            .groups
            .entry(group)
            .or_insert(Sightings { count: 0, ..seen });
        sum.count = sum.count.saturating_add(seen.count);
        sum.first = sum.first.min(seen.first);
        sum.last = sum.last.max(seen.last);
    }

    /// All of them, the one last seen at the end.
    pub fn into_sorted(self) -> Vec<(Group, Sightings)> {
        let mut sorted: Vec<_> = self.groups.into_iter().collect();
        sorted.sort_by(|(one, seen), (other, seen_other)| {
            (seen.last, one).cmp(&(seen_other.last, other))
        });
        sorted
    }
}
