//! Starting the command's process, and getting the listener of its filter.
//!
//! In most cases the process runs in the init's memory, while that waits, until
//! it is the command, and sends the listener. What it runs it records itself,
//! and its filter lets it do so with a pass. Where it has to wait for the init,
//! for a terminal or because every call is recorded, it is a copy. If its own
//! calls are recorded, the copy says beforehand which number its listener will
//! have, and the init takes it from there: every call from the filter on may wait
//! for the init, the sending and the `execve` among them. Otherwise it sends the
//! listener and waits for a word. Where nobody judges calls there is no listener,
//! and the process says so.
//!
//! The command itself starts only once its policy is live and its start on
//! record. The supervisor sees to that while the process is made ready, which in
//! the init's memory waits for its word by itself.

use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use ringfence_sys::seccomp::Listener;
use ringfence_sys::{self as sys, Channel, Child, Errno, Pty, Received};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{DumpableBehavior, PidfdGetfdFlags};
use rustix::time::Timespec;

use super::child::{self, tell};
use super::failure::{During, Failure};
use super::init::await_order;
use super::observe::Observer;
use super::prepared::Way;
use crate::judge::Judge;
use crate::plan::Plan;
use crate::wire::{Event, Order, Step};

/// Looks whether the listener is there, one after the other, that take about as
/// long as installing a filter.
const LOOKS: usize = 300;
/// Between two looks, from then on.
const SHORTLY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000,
};

/// Nanoseconds by which the init's clock may be late.
const PRECISE: u64 = 1000;

/// The filter of the init itself, unless the command would inherit it and has
/// to get by without: then it is installed when that has begun, before anything
/// of it is looked at.
pub(super) fn restrict_init_early(plan: &Plan) -> Result<(), Failure> {
    match plan.judge() {
        Judge::Init => Ok(()),
        Judge::Nobody => restrict_init(plan),
    }
}

/// Whether the command's process is in the middle of something, as seen in the
/// memory that it may share with us.
#[derive(Debug, Default)]
pub(super) struct Progress(AtomicBool);

