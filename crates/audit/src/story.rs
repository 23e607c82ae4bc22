//! [`Story`]: what one run did, put together from its records.
//!
//! Every list in it is bounded; what does not fit is counted.

mod amount;
mod line;
mod lines;
mod tallies;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::event::{
    Action, Call, CallCount, Event, EventKind, Group, LimitReached, Outcome, RunEnded, RunId,
    RunStarted, Subject, Summary, Timestamp, Verdict, Via,
};

pub use amount::amount;
pub use line::line_of;
pub use lines::{ConnectionLine, FileLine, LimitLine, ProgramLine, RefusalLine, SeenLine};
use tallies::{Files, Tally};

/// What one run did.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// The run.
    pub run: RunId,
    /// The name of its sandbox.
    pub sandbox: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How it began.
    pub start: Option<RunStarted>,
    /// What it started, in order.
    pub programs: Vec<ProgramLine>,
    /// How many starts there were beyond those.
    pub more_programs: u64,
    /// Where it connected to.
    pub connections: Vec<ConnectionLine>,
    /// What it changed of files, by folder where there are many.
    pub files: Vec<FileLine>,
    /// What it looked at that is hidden, and what else it tried of the kernel
    /// that is worth knowing and whose end is not known.
    pub seen: Vec<SeenLine>,
    /// How much of that there was beyond those.
    pub more_seen: u64,
    /// What was refused.
    pub refused: Vec<RefusalLine>,
    /// How many refusals there were beyond those.
    pub more_refused: u64,
    /// Its limits.
    pub limits: Vec<LimitLine>,
    /// Calls that were only counted.
    pub calls: BTreeMap<String, u64>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub end: Option<RunEnded>,
    /// Whether it has its last record.
    pub sealed: bool,
}

/// The most programs that are told.
const MOST_PROGRAMS: usize = 1000;

/// Puts a story together.
#[derive(Debug)]
struct Teller {
    story: Story,
    connections: Tally<(String, Option<Via>), ConnectionLine>,
    files: Files,
    seen: Tally<SeenLine, SeenLine>,
    refused: Tally<RefusalLine, RefusalLine>,
    limits: BTreeMap<String, LimitLine>,
}

impl Story {
    /// Puts together what the events of `run` tell; those of others are passed
    /// over.
    pub fn of<'a>(run: RunId, events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut teller = Teller::new(run);
        let own = events.into_iter().filter(|event| event.run == run);
        own.for_each(|event| teller.add(event));
        teller.finish()
    }
}

impl Teller {
    fn new(run: RunId) -> Self {
        Self {
            story: Story {
                run,
                sandbox: None,
                started: None,
                start: None,
                programs: Vec::new(),
                more_programs: 0,
                connections: Vec::new(),
                files: Vec::new(),
                seen: Vec::new(),
                more_seen: 0,
                refused: Vec::new(),
                more_refused: 0,
                limits: Vec::new(),
                calls: BTreeMap::new(),
                ended: None,
                end: None,
                sealed: false,
            },
            connections: Tally::default(),
            files: Files::default(),
            seen: Tally::default(),
            refused: Tally::default(),
            limits: BTreeMap::new(),
        }
    }

    fn add(&mut self, event: &Event) {
        if let Some(name) = &event.sandbox {
            self.story.sandbox = Some(name.to_string());
        }
        match &event.kind {
            EventKind::RunStarted(started) => self.start(event.time, started),
            EventKind::Decision(decided) => self.decision(&Group::of_decision(decided), 1),
            EventKind::Closed(closed) => {
                let bytes = (closed.bytes_up, closed.bytes_down);
                self.traffic(&Group::of_closed(closed), bytes);
            }
            EventKind::Call(call) => self.call(call),
            EventKind::Calls(counted) => self.counted(counted),
            EventKind::Summary(summary) => self.summary(summary),
            EventKind::LimitHit(hit) => self.limit_hit(hit),
            EventKind::RunEnded(ended) => self.end(event.time, ended),
            EventKind::Sealed(_) => self.story.sealed = true,
            EventKind::ChainBroken(_) => {}
        }
    }

    fn start(&mut self, time: Timestamp, started: &RunStarted) {
        self.story.started = Some(time);
        for limit in &started.limits {
            self.limits
                .insert(limit.limit.to_string(), LimitLine::from(limit));
        }
        self.story.start = Some(started.clone());
    }

    fn end(&mut self, time: Timestamp, ended: &RunEnded) {
        self.story.ended = Some(time);
        for peak in &ended.peaks {
            let line = self.limits.entry(peak.limit.to_string());
            let line = line.or_insert_with(|| LimitLine::new(&peak.limit, &peak.unit));
            line.peak = line.peak.max(Some(peak.peak));
        }
        self.story.end = Some(ended.clone());
    }

    fn limit_hit(&mut self, hit: &LimitReached) {
        let line = self.limits.entry(hit.limit.to_string());
        let line = line.or_insert_with(|| LimitLine::new(&hit.limit, &hit.unit));
        line.configured = Some(hit.configured);
        line.peak = line.peak.max(hit.peak);
        line.mechanism = Some(hit.mechanism.to_string());
        line.hits += 1;
        line.evidence = Some(hit.evidence.to_string());
        line.ended |= hit.ended;
    }

