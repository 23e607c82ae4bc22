//! What is kept of a run: opened before its command starts, sealed at its end.
//!
//! What cannot be recorded does not happen: a start that is not on record is
//! none, and a sandbox whose calls cannot be recorded any more is ended.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_audit::{
    Arguments, Call, CallCount, Digest, ErrorName, LimitReached, LimitSet, Log, LogError, Observer,
    Paths, Peak, Recorder, Reduced, RunEnded, RunId, RunIdError, RunStarted, Text, Timestamp,
    Totals,
};
use ringfence_policy::{AuditLevel, Origin, Policy, Resolved};
use ringfence_sandbox::{
    self as sandbox, HeldLimit, LimitHit, Observation, ObservationError, Observed, Outcome,
    Running, Swept,
};
use ringfence_sys::Errno;
use sha2::{Digest as _, Sha256};

use crate::end::limit_of;
use crate::report::{AuditReport, ExitReason, LimitReport, Report};

/// What a run is called in the log, and where that is.
pub struct AuditRequest {
    /// What the sandbox is called.
    pub name: Option<String>,
    /// The folder of the log.
    pub folder: PathBuf,
    /// Who is told of every decision.
    pub observer: Option<Observer>,
}

/// Why a run could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// No name for the run.
    #[error("cannot make up a name for this run: {0}")]
    RunId(RunIdError),
    /// What the sandbox says of its calls makes no sense.
    #[error(transparent)]
    Observation(#[from] ObservationError),
}

impl EvidenceError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Log(error) => error.code(),
            Self::RunId(_) | Self::Observation(_) => "audit-unavailable",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Log(error) => error.hint(),
            _ => "see what this machine can enforce: ringfence doctor",
        }
    }
}

/// A run on record.
pub(crate) struct Evidence {
    recorder: Arc<Recorder>,
    /// Told once, at the end, and written with it.
    counts: RefCell<Vec<CallCount>>,
    /// Something found no room.
    is_full: Cell<bool>,
}

impl Evidence {
    /// Opens the log; at level `off` nothing is kept but totals.
    pub(crate) fn open(level: AuditLevel, request: AuditRequest) -> Result<Self, EvidenceError> {
        let log = match level {
            AuditLevel::Off => None,
            _ => Some(Log::open(&request.folder)?),
        };
        let run = RunId::random().map_err(EvidenceError::RunId)?;
        let recorder =
            Recorder::new(log, run, request.name.as_deref()).observed_by(request.observer);
        Ok(Self {
            recorder: Arc::new(recorder),
            counts: RefCell::default(),
            is_full: Cell::new(false),
        })
    }

    /// Writes down that the run begins.
    pub(crate) fn begin(
        &self,
        policy: &Resolved<Policy>,
        command: &[String],
        working_folder: &Path,
        running: &Running,
    ) -> Result<(), EvidenceError> {
        let limits = running.unused_limits();
        let audit = AuditReport::of(policy.audit().value, running.judge());
        self.recorder.run_started(RunStarted {
            command: Arguments::new(command),
            working_folder: Text::new(&working_folder.to_string_lossy()),
            uid: rustix::process::getuid().as_raw(),
            level: audit.effective,
            reduced: reduction(&audit),
            limits: limits
                .iter()
                .map(limit_of)
                .map(|limit| set(&limit))
                .collect(),
            policy: Some(sum(policy)),
            supervisor: None,
        })?;
        Ok(())
    }

    /// Who decisions about the network are handed to.
    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.recorder)
    }

    /// Writes down what was seen of the calls inside.
    pub(crate) fn record(
        &self,
        seen: Result<Vec<Observed>, ObservationError>,
    ) -> Result<(), EvidenceError> {
        let (mut calls, mut counts) = (Vec::new(), Vec::new());
        for observed in seen? {
            match observed {
                Observed::Call(call) => calls.push((moment(call.time), told(&call))),
                Observed::Count {
                    call,
                    count,
                    first,
                    last,
                } => counts.push(CallCount {
                    call: Text::new(&call),
                    count,
                    first: moment(first),
                    last: moment(last),
                }),
            }
        }
        if !calls.is_empty() {
            self.noted(self.recorder.calls(calls))?;
        }
        self.counts.borrow_mut().extend(counts);
        Ok(())
    }

    /// Writes down what a sweep found when nothing inside was alive any more.
    pub(crate) fn swept(&self, swept: &[Swept]) -> Result<(), EvidenceError> {
        if swept.is_empty() {
            return Ok(());
        }
        let now = Timestamp::now();
        let swept = swept.iter().map(|found| (now, undone(found)));
        self.noted(self.recorder.calls(swept))
    }

    /// Writes down that a limit was reached.
    pub(crate) fn reached(
        &self,
        hit: &LimitHit,
        held: Option<&HeldLimit>,
    ) -> Result<(), EvidenceError> {
        self.noted(self.recorder.limit_hit(LimitReached {
            limit: Text::new(hit.limit.as_str()),
            configured: held.map_or(0, |held| held.configured),
            unit: Text::new(hit.limit.unit()),
            peak: held.and_then(|held| held.peak),
            mechanism: Text::new(held.map_or("", |held| held.mechanism.as_str())),
            evidence: Text::new(&hit.evidence),
            ended: hit.ends,
        }))
    }

    /// Writes down how the run ended, and seals it.
    pub(crate) fn seal(&self, report: &Report) -> Result<(), EvidenceError> {
        let counted: u64 = report.refusals.iter().map(|refusal| refusal.count).sum();
        let ended = RunEnded {
            code: i32::from(report.exit.code),
            reason: Text::new(reason(report.exit.reason)),
            signal: report.exit.signal,
            duration_ms: report.duration_ms,
            peaks: report.limits.iter().filter_map(peak).collect(),
            refusals: counted.saturating_add(report.more_refusals),
        };
        self.noted(self.recorder.close(self.counts.take(), ended))
    }

    /// Seals a run that has no end to tell of, so that it does not look cut off.
    /// That this failed would not make it more of an error than it is.
    pub(crate) fn abandon(&self, reason: &str) {
        let ended = RunEnded {
            code: 125,
            reason: Text::new(reason),
            signal: None,
            duration_ms: 0,
            peaks: Vec::new(),
            refusals: 0,
        };
        let _ = self.recorder.close(self.counts.take(), ended);
    }

    /// Whether the reason for a record that is missing is that it found no room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    fn noted(&self, written: Result<(), LogError>) -> Result<(), EvidenceError> {
        if written.as_ref().is_err_and(LogError::is_no_room) {
            self.is_full.set(true);
        }
        Ok(written?)
    }

    pub(crate) fn totals(&self) -> Totals {
        self.recorder.totals()
    }

    pub(crate) fn run(&self) -> RunId {
        self.recorder.run()
    }
}

