//! The first process inside: builds the sandbox, starts the command, carries
//! out its watched calls, reaps, passes signals on, and ends everything.
//!
//! It runs nothing from the file system, holds no secret, and cannot be
//! traced or signalled from inside.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_sys::seccomp::Listener;
use ringfence_sys::{
    self as sys, Channel, Child, Errno, FsAccess, LandlockRule, Pty, Reaped, Received, SignalQueue,
};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

use super::broker::{Broker, Roots};
use super::child::{self, tell};
use super::failure::{During, Failure};
use super::mounts::Ground;
use super::network;
use crate::plan::Plan;
use crate::wire::{Ended, Event, Order, Step};

/// How long after its time a command is left to the supervisor.
const MARGIN: Duration = Duration::from_secs(4);

/// The whole life of the init; returns its exit status.
pub(super) fn run(plan: &Plan, supervisor: &Channel, callers: Option<Channel>) -> i32 {
    match start(plan, supervisor, callers) {
        Ok(life) => life.live(),
        Err(failure) => {
            let _ = tell(supervisor, &failure.event(), &[]);
            1
        }
    }
}

fn start<'a>(
    plan: &'a Plan,
    supervisor: &'a Channel,
    callers: Option<Channel>,
) -> Result<Life<'a>, Failure> {
    close_inherited(plan, supervisor, callers.as_ref())?;
    // What needs no ids comes first: started as root, the supervisor is busy
    // with them.
    sys::scrub_environment();
    sys::own_network().during(Step::Network)?;
    network::set_up(plan.network(), supervisor)?;
    // A name that every resolver knows, and nothing about this machine.
    rustix::system::sethostname(b"localhost").during(Step::Loopback)?;
    let sockets = sys::UnixDiag::open().during(Step::SocketDiagnostics)?;
    let ground = take_ids(plan, supervisor)?;
    // After the change of ids, which would clear it. A supervisor that died
    // before this shows as the end of its channel.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .during(Step::ParentDeath)?;
    ground.build(plan.view())?;
    sys::join_fresh_session_keyring().during(Step::Keyring)?;
    let roots = Roots::open(plan.guard().roots()).during(Step::OpenPlace)?;
    refuse_core_dumps()?;
    rustix::thread::set_no_new_privs(true).during(Step::NoNewPrivileges)?;
    if let Some(rules) = plan.landlock() {
        restrict_files(rules)?;
    }
    sys::drop_bounding_set().during(Step::Capabilities)?;
    sys::keep_only_ptrace().during(Step::Capabilities)?;
    let pty = plan
        .wants_terminal()
        .then(Pty::open)
        .transpose()
        .during(Step::Terminal)?;
    let signals = SignalQueue::new(&[Signal::CHILD]).during(Step::Session)?;
    sys::seccomp::install(&super::filters::hardening()).during(Step::Filter)?;
    // Nothing inside may ever look into this process; `execve` takes this back
    // for the command.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).during(Step::Session)?;
    if let (Some(pty), Some(size)) = (&pty, plan.terminal_size()) {
        rustix::termios::tcsetwinsize(&pty.master, size).during(Step::Terminal)?;
    }
    if let Some(pty) = &pty {
        // The session's leader, so that the command's process group has a
        // parent in its session: only then may a terminal stop it (Ctrl-Z).
        rustix::process::setsid().during(Step::Session)?;
        sys::make_controlling(pty.slave.as_fd()).during(Step::Terminal)?;
    }
    if plan.is_intercepted() {
        // The command starts only once the policy is live.
        wait_until_served(supervisor).during(Step::Inlets)?;
    }
    let (command, from_command) = start_command(plan, pty.as_ref())?;
    let listener = receive_listener(&from_command)?;
    if let Some(pty) = &pty {
        rustix::termios::tcsetpgrp(&pty.slave, command.pid).during(Step::Terminal)?;
        from_command.send(b"go", &[]).during(Step::Channel)?;
    }
    let master = pty.as_ref().map(|pty| pty.master.as_fd());
    tell(supervisor, &Event::Started, master.as_slice()).during(Step::Channel)?;
    drop(pty);
    release_streams()?;
    Ok(Life {
        supervisor,
        command,
        from_command: Some(from_command),
        signals,
        broker: Broker::new(listener, plan.guard(), roots, sockets, callers),
        watching: true,
        outcome: None,
        deadline: plan
            .time_limit()
            .and_then(|limit| Instant::now().checked_add(limit.saturating_add(MARGIN))),
        timed_out: false,
    })
}

