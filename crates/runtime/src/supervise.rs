//! Attending to a running sandbox: events, signals, the terminal, the time and
//! the other limits, and what is to be recorded.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ringfence_sandbox::{Event, LimitHit, LimitName, Running, SpawnError};
use ringfence_sys::{Errno, SignalQueue};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use ringfence_egress::Answer;

use crate::asking::{Desk, Granted};
use crate::covers::Covers;
use crate::egress::Outlet;
use crate::end::{End, Forced};
use crate::evidence::Evidence;
use crate::relay::{Outside, Relay};
use crate::run::RunError;

/// Between asking a command to end and making it.
const GRACE: Duration = Duration::from_secs(2);
/// For the init to report the end after everything was killed.
const LAST_WORD: Duration = Duration::from_secs(1);
/// How long a command waits for its network while there is no process or no
/// memory to be had for that, and how long it is until the next try.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);
/// A command that runs for so long may run for hours.
const SETTLED: Duration = Duration::from_millis(200);

/// Signals that are passed on to the command.
const PASSED_ON: [Signal; 8] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::CONT,
    Signal::TSTP,
];

/// A supervisor before its sandbox starts.
pub(crate) struct Supervisor {
    signals: SignalQueue,
    deadline: Option<Instant>,
}

impl Supervisor {
    /// Takes over the signals.
    pub(crate) fn prepare(deadline: Option<Instant>) -> Result<Self, RunError> {
        let watched: Vec<Signal> = PASSED_ON
            .into_iter()
            .filter(|signal| !ringfence_sys::is_ignored(*signal))
            .chain([Signal::WINCH])
            .collect();
        let signals = SignalQueue::new(&watched).map_err(RunError::Supervise)?;
        Ok(Self { signals, deadline })
    }

    /// Attends until the sandbox has ended.
    pub(crate) fn attend(
        self,
        running: &Running,
        ours: Outside,
        evidence: &Evidence,
        served: Served<'_, '_>,
    ) -> Result<End, RunError> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let user = [input.as_fd(), output.as_fd(), error.as_fd()];
        let relay = Relay::start(user, ours, running.terminal()).map_err(RunError::Supervise)?;
        let timer = Timer {
            next: self.deadline,
            stage: Stage::Running,
        };
        Watch {
            running,
            evidence,
            outlet: served.outlet,
            desk: served.desk,
            covers: served.covers,
            retry: None,
            failed: None,
            signals: self.signals,
            timer,
            next_check: after(running.next_limit_check()),
            settles: after(Some(SETTLED)),
            relay,
            end: End::new(),
        }
        .run()
    }
}

/// What a sandbox is served with from outside.
pub(crate) struct Served<'a, 'b> {
    /// The way out, if there is one.
    pub(crate) outlet: Option<&'a mut Outlet<'b>>,
    /// Who is asked about hosts, if anybody is.
    pub(crate) desk: Option<&'a mut Desk>,
    /// What is laid over files of the host that the host may replace.
    pub(crate) covers: &'a mut Covers<'b>,
}

/// How far the end has been forced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Asked,
    Killed,
}

struct Timer {
    next: Option<Instant>,
    stage: Stage,
}

struct Watch<'a, 'b> {
    running: &'a Running,
    evidence: &'a Evidence,
    /// The way out, if there is one.
    outlet: Option<&'a mut Outlet<'b>>,
    /// Who is asked about hosts, if anybody is.
    desk: Option<&'a mut Desk>,
    covers: &'a mut Covers<'b>,
    /// When it is tried again to open it.
    retry: Option<Retry>,
    /// Why everything is being ended, if that is an error of ours.
    failed: Option<RunError>,
    signals: SignalQueue,
    timer: Timer,
    /// When to look at the limits again.
    next_check: Option<Instant>,
    /// When what was needed to start is let go.
    settles: Option<Instant>,
    relay: Option<Relay<'a>>,
    end: End,
}

#[derive(Clone, Copy)]
struct Retry {
    at: Instant,
    /// For the last time.
    until: Instant,
}

fn after(span: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(span?)
}

impl Watch<'_, '_> {
    fn run(mut self) -> Result<End, RunError> {
        loop {
            let has_calls = self.wait().map_err(RunError::Supervise)?;
            match self.take_events() {
                Ok(false) => {}
                Ok(true) => {
                    let failed = self.failed.take();
                    let end = self.finish();
                    return failed.map_or(Ok(end), Err);
                }
                Err(error) => {
                    // What was seen until the init was lost.
                    self.record_last_calls();
                    return Err(error);
                }
            }
            // The init says when. If they were taken with every event, we would
            // be at work while the command starts, and in its way.
            if has_calls {
                self.record_calls();
            }
            self.covers.attend(self.running);
            self.take_signals();
            self.look_at_limits();
            self.try_network_again();
            self.ask();
            self.keep_time();
            self.settle();
        }
    }

