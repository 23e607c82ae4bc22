//! Memory held while a command sleeps in its sandbox: by the supervisor
//! outside and by the init inside.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::procfs::{self, Process};
use super::timing;
use crate::programs;
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

/// Measures ringfence and, where it is installed and works, bwrap.
pub(super) fn measure(stage: &Stage, ringfence: &Path) -> Result<Vec<Memory>> {
    let mut command = stage.command(ringfence)?;
    let mut found = sleeping("ringfence", command.args(["run", "--"]).args(SLEEP))?;
    if let Some(bwrap) = programs::find("bwrap", &programs::public_path()) {
        let mut command = stage.command(bwrap)?;
        let sandbox = command.args(timing::bwrap_sandbox()).args(SLEEP);
        found.extend(sleeping("bwrap", sandbox)?);
    }
    Ok(found)
}

fn sleeping(name: &str, command: &mut Command) -> Result<Vec<Memory>> {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = quiet
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let found = read_when_asleep(name, &child);
    // It may have ended by itself.
    let _ = child.kill();
    child
        .wait()
        .with_context(|| format!("cannot wait for {name}"))?;
    Ok(found)
}

fn read_when_asleep(name: &str, child: &Child) -> Vec<Memory> {
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        let inside = procfs::descendants(child.id());
        if inside.iter().any(|process| process.name == "sleep") {
            thread::sleep(SETTLE);
            return read(name, child.id());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Vec::new()
}

fn read(name: &str, supervisor: u32) -> Vec<Memory> {
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
