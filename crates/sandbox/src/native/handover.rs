//! Starting the command's process, and getting the listener of its filter.
//!
//! Where calls are only judged, the process runs in the init's memory until it
//! is the command, and sends the listener. Where they are recorded as well,
//! every call from the filter on may wait for the init, the sending and the
//! `execve` among them: then it is a copy that says beforehand which number
//! its listener will have, and the init takes it from there. Where nobody
//! judges them there is no listener, and the process says so.

use std::num::NonZeroU64;
use std::os::fd::AsFd;

use ringfence_policy::AuditLevel;
use ringfence_sys::seccomp::Listener;
use ringfence_sys::{self as sys, Channel, Child, Errno, Pty, Received};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{DumpableBehavior, PidfdGetfdFlags};

use super::child::{self, tell};
use super::failure::{During, Failure};
use super::{filters, observe};
use crate::judge::Judge;
use crate::plan::Plan;
use crate::wire::{Event, Step};

/// Between two looks whether the listener is there. Installing a filter takes
/// a few of these.
const SHORTLY: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 20_000,
};

/// Nanoseconds by which the init's clock may be late.
const PRECISE: u64 = 1000;

/// The filter of the init itself, unless the command would inherit it and has
/// to get by without: see [`hand_over`].
pub(super) fn restrict_init_early(plan: &Plan) -> Result<(), Failure> {
    if observe::sees_refusals(plan.audit_level()) {
        return Ok(());
    }
    let hardening = filters::hardening().assemble().during(Step::Filter)?;
    sys::seccomp::install(&hardening).during(Step::Filter)
}

/// Makes the command's process.
pub(super) fn start_command(plan: &Plan, pty: Option<&Pty>) -> Result<(Child, Channel), Failure> {
    let (ours, theirs) = Channel::pair().during(Step::Channel)?;
    let slave = pty.map(|pty| &pty.slave);
    let start = || child::run(plan, slave, &theirs);
    // One that waits for us cannot be waited for.
    let waits_for_us = pty.is_some() || plan.audit_level() > AuditLevel::Off;
    let command = if waits_for_us {
        sys::fork_beside(start)
    } else {
        sys::spawn_to_exec(start)
    };
    Ok((command.during(Step::Fork)?, ours))
}

/// Gives the command's process its terminal and takes its listener, if it has
/// one. From here on the init is restricted, and the command runs.
pub(super) fn hand_over(
    plan: &Plan,
    command: &Child,
    from_command: &Channel,
    pty: Option<&Pty>,
) -> Result<Option<Listener>, Failure> {
    let give_terminal = || match pty {
        Some(pty) => rustix::termios::tcsetpgrp(&pty.slave, command.pid).during(Step::Terminal),
        None => Ok(()),
    };
    let go = || from_command.send(b"go", &[]).during(Step::Channel);
    if plan.audit_level() == AuditLevel::Off {
        let listener = receive_listener(plan, from_command)?;
        give_terminal()?;
        if pty.is_some() {
            go()?;
        }
        return Ok(listener);
    }
    // While the command's process prepares itself, and then while it installs
    // its own. What it runs waits until its listener is served, which is after
    // all this.
    let hardening = observe::sees_refusals(plan.audit_level()).then(filters::hardening);
    let hardening = hardening.map(|filter| filter.assemble()).transpose();
    let hardening = hardening.during(Step::Filter)?;
    let number = receive_number(from_command)?;
    give_terminal()?;
    go()?;
    if let Some(hardening) = &hardening {
        sys::seccomp::install(hardening).during(Step::Filter)?;
    }
    // The kernel may be late by more than what is waited for next, unless told
    // not to.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(PRECISE)).during(Step::Listener)?;
    take_listener(command, from_command, number).map(Some)
}

