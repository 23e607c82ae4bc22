//! The init while the command runs: carries out its watched calls, reaps,
//! passes signals on, watches limits, keeps time, and ends everything.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_sys::{self as sys, Channel, Child, Errno, Reaped, Received, SignalQueue};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Signal, WaitOptions};

use super::child::tell;
use super::desk::Desk;
use super::observe::Observer;
use super::refusals::Refusals;
use super::watchdog::Watchdog;
use crate::limits::{LimitHit, LimitName};
use crate::wire::{Ended, Event, Order};

/// How long after its time a command is left to the supervisor.
const MARGIN: Duration = Duration::from_secs(4);
/// A command that runs for so long may run for hours.
const SETTLED: Duration = Duration::from_millis(200);

/// The init while the command runs.
pub(super) struct Life<'a> {
    supervisor: &'a Channel,
    command: Child,
    from_command: Option<Channel>,
    signals: SignalQueue,
    desk: Desk<'a>,
    watching: bool,
    /// Whether the supervisor has stopped everything.
    is_halted: bool,
    outcome: Option<Reaped>,
    deadline: Option<Instant>,
    timed_out: bool,
    watchdog: Watchdog,
    /// Private copy-on-write layers, which the supervisor looks at in the end.
    dropped: Vec<(usize, OwnedFd)>,
    /// When everything is killed if the supervisor has not done so.
    last_moment: Option<Instant>,
    /// When what was needed to start is let go.
    settles: Option<Instant>,
}

/// What woke the init up.
struct Awake {
    children: bool,
    supervisor: bool,
    calls: bool,
    calls_over: bool,
    command: bool,
}

/// What a life begins with.
pub(super) struct Parts<'a> {
    pub(super) supervisor: &'a Channel,
    pub(super) command: Child,
    pub(super) from_command: Channel,
    pub(super) signals: SignalQueue,
    pub(super) desk: Desk<'a>,
    pub(super) watchdog: Watchdog,
    pub(super) dropped: Vec<(usize, OwnedFd)>,
    pub(super) time_limit: Option<Duration>,
}

impl<'a> Life<'a> {
    pub(super) fn new(parts: Parts<'a>) -> Self {
        let time = parts.time_limit.map(|limit| limit.saturating_add(MARGIN));
        Self {
            supervisor: parts.supervisor,
            command: parts.command,
            from_command: Some(parts.from_command),
            signals: parts.signals,
            watching: parts.desk.listener().is_some(),
            is_halted: false,
            desk: parts.desk,
            outcome: None,
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
            timed_out: false,
            watchdog: parts.watchdog,
            dropped: parts.dropped,
            last_moment: None,
            settles: Instant::now().checked_add(SETTLED),
        }
    }