impl Progress {
    /// From now on it is.
    pub(super) fn work(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// From now on it is not.
    pub(super) fn rest(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Of a process that is over: whether it was killed in the middle.
    fn was_cut_off(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The command's process, and what it says.
pub(super) struct Begun {
    pub(super) process: Child,
    pub(super) says: Channel,
}

/// Who the command's process talks to.
pub(super) struct Ways<'a> {
    pub(super) init: &'a Channel,
    /// The supervisor, whose word it waits for, unless the init has.
    awaited: Option<&'a Channel>,
}

/// Makes the command's process, with `begin` as the first that it does.
pub(super) fn start_command(
    plan: &Plan,
    supervisor: &Channel,
    pty: Option<&Pty>,
    observer: &Observer,
    begin: impl Fn(),
) -> Result<Begun, Failure> {
    let (says, theirs) = Channel::pair().during(Step::Channel)?;
    let slave = pty.map(|pty| &pty.slave);
    let way = plan.prepared().way;
    let progress = Progress::default();
    let start = |awaited| {
        progress.work();
        begin();
        let ways = Ways {
            init: &theirs,
            awaited,
        };
        let status = child::run(plan, slave, &ways, observer, &progress);
        progress.rest();
        status
    };
    let process = match way {
        Way::InMemory(_) => {
            // We stand still for as long as the kernel takes to load a program:
            // the supervisor keeps the time.
            tell(supervisor, &Event::Starting, &[]).during(Step::Channel)?;
            match sys::spawn_to_exec(|| start(Some(supervisor))) {
                // Until then, processes that the start needs count as well
                // where their number is limited.
                Err(Errno::AGAIN) => {
                    await_record(supervisor)?;
                    sys::spawn_to_exec(|| start(None))
                }
                other => other,
            }
        }
        Way::Copied { .. } => {
            await_record(supervisor)?;
            sys::fork_beside(|| start(None))
        }
    };
    let process = process.during(Step::Fork)?;
    // Killed in the middle of it, it may have left locks in our memory.
    if matches!(way, Way::InMemory(_)) && progress.was_cut_off() {
        return Err(Errno::INTR).during(Step::Fork);
    }
    Ok(Begun { process, says })
}

/// Gives the command's process its terminal and takes its listener, if it has
/// one. From here on the init is restricted. It has not looked at anything of
/// the command's before.
pub(super) fn hand_over(
    plan: &Plan,
    begun: &Begun,
    pty: Option<&Pty>,
) -> Result<Option<Listener>, Failure> {
    let Begun { process, says } = begun;
    let give_terminal = || match pty {
        Some(pty) => rustix::termios::tcsetpgrp(&pty.slave, process.pid).during(Step::Terminal),
        None => Ok(()),
    };
    match plan.prepared().way {
        Way::InMemory(_) => {
            let listener = receive_listener(plan, says)?;
            restrict_init_late(plan)?;
            Ok(listener)
        }
        Way::Copied { waits: false } => {
            let listener = receive_listener(plan, says)?;
            give_terminal()?;
            restrict_init_late(plan)?;
            says.send(b"go", &[]).during(Step::Channel)?;
            Ok(listener)
        }
        Way::Copied { waits: true } => {
            let number = receive_number(says)?;
            give_terminal()?;
            // While the command's process installs its own. What it runs waits
            // until its listener is served, which is after all this.
            restrict_init_late(plan)?;
            // The kernel may be late by more than what is waited for next,
            // unless told not to.
            rustix::thread::set_current_timer_slack(NonZeroU64::new(PRECISE))
                .during(Step::Listener)?;
            take_listener(process, says, number).map(Some)
        }
    }
}

/// The same as [`restrict_init_early`], where that was left.
fn restrict_init_late(plan: &Plan) -> Result<(), Failure> {
    match plan.judge() {
        Judge::Init => restrict_init(plan),
        Judge::Nobody => Ok(()),
    }
}

fn restrict_init(plan: &Plan) -> Result<(), Failure> {
    sys::seccomp::install(&plan.prepared().init).during(Step::Filter)
}

/// The command's side: installs its filter and lets the init have the
/// listener, if there is one.
pub(super) fn install(plan: &Plan, ways: &Ways<'_>) -> Result<(), Failure> {
    match plan.prepared().way {
        Way::Copied { waits: true } => install_told(plan, ways.init),
        Way::Copied { waits: false } => {
            install_and_send(plan, ways.init)?;
            // Until the terminal is ours.
            ways.init.receive().map(drop).during(Step::Channel)
        }
        Way::InMemory(_) => {
            install_and_send(plan, ways.init)?;
            ways.awaited.map_or(Ok(()), await_record)
        }
    }
}

/// Until the policy is live and the start of the command on record.
fn await_record(supervisor: &Channel) -> Result<(), Failure> {
    await_order(supervisor, &Order::Recorded).during(Step::Inlets)
}

/// Says which number the listener will have before there is one.
fn install_told(plan: &Plan, channel: &Channel) -> Result<(), Failure> {
    // Or the init may not take anything from a copy of itself. Nobody else is
    // there yet, and `execve` does the same.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).during(Step::Session)?;
    let number = next_number(channel).during(Step::Listener)?;
    channel
        .send(&number.to_ne_bytes(), &[])
        .during(Step::Channel)?;
    let filter = &plan.prepared().command;
    let listener = sys::seccomp::install_with_listener(filter).during(Step::Listener)?;
    // It is closed by `execve`, when the init has it.
    std::mem::forget(listener);
    Ok(())
}

fn install_and_send(plan: &Plan, channel: &Channel) -> Result<(), Failure> {
    let filter = &plan.prepared().command;
    let listener = match plan.judge() {
        Judge::Init => sys::seccomp::install_with_listener(filter)
            .map(Some)
            .during(Step::Listener),
        Judge::Nobody => sys::seccomp::install(filter)
            .map(|()| None)
            .during(Step::Filter),
    }?;
    let listener = listener.as_ref().map(AsFd::as_fd);
    tell(channel, &Event::Restricted, listener.as_slice()).during(Step::Channel)
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
    for look in 0usize.. {
        let flags = PidfdGetfdFlags::empty();
        match rustix::process::pidfd_getfd(&command.pidfd, number, flags) {
            Ok(listener) => return Ok(Listener::new(listener)),
            // Not installed yet.
            Err(Errno::BADF) => {}
            Err(errno) => return Err(why_not(from_command, errno)),
        }
        let wait = if look < LOOKS {
            Timespec::default()
        } else {
            SHORTLY
        };
        let mut fds = [PollFd::new(from_command, PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0) {
            break;
        }
    }
    Err(why_not(from_command, Errno::PIPE))
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