/// Lets go of every descriptor that the caller of ringfence had open: a folder
/// among them would be a way round all mounts (as in CVE-2024-21626).
fn close_inherited(
    plan: &Plan,
    supervisor: &Channel,
    callers: Option<&Channel>,
) -> Result<(), Failure> {
    let kept: Vec<_> = plan
        .given_streams()
        .chain([supervisor.as_fd()])
        .chain(callers.map(AsFd::as_fd))
        .collect();
    sys::close_all_but(&kept).during(Step::CloseDescriptors)
}

/// Maps the ids, or waits until the supervisor, which has the right to map
/// others than its own, has done so; and prepares the ground of the view.
fn take_ids(plan: &Plan, supervisor: &Channel) -> Result<Ground, Failure> {
    let ids = plan.ids();
    let ground = if ids.mapped_by_supervisor {
        let mut ground = Ground::without_places()?;
        wait_to_proceed(supervisor, &mut ground).during(Step::MapIds)?;
        rustix::thread::set_thread_groups(&[]).during(Step::SetIds)?;
        ground
    } else {
        // Before the files for it become read-only.
        sys::write_own_maps(&ids.map).during(Step::MapIds)?;
        Ground::with_places(plan.view())?
    };
    let uid = rustix::process::Uid::from_raw(ids.map.inside_uid);
    let gid = rustix::process::Gid::from_raw(ids.map.inside_gid);
    rustix::thread::set_keep_capabilities(true).during(Step::SetIds)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).during(Step::SetIds)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).during(Step::SetIds)?;
    sys::raise_permitted_capabilities().during(Step::SetIds)?;
    Ok(ground)
}

fn wait_to_proceed(supervisor: &Channel, ground: &mut Ground) -> Result<(), Errno> {
    loop {
        await_briefly(supervisor)?;
        let Received::Message(bytes, descriptors) = supervisor.receive()? else {
            return Err(Errno::PIPE);
        };
        match serde_json::from_slice(&bytes) {
            Ok(Order::Mounts(numbers)) => ground.give(numbers.into_iter().zip(descriptors)),
            Ok(Order::Proceed) => return Ok(()),
            _ => return Err(Errno::PIPE),
        }
    }
}

fn wait_until_served(supervisor: &Channel) -> Result<(), Errno> {
    match supervisor.receive()? {
        Received::Message(bytes, _)
            if matches!(serde_json::from_slice(&bytes), Ok(Order::Served)) =>
        {
            Ok(())
        }
        _ => Err(Errno::PIPE),
    }
}

/// Looks for a message for about as long as it takes to be woken up, which
/// spares that in most cases.
fn await_briefly(channel: &Channel) -> Result<(), Errno> {
    const MOST_LOOKS: usize = 200;
    let now = rustix::time::Timespec::default();
    for _ in 0..MOST_LOOKS {
        let mut fds = [PollFd::new(channel, PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&now))? > 0 {
            break;
        }
    }
    Ok(())
}

fn restrict_files(rules: &[(std::path::PathBuf, FsAccess)]) -> Result<(), Failure> {
    let mut opened = Vec::with_capacity(rules.len());
    for (path, access) in rules {
        match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(place) => opened.push(LandlockRule {
                place,
                access: *access,
            }),
            // Nothing there, or nothing we may reach: nothing to grant.
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err(errno).at(Step::LandlockPlace, path),
        }
    }
    sys::restrict_with_landlock(&opened).during(Step::Landlock)
}

