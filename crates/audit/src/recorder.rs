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
    Closed, Decided, Event, EventKind, FormatVersion, Group, RunId, SandboxText, Summary,
};
use crate::log::{Log, LogError};

pub use clock::{Clock, Moment, SystemClock};
use limiter::{Admission, Limiter, Which};
pub use totals::{Totals, Traffic};

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
        state.write_summaries(Which::All, now)
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
        if !self.has_failed && self.limiter.admit(group, bytes, now) == Admission::Count {
            return Ok(());
        }
        self.write(event, now)
    }

    fn write_summaries(&mut self, which: Which, now: Moment) -> Result<(), LogError> {
        let mut due = self.limiter.take(which, now).into_iter();
        while let Some(summary) = due.next() {
            let written = self.write(EventKind::Summary(summary.clone()), now);
            if written.is_err() {
                let unwritten: Vec<Summary> = std::iter::once(summary).chain(due).collect();
                self.limiter.put_back(unwritten);
                return written;
            }
        }
        Ok(())
    }

    fn write(&mut self, kind: EventKind, now: Moment) -> Result<(), LogError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let event = Event {
            version: FormatVersion,
            time: now.wall,
            run: self.run,
            sandbox: self.sandbox.clone(),
            kind,
        };
        let written = log.record(&event);
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
            };
            recorder.decision(decided).unwrap();
        }
        assert_eq!(*heard.lock().unwrap(), [80, 443]);
    }
}
