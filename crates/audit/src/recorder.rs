//! [`Recorder`]: what the parts that decide hand their decisions to.
//!
//! It bounds what a flood can write, by counting what is like what was written
//! already; nothing is forgotten. It also adds up what a report of the run
//! needs.

mod clock;
mod limiter;
mod totals;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::event::{
    Call, CallCount, Closed, Decided, Event, EventKind, Group, LimitReached, RunEnded, RunId,
    RunStarted, SandboxText, Supervisor, Timestamp,
};
use crate::log::{Log, LogError, Stamp};
use crate::redact::{Redact, Secrets};

pub use clock::{Clock, Moment, SystemClock};
use limiter::{Admission, Limiter, Sight, Which};
pub use totals::{Totals, Traffic};

/// The most summaries that are written at once.
const SUMMARIES_AT_ONCE: usize = 128;
/// The most calls that were held back.
const CALLS_AT_ONCE: usize = 64;

/// Is told of every decision once it is recorded, whether written or counted.
pub type Observer = Box<dyn Fn(&Decided) + Send + Sync>;

/// Records the events of one run. It may be shared.
pub struct Recorder {
    run: RunId,
    state: Mutex<State>,
    observer: Option<Observer>,
}

#[derive(Debug)]
struct State {
    run: RunId,
    sandbox: Option<SandboxText>,
    log: Option<Log>,
    clock: Box<dyn Clock>,
    limiter: Limiter,
    totals: Totals,
    secrets: Secrets,
    /// The last record is written.
    is_sealed: bool,
    /// The last write failed, so the next event must be written, not counted.
    has_failed: bool,
}

impl Recorder {
    /// Records in `log`; without one, nothing is kept but the totals.
    pub fn new(log: Option<Log>, run: RunId, sandbox: Option<&str>) -> Self {
        Self::with_clock(log, run, sandbox, Box::new(SystemClock::default()))
    }

    /// The same with another clock.
    pub fn with_clock(
        log: Option<Log>,
        run: RunId,
        sandbox: Option<&str>,
        clock: Box<dyn Clock>,
    ) -> Self {
        let state = State {
            run,
            sandbox: sandbox.map(SandboxText::new),
            log,
            clock,
            limiter: Limiter::default(),
            totals: Totals::default(),
            secrets: Secrets::default(),
            is_sealed: false,
            has_failed: false,
        };
        Self {
            run,
            state: Mutex::new(state),
            observer: None,
        }
    }

