//! Running a command that may hang: it is killed when its time is over, and
//! its end is seen at once and not at the next look.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A command that came to its end by itself.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) took: Duration,
    pub(super) printed: String,
    pub(super) complaint: String,
}

impl Ended {
    /// A success that printed `text`.
    #[cfg(test)]
    pub(super) fn printing(text: &str) -> Self {
        Self {
            status: ExitStatus::default(),
            took: Duration::ZERO,
            printed: text.to_string(),
            complaint: String::new(),
        }
    }

    /// What it printed, unless it failed; then its complaint is the error.
    pub(super) fn success(&self) -> Result<&str> {
        if !self.status.success() {
            bail!("{}: {}", self.status, self.complaint.trim());
        }
        Ok(&self.printed)
    }
}

/// Runs `command` and says how it ended and how long that took; its output goes nowhere.
pub(super) fn time(command: &mut Command, limit: Duration) -> Result<(ExitStatus, Duration)> {
    // Without hooks between fork and exec the standard library uses
    // posix_spawn, so the size of this process is not part of the figure.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (_, status, took) = run(command, limit)?;
    Ok((status, took))
}

/// Runs `command` and keeps its output, of which there must not be more than
/// a pipe holds.
pub(super) fn output(command: &mut Command, limit: Duration) -> Result<Ended> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (child, status, took) = run(command, limit)?;
    Ok(Ended {
        status,
        took,
        printed: written(child.stdout),
        complaint: written(child.stderr),
    })
}

fn run(command: &mut Command, limit: Duration) -> Result<(Child, ExitStatus, Duration)> {
    let started = Instant::now();
    let child = command.stdin(Stdio::null()).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", name(command)))?;
    let ended = ends_within(&child, limit);
    let took = started.elapsed();
    if !matches!(ended, Ok(true)) {
        // It may end in this very moment.
        let _ = child.kill();
    }
    let status = child.wait()?;
    if !ended? {
        bail!("{} took more than {limit:?}", name(command));
    }
    Ok((child, status, took))
}

/// The program alone: arguments can be whole scripts.
fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            found => return Ok(found? > 0),
        }
    }
}

/// What is in the pipe now: a process that was left behind may hold it open.
fn written(pipe: Option<impl Read + AsFd>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe
        && let Ok(flags) = fcntl_getfl(&pipe)
        && fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).is_ok()
    {
        // An error here means that there is no more for the moment.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_failure_are_kept() {
        let ended = output(&mut shell("echo said; echo why >&2; exit 3"), LONG).unwrap();
        assert_eq!(
            (ended.printed.as_str(), ended.status.code()),
            ("said\n", Some(3))
        );
        assert!(ended.success().unwrap_err().to_string().ends_with(": why"));
    }

    #[test]
    fn what_hangs_is_killed() {
        let error = output(&mut shell("exec sleep 60"), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("took more than"), "{error}");
    }

    #[test]
    fn a_pipe_that_is_held_open_does_not_hang() {
        let ended = output(&mut shell("sleep 60 & echo $!"), LONG).unwrap();
        let holder = Pid::from_raw(ended.printed.trim().parse().unwrap()).unwrap();
        // Had the end of the pipe been waited for, the holder would be gone.
        kill_process(holder, Signal::KILL).unwrap();
    }
}
