//! What can be wrong, and where.

use serde::Serialize;

use crate::event::BreakReason;

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The file in the folder of the log.
    pub file: String,
    /// Its line, from 1; 0 for the file as a whole.
    pub line: u64,
    /// The number of the record, where it is known.
    pub seq: Option<u64>,
    /// How many files come before.
    #[serde(skip)]
    pub(super) order: usize,
}

impl Place {
    /// A file as a whole.
    pub(super) fn whole(name: &str) -> Self {
        Self {
            file: name.to_owned(),
            line: 0,
            seq: None,
            order: usize::MAX,
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What.
    #[serde(flatten)]
    pub kind: ProblemKind,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum ProblemKind {
    /// The line is not what was written.
    Altered,
    /// Records are missing before this one.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// Records come in another order from here on.
    Reordered,
    /// The record is there twice.
    Duplicated,
    /// The record is not by us.
    Foreign,
    /// The log ends here, and should go on.
    Truncated {
        /// The number of the last record that should be there.
        to: u64,
    },
    /// The seal does not fit the records of its run.
    WrongSeal,
    /// A writer found the log not to be as it was left.
    Broken {
        /// What it found.
        why: BreakReason,
    },
    /// The record is not the one that was noted.
    NotAsNoted,
    /// The record that was noted is not in the log.
    NotedMissing {
        /// Its number.
        noted: u64,
    },
    /// What says where the log ends is gone.
    HeadMissing,
    /// What says where the log ends is not by the key that is there.
    HeadAltered,
    /// The key is gone.
    KeyMissing,
}

impl ProblemKind {
    /// A stable name.
    pub fn code(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Missing { .. } => "missing",
            Self::Reordered => "reordered",
            Self::Duplicated => "duplicated",
            Self::Foreign => "foreign",
            Self::Truncated { .. } => "truncated",
            Self::WrongSeal => "wrong-seal",
            Self::Broken { .. } => "broken",
            Self::NotAsNoted => "not-as-noted",
            Self::NotedMissing { .. } => "noted-missing",
            Self::HeadMissing => "head-missing",
            Self::HeadAltered => "head-altered",
            Self::KeyMissing => "key-missing",
        }
    }

    /// What it means.
    pub fn describe(self) -> String {
        match self {
            Self::Altered => "the record was altered".to_owned(),
            Self::Missing { from, to } if from == to => format!("record {from} is missing"),
            Self::Missing { from, to } => format!("records {from} to {to} are missing"),
            Self::Reordered => "records come in another order from here on".to_owned(),
            Self::Duplicated => "the record is there twice".to_owned(),
            Self::Foreign => "the record was added by somebody else".to_owned(),
            Self::Truncated { to } => format!("the log goes on to record {to}, and that is gone"),
            Self::WrongSeal => "the seal does not fit the records of its run".to_owned(),
            Self::Broken { why } => format!("a later run found that {}", why.as_str()),
            Self::NotAsNoted => "the record is not the one that was noted".to_owned(),
            Self::NotedMissing { noted } => {
                format!("record {noted}, which was noted, is not in the log")
            }
            Self::HeadMissing => "what says where the log ends is gone".to_owned(),
            Self::HeadAltered => "what says where the log ends was altered".to_owned(),
            Self::KeyMissing => "the key of the log is gone".to_owned(),
        }
    }
}

/// Problems, a bounded number of them.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
    more: u64,
}

/// The most problems that are told.
const MOST_PROBLEMS: usize = 64;

impl Problems {
    pub(super) fn add(&mut self, place: Place, kind: ProblemKind) {
        if self.found.len() < MOST_PROBLEMS {
            self.found.push(Problem { place, kind });
        } else {
            self.more += 1;
        }
    }

    /// Whether something was found at a place.
    pub(super) fn has(&self, place: &Place) -> bool {
        let is_it = |problem: &Problem| {
            (problem.place.order, problem.place.line) == (place.order, place.line)
        };
        self.found.iter().any(is_it)
    }

    /// Whether such a thing was found anywhere.
    pub(super) fn has_kind(&self, kind: ProblemKind) -> bool {
        self.found.iter().any(|problem| problem.kind == kind)
    }

    /// Makes what was missing something that comes later, if `seq` was.
    pub(super) fn find_missing(&mut self, seq: u64) -> bool {
        let is_it = |problem: &&mut Problem| matches!(problem.kind, ProblemKind::Missing { from, to } if (from..=to).contains(&seq));
        let missing = self.found.iter_mut().find(is_it);
        let is_found = missing.is_some();
        if let Some(problem) = missing {
            problem.kind = ProblemKind::Reordered;
        }
        is_found
    }

    /// Takes back what was found in a file from a line on.
    pub(super) fn forget_from(&mut self, place: &Place) {
        let is_before = |problem: &Problem| {
            (problem.place.order, problem.place.line) < (place.order, place.line)
        };
        self.found.retain(is_before);
    }

    /// All of them, the first place first, and how many more there are.
    pub(super) fn sorted(mut self) -> (Vec<Problem>, u64) {
        self.found
            .sort_by_key(|problem| (problem.place.order, problem.place.line));
        (self.found, self.more)
    }
}