    /// Until the command is over; the exit status of the init.
    pub(super) fn live(mut self) -> i32 {
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
                self.glance();
                self.desk.serve_waiting();
                self.ask_for_network();
                self.report_new_refusals();
            }
            if !self.keep_record() {
                // What cannot be recorded must not go on.
                return 1;
            }
            self.watch_limits();
            self.watching &= !awake.calls_over;
            if awake.children {
                self.collect();
            }
            self.keep_time();
            self.settle();
        }
        self.end()
    }

    fn settle(&mut self) {
        if self.settles.is_some_and(|at| Instant::now() >= at) {
            self.settles = None;
            sys::release_code();
        }
    }

    fn wait(&self) -> Result<Awake, Errno> {
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(self.supervisor, PollFlags::IN),
        ];
        let listener = self.desk.listener().filter(|_| self.watching);
        let calls = listener.map(|listener| {
            fds.push(PollFd::new(listener, PollFlags::IN));
            fds.len() - 1
        });
        let command = self.from_command.as_ref().map(|channel| {
            fds.push(PollFd::new(channel, PollFlags::IN));
            fds.len() - 1
        });
        let timeout = self.next_wake().map(until);
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
        if self
            .last_moment
            .is_some_and(|moment| Instant::now() >= moment)
        {
            self.last_moment = None;
            kill_everything();
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let looks = [self.watchdog.next_look(), self.desk.disk().next_look()];
        let ends = [
            self.deadline,
            self.last_moment,
            self.settles,
            self.desk.observer().and_then(Observer::due),
        ];
        looks.into_iter().chain(ends).flatten().min()
    }

    /// Lets the supervisor have what was recorded, if it is time. False when it
    /// does not take it.
    fn keep_record(&self) -> bool {
        self.desk.observer().is_none_or(|observer| {
            observer.wake_supervisor();
            !observer.is_lost()
        })
    }

    fn glance(&mut self) {
        if let Some(hit) = self.watchdog.glance() {
            self.report_hit(&hit);
        }
    }

    fn watch_limits(&mut self) {
        let mut hits = self.watchdog.look();
        self.desk.disk_mut().look();
        hits.extend(self.desk.disk_mut().take_hits());
        for hit in hits {
            self.report_hit(&hit);
        }
    }

    fn report_hit(&mut self, hit: &LimitHit) {
        let _ = tell(self.supervisor, &Event::LimitHit(hit.clone()), &[]);
        match hit.limit {
            _ if !hit.ends => {}
            // The supervisor asks the command to end first.
            LimitName::CpuTime => self.last_moment = Instant::now().checked_add(MARGIN),
            _ => kill_everything(),
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
                Ok(Order::StopAll) => {
                    self.is_halted = true;
                    signal_everything(Signal::STOP);
                }
                Ok(Order::ContinueAll) => {
                    signal_everything(Signal::CONT);
                    self.is_halted = false;
                }
                Ok(Order::NetworkServed) => self.desk.go_online(),
                Ok(Order::NetworkLacking) => self.desk.stay_offline(),
                Ok(
                    Order::IdsMapped
                    | Order::Mounts(_)
                    | Order::Files
                    | Order::Proceed
                    | Order::Ruleset
                    | Order::Recorded,
                )
                | Err(_) => {}
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
            && let Ok(event @ (Event::ExecFailed { .. } | Event::SetupFailed { .. })) =
                serde_json::from_slice(&bytes)
        {
            let _ = tell(self.supervisor, &event, &[]);
        }
        self.from_command = None;
    }

    fn ask_for_network(&mut self) {
        if self.desk.begins_to_want_network() {
            let _ = tell(self.supervisor, &Event::NetworkWanted, &[]);
        }
    }

    fn report_new_refusals(&mut self) {
        for refusal in self.desk.take_new_refusals() {
            let _ = tell(self.supervisor, &Event::Refused(refusal), &[]);
        }
    }

    fn collect(&mut self) {
        while self.signals.next().is_some() {}
        for (pid, state) in sys::reap_zombies() {
            match state {
                // The supervisor stops with a command that stops by itself.
                Reaped::Stopped(_) if pid == self.command.pid && !self.is_halted => {
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
        if !is_alone() {
            kill_everything();
            reap_everything();
        }
        if let Some(observer) = self.desk.observer() {
            observer.finish();
        }
        self.report_new_refusals();
        self.desk.disk_mut().close();
        let mut hits = self.desk.disk_mut().take_hits();
        hits.extend(self.watchdog.last_hits());
        for hit in hits {
            self.report_hit(&hit);
        }
        let mut usage = self.watchdog.usage();
        self.desk.disk().add_to(&mut usage);
        let refusals = self.desk.refusals();
        for (refusal, count) in refusals.into_iter().flat_map(Refusals::repeated) {
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
            more_refusals: refusals.map_or(0, Refusals::uncounted),
            timed_out: self.timed_out,
            usage,
        };
        for (layer, upper) in &self.dropped {
            let _ = tell(self.supervisor, &Event::Layer(*layer), &[upper.as_fd()]);
        }
        let told = tell(self.supervisor, &Event::Ended(ended), &[]);
        // The process ends now: the kernel lets go of everything at once.
        std::mem::forget(self);
        i32::from(told.is_err())
    }
}

fn until(deadline: Instant) -> rustix::time::Timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    rustix::time::Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}

/// Whether nobody else is left: everyone inside whose parent is gone is a child
/// of the first process, which we are.
fn is_alone() -> bool {
    matches!(
        rustix::process::wait(WaitOptions::NOHANG),
        Err(Errno::CHILD)
    )
}

fn kill_everything() {
    signal_everything(Signal::KILL);
}

/// As the first process of its namespace this reaches all others and not us.
fn signal_everything(signal: Signal) {
    let _ = sys::signal_all_others(signal);
}

fn reap_everything() {
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
}