    /// The same, telling somebody of every decision. It must be quick.
    #[must_use]
    pub fn observed_by(mut self, observer: Option<Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// The run whose events these are.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Records a decision, which must not take effect before this returns, and
    /// not at all after an error.
    pub fn decision(&self, decided: Decided) -> Result<(), LogError> {
        let group = Group::of_decision(&decided);
        let told = self.observer.as_ref().map(|tell| (tell, decided.clone()));
        let mut state = self.state();
        let recorded = state.record(&group, None, EventKind::Decision(decided));
        state.totals.note_decision(&group, recorded.as_ref().err());
        drop(state);
        if let (Some((tell, decided)), Ok(())) = (told, &recorded) {
            tell(&decided);
        }
        recorded
    }

    /// Records the end of an allowed connection.
    pub fn closed(&self, closed: Closed) -> Result<(), LogError> {
        let group = Group::of_closed(&closed);
        let bytes = (closed.bytes_up, closed.bytes_down);
        let mut state = self.state();
        state.totals.note_closed(&group, bytes);
        state.record(&group, Some(bytes), EventKind::Closed(closed))
    }

    /// Leaves these values out of everything that is recorded from now on,
    /// whatever it is in. Values of fewer than eight bytes are not.
    pub fn forget<V: AsRef<str>>(&self, values: impl IntoIterator<Item = V>) {
        let mut state = self.state();
        let State {
            secrets, sandbox, ..
        } = &mut *state;
        secrets.add(values);
        sandbox.redact(secrets);
    }

    /// Records that the run begins. Its command must not start before this
    /// returns, and not at all after an error.
    pub fn run_started(&self, mut started: RunStarted) -> Result<(), LogError> {
        started.supervisor = Supervisor::own();
        self.tell(EventKind::RunStarted(started))
    }

    /// Records one call to the kernel, seen at `time`.
    pub fn call(&self, time: Timestamp, call: Call) -> Result<(), LogError> {
        self.calls([(time, call)])
    }

    /// Records calls to the kernel, each with its time, in one write. Those
    /// that are too many are counted.
    pub fn calls(
        &self,
        calls: impl IntoIterator<Item = (Timestamp, Call)>,
    ) -> Result<(), LogError> {
        self.state().record_calls(calls)
    }

    /// Records how often calls came that are only counted, in one write.
    pub fn counted(&self, counts: impl IntoIterator<Item = CallCount>) -> Result<(), LogError> {
        let mut state = self.state();
        let now = state.clock.now();
        let events = counts.into_iter().map(EventKind::Calls);
        let events = events.map(|kind| state.stamp(now.wall).event(kind));
        let events = events.collect();
        state.write_all(events)
    }

    /// Records that a limit was reached.
    pub fn limit_hit(&self, hit: LimitReached) -> Result<(), LogError> {
        self.tell(EventKind::LimitHit(hit))
    }

    /// Records what was only counted so far, and that the run has ended.
    pub fn run_ended(&self, ended: RunEnded) -> Result<(), LogError> {
        self.finish()?;
        self.tell(EventKind::RunEnded(ended))
    }

    /// Writes what was only counted so far, and the last record of the run,
    /// which vouches for all of its others. Nothing can be recorded after it.
    pub fn seal(&self) -> Result<(), LogError> {
        self.state().seal_after(Vec::new())
    }

    /// [`counted`](Self::counted), [`run_ended`](Self::run_ended) and
    /// [`seal`](Self::seal), in one write.
    pub fn close(&self, counts: Vec<CallCount>, ended: RunEnded) -> Result<(), LogError> {
        let counts = counts.into_iter().map(EventKind::Calls);
        let last = counts.chain([EventKind::RunEnded(ended)]).collect();
        self.state().seal_after(last)
    }

    /// Records something of which there are few.
    fn tell(&self, kind: EventKind) -> Result<(), LogError> {
        let mut state = self.state();
        let now = state.clock.now();
        state.write(kind, now.wall)
    }

    /// Writes the summaries that are due. To be called about once a second;
    /// recording does it as well.
    pub fn tick(&self) -> Result<(), LogError> {
        let mut state = self.state();
        let now = state.clock.now();
        state.write_summaries(Which::Due, now)
    }

    /// Writes what was only counted so far. Dropping it does the same, without
    /// telling of an error.
    pub fn finish(&self) -> Result<(), LogError> {
        let mut state = self.state();
        let now = state.clock.now();
        state.write_rest(now)
    }

    /// What there was so far.
    pub fn totals(&self) -> Totals {
        self.state().totals.clone()
    }

    /// A panic elsewhere leaves counts that are still worth having.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("run", &self.run)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.finish();
    }
}

impl State {
    fn record(
        &mut self,
        group: &Group,
        bytes: Option<(u64, u64)>,
        event: EventKind,
    ) -> Result<(), LogError> {
        if self.log.is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        self.write_summaries(Which::Due, now)?;
        let sight = Sight::Network(group, bytes);
        if !self.has_failed && self.limiter.admit(sight, now) == Admission::Count {
            return Ok(());
        }
        self.write(event, now.wall)
    }

    fn record_calls(
        &mut self,
        calls: impl IntoIterator<Item = (Timestamp, Call)>,
    ) -> Result<(), LogError> {
        if self.log.is_none() {
            return Ok(());
        }
        let now = self.clock.now();
        self.write_summaries(Which::Due, now)?;
        let mut events = Vec::new();
        for (time, call) in calls {
            let seen = Moment { wall: time, ..now };
            let admission = if self.has_failed {
                Admission::Write
            } else {
                self.limiter.admit(Sight::Call(&call), seen)
            };
            match admission {
                Admission::Write => events.push(self.stamp(time).event(EventKind::Call(call))),
                Admission::Count => {}
                Admission::Hold => self.limiter.hold(time, call),
            }
        }
        self.write_all(events)
    }

