//! The runs that a log tells of.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::ReadError;
use super::cursor::Cursor;
use crate::Text;
use crate::chain::{Header, Record};
use crate::event::{EventKind, Life, RunId, Supervisor, Timestamp};
use crate::log::full;

/// One run of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// The name of its sandbox.
    pub sandbox: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// Its command.
    pub command: Vec<String>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Its exit code.
    pub code: Option<i32>,
    /// Why it ended.
    pub reason: Option<String>,
    /// How much was refused, once it has ended.
    pub refusals: Option<u64>,
    /// How many records there are.
    pub records: u64,
    /// Whether it has its last record.
    pub sealed: bool,
    /// Whether it still goes on.
    pub life: Life,
    /// The folder that it worked in, cut like every text of the log.
    #[serde(skip)]
    pub working_folder: Option<Text<1024>>,
    #[serde(skip)]
    supervisor: Option<Supervisor>,
}

impl RunSummary {
    fn new(run: RunId) -> Self {
        Self {
            run,
            sandbox: None,
            started: None,
            command: Vec::new(),
            working_folder: None,
            ended: None,
            code: None,
            reason: None,
            refusals: None,
            records: 0,
            sealed: false,
            life: Life::Unknown,
            supervisor: None,
        }
    }

    fn add(&mut self, kind: &str, line: &[u8]) {
        self.records += 1;
        if !matches!(kind, "run-started" | "run-ended" | "sealed") {
            return;
        }
        let Ok(record) = serde_json::from_slice::<Record>(line) else {
            return;
        };
        let event = record.event;
        self.sandbox = event.sandbox.map(|name| name.to_string());
        match event.kind {
            EventKind::RunStarted(started) => {
                self.started = Some(event.time);
                self.command = started.command.iter().map(str::to_owned).collect();
                self.working_folder = Some(started.working_folder.clone());
                self.supervisor = started.supervisor;
            }
            EventKind::RunEnded(ended) => {
                self.ended = Some(event.time);
                self.code = Some(ended.code);
                self.reason = Some(ended.reason.to_string());
                self.refusals = Some(ended.refusals);
            }
            EventKind::Sealed(_) => self.sealed = true,
            _ => {}
        }
    }

    fn finish(mut self) -> Self {
        self.life = match &self.supervisor {
            _ if self.sealed => Life::Ended,
            Some(supervisor) => supervisor.life(),
            None => Life::Unknown,
        };
        self
    }
}

/// The runs of the log in `folder`, in the order in which they began.
pub fn runs(folder: &Path) -> Result<Vec<RunSummary>, ReadError> {
    let mut places: HashMap<RunId, usize> = HashMap::new();
    let mut runs: Vec<RunSummary> = Vec::new();
    Cursor::at_start(folder)?.each_header(|Header { run, kind, .. }, line| {
        let at = *places.entry(run).or_insert_with(|| {
            runs.push(RunSummary::new(run));
            runs.len() - 1
        });
        runs[at].add(kind, line);
    })?;
    let finish = |run: RunSummary| {
        let run = run.finish();
        if run.sealed {
            return run;
        }
        let life = full::life(folder, run.run, run.life);
        RunSummary { life, ..run }
    };
    Ok(runs.into_iter().map(finish).collect())
}
