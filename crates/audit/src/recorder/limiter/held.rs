//! [`Held`]: the last calls of each kind that are like nothing written.

use std::collections::{HashMap, VecDeque};

use super::budget::Kind;
use crate::event::{Call, Timestamp};

/// The most of each kind.
const MOST: usize = 64;

/// A call and its time.
type Made = (Timestamp, Call);

#[derive(Debug, Default)]
pub(super) struct Held {
    last: HashMap<Kind, VecDeque<Made>>,
}

impl Held {
    /// Adds one, and gives back the oldest of its kind where there are too
    /// many.
    pub(super) fn push(&mut self, kind: Kind, made: Made) -> Option<Made> {
        let last = self.last.entry(kind).or_default();
        last.push_back(made);
        (last.len() > MOST).then(|| last.pop_front()).flatten()
    }

    /// All of them, the oldest first.
    pub(super) fn take(&mut self) -> Vec<Made> {
        let all = std::mem::take(&mut self.last);
        let mut all: Vec<Made> = all.into_values().flatten().collect();
        all.sort_by_key(|(time, _)| *time);
        all
    }
}
