//! How a run ended, what happened on the way, and the report of both.

use std::path::Path;
use std::time::Duration;

use ringfence_audit::{RefusalKind, Refusals, Totals};
use ringfence_sandbox::{
    self as sandbox, Ended, HeldLimit, LayerState, LimitHit, LimitName, Observed, Running, Swept,
};
use ringfence_sys::Errno;
use rustix::process::Signal;

use crate::evidence::Evidence;
use crate::nesting::Nesting;
use crate::report::{
    AuditReport, Destination, Enforcement, Exit, ExitReason, LimitHitReport, LimitReport, Report,
};

/// How a run ended, and what happened on the way.
pub(crate) struct End {
    pub(crate) ended: Ended,
    pub(crate) exec_errno: Option<i32>,
    /// Why the command was ended, if it was.
    pub(crate) forced: Option<Forced>,
    pub(crate) hits: Vec<LimitHit>,
    pub(crate) output: Option<u64>,
    pub(crate) refusals: Refusals,
    pub(crate) signals: Vec<i32>,
    nesting: Nesting,
}

/// Why a command was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forced {
    Limit(LimitName),
    AuditFailed,
}

impl End {
    /// Before anything happened.
    pub(crate) fn new() -> Self {
        Self {
            ended: Ended {
                status: None,
                signal: None,
                peak_rss: 0,
                more_refusals: 0,
                timed_out: false,
                usage: sandbox::Usage::default(),
            },
            exec_errno: None,
            forced: None,
            hits: Vec::new(),
            output: None,
            refusals: Refusals::default(),
            signals: Vec::new(),
            nesting: Nesting::default(),
        }
    }
}

impl End {
    /// The kernel tells a process that its file is too large with a signal. A
    /// shell passes that on as its status.
    pub(crate) fn large_file(&self) -> Option<LimitHit> {
        let number = Signal::XFSZ.as_raw();
        let (evidence, ends) = match (self.ended.signal, self.ended.status) {
            (Some(signal), _) if signal == number => ("SIGXFSZ ended the command", true),
            (_, Some(status)) if status == 128 + number => ("SIGXFSZ ended a process", false),
            _ => return None,
        };
        Some(LimitHit {
            limit: LimitName::FileSize,
            evidence: evidence.to_owned(),
            ends,
        })
    }

    /// Counts a refused call; those about files and sockets are told by
    /// themselves.
    pub(crate) fn note_call(&mut self, seen: &Observed) {
        use sandbox::Action::{Exec, Identity, Kernel, Mount, Namespace, Other, Signal, Trace};
        let Observed::Call(call) = seen else { return };
        if call.action == Exec {
            self.nesting.started(call);
        }
        let is_told_here = matches!(
            call.action,
            Identity | Kernel | Mount | Namespace | Other | Signal | Trace
        );
        if is_told_here && matches!(call.outcome, sandbox::Outcome::Refused(_)) {
            let subject = call.paths.first().map_or("", String::as_str);
            let rule = call.rule.as_deref().unwrap_or_default();
            let kind = kind_of_call(call);
            if kind == RefusalKind::Namespace {
                self.nesting.refused(call);
            }
            self.refusals.count(kind, &call.call, subject, rule, 1);
        }
    }

    pub(crate) fn note(&mut self, refusal: &sandbox::Refusal, count: u64) {
        let kind = match refusal.kind {
            sandbox::RefusalKind::File => RefusalKind::File,
            sandbox::RefusalKind::Network => RefusalKind::Network,
            sandbox::RefusalKind::Socket => RefusalKind::Socket,
        };
        let operation = refusal.operation.as_str();
        self.refusals
            .set_at_least(kind, operation, &refusal.subject, &refusal.rule, count);
    }

    /// Counts what a sweep found.
    pub(crate) fn note_swept(&mut self, swept: &[Swept]) {
        for found in swept {
            let subject = found.path.display().to_string();
            let (operation, rule) = match &found.moved_to {
                Some(place) => (
                    "quarantine",
                    format!("{}; now {}", found.rule, place.display()),
                ),
                None => ("sweep", found.rule.clone()),
            };
            self.refusals
                .count(RefusalKind::File, operation, &subject, &rule, 1);
        }
    }