    fn stamp(&self, time: Timestamp) -> Stamp {
        Stamp {
            time,
            run: self.run,
            sandbox: self.sandbox.clone(),
        }
    }

    /// Writes everything that was not written so far.
    fn write_rest(&mut self, now: Moment) -> Result<(), LogError> {
        let mut held = self.limiter.take_held();
        while !held.is_empty() {
            let rest = held.split_off(held.len().min(CALLS_AT_ONCE));
            let stamped = |(time, call): &(Timestamp, Call)| {
                self.stamp(*time).event(EventKind::Call(call.clone()))
            };
            let written = self.write_all(held.iter().map(stamped).collect());
            if written.is_err() {
                let back = held.into_iter().chain(rest);
                back.for_each(|(time, call)| self.limiter.hold(time, call));
                return written;
            }
            held = rest;
        }
        self.write_summaries(Which::All, now)
    }

    fn write_summaries(&mut self, which: Which, now: Moment) -> Result<(), LogError> {
        let mut due = self.limiter.take(which, now);
        while !due.is_empty() {
            let rest = due.split_off(due.len().min(SUMMARIES_AT_ONCE));
            let stamp = self.stamp(now.wall);
            let events = due.iter().cloned().map(EventKind::Summary);
            let written = self.write_all(events.map(|kind| stamp.event(kind)).collect());
            if written.is_err() {
                self.limiter.put_back(due.into_iter().chain(rest));
                return written;
            }
            due = rest;
        }
        Ok(())
    }

    fn seal_after(&mut self, last: Vec<EventKind>) -> Result<(), LogError> {
        let now = self.clock.now();
        self.write_rest(now)?;
        if self.is_sealed {
            return Ok(());
        }
        let stamp = self.stamp(now.wall);
        let mut events: Vec<Event> = last.into_iter().map(|kind| stamp.event(kind)).collect();
        if !self.secrets.is_empty() {
            events.redact(&self.secrets);
        }
        if let Some(log) = &mut self.log {
            log.seal_after(&events, &stamp)?;
        }
        self.is_sealed = true;
        Ok(())
    }

    fn write(&mut self, kind: EventKind, time: Timestamp) -> Result<(), LogError> {
        let event = self.stamp(time).event(kind);
        self.write_all(vec![event])
    }

    fn write_all(&mut self, mut events: Vec<Event>) -> Result<(), LogError> {
        let Some(log) = self.log.as_mut().filter(|_| !events.is_empty()) else {
            return Ok(());
        };
        if self.is_sealed {
            return Err(LogError::Sealed);
        }
        if !self.secrets.is_empty() {
            events.redact(&self.secrets);
        }
        let written = log.record_all(&events);
        self.limiter.note_bytes(log.bytes());
        self.has_failed = written.is_err();
        written
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{ConnectionId, Protocol, ReasonCode, Verdict, Via};

    #[test]
    fn an_observer_hears_of_every_decision_that_was_recorded() {
        let heard: Arc<Mutex<Vec<u16>>> = Arc::default();
        let telling = Arc::clone(&heard);
        let observer: Observer = Box::new(move |decided| {
            telling.lock().unwrap().push(decided.port);
        });
        let recorder = Recorder::new(None, RunId::from_bits(1), None).observed_by(Some(observer));
        for port in [80, 443] {
            let decided = Decided {
                connection: ConnectionId(1),
                process: None,
                via: Via::Connect,
                host: None,
                address: None,
                port,
                protocol: Protocol::Tcp,
                method: None,
                path: None,
                verdict: Verdict::Refused,
                reason: ReasonCode::new("not-in-allowlist"),
                rule: None,
                source: None,
                credential: None,
            };
            recorder.decision(decided).unwrap();
        }
        assert_eq!(*heard.lock().unwrap(), [80, 443]);
    }
}