    fn decision(&mut self, group: &Group, count: u64) {
        if group.verdict == Verdict::Refused {
            self.refusal(group, count);
        } else if group.via != Some(Via::Dns) {
            let line = self.connection(group);
            line.count = line.count.saturating_add(count);
            line.rule = group.rule.as_ref().map(ToString::to_string);
            if let Some(credential) = &group.credential {
                line.credential = Some(credential.to_string());
                line.credential_count = line.credential_count.saturating_add(count);
            }
        }
    }

    fn connection(&mut self, group: &Group) -> &mut ConnectionLine {
        let destination = subject_of(group);
        let key = (destination.clone(), group.via);
        self.connections.entry(key, || ConnectionLine {
            destination,
            via: group.via,
            count: 0,
            bytes_up: 0,
            bytes_down: 0,
            rule: None,
            credential: None,
            credential_count: 0,
        })
    }

    fn traffic(&mut self, group: &Group, (up, down): (u64, u64)) {
        let line = self.connection(group);
        line.bytes_up = line.bytes_up.saturating_add(up);
        line.bytes_down = line.bytes_down.saturating_add(down);
    }

    fn refusal(&mut self, group: &Group, count: u64) {
        let line = RefusalLine::of(group);
        let line = self.refused.entry(line.clone(), || line);
        line.count = line.count.saturating_add(count);
    }

    fn call(&mut self, call: &Call) {
        if call.action == Action::Exec {
            let argv = call.argv.iter().map(str::to_owned).collect();
            let is_refused = call.verdict() == Verdict::Refused;
            self.program(Some(call.pid), call.subject(), argv, is_refused, 1);
        }
        self.calls(&Group::of_call(call), 1);
    }

    /// Calls, however many and whatever they start.
    fn calls(&mut self, group: &Group, count: u64) {
        let action = group.action.unwrap_or(Action::Other);
        match &group.outcome {
            _ if group.verdict == Verdict::Refused => self.refusal(group, count),
            // Nothing was changed.
            Some(Outcome::Failed(_)) => {}
            _ if is_worth_knowing(action, group) => {
                let line = SeenLine::of(group);
                let line = self.seen.entry(line.clone(), || line);
                line.count = line.count.saturating_add(count);
            }
            _ if makes_or_changes_name(action, group) => {
                self.files.add(action, &subject_of(group), count);
            }
            _ => {}
        }
    }

    fn program(
        &mut self,
        pid: Option<u32>,
        program: String,
        argv: Vec<String>,
        refused: bool,
        count: u64,
    ) {
        let is_again = |last: &&mut ProgramLine| {
            (&last.program, &last.argv, last.refused) == (&program, &argv, refused)
        };
        if let Some(last) = self.story.programs.last_mut().filter(is_again) {
            last.count += count;
        } else if self.story.programs.len() < MOST_PROGRAMS {
            self.story.programs.push(ProgramLine {
                pid,
                program,
                argv,
                count,
                refused,
            });
        } else {
            self.story.more_programs += count;
        }
    }

    fn counted(&mut self, counted: &CallCount) {
        let count = self.story.calls.entry(counted.call.to_string());
        let count = count.or_default();
        *count = count.saturating_add(counted.count);
    }

    fn summary(&mut self, summary: &Summary) {
        let (group, count) = (&summary.group, summary.count);
        match group.of {
            Subject::Decision => self.decision(group, count),
            Subject::Closed => {
                let bytes = (summary.bytes_up, summary.bytes_down);
                self.traffic(group, (bytes.0.unwrap_or(0), bytes.1.unwrap_or(0)));
            }
            Subject::Call => self.counted_calls(group, count),
        }
    }

    fn counted_calls(&mut self, group: &Group, count: u64) {
        if group.action == Some(Action::Exec) {
            let is_refused = group.verdict == Verdict::Refused;
            self.program(None, subject_of(group), Vec::new(), is_refused, count);
        }
        self.calls(group, count);
    }

    fn finish(mut self) -> Story {
        let (refused, more) = self.refused.into_lines(|line| line.count);
        self.story.refused = refused;
        self.story.more_refused = more;
        (self.story.seen, self.story.more_seen) = self.seen.into_lines(|line| line.count);
        self.story.connections = self.connections.into_lines(|line| line.count).0;
        self.story.files = self.files.into_lines();
        self.story.limits = self.limits.into_values().collect();
        self.story
    }
}

/// What a group names.
fn subject_of(group: &Group) -> String {
    let place = group.place.as_ref().map(ToString::to_string);
    let named = place.or_else(|| group.destination());
    let named = named.or_else(|| group.call.as_ref().map(ToString::to_string));
    named.unwrap_or_else(|| "others".to_owned())
}

/// Whether a call is about a file that it makes or changes; a socket that is
/// bound to a path makes one.
fn makes_or_changes_name(action: Action, group: &Group) -> bool {
    match action {
        Action::Read => false,
        Action::Bind => group
            .place
            .as_ref()
            .is_some_and(|it| it.as_str().starts_with('/')),
        _ => action.is_about_files(),
    }
}

/// Whether people want to know of calls that were let go on: looks at hidden
/// places, and what ordinary work does not do.
fn is_worth_knowing(action: Action, group: &Group) -> bool {
    use Action::{Identity, Kernel, Mount, Namespace, Read, Signal, Trace};
    match action {
        Read => group.rule.is_some(),
        Trace | Signal | Mount | Identity | Namespace | Kernel => true,
        _ => false,
    }
}