fn start_command(plan: &Plan, pty: Option<&Pty>) -> Result<(Child, Channel), Failure> {
    let (ours, theirs) = Channel::pair().during(Step::Channel)?;
    let slave = pty.map(|pty| &pty.slave);
    let start = || child::run(plan, slave, &theirs);
    let command = match slave {
        // It waits for us to hand the terminal over, so we cannot wait for it.
        Some(_) => sys::fork(start),
        None => sys::spawn_to_exec(start),
    };
    Ok((command.during(Step::Fork)?, ours))
}

/// The first word of the command's process: its listener, or why not.
fn receive_listener(from_command: &Channel) -> Result<Listener, Failure> {
    let Received::Message(bytes, mut descriptors) = from_command.receive().during(Step::Channel)?
    else {
        return Err(Errno::PIPE).during(Step::Listener);
    };
    match (serde_json::from_slice(&bytes), descriptors.pop()) {
        (Ok(Event::Restricted), Some(listener)) => Ok(Listener::new(listener)),
        (Ok(Event::SetupFailed { step, path, errno }), _) => {
            let path = path.unwrap_or_default();
            Err(Errno::from_raw_os_error(errno)).at(step, std::path::Path::new(&path))
        }
        _ => Err(Errno::PROTO).during(Step::Listener),
    }
}

/// A core dump is written by the kernel past every rule here, or given to a
/// program of the host. A limit of one byte stops both (core(5)).
fn refuse_core_dumps() -> Result<(), Failure> {
    let most = rustix::process::getrlimit(Resource::Core)
        .maximum
        .unwrap_or(1)
        .min(1);
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    rustix::process::setrlimit(Resource::Core, limit).during(Step::Session)
}

/// Lets go of the standard streams, so that only the command holds them.
fn release_streams() -> Result<(), Failure> {
    let null: OwnedFd =
        rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .during(Step::CloseDescriptors)?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .during(Step::CloseDescriptors)
}

/// The init while the command runs.
struct Life<'a> {
    supervisor: &'a Channel,
    command: Child,
    from_command: Option<Channel>,
    signals: SignalQueue,
    broker: Broker<'a>,
    watching: bool,
    outcome: Option<Reaped>,
    deadline: Option<Instant>,
    timed_out: bool,
}

/// What woke the init up.
struct Awake {
    children: bool,
    supervisor: bool,
    calls: bool,
    calls_over: bool,
    command: bool,
}

