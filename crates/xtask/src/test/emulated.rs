//! The cases that run in an emulated machine, as a row of the summary.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;

use super::summary::Row;
use super::tally::Tally;
use crate::guest::{self, Ending, Guest};

/// Runs those of `guest` with the program that was built.
pub(super) fn run(guest: Guest, ringfence: &Path) -> Result<Row> {
    println!("\n== emulated machine, {}", guest.name());
    let started = Instant::now();
    let ending = guest::try_in(guest, ringfence)?;
    if let Ending::Skipped { why, .. } = &ending {
        println!("skipped: {why}");
    }
    Ok(Row {
        label: format!("emulated machine, {}", guest.name()),
        user: "both".to_string(),
        tally: tally(&ending),
        problem: None,
        duration: started.elapsed(),
    })
}

fn tally(ending: &Ending) -> Tally {
    let (passed, failed, skipped) = match ending {
        Ending::Skipped { cases, .. } => (0, 0, *cases),
        Ending::Ran { passed, failed } => (*passed, failed.len() as u64, 0),
    };
    Tally {
        passed,
        failed,
        skipped,
        results: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_run_is_neither_passed_nor_failed() {
        let skipped = tally(&Ending::Skipped {
            cases: 9,
            why: "no QEMU".into(),
        });
        assert_eq!((skipped.passed, skipped.failed, skipped.skipped), (0, 0, 9));
        let ran = tally(&Ending::Ran {
            passed: 3,
            failed: vec!["one".into()],
        });
        assert_eq!((ran.passed, ran.failed, ran.skipped), (3, 1, 0));
    }
}
