//! `cargo xtask bench`: how long a start takes, how much memory it holds and
//! what it leaves behind, each beside its alternatives and measured in one run.
//! Speed is reported, never judged; something left behind is a failure.

mod leaks;
mod machine;
mod memory;
mod procfs;
mod report;
mod timing;
mod worker;

use std::env;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::args::Args;
use crate::cargo::{self, Profile};
use crate::outcome::Outcome;
use crate::process;
use crate::stage::{Runner, Stage};
use report::{Report, Section};
use worker::Measured;

/// The command that measures inside a stage; not meant for people.
pub(crate) const WORKER: &str = "bench-worker";

const QUICK: &str = "--quick";
const JSON: &str = "--json";

/// Starts of each command.
const RUNS: usize = 200;
const QUICK_RUNS: usize = 20;

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[QUICK, JSON], 0)?;
    let runs = if args.has(QUICK) { QUICK_RUNS } else { RUNS };
    let ringfence = cargo::build_ringfence(Profile::Release)?;

    let mut sections = Vec::new();
    for runner in runners()? {
        eprintln!("measuring as {}: {runs} starts each", runner.name());
        sections.push(measure(&ringfence, runner, runs)?);
    }
    let report = Report {
        machine: machine::describe(),
        runs,
        sections,
    };
    if args.has(JSON) {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", report.markdown());
    }
    Ok(Outcome::when(!report.has_leaks()))
}

/// Runs the measuring command.
pub(crate) fn run_worker(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[], 2)?;
    let ringfence = args.word(0).context("no program to measure")?;
    let runs = args.word(1).context("no number of runs")?.parse()?;
    let measured = worker::measure(Path::new(ringfence), runs)?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(Outcome::Success)
}

fn runners() -> Result<Vec<Runner>> {
    let mut runners = vec![Runner::Invoker];
    if rustix::process::geteuid().is_root() {
        runners.push(Runner::test_user()?);
    }
    Ok(runners)
}

fn measure(ringfence: &Path, runner: Runner, runs: usize) -> Result<Section> {
    let user = runner.name();
    let stage = Stage::new(runner)?;
    let ringfence = stage.add(ringfence, "ringfence")?;
    // The loop itself runs as that user: switching users for each start would
    // be part of every figure.
    let worker = stage.add(&env::current_exe()?, "worker")?;
    let mut command = stage.command(worker)?;
    command.arg(WORKER).arg(&ringfence).arg(runs.to_string());
    let measured: Measured = serde_json::from_slice(&process::stdout_of(&mut command)?)
        .context("the measuring process printed something else")?;
    // Memory is read from here, because root may read what the user may not.
    let memory = memory::measure(&stage, &ringfence)?;
    Ok(Section {
        user,
        measured,
        memory,
    })
}
