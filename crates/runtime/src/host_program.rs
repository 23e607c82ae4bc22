//! [`HostProgram`]: a program that is run outside, for a bounded time, in a
//! process group of its own. Whatever it started and left in that group goes
//! with it, and all of it goes with us.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Instant;

use ringfence_sys::{self as sys, Errno};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

/// Why there is no end of a program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostProgramError {
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("cannot be watched: {0}")]
    Watch(Errno),
    #[error("takes too long")]
    Slow,
}

/// A program while it runs.
pub(crate) struct HostProgram {
    child: Child,
    watched: OwnedFd,
}

impl HostProgram {
    /// Starts it in the root directory: many programs look at files of the one
    /// that they are started in.
    pub(crate) fn start(command: &mut Command) -> Result<Self, HostProgramError> {
        command.current_dir("/").process_group(0);
        sys::end_with_parent(command);
        let mut child = command.spawn().map_err(HostProgramError::Start)?;
        match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(watched) => Ok(Self { child, watched }),
            Err(errno) => {
                end_group(&mut child);
                Err(HostProgramError::Watch(errno))
            }
        }
    }

    /// What it prints, if that was asked for.
    pub(crate) fn take_output(&mut self) -> Option<File> {
        let output = self.child.stdout.take();
        output.map(OwnedFd::from).map(File::from)
    }

    /// Waits for its end. What it left behind goes while its group's number
    /// still cannot be anybody else's.
    pub(crate) fn end(mut self, at: Instant) -> Result<ExitStatus, HostProgramError> {
        wait_until(&self.watched, at)?;
        kill_group(&self.child);
        self.child.wait().map_err(HostProgramError::Start)
    }
}

impl Drop for HostProgram {
    fn drop(&mut self) {
        // Without effect once it was waited for: then `try_wait` knows.
        if let Ok(None) = self.child.try_wait() {
            end_group(&mut self.child);
        }
    }
}

/// Waits for something to read, or the end of a process.
pub(crate) fn wait_until(descriptor: &impl AsFd, end: Instant) -> Result<(), HostProgramError> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| HostProgramError::Slow)?;
        let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&left)) {
            Ok(0) => return Err(HostProgramError::Slow),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(HostProgramError::Watch(errno)),
        }
    }
}

fn end_group(child: &mut Child) {
    kill_group(child);
    let _ = child.wait();
}

fn kill_group(child: &Child) {
    let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL);
}