fn moment(nanoseconds: u64) -> Timestamp {
    Timestamp::from_micros(nanoseconds / 1000)
}

fn told(seen: &Observation) -> Call {
    Call {
        pid: seen.pid.unsigned_abs(),
        call: Text::new(&seen.call),
        action: action(seen.action),
        paths: Paths::new(&seen.paths),
        argv: Arguments::new(&seen.argv),
        outcome: match seen.outcome {
            Outcome::Continued => ringfence_audit::Outcome::Continued,
            Outcome::Done => ringfence_audit::Outcome::Done,
            Outcome::Failed(errno) => ringfence_audit::Outcome::Failed(ErrorName::of(errno)),
            Outcome::Refused(errno) => ringfence_audit::Outcome::Refused(ErrorName::of(errno)),
        },
        rule: seen.rule.as_deref().map(Text::new),
    }
}

/// A name that did not stay, as if it had been refused. It was no call of any
/// process.
fn undone(found: &Swept) -> Call {
    let paths = std::iter::once(&found.path).chain(&found.moved_to);
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    Call {
        pid: 0,
        call: Text::new("sweep"),
        action: ringfence_audit::Action::Rename,
        paths: Paths::new(&paths),
        argv: Arguments::default(),
        outcome: ringfence_audit::Outcome::Refused(ErrorName::of(Errno::ROFS.raw_os_error())),
        rule: Some(Text::new(&found.rule)),
    }
}

fn action(action: sandbox::Action) -> ringfence_audit::Action {
    use ringfence_audit::Action as Told;
    use sandbox::Action as Seen;
    match action {
        Seen::Exec => Told::Exec,
        Seen::Write => Told::Write,
        Seen::Read => Told::Read,
        Seen::Rename => Told::Rename,
        Seen::Remove => Told::Remove,
        Seen::Link => Told::Link,
        Seen::Make => Told::Make,
        Seen::Mode => Told::Mode,
        Seen::Connect => Told::Connect,
        Seen::Bind => Told::Bind,
        Seen::Trace => Told::Trace,
        Seen::Signal => Told::Signal,
        Seen::Mount => Told::Mount,
        Seen::Identity => Told::Identity,
        Seen::Namespace => Told::Namespace,
        Seen::Kernel => Told::Kernel,
        Seen::Other => Told::Other,
    }
}

fn reduction(audit: &AuditReport) -> Option<Reduced> {
    audit.reason.as_ref().map(|reason| Reduced {
        from: audit.level,
        reason: Text::new(reason),
    })
}

fn set(limit: &LimitReport) -> LimitSet {
    LimitSet {
        limit: Text::new(&limit.limit),
        configured: limit.configured,
        unit: Text::new(&limit.unit),
        mechanism: Text::new(&limit.mechanism),
    }
}

fn peak(limit: &LimitReport) -> Option<Peak> {
    Some(Peak {
        limit: Text::new(&limit.limit),
        peak: limit.peak?,
        unit: Text::new(&limit.unit),
    })
}

fn reason(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::Exited => "exited",
        ExitReason::Signalled => "signalled",
        ExitReason::NotFound => "not-found",
        ExitReason::NotExecutable => "not-executable",
        ExitReason::TimeLimit => "time-limit",
        ExitReason::Limit => "limit",
        ExitReason::AuditFailed => "audit-failed",
        ExitReason::AuditFull => "audit-full",
    }
}

/// The sum of every entry of the policy and where it came from.
fn sum(policy: &Resolved<Policy>) -> Digest {
    /// Takes text in, which cannot fail.
    struct Summed(Sha256);
    impl fmt::Write for Summed {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text);
            Ok(())
        }
    }
    let mut sum = Summed(Sha256::new());
    // Most entries have the origin of the one before.
    let mut last: Option<(Origin, String)> = None;
    ringfence_policy::each_row(policy, |section, entry, origin| {
        let known = last.take().filter(|(known, _)| known == origin);
        let (known, text) = known.unwrap_or_else(|| (origin.clone(), origin.to_string()));
        sum.0.update(section);
        let _ = write!(sum, "\0{entry}\0");
        sum.0.update(&text);
        sum.0.update([0]);
        last = Some((known, text));
    });
    <[u8; 32]>::from(sum.0.finalize()).into()
}