    pub(crate) fn report(
        self,
        command: Vec<String>,
        working_folder: &Path,
        duration: Duration,
        running: &Running,
        evidence: &Evidence,
        audit: AuditReport,
    ) -> Report {
        let totals = evidence.totals();
        let mut refusals = self.refusals.clone();
        refusals.merge(totals.refusals());
        let limits = self.limits(running);
        Report {
            version: 1,
            command,
            working_folder: working_folder.display().to_string(),
            exit: exit_of(&self),
            signals: self.signals,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            enforcement: running.layers().iter().map(enforcement_of).collect(),
            audit,
            home: None,
            nested: self.nesting.programs(),
            more_refusals: refusals.more(),
            refusals: refusals.iter().collect(),
            run: Some(evidence.run().to_string()),
            traffic: traffic(&totals),
            limits,
            limits_hit: self.hits.iter().map(hit_of).collect(),
            peak_memory_bytes: self.ended.peak_rss,
            supervisor_peak_bytes: own_peak(),
        }
    }
}

impl End {
    /// Every limit with what was used of it, also of those that are held here.
    fn limits(&self, running: &Running) -> Vec<LimitReport> {
        let mut held = running.limits(&self.ended.usage);
        for limit in &mut held {
            if limit.limit == LimitName::Output {
                limit.peak = self.output;
            }
        }
        held.iter().map(limit_of).collect()
    }
}

/// A limit as it is reported.
pub(crate) fn limit_of(held: &HeldLimit) -> LimitReport {
    LimitReport {
        limit: held.limit.as_str().to_owned(),
        configured: held.configured,
        peak: held.peak,
        unit: held.limit.unit().to_owned(),
        mechanism: held.mechanism.as_str().to_owned(),
    }
}

/// What the kernel says that this process had at most. The figure of `getrusage`
/// would have that of the program before it, too.
fn own_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

fn hit_of(hit: &LimitHit) -> LimitHitReport {
    LimitHitReport {
        limit: hit.limit.as_str().to_owned(),
        evidence: hit.evidence.clone(),
        ended: hit.ends,
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
/// what cannot be executed or found, 124 for the time limit, and 137 for what
/// another limit ended.
fn exit_of(end: &End) -> Exit {
    let signal = end.ended.signal;
    let code = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    let (code, reason) = match (end.forced, end.exec_errno, signal) {
        (Some(Forced::Limit(LimitName::Time)), _, _) => (124, ExitReason::TimeLimit),
        (Some(Forced::Limit(_)), _, _) => (137, ExitReason::Limit),
        (Some(Forced::AuditFailed), _, _) => (125, ExitReason::AuditFailed),
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

/// What programs try that make a sandbox of their own is told apart: there is
/// something to do about it.
fn kind_of_call(call: &sandbox::Observation) -> RefusalKind {
    let nests = call.action == sandbox::Action::Namespace
        || ["mount", "pivot_root"].contains(&call.call.as_str());
    if nests {
        RefusalKind::Namespace
    } else {
        RefusalKind::Call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(
        status: Option<i32>,
        signal: Option<i32>,
        exec_errno: Option<i32>,
        forced: Option<Forced>,
    ) -> End {
        let mut end = End::new();
        end.ended.status = status;
        end.ended.signal = signal;
        end.exec_errno = exec_errno;
        end.forced = forced;
        end
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(exit_of(&end(Some(7), None, None, None)).code, 7);
        assert_eq!(exit_of(&end(None, Some(15), None, None)).code, 143);
        assert_eq!(exit_of(&end(Some(1), None, Some(2), None)).code, 127);
        assert_eq!(exit_of(&end(Some(1), None, Some(13), None)).code, 126);
        let limit = |limit| Some(Forced::Limit(limit));
        assert_eq!(
            exit_of(&end(Some(0), None, None, limit(LimitName::Time))).code,
            124
        );
        assert_eq!(
            exit_of(&end(Some(0), None, None, limit(LimitName::Disk))).code,
            137
        );
        let lost = Some(Forced::AuditFailed);
        assert_eq!(exit_of(&end(None, Some(9), None, lost)).code, 125);
    }
}
