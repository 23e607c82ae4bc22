//! Attending to a running sandbox: events, signals, the terminal, the time.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use ringfence_audit::{Recorder, RefusalKind, Refusals, Totals};
use ringfence_sandbox::{self as sandbox, Ended, Event, LayerState, Running, SpawnError};
use ringfence_sys::{Errno, SignalQueue};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use crate::relay::{Outside, Relay};
use crate::report::{Destination, Enforcement, Exit, ExitReason, Report};
use crate::run::RunError;

/// Between asking a command to end and making it.
const GRACE: Duration = Duration::from_secs(2);
/// For the init to report the end after everything was killed.
const LAST_WORD: Duration = Duration::from_secs(1);

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

/// How a run ended, and what happened on the way.
pub(crate) struct End {
    ended: Ended,
    exec_errno: Option<i32>,
    timed_out: bool,
    refusals: Refusals,
    signals: Vec<i32>,
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
    pub(crate) fn attend(self, running: &Running, ours: Outside) -> Result<End, RunError> {
        let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let user = [input.as_fd(), output.as_fd(), error.as_fd()];
        let relay = Relay::start(user, ours, running.terminal()).map_err(RunError::Supervise)?;
        let end = End {
            ended: Ended {
                status: None,
                signal: None,
                peak_rss: 0,
                more_refusals: 0,
                timed_out: false,
            },
            exec_errno: None,
            timed_out: false,
            refusals: Refusals::default(),
            signals: Vec::new(),
        };
        let timer = Timer {
            next: self.deadline,
            stage: Stage::Running,
        };
        Watch {
            running,
            signals: self.signals,
            timer,
            relay,
            end,
        }
        .run()
    }
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

struct Watch<'a> {
    running: &'a Running,
    signals: SignalQueue,
    timer: Timer,
    relay: Option<Relay<'a>>,
    end: End,
}

