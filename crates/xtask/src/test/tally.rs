//! Counts read from the lines that a test binary prints.

/// The sum of the result lines seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    /// How many result lines there were; a binary that ends without one
    /// ended before its tests did.
    pub(crate) results: u64,
}

impl Tally {
    /// Adds the counts of `line` if it is a result line of libtest.
    pub(crate) fn read_line(&mut self, line: &str) {
        // A program started by a test may have printed right before it
        // without ending its line.
        let Some((_, result)) = line.split_once("test result: ") else {
            return;
        };
        let Some((_, counts)) = result.split_once(". ") else {
            return;
        };
        self.results += 1;
        for part in counts.split(';') {
            self.read_count(part.trim());
        }
    }

    /// Adds another tally.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.results += other.results;
    }

    fn read_count(&mut self, part: &str) {
        let Some((number, what)) = part.split_once(' ') else {
            return;
        };
        let count: u64 = number.parse().unwrap_or(0);
        match what {
            "passed" => self.passed += count,
            "failed" => self.failed += count,
            "ignored" => self.skipped += count,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read_line(line);
        }
        tally
    }

    #[test]
    fn result_lines_add_up() {
        let tally = read(&[
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.00s",
            "$ test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s",
        ]);
        let expected = Tally {
            passed: 4,
            failed: 2,
            skipped: 1,
            results: 2,
        };
        assert_eq!(tally, expected);
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            read(&["running 3 tests", "test result", "3 passed"]),
            Tally::default()
        );
    }
}