    fn settle(&mut self) {
        if self.settles.is_some_and(|at| Instant::now() >= at) {
            self.settles = None;
            ringfence_sys::release_code();
        }
    }

    /// The last of everything, while the init ends beside us, which needs the
    /// kernel's threads for that.
    fn finish(mut self) -> End {
        if let Some(desk) = &mut self.desk {
            desk.withdraw();
        }
        // Whoever reads the output may take long.
        self.record_last_calls();
        ringfence_sys::give_way();
        self.drain();
        self.end.output = self.relay.as_ref().and_then(Relay::output);
        self.look_at_output();
        for hit in self.running.check_limits() {
            self.reach(&hit);
        }
        ringfence_sys::give_way();
        if let Some(hit) = self.end.large_file().filter(|_| self.limits_file_size()) {
            self.write_down(&hit);
            if hit.ends {
                self.end.forced = self.end.forced.or(Some(Forced::Limit(hit.limit)));
            }
            self.end.hits.push(hit);
        }
        self.end
    }

    fn limits_file_size(&self) -> bool {
        let held = self.running.limits(&self.end.ended.usage);
        held.iter().any(|held| held.limit == LimitName::FileSize)
    }

    /// Shows the rest of the output, as long as whoever reads it takes, unless
    /// we are told to end.
    fn drain(&mut self) {
        let ends = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].map(Signal::as_raw);
        while let Some(relay) = self.relay.as_mut().filter(|relay| !relay.is_drained()) {
            relay.drain();
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            fds.extend(relay.poll_fds());
            if fds.len() > 1 && rustix::event::poll(&mut fds, None).is_err() {
                return;
            }
            drop(fds);
            while let Some(number) = self.signals.next() {
                if ends.contains(&number) {
                    return;
                }
            }
        }
    }

    /// Writes down what was seen inside. A command whose calls cannot be
    /// recorded is ended.
    fn record_calls(&mut self) {
        let seen = self.running.take_observations();
        for call in seen.iter().flatten() {
            self.end.note_call(call);
        }
        if self.evidence.record(seen).is_err() && self.end.forced.is_none() {
            self.end.forced = Some(Forced::AuditFailed);
            self.kill();
        }
    }

    /// The same when nothing runs inside any more.
    fn record_last_calls(&mut self) {
        ringfence_sys::give_way();
        self.record_calls();
        ringfence_sys::give_way();
        let counts = self.running.take_counts();
        if self.evidence.record(Ok(counts)).is_err() {
            self.end.forced = self.end.forced.or(Some(Forced::AuditFailed));
        }
    }

    fn look_at_limits(&mut self) {
        self.look_at_output();
        if self.next_check.is_none_or(|at| Instant::now() < at) {
            return;
        }
        for hit in self.running.check_limits() {
            self.reach(&hit);
        }
        self.next_check = after(self.running.next_limit_check());
    }

    fn look_at_output(&mut self) {
        let Some(relay) = self.relay.as_ref().filter(|relay| relay.is_over_limit()) else {
            return;
        };
        let seen = relay.output().unwrap_or_default();
        self.reach(&LimitHit {
            limit: LimitName::Output,
            evidence: format!("wrote {seen} bytes or more"),
            ends: true,
        });
    }

    /// Notes a limit that was reached, once, and ends the command if need be.
    fn reach(&mut self, hit: &LimitHit) {
        let mut known = self.end.hits.iter();
        let is_told = known.any(|known| known.limit == hit.limit && (known.ends || !hit.ends));
        if !is_told {
            self.write_down(hit);
            self.end.hits.retain(|known| known.limit != hit.limit);
            self.end.hits.push(hit.clone());
        }
        if !hit.ends || self.end.forced.is_some() {
            return;
        }
        self.end.forced = Some(Forced::Limit(hit.limit));
        match hit.limit {
            // What takes memory must not be given time to take more.
            LimitName::Memory => self.kill(),
            _ if self.timer.stage == Stage::Running => self.ask_to_end(),
            _ => {}
        }
    }

    /// A limit that was reached goes on record at once.
    fn write_down(&mut self, hit: &LimitHit) {
        let held = self.running.limits(&self.end.ended.usage);
        let held = held.iter().find(|held| held.limit == hit.limit);
        if self.evidence.reached(hit, held).is_err() && self.end.forced.is_none() {
            self.end.forced = Some(Forced::AuditFailed);
            self.kill();
        }
    }

    fn kill(&mut self) {
        if self.running.has_begun() {
            self.running.kill_all();
        } else {
            self.running.kill_init();
        }
        self.timer = Timer {
            next: after(Some(LAST_WORD)),
            stage: Stage::Killed,
        };
    }

    fn ask_to_end(&mut self) {
        self.running.signal(Signal::TERM.as_raw());
        // A stopped command could not see the signal.
        self.running.signal(Signal::CONT.as_raw());
        self.timer = Timer {
            next: after(Some(GRACE)),
            stage: Stage::Asked,
        };
    }

    /// True when there are calls to be recorded.
    fn wait(&mut self) -> Result<bool, Errno> {
        let running = self.running;
        let mut fds = vec![
            PollFd::from_borrowed_fd(running.events(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        let desk = self.desk.as_deref();
        // While somebody is asked, the terminal is ours.
        let asked = desk.filter(|desk| desk.is_asking());
        let relay = self.relay.as_ref().filter(|_| asked.is_none());
        fds.extend(relay.into_iter().flat_map(Relay::poll_fds));
        let relayed = 2..fds.len();
        let desk_fds = desk
            .map(Desk::bell)
            .into_iter()
            .chain(asked.and_then(Desk::input));
        fds.extend(desk_fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let at_desk = relayed.end..fds.len();
        let seen = running.observations_fd();
        fds.extend(seen.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let calls = at_desk.end;
        let notes = self.covers.notes();
        // Whatever there is, it is looked at by itself.
        fds.extend(notes.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let questions = fds.len();
        if self.is_offline() {
            let asked = running.questions();
            fds.extend(asked.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let next = [
            self.timer.next,
            self.next_check,
            self.settles,
            self.retry.map(|retry| retry.at),
            self.covers.deadline(),
            desk.and_then(Desk::deadline),
        ]
        .into_iter()
        .flatten()
        .min();
        let timeout = next.map(|at| {
            let left = at
                .saturating_duration_since(Instant::now())
                .min(Duration::from_hours(1));
            rustix::time::Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(3600),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let has_calls = fds.get(calls).is_some_and(is_ready);
        let is_asked = fds[questions..].iter().any(is_ready);
        let ready: Vec<bool> = fds[relayed].iter().map(is_ready).collect();
        let rings = fds[at_desk.clone()].first().is_some_and(is_ready);
        let is_answered = fds[at_desk].get(1).is_some_and(is_ready);
        if let Some(relay) = &mut self.relay {
            relay.pump(&ready);
        }
        if is_asked {
            self.open_network(Instant::now() + PATIENCE);
        }
        self.attend_to_desk(rings, is_answered);
        Ok(has_calls)
    }

    fn attend_to_desk(&mut self, rings: bool, is_answered: bool) {
        let Some(desk) = &mut self.desk else { return };
        if rings {
            desk.receive();
        }
        if !is_answered {
            return;
        }
        if let Granted::ForRun(rule, question) = desk.take_answer() {
            if let Some(outlet) = &self.outlet {
                outlet.approve(*rule);
            }
            question.answer(Answer::Changed);
        }
    }

    /// Puts the next question, for which the terminal is taken from the
    /// command, or gives it back.
    fn ask(&mut self) {
        let Some(desk) = &mut self.desk else { return };
        desk.keep_time();
        if desk.has_more() {
            if let Some(relay) = &mut self.relay {
                relay.suspend();
            }
            desk.put_next();
        } else if !desk.is_asking()
            && let Some(relay) = &mut self.relay
        {
            let _ = relay.resume();
        }
    }

    /// Reads what the init says. True when the sandbox has ended.
    fn take_events(&mut self) -> Result<bool, RunError> {
        loop {
            let event = match self.running.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(false),
                Err(SpawnError::InitLost | SpawnError::InitDied) if self.is_killed() => {
                    self.end.ended.signal = Some(Signal::KILL.as_raw());
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            };
            match event {
                Event::LimitHit(hit) => self.reach(&hit),
                Event::Ended(ended) => {
                    // The init keeps the time as well, in case we were stopped.
                    if ended.timed_out && self.end.forced.is_none() {
                        self.run_out_of_time();
                    }
                    self.end.refusals.add_more(ended.more_refusals);
                    self.end.ended = ended;
                    return Ok(true);
                }
                Event::ExecFailed { errno } => self.end.exec_errno = Some(errno),
                Event::Refused(refusal) => self.end.note(&refusal, 1),
                Event::RefusedInAll(refusal, count) => self.end.note(&refusal, count),
                Event::NetworkWanted => self.open_network(Instant::now() + PATIENCE),
                // Only where a user can wake us: code inside must not be able
                // to stop its own supervisor.
                Event::Stopped if self.is_interactive() => self.stop_too(),
                Event::Stopped
                | Event::Layer(_)
                | Event::Covers(_)
                | Event::Started
                | Event::Starting
                | Event::Restricted
                | Event::SetupFailed { .. } => {}
            }
        }
    }

    /// Serves the network, which the command waits for. It has nothing of a
    /// network if that fails, and everything ends.
    fn open_network(&mut self, until: Instant) {
        self.retry = None;
        let Some(outlet) = self.outlet.as_mut().filter(|outlet| outlet.is_closed()) else {
            return;
        };
        match outlet.open(|| self.running.open_network()) {
            Ok(()) => self.running.tell_network_is_served(),
            Err(error) if error.may_pass() && outlet.is_closed() => {
                let at = Instant::now() + PAUSE;
                if at < until {
                    self.retry = Some(Retry { at, until });
                } else {
                    self.running.tell_network_is_lacking();
                }
            }
            // The init ends the others, which wait for it until then, and so
            // see nothing of this.
            Err(error) => {
                self.failed = Some(error);
                self.kill();
            }
        }
    }

    fn try_network_again(&mut self) {
        if let Some(retry) = self.retry.filter(|retry| Instant::now() >= retry.at) {
            self.open_network(retry.until);
        }
    }

    /// Whether the network is served once it is used.
    fn is_offline(&self) -> bool {
        let is_closed = self
            .outlet
            .as_ref()
            .is_some_and(|outlet| outlet.is_closed());
        is_closed && self.retry.is_none() && self.failed.is_none()
    }

    /// Whether an init that is gone without a word was killed: on our order
    /// before it could report, or for want of memory.
    fn is_killed(&mut self) -> bool {
        for hit in self.running.check_limits() {
            self.reach(&hit);
        }
        self.timer.stage == Stage::Killed
    }

    fn run_out_of_time(&mut self) {
        let hit = LimitHit {
            limit: LimitName::Time,
            evidence: "the time was up".to_owned(),
            ends: true,
        };
        self.write_down(&hit);
        self.end.forced = Some(Forced::Limit(hit.limit));
        self.end.hits.push(hit);
    }

    fn take_signals(&mut self) {
        while let Some(number) = self.signals.next() {
            if number == Signal::WINCH.as_raw() {
                if let Some(relay) = &self.relay {
                    relay.resize();
                }
                continue;
            }
            // The interrupt key, at a question, is a no as well.
            if number == Signal::INT.as_raw()
                && let Some(desk) = &mut self.desk
            {
                desk.withdraw();
            }
            if number == Signal::CONT.as_raw()
                && !self.is_asking()
                && let Some(relay) = &mut self.relay
            {
                let _ = relay.resume();
            }
            // The terminal is ours then, and so is the key that stops.
            if number == Signal::TSTP.as_raw() && self.is_asking() {
                self.stop_too();
                continue;
            }
            self.pass_on(number);
            // With a keyboard, the command being stopped is the sign to stop.
            if number == Signal::TSTP.as_raw() && !self.is_interactive() {
                self.stop_too();
            }
        }
    }

    /// To the command; a termination asked for again is carried out, whatever
    /// the command or something inside that keeps the init busy does.
    fn pass_on(&mut self, number: i32) {
        let before = self
            .end
            .signals
            .iter()
            .filter(|sent| **sent == Signal::TERM.as_raw())
            .count();
        self.end.signals.push(number);
        match before {
            1.. if number == Signal::TERM.as_raw() => self.kill(),
            _ => self.running.signal(number),
        }
    }

    fn is_asking(&self) -> bool {
        self.desk.as_deref().is_some_and(Desk::is_asking)
    }

    fn is_interactive(&self) -> bool {
        self.relay.as_ref().is_some_and(Relay::has_keyboard)
    }

    /// The command was stopped by the user, as by Ctrl-Z: stop as well, so that
    /// the shell that started us gets its terminal back, and wake it when we
    /// are woken.
    fn stop_too(&mut self) {
        if let Some(relay) = &mut self.relay {
            relay.suspend();
        }
        // What goes on inside would be attended to by nobody.
        self.running.stop_all();
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        let is_asking = self.is_asking();
        if let Some(relay) = &mut self.relay {
            if !is_asking {
                let _ = relay.resume();
            }
            relay.resize();
        }
        if let Some(desk) = &mut self.desk {
            desk.show();
        }
        self.running.continue_all();
    }

    fn keep_time(&mut self) {
        if self.timer.next.is_none_or(|at| Instant::now() < at) {
            return;
        }
        match self.timer.stage {
            Stage::Running => {
                self.run_out_of_time();
                if self.running.has_begun() {
                    self.ask_to_end();
                } else {
                    self.kill();
                }
            }
            Stage::Asked => self.kill(),
            Stage::Killed => {
                self.running.kill_init();
                self.timer.next = after(Some(LAST_WORD));
            }
        }
    }
}