impl Life<'_> {
    fn live(mut self) -> i32 {
        while self.outcome.is_none() {
            let Ok(awake) = self.wait() else { return 1 };
            if awake.supervisor && self.obey().is_err() {
                // The supervisor is gone, and with this process all others.
                return 1;
            }
            if awake.command {
                self.hear_command();
            }
            if awake.calls {
                self.broker.serve();
                self.report_new_refusals();
            }
            self.watching &= !awake.calls_over;
            if awake.children {
                self.collect();
            }
            self.keep_time();
        }
        self.end()
    }

    fn wait(&self) -> Result<Awake, Errno> {
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(self.supervisor, PollFlags::IN),
        ];
        let calls = self.watching.then(|| {
            fds.push(PollFd::new(self.broker.listener(), PollFlags::IN));
            fds.len() - 1
        });
        let command = self.from_command.as_ref().map(|channel| {
            fds.push(PollFd::new(channel, PollFlags::IN));
            fds.len() - 1
        });
        let timeout = self.deadline.map(until);
        while let Err(errno) = rustix::event::poll(&mut fds, timeout.as_ref()) {
            if errno != Errno::INTR {
                return Err(errno);
            }
        }
        let ready = |at: usize, flags: PollFlags| fds[at].revents().intersects(flags);
        Ok(Awake {
            children: ready(0, PollFlags::IN),
            supervisor: ready(1, PollFlags::IN | PollFlags::HUP | PollFlags::ERR),
            calls: calls.is_some_and(|at| ready(at, PollFlags::IN)),
            calls_over: calls.is_some_and(|at| ready(at, PollFlags::HUP | PollFlags::ERR)),
            command: command.is_some_and(|at| ready(at, PollFlags::IN | PollFlags::HUP)),
        })
    }

    /// The supervisor ends a command whose time is up. This holds when it
    /// cannot, for instance because it is itself stopped.
    fn keep_time(&mut self) {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.timed_out = true;
            self.deadline = None;
            kill_everything();
        }
    }

    fn obey(&mut self) -> Result<(), Errno> {
        loop {
            let bytes = match self.supervisor.try_receive()? {
                Received::Message(bytes, _) => bytes,
                Received::Nothing => return Ok(()),
                Received::Closed => return Err(Errno::PIPE),
            };
            match serde_json::from_slice(&bytes) {
                Ok(Order::Signal(number)) => self.signal_command(number),
                Ok(Order::KillAll) => kill_everything(),
                Ok(Order::Mounts(_) | Order::Proceed | Order::Served) | Err(_) => {}
            }
        }
    }

    /// To the process group, as a terminal would.
    fn signal_command(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        if rustix::process::kill_process_group(self.command.pid, signal).is_err() {
            // The command left its group, or is not its leader yet.
            let _ = self.command.signal(signal);
        }
    }

    /// After the listener, the command's process speaks only if `execve`
    /// failed; success closes its end.
    fn hear_command(&mut self) {
        let Some(channel) = &self.from_command else {
            return;
        };
        if let Ok(Received::Message(bytes, _)) = channel.try_receive()
            && let Ok(event @ Event::ExecFailed { .. }) = serde_json::from_slice(&bytes)
        {
            let _ = tell(self.supervisor, &event, &[]);
        }
        self.from_command = None;
    }

    fn report_new_refusals(&mut self) {
        for refusal in self.broker.take_new_refusals() {
            let _ = tell(self.supervisor, &Event::Refused(refusal), &[]);
        }
    }

    fn collect(&mut self) {
        while self.signals.next().is_some() {}
        for (pid, state) in sys::reap_zombies() {
            match state {
                Reaped::Stopped(_) if pid == self.command.pid => {
                    let _ = tell(self.supervisor, &Event::Stopped, &[]);
                }
                Reaped::Stopped(_) => {}
                ended if pid == self.command.pid => self.outcome = Some(ended),
                _ => {}
            }
        }
    }

    /// The command is over: end what it left running, and report.
    fn end(mut self) -> i32 {
        self.hear_command();
        kill_everything();
        reap_everything();
        self.report_new_refusals();
        let refusals = self.broker.refusals();
        for (refusal, count) in refusals.repeated() {
            let _ = tell(
                self.supervisor,
                &Event::RefusedInAll(refusal.clone(), count),
                &[],
            );
        }
        let (status, signal) = match self.outcome {
            Some(Reaped::Exited(status)) => (Some(status), None),
            Some(Reaped::Killed(signal) | Reaped::Stopped(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let ended = Ended {
            status,
            signal,
            peak_rss: sys::children_peak_rss(),
            more_refusals: refusals.uncounted(),
            timed_out: self.timed_out,
        };
        i32::from(tell(self.supervisor, &Event::Ended(ended), &[]).is_err())
    }
}

fn until(deadline: Instant) -> rustix::time::Timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    rustix::time::Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}

/// As the first process of its namespace this reaches all others and not us.
fn kill_everything() {
    let _ = sys::kill_all_others();
}

fn reap_everything() {
    while rustix::process::wait(rustix::process::WaitOptions::empty()).is_ok() {}
}
