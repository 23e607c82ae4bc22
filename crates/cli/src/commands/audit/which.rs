//! [`WhichRun`]: the run that somebody means.

use std::path::Path;

use ringfence_audit::{RunPrefix, RunPrefixError, RunSummary, Text, runs};
use ringfence_runtime::Here;

use crate::environment;
use crate::error::Failure;

/// A run by its id, or the last one of this folder.
#[derive(Debug, Clone)]
pub(crate) enum WhichRun {
    Last,
    Named(RunPrefix),
}

impl std::str::FromStr for WhichRun {
    type Err = RunPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "last" => Ok(Self::Last),
            id => id.parse().map(Self::Named),
        }
    }
}

impl WhichRun {
    /// The one run that is meant; `cwd` is the folder that was named, if one
    /// was.
    pub(crate) fn find(&self, folder: &Path, cwd: Option<&Path>) -> Result<RunSummary, Failure> {
        match self {
            Self::Last => last_run_here(folder, cwd),
            Self::Named(prefix) => run_named(folder, prefix),
        }
    }

    /// What the ids of the runs that are meant begin with. It may be that of
    /// several, where an id was named.
    pub(crate) fn prefix(&self, folder: &Path) -> Result<Option<RunPrefix>, Failure> {
        match self {
            Self::Last => Ok(last_run_here(folder, None)?.run.to_string().parse().ok()),
            Self::Named(prefix) => Ok(Some(prefix.clone())),
        }
    }
}

/// The last run of all.
pub(super) fn last_run(folder: &Path) -> Result<RunSummary, Failure> {
    runs(folder)?.pop().ok_or_else(|| {
        Failure::new(
            "audit-no-run",
            "no run is on record",
            "run something first, such as: ringfence run -- true",
        )
    })
}

/// The last run that worked in this folder: the log has those of every project,
/// and what code of another one did is no business of this one.
fn last_run_here(folder: &Path, cwd: Option<&Path>) -> Result<RunSummary, Failure> {
    let here = Here::look(&environment::own(), cwd)?;
    let working = Text::new(&here.directory.to_string_lossy());
    let mut runs = runs(folder)?;
    runs.retain(|run| run.working_folder.as_ref() == Some(&working));
    runs.pop().ok_or_else(|| {
        Failure::new(
            "audit-no-run",
            "no run in this folder is on record",
            "ringfence audit list shows those that are; name one by its id",
        )
    })
}

fn run_named(folder: &Path, wanted: &RunPrefix) -> Result<RunSummary, Failure> {
    let mut fitting = runs(folder)?;
    fitting.retain(|run| wanted.matches(run.run));
    match fitting.len() {
        0 => Err(Failure::new(
            "audit-no-run",
            "no such run is on record",
            "ringfence audit list shows those that are",
        )),
        1 => Ok(fitting.remove(0)),
        count => Err(Failure::new(
            "audit-run-ambiguous",
            format!("the ids of {count} runs begin so"),
            "name more of the id; ringfence audit list shows them",
        )),
    }
}
