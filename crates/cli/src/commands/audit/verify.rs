//! `ringfence audit verify`: whether the record is as it was written.

use ringfence_audit::{Life, Noted, Problem, ProblemKind, Unsealed, Verification, verify_with};
use serde::Serialize;

use super::folder;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

/// The exit code for a record that was altered, and for one that cannot be read.
const ALTERED: u8 = 1;
const UNREADABLE: u8 = 2;
/// The most runs and problems that people are shown.
const MOST_SHOWN: usize = 10;

/// Check that nobody has altered the record of runs
///
/// Finds what was changed, taken out, put in, swapped, doubled or cut off. Who
/// can read audit.key can forge the record. Exits with 0 when all is as it was
/// written, 1 when it was altered, 2 when it cannot be read.
///
/// An older copy of the whole log put back in its place fits itself. Note the
/// last record in a place of its own, and name it with --expect later.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringfence audit verify
  ringfence audit verify --expect \"$(cat /mnt/elsewhere/last-record)\"
  ringfence audit verify --json | jq -r .last > /mnt/elsewhere/last-record
  ringfence audit verify --json | jq .problems")]
pub(crate) struct VerifyArgs {
    /// A record that must still be in the log, as it was told for the last one
    #[arg(long, value_name = "SEQ:SUM")]
    expect: Option<Noted>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    fine: bool,
    last: Option<String>,
    #[serde(flatten)]
    found: &'a Verification,
}

pub(crate) fn main(arguments: &VerifyArgs) -> ExitCode {
    let found = folder().and_then(|folder| Ok(verify_with(&folder, arguments.expect)?));
    let found: Verification = match found {
        Ok(found) => found,
        Err(failure) => return Failure::exiting(failure, UNREADABLE).show(arguments.json),
    };
    let fine = found.is_fine();
    if arguments.json {
        output::print_json(&Answer {
            fine,
            last: worth_noting(&found).map(|last| last.to_string()),
            found: &found,
        });
    } else {
        output::print_text(&told(&found));
    }
    ExitCode::from(if fine { 0 } else { ALTERED })
}

fn told(found: &Verification) -> String {
    let mut lines: Vec<String> = found.problems.iter().take(MOST_SHOWN).map(wrong).collect();
    let more = found.problems.len().saturating_sub(MOST_SHOWN) as u64 + found.more_problems;
    if more > 0 {
        lines.push(format!("         … and {more} more"));
    }
    lines.push(summary(found));
    lines.extend(worth_noting(found).map(|last| format!("Last record: {last}")));
    lines.extend(
        found
            .unsealed_runs
            .iter()
            .rev()
            .take(MOST_SHOWN)
            .map(unsealed),
    );
    lines.join("\n")
}

/// The last record, unless something before it is wrong.
fn worth_noting(found: &Verification) -> Option<Noted> {
    found.last().filter(|_| found.is_fine())
}

fn wrong(problem: &Problem) -> String {
    let place = &problem.place;
    let seq = place.seq.map(|seq| format!(" (record {seq})"));
    let what = problem.kind.describe();
    match place.line {
        0 if is_noted(problem) => format!("MISSING  {what}"),
        0 => format!("ALTERED  {}: {what}", place.file),
        line => format!(
            "ALTERED  {}:{line}{}: {what}",
            place.file,
            seq.unwrap_or_default()
        ),
    }
}

/// Whether it is about what was noted only, and not about the log in itself.
fn is_noted(problem: &Problem) -> bool {
    use ProblemKind::{NotAsNoted, NotedMissing};
    matches!(problem.kind, NotAsNoted | NotedMissing { .. })
}

fn summary(found: &Verification) -> String {
    let verdict = if found.is_fine() {
        "The record is as it was written"
    } else if found.problems.iter().all(is_noted) {
        "The record fits itself, but not what was noted"
    } else {
        "The record was altered"
    };
    let (Some(first), Some(last)) = (found.first_seq, found.last_seq) else {
        return format!("{verdict}: it is empty.");
    };
    let begins = if first > 1 {
        " (older ones were rotated away)"
    } else {
        ""
    };
    format!(
        "{verdict}: {} records in {} files, {first}{begins} to {last}; {} runs sealed, {} not.",
        found.records,
        found.files,
        found.sealed_runs,
        found.unsealed_runs.len()
    )
}

fn unsealed(run: &Unsealed) -> String {
    let state = match run.life {
        Life::Running => "still running",
        Life::Ended => "ended without a seal: its ringfence was killed",
        Life::NoRoom => "ended without a seal: the disk had no room for its last records",
        Life::Unknown => "without a seal; whether it still runs is not known",
    };
    format!("  run {}: {state}, {} records", run.run, run.records)
}