impl Watch<'_> {
    fn run(mut self) -> Result<End, RunError> {
        loop {
            self.wait().map_err(RunError::Supervise)?;
            if self.take_events()? {
                if let Some(relay) = &mut self.relay {
                    relay.drain();
                }
                return Ok(self.end);
            }
            self.take_signals();
            self.keep_time();
        }
    }

    fn wait(&mut self) -> Result<(), Errno> {
        let running = self.running;
        let mut fds = vec![
            PollFd::from_borrowed_fd(running.events(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        fds.extend(self.relay.iter().flat_map(Relay::poll_fds));
        let timeout = self.timer.next.map(|at| {
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
        let ready: Vec<bool> = fds[2..].iter().map(|fd| !fd.revents().is_empty()).collect();
        if let Some(relay) = &mut self.relay {
            relay.pump(&ready);
        }
        Ok(())
    }

    /// Reads what the init says. True when the sandbox has ended.
    fn take_events(&mut self) -> Result<bool, RunError> {
        loop {
            let event = match self.running.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(false),
                // Killed on our order before it could report.
                Err(SpawnError::InitLost) if self.timer.stage == Stage::Killed => {
                    self.end.ended.signal = Some(Signal::KILL.as_raw());
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            };
            match event {
                Event::Ended(ended) => {
                    // The init keeps the time as well, in case we were stopped.
                    self.end.timed_out |= ended.timed_out;
                    self.end.refusals.add_more(ended.more_refusals);
                    self.end.ended = ended;
                    return Ok(true);
                }
                Event::ExecFailed { errno } => self.end.exec_errno = Some(errno),
                Event::Refused(refusal) => self.end.note(&refusal, 1),
                Event::RefusedInAll(refusal, count) => self.end.note(&refusal, count),
                // Only where a user can wake us: code inside must not be able
                // to stop its own supervisor.
                Event::Stopped if self.is_interactive() => self.stop_too(),
                Event::Stopped
                | Event::Network { .. }
                | Event::Started
                | Event::Restricted
                | Event::SetupFailed { .. } => {}
            }
        }
    }

    fn take_signals(&mut self) {
        while let Some(number) = self.signals.next() {
            if number == Signal::WINCH.as_raw() {
                if let Some(relay) = &self.relay {
                    relay.resize();
                }
                continue;
            }
            if number == Signal::CONT.as_raw()
                && let Some(relay) = &mut self.relay
            {
                let _ = relay.resume();
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
            1.. if number == Signal::TERM.as_raw() => {
                self.running.kill_all();
                self.timer = Timer {
                    next: Instant::now().checked_add(LAST_WORD),
                    stage: Stage::Killed,
                };
            }
            _ => self.running.signal(number),
        }
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
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        if let Some(relay) = &mut self.relay {
            let _ = relay.resume();
            relay.resize();
        }
        self.running.signal(Signal::CONT.as_raw());
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.timer.next.is_none_or(|at| now < at) {
            return;
        }
        let (stage, wait) = match self.timer.stage {
            Stage::Running => {
                self.end.timed_out = true;
                self.running.signal(Signal::TERM.as_raw());
                // A stopped command could not see the signal.
                self.running.signal(Signal::CONT.as_raw());
                (Stage::Asked, GRACE)
            }
            Stage::Asked => {
                self.running.kill_all();
                (Stage::Killed, LAST_WORD)
            }
            Stage::Killed => {
                self.running.kill_init();
                (Stage::Killed, LAST_WORD)
            }
        };
        self.timer = Timer {
            next: now.checked_add(wait),
            stage,
        };
    }
}

impl End {
    fn note(&mut self, refusal: &sandbox::Refusal, count: u64) {
        let kind = match refusal.kind {
            sandbox::RefusalKind::File => RefusalKind::File,
            sandbox::RefusalKind::Network => RefusalKind::Network,
            sandbox::RefusalKind::Socket => RefusalKind::Socket,
        };
        let operation = refusal.operation.as_str();
        self.refusals
            .set_at_least(kind, operation, &refusal.subject, &refusal.rule, count);
    }

    pub(crate) fn report(
        self,
        command: Vec<String>,
        working_folder: &Path,
        duration: Duration,
        layers: &[LayerState],
        network: Option<&Recorder>,
    ) -> Report {
        let totals = network.map(Recorder::totals);
        let mut refusals = self.refusals.clone();
        if let Some(totals) = &totals {
            refusals.merge(totals.refusals());
        }
        Report {
            version: 1,
            command,
            working_folder: working_folder.display().to_string(),
            exit: exit_of(&self),
            signals: self.signals,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            enforcement: layers.iter().map(enforcement_of).collect(),
            more_refusals: refusals.more(),
            refusals: refusals.iter().collect(),
            run: network.map(|recorder| recorder.run().to_string()),
            traffic: totals.iter().flat_map(traffic).collect(),
            peak_memory_bytes: self.ended.peak_rss,
        }
    }
}

fn traffic(totals: &Totals) -> Vec<Destination> {
    let destination = |(name, traffic): (&str, ringfence_audit::Traffic)| Destination {
        destination: name.to_owned(),
        connections: traffic.connections,
        bytes_up: traffic.bytes_up,
        bytes_down: traffic.bytes_down,
    };
    let others = Some(totals.more_traffic()).filter(|others| others.connections > 0);
    let others = others.map(|others| ("others", others));
    totals.traffic().chain(others).map(destination).collect()
}

fn enforcement_of(state: &LayerState) -> Enforcement {
    Enforcement {
        layer: state.layer.as_str().to_owned(),
        applied: state.applied,
        detail: state.detail.clone(),
    }
}

/// The codes of a shell: the command's own, 128 and a signal, 126 and 127 for
/// what cannot be executed or found, and 124 for the time limit.
fn exit_of(end: &End) -> Exit {
    let signal = end.ended.signal;
    let code = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    let (code, reason) = match (end.timed_out, end.exec_errno, signal) {
        (true, _, _) => (124, ExitReason::TimeLimit),
        (_, Some(errno), _) if errno == Errno::NOENT.raw_os_error() => (127, ExitReason::NotFound),
        (_, Some(_), _) => (126, ExitReason::NotExecutable),
        (_, _, Some(number)) => (code(128 + number), ExitReason::Signalled),
        (_, _, None) => (
            code(end.ended.status.unwrap_or(i32::from(u8::MAX))),
            ExitReason::Exited,
        ),
    };
    Exit {
        code,
        reason,
        signal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(
        status: Option<i32>,
        signal: Option<i32>,
        exec_errno: Option<i32>,
        timed_out: bool,
    ) -> End {
        End {
            ended: Ended {
                status,
                signal,
                peak_rss: 0,
                more_refusals: 0,
                timed_out: false,
            },
            exec_errno,
            timed_out,
            refusals: Refusals::default(),
            signals: Vec::new(),
        }
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(exit_of(&end(Some(7), None, None, false)).code, 7);
        assert_eq!(exit_of(&end(None, Some(15), None, false)).code, 143);
        assert_eq!(exit_of(&end(Some(1), None, Some(2), false)).code, 127);
        assert_eq!(exit_of(&end(Some(1), None, Some(13), false)).code, 126);
        assert_eq!(exit_of(&end(Some(0), None, None, true)).code, 124);
    }
}
