//! What ordinary work costs inside: single calls, tools that make and read many
//! files, starts of programs, and calls that are interrupted; without a sandbox,
//! in bwrap's and in ours, with either way of guarding names.

mod calls;
mod interruptions;
mod tasks;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

pub(super) use self::calls::run as run_calls;
use super::alternatives::{self, BWRAP, BWRAP_WITH_FILES};
use super::scale::Scale;
use super::timing::Candidate;

/// The folder in the stage's home that is in memory, where there is one.
pub(super) const IN_MEMORY: &str = "memory";

/// One piece of work, and what it takes in each surrounding.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) title: String,
    /// In the order of [`Around::ALL`]; `None` where it was not measured.
    pub(super) figures: Vec<Option<f64>>,
}

/// Everything that was measured.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Works {
    /// Which surroundings the figures are of.
    pub(super) columns: Vec<String>,
    /// Microseconds of single calls.
    pub(super) calls: Vec<Row>,
    /// Seconds.
    pub(super) tasks: Vec<Row>,
    /// How often something failed.
    pub(super) interrupted: Vec<Row>,
    pub(super) absent: Vec<String>,
}

/// Where the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    Nothing,
    Bwrap,
    Live,
    Sweep,
}

impl Around {
    const ALL: [Self; 4] = [Self::Nothing, Self::Bwrap, Self::Live, Self::Sweep];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "bare",
            Self::Bwrap => "bwrap",
            Self::Live => "ringfence",
            Self::Sweep => "--guard sweep",
        }
    }
}

/// The surroundings of one measurement.
struct Surroundings<'a> {
    ringfence: &'a Path,
    bwrap: Option<PathBuf>,
}

impl Surroundings<'_> {
    /// `words` in `folder`, which is all that can be written; `None` where that
    /// surrounding is not installed.
    fn candidate(
        &self,
        around: Around,
        folder: &Path,
        words: &[&str],
    ) -> Result<Option<Candidate>> {
        let ringfence = |guard: &str| {
            let arguments = [&["run", "--quiet", "--guard", guard, "--"], words].concat();
            Candidate::new(around.name(), self.ringfence, &arguments)
        };
        let found = match around {
            Around::Nothing => {
                let program = alternatives::locate(words[0]).unwrap_or_else(|| words[0].into());
                Candidate::new(around.name(), &program, &words[1..])
            }
            Around::Bwrap => {
                let Some(bwrap) = &self.bwrap else {
                    return Ok(None);
                };
                let place = folder.to_str().context("the folder's name is not text")?;
                let bind = ["--bind", place, place, "--chdir", place];
                let arguments = [BWRAP_WITH_FILES, &bind, words].concat();
                Candidate::new(around.name(), bwrap, &arguments)
            }
            Around::Live => ringfence("live"),
            Around::Sweep => ringfence("sweep"),
        };
        Ok(Some(found.in_folder(folder)))
    }
}

/// Measures all of it. In memory where there is such a folder.
pub(super) fn measure(ringfence: &Path, scale: Scale) -> Result<Works> {
    let home = std::env::current_dir()?;
    let memory = home.join(IN_MEMORY);
    let has_memory = memory.is_dir();
    let place = if has_memory { &memory } else { &home };
    let surroundings = Surroundings {
        ringfence,
        bwrap: alternatives::locate(BWRAP),
    };
    let mut absent = Vec::new();
    if surroundings.bwrap.is_none() {
        absent.push(format!("{BWRAP}: not installed"));
    }
    if !has_memory {
        absent.push("files in memory: only root can mount them, so all is on the disk".to_owned());
    }
    let calls = calls::measure(&surroundings, place, scale)?;
    let disk = (has_memory && scale.on_disk).then_some(home.as_path());
    let tasks = tasks::measure(&surroundings, place, disk, scale, &mut absent)?;
    let interrupted = interruptions::measure(&surroundings, place, scale)?;
    Ok(Works {
        columns: Around::ALL.map(|around| around.name().to_owned()).to_vec(),
        calls,
        tasks,
        interrupted,
        absent,
    })
}
