//! `cargo xtask layout`: writes the linker script that puts the code which a
//! start executes side by side. Which code that is, is seen: the release
//! program makes a few sandboxes with a breakpoint at each of its functions.
//! `--check` changes nothing and says how much of the script is still true.

mod glob;
mod map;
mod script;
mod trace;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::cargo;
use crate::outcome::Outcome;
use crate::stage::{Runner, Stage};
use map::Map;
use script::Pattern;

const CHECK: &str = "--check";
const SCRIPT: &str = "crates/cli/start.ld";

/// What is executed, as arguments of the program: a start without and with a
/// way to the network, which nothing is sent to.
const SCENARIOS: &[&[&str]] = &[
    &["run", "--", "true"],
    &["run", "--allow", "example.org", "--", "true"],
];

/// How often each is watched: threads that end with their process are not
/// equally far in every run.
const ROUNDS: usize = 10;

/// Goes to a fresh working folder, waits to be traced, becomes the scenario.
const WAIT_THERE: &str = r#"mkdir -p work && cd work && kill -STOP $$ && exec "$@""#;

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    let args = Args::parse(typed, &[CHECK], 0)?;
    if args.has(CHECK) { check() } else { write() }
}

/// Says which patterns match nothing any more; too many are a failure.
pub(crate) fn check() -> Result<Outcome> {
    let path = cargo::root().join(SCRIPT);
    let kept = fs::read_to_string(&path).with_context(|| format!("cannot read {SCRIPT}"))?;
    let patterns = script::read(&kept);
    let (_, map) = build()?;
    let lost: Vec<&Pattern> = patterns
        .iter()
        .filter(|pattern| !map.sections().any(|section| pattern.matches(section)))
        .collect();
    for pattern in &lost {
        println!("nothing matches {pattern}");
    }
    let found = patterns.len() - lost.len();
    println!(
        "{found} of {} patterns of {SCRIPT} match code of the program",
        patterns.len()
    );
    let is_good = is_enough(found, patterns.len());
    if !is_good {
        println!("to fix it: cargo xtask layout");
    }
    Ok(Outcome::when(is_good))
}

/// At least nine of ten, and any at all: what was renamed since is merely not
/// moved, and a start is hardly slower for a few of those.
fn is_enough(found: usize, all: usize) -> bool {
    found > 0 && found * 10 >= all * 9
}

fn write() -> Result<Outcome> {
    if cfg!(not(target_arch = "x86_64")) {
        bail!("breakpoints are placed on x86-64 alone; run this on such a machine");
    }
    // Nobody else may look into the init of a sandbox, and both users' paths
    // shall be in the script.
    if !rustix::process::geteuid().is_root() {
        bail!("this needs root, to see what a start executes for root and for others");
    }
    let (program, map) = build()?;
    let executed = executed(&program, &map)?;
    let sections = executed.iter().filter_map(|&place| map.section_at(place));
    let patterns = script::patterns(sections);
    fs::write(cargo::root().join(SCRIPT), script::text(&patterns))
        .with_context(|| format!("cannot write {SCRIPT}"))?;
    println!(
        "wrote {SCRIPT}: {} patterns for the {} functions that a start executes",
        patterns.len(),
        executed.len()
    );
    Ok(Outcome::Success)
}

/// The release program and the linker's map of it.
fn build() -> Result<(PathBuf, Map)> {
    let path = cargo::target_folder()?.join("ringfence.map");
    let program = cargo::build_ringfence_with_map(&path)?;
    // Cargo does not know that the map belongs to the build.
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {}, which the next build writes after `cargo clean --release -p ringfence-cli`",
            path.display()
        )
    })?;
    Ok((program, Map::parse(&text)?))
}

/// The functions that the scenarios execute, by the map's addresses: each with
/// the first scenario that reaches it, and there as `trace` orders them.
fn executed(program: &Path, map: &Map) -> Result<Vec<u64>> {
    let mut seen = HashSet::new();
    let mut order = Vec::new();
    for runner in [Runner::Invoker, Runner::test_user()?] {
        let user = runner.name();
        let stage = Stage::new(runner)?;
        let copy = stage.add(program, "ringfence")?.canonicalize()?;
        for scenario in SCENARIOS {
            println!("watching `ringfence {}` as {user}", scenario.join(" "));
            for _ in 0..ROUNDS {
                let mut command = waiting(&stage, &copy, scenario)?;
                let reached = trace::first_executions(&mut command, &copy, map.functions())?;
                order.extend(reached.into_iter().filter(|place| seen.insert(*place)));
            }
        }
    }
    Ok(order)
}

fn waiting(stage: &Stage, program: &Path, scenario: &[&str]) -> Result<Command> {
    let mut command = stage.command("sh")?;
    command
        .args(["-c", WAIT_THERE, "sh"])
        .arg(program)
        .args(scenario)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_are_enough_and_none_of_none_is_not() {
        assert!(is_enough(9, 10));
        assert!(!is_enough(89, 100));
        assert!(!is_enough(0, 0));
    }
}
