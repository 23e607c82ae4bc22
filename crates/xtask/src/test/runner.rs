//! Runs one test binary: its output is shown as it comes and counted.
//! A binary that ends in any way but a clean result counts as a failure.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::summary::Row;
use super::tally::Tally;
use crate::process;

/// How long the output may stay open after the binary has ended.
const GRACE: Duration = Duration::from_secs(5);

/// Runs `command` under a heading made of `label` and `user`.
pub(super) fn run(label: &str, user: &str, command: &mut Command) -> Result<Row> {
    println!("\n== {label} as {user}");
    let row = count(label, user, command, io::stdout())?;
    if let Some(problem) = &row.problem {
        println!("xtask: {label} as {user}: {problem}");
    }
    Ok(row)
}

fn count(
    label: &str,
    user: &str,
    command: &mut Command,
    terminal: impl Write + Send + 'static,
) -> Result<Row> {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", process::describe(command)))?;
    let output = child
        .stdout
        .take()
        .context("the test binary has no output")?;

    let tally = Arc::new(Mutex::new(Tally::default()));
    let (done, ended) = mpsc::channel::<()>();
    let counted = Arc::clone(&tally);
    thread::spawn(move || {
        follow(output, terminal, &counted);
        drop(done);
    });
    let status = child.wait().context("cannot wait for the test binary")?;
    let is_drained = ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Disconnected);

    let mut tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
    let problem = problem(status, is_drained, tally);
    tally.failed += u64::from(problem.is_some());
    Ok(Row {
        label: label.to_string(),
        user: user.to_string(),
        tally,
        problem,
        duration: started.elapsed(),
    })
}

/// Why the run counts as failed although no test of it does.
fn problem(status: ExitStatus, is_drained: bool, tally: Tally) -> Option<String> {
    if !is_drained {
        return Some("left a process behind that holds its output open".into());
    }
    if !status.success() && tally.failed == 0 {
        return Some(format!("ended with {status}"));
    }
    (tally.results == 0).then(|| "ended without a result".into())
}

fn follow(output: impl Read, mut terminal: impl Write, tally: &Mutex<Tally>) {
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        // Nobody reads our output any more: the counts still decide the exit code.
        let _ = terminal.write_all(&line).and_then(|()| terminal.flush());
        let text = String::from_utf8_lossy(&line);
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.read_line(text.trim_end());
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";

    /// Its output is not shown: whoever counts this test's own output would
    /// count the samples.
    fn shell(script: &str) -> Row {
        let mut command = Command::new("/bin/sh");
        count(
            "sample",
            "someone",
            command.args(["-c", script]),
            io::sink(),
        )
        .unwrap()
    }

    #[test]
    fn a_clean_result_is_counted() {
        let row = shell(&format!("echo '{GOOD}'"));
        assert_eq!((row.tally.passed, row.tally.failed), (2, 0));
        assert_eq!(row.problem, None);
    }

    #[test]
    fn a_crash_after_good_results_is_a_failure() {
        let row = shell(&format!("echo '{GOOD}'; kill -SEGV $$"));
        assert_eq!((row.tally.passed, row.tally.failed), (2, 1));
    }

    #[test]
    fn success_without_a_result_is_a_failure() {
        assert_eq!(shell("exit 0").tally.failed, 1);
    }

    #[test]
    fn a_failed_test_is_counted_once() {
        let bad = "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(shell(&format!("echo '{bad}'; exit 101")).tally.failed, 1);
    }

    #[test]
    fn output_held_open_is_a_problem() {
        let status = Command::new("/bin/true").status().unwrap();
        let tally = Tally {
            results: 1,
            ..Tally::default()
        };
        assert!(problem(status, false, tally).is_some());
        assert!(problem(status, true, tally).is_none());
    }
}
