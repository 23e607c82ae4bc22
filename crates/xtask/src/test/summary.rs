//! What a test run came to: a table, and one last line.

use std::time::Duration;

use super::tally::Tally;
use crate::table::{Table, seconds};

/// One binary's run.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) label: String,
    pub(super) user: String,
    pub(super) tally: Tally,
    /// Why it counts as failed beyond its own failed tests.
    pub(super) problem: Option<String>,
    pub(super) duration: Duration,
}

/// All runs so far.
#[derive(Debug, Default)]
pub(super) struct Summary {
    rows: Vec<Row>,
}

impl Summary {
    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(super) fn failed(&self) -> u64 {
        self.total().failed
    }

    /// A row per binary and user.
    pub(super) fn table(&self) -> String {
        let mut table = Table::new(&[
            "tests", "user", "passed", "failed", "skipped", "duration", "note",
        ]);
        for row in &self.rows {
            table.row(vec![
                row.label.clone(),
                row.user.clone(),
                row.tally.passed.to_string(),
                row.tally.failed.to_string(),
                row.tally.skipped.to_string(),
                seconds(row.duration),
                row.problem.clone().unwrap_or_default(),
            ]);
        }
        table.render()
    }

    /// `N passed, N failed`, with `, N skipped` when there are any.
    pub(super) fn last_line(&self) -> String {
        let total = self.total();
        let skipped = match total.skipped {
            0 => String::new(),
            count => format!(", {count} skipped"),
        };
        format!("{} passed, {} failed{skipped}", total.passed, total.failed)
    }

    fn total(&self) -> Tally {
        let mut total = Tally::default();
        for row in &self.rows {
            total.add(row.tally);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(tallies: &[(u64, u64, u64)]) -> Summary {
        let row = |&(passed, failed, skipped): &(u64, u64, u64)| Row {
            label: "sys tests/all".into(),
            user: "root".into(),
            tally: Tally {
                passed,
                failed,
                skipped,
                results: 1,
            },
            problem: None,
            duration: Duration::from_millis(1500),
        };
        Summary {
            rows: tallies.iter().map(row).collect(),
        }
    }

    #[test]
    fn the_last_line_names_skipped_tests_only_when_there_are_some() {
        assert_eq!(
            summary(&[(3, 0, 0), (2, 1, 0)]).last_line(),
            "5 passed, 1 failed"
        );
        assert_eq!(
            summary(&[(3, 0, 2)]).last_line(),
            "3 passed, 0 failed, 2 skipped"
        );
    }

    #[test]
    fn the_table_has_a_row_per_run() {
        let table = summary(&[(3, 0, 0)]).table();
        assert!(table.contains("| sys tests/all | root | 3 "), "{table}");
    }
}
