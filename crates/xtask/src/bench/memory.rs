//! Memory held while a command sleeps in its sandbox: by the supervisor
//! outside and by the init inside, or by all of its processes together.

use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::alternatives::{self, BWRAP, BWRAP_SANDBOX, SRT};
use super::network::ENTRY;
use super::procfs::{self, Process};
use crate::stage::Stage;

const SLEEP: &[&str] = &["sleep", "5"];
/// How long a sandbox may take until its command runs.
const START: Duration = Duration::from_secs(4);
/// Time for start-up work to end, so that the steady state is what is read.
const SETTLE: Duration = Duration::from_millis(300);

/// Memory of one process, or of several that play one part, in KiB.
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    pub(super) name: String,
    /// Proportional set size; absent where this user may not read it.
    pub(super) pss: Option<u64>,
    pub(super) peak_rss: Option<u64>,
}

/// Everything that runs for one sandbox, its command included.
#[derive(Debug, Serialize)]
pub(super) struct Whole {
    pub(super) processes: usize,
    pub(super) threads: usize,
    #[serde(flatten)]
    pub(super) memory: Memory,
}

/// Measures ringfence and, where it is installed and works, bwrap.
pub(super) fn measure(stage: &Stage, ringfence: &Path) -> Result<Vec<Memory>> {
    let ours = sleeping(stage, ringfence, &["run", "--"], |id| {
        parts("ringfence", id)
    })?;
    let theirs = match alternatives::locate(BWRAP) {
        Some(bwrap) => sleeping(stage, &bwrap, BWRAP_SANDBOX, |id| parts("bwrap", id))?,
        None => None,
    };
    Ok(ours.into_iter().chain(theirs).flatten().collect())
}

/// Measures ringfence with an allow list and, where they are installed and
/// work, bwrap, which has no network then, and srt with the allow list of `settings`.
pub(super) fn measure_with_network(
    stage: &Stage,
    ringfence: &Path,
    settings: &str,
) -> Result<Vec<Whole>> {
    let mut found = Vec::new();
    let mut add = |name: &str, program: &Path, options: &[&str]| {
        found.extend(sleeping(stage, program, options, |id| whole(name, id))?);
        anyhow::Ok(())
    };
    add(
        "ringfence run --allow",
        ringfence,
        &["run", "--allow", ENTRY, "--"],
    )?;
    if let Some(bwrap) = alternatives::locate(BWRAP) {
        add("bwrap", &bwrap, BWRAP_SANDBOX)?;
    }
    if let Some(srt) = alternatives::locate(SRT) {
        add("srt", &srt, &["--settings", settings, "--"])?;
    }
    Ok(found)
}

/// Starts a sleeping command in the sandbox that `program` makes from
/// `options` and lets `read` look at the processes below that id.
fn sleeping<T>(
    stage: &Stage,
    program: &Path,
    options: &[&str],
    read: impl Fn(u32) -> T,
) -> Result<Option<T>> {
    let mut command = stage.command(program)?;
    let quiet = command
        .args(options)
        .args(SLEEP)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = quiet.spawn();
    let mut child = child.with_context(|| format!("cannot start {}", program.display()))?;
    let found = is_asleep(&child).then(|| read(child.id()));
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().context("cannot wait for a sandbox")?;
    Ok(found)
}

fn is_asleep(child: &Child) -> bool {
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        let inside = procfs::descendants(child.id());
        if inside.iter().any(|process| process.name == "sleep") {
            thread::sleep(SETTLE);
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

fn whole(name: &str, supervisor: u32) -> Whole {
    let mut family = procfs::descendants(supervisor);
    family.extend(procfs::process(supervisor));
    Whole {
        processes: family.len(),
        threads: family.iter().map(Process::threads).sum(),
        memory: sum(name.to_string(), &family),
    }
}

fn parts(name: &str, supervisor: u32) -> Vec<Memory> {
    let family = procfs::descendants(supervisor);
    let depth = procfs::process(supervisor).map_or(1, |process| process.numbers().len());
    let (inside, mut outside): (Vec<Process>, Vec<Process>) = family
        .into_iter()
        .partition(|process| process.numbers().len() > depth);
    outside.extend(procfs::process(supervisor));
    let init: Vec<Process> = inside
        .into_iter()
        .filter(|process| process.numbers().last() == Some(&1))
        .collect();
    vec![
        sum(format!("{name}, supervisor"), &outside),
        sum(format!("{name}, init inside"), &init),
    ]
}

/// One unreadable process makes the sum unknown rather than too small.
fn sum(name: String, processes: &[Process]) -> Memory {
    let known = !processes.is_empty();
    let total = |read: fn(&Process) -> Option<u64>| {
        known.then(|| processes.iter().map(read).sum()).flatten()
    };
    Memory {
        name,
        pss: total(Process::pss_kib),
        peak_rss: total(Process::peak_rss_kib),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_over_nothing_is_unknown() {
        assert_eq!(sum("x".into(), &[]).pss, None);
        let me = procfs::process(std::process::id()).unwrap();
        assert!(sum("me".into(), &[me]).pss.is_some());
    }
}