/// The command's side: installs its filter and lets the init have the
/// listener, if there is one.
pub(super) fn install(plan: &Plan, channel: &Channel, has_terminal: bool) -> Result<(), Failure> {
    if plan.audit_level() == AuditLevel::Off {
        let listener = install_unseen(plan)?;
        let listener = listener.as_ref().map(AsFd::as_fd);
        tell(channel, &Event::Restricted, listener.as_slice()).during(Step::Channel)?;
        if has_terminal {
            // Until it is ours.
            channel.receive().during(Step::Channel)?;
        }
        return Ok(());
    }
    // Or the init may not take anything from a copy of itself. Nobody else is
    // there yet, and `execve` does the same.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).during(Step::Session)?;
    let number = next_number(channel).during(Step::Listener)?;
    channel
        .send(&number.to_ne_bytes(), &[])
        .during(Step::Channel)?;
    let filter = observe::of_command(plan.audit_level()).assemble();
    let filter = filter.during(Step::Listener)?;
    channel.receive().during(Step::Channel)?;
    let listener = sys::seccomp::install_with_listener(&filter).during(Step::Listener)?;
    // It is closed by `execve`, when the init has it.
    std::mem::forget(listener);
    Ok(())
}

/// The filter of a command of whose calls nothing is recorded.
fn install_unseen(plan: &Plan) -> Result<Option<Listener>, Failure> {
    match plan.judge() {
        Judge::Init => observe::of_command(AuditLevel::Off)
            .assemble()
            .and_then(|filter| sys::seccomp::install_with_listener(&filter))
            .map(Some)
            .during(Step::Listener),
        Judge::Nobody => filters::unjudged()
            .assemble()
            .and_then(|filter| sys::seccomp::install(&filter))
            .map(|()| None)
            .during(Step::Filter),
    }
}

/// The number that the next new descriptor gets.
fn next_number(any: &Channel) -> Result<i32, Errno> {
    use std::os::fd::AsRawFd;
    let probe = rustix::io::fcntl_dupfd_cloexec(any, 0)?;
    Ok(probe.as_raw_fd())
}

fn receive_number(from_command: &Channel) -> Result<i32, Failure> {
    let Received::Message(bytes, _) = from_command.receive().during(Step::Channel)? else {
        return Err(Errno::PIPE).during(Step::Listener);
    };
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(number) => Ok(i32::from_ne_bytes(number)),
        Err(_) => Err(failure_in(&bytes)),
    }
}

fn take_listener(
    command: &Child,
    from_command: &Channel,
    number: i32,
) -> Result<Listener, Failure> {
    loop {
        let flags = PidfdGetfdFlags::empty();
        match rustix::process::pidfd_getfd(&command.pidfd, number, flags) {
            Ok(listener) => return Ok(Listener::new(listener)),
            // Not installed yet.
            Err(Errno::BADF) => {}
            Err(errno) => return Err(why_not(from_command, errno)),
        }
        let mut fds = [PollFd::new(from_command, PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&SHORTLY)).is_ok_and(|ready| ready > 0) {
            return Err(why_not(from_command, Errno::PIPE));
        }
    }
}

/// Why there is no listener: what the command's process said, maybe before it
/// ended, or else `errno`.
fn why_not(from_command: &Channel, errno: Errno) -> Failure {
    match from_command.try_receive() {
        Ok(Received::Message(bytes, _)) => failure_in(&bytes),
        _ => Failure::told(Step::Listener, None, errno.raw_os_error()),
    }
}

/// The first word of the command's process: its listener, or why not.
fn receive_listener(plan: &Plan, from_command: &Channel) -> Result<Option<Listener>, Failure> {
    let Received::Message(bytes, mut descriptors) = from_command.receive().during(Step::Channel)?
    else {
        return Err(Errno::PIPE).during(Step::Listener);
    };
    let listener = descriptors.pop().map(Listener::new);
    match (serde_json::from_slice(&bytes), plan.judge(), &listener) {
        (Ok(Event::Restricted), Judge::Init, Some(_))
        | (Ok(Event::Restricted), Judge::Nobody, None) => Ok(listener),
        _ => Err(failure_in(&bytes)),
    }
}

/// Why the command's process could not go on.
fn failure_in(message: &[u8]) -> Failure {
    match serde_json::from_slice(message) {
        Ok(Event::SetupFailed { step, path, errno }) => Failure::told(step, path, errno),
        _ => Failure::told(Step::Listener, None, libc::EPROTO),
    }
}
