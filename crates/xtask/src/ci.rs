//! `cargo xtask ci`: everything that must pass before a merge, in order of
//! what fails fastest. Stops at the first failure.

use std::env;
use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::outcome::Outcome;
use crate::table::seconds;
use crate::{cargo, process, schemas, setup, test};

/// A step's name and what it runs.
type Step = (&'static str, fn() -> Result<Outcome>);

const STEPS: &[Step] = &[
    ("setup", install),
    ("formatting", formatting),
    ("lints", lints),
    ("dependencies", dependencies),
    ("documentation", documentation),
    ("schemas", schemas::check),
    ("tests", tests),
    ("fuzz smoke", fuzz_smoke),
];

/// Runs the command.
pub(crate) fn run(typed: &[String]) -> Result<Outcome> {
    Args::parse(typed, &[], 0)?;
    for (index, (name, step)) in STEPS.iter().enumerate() {
        println!("\n=== ci {}/{}: {name}", index + 1, STEPS.len());
        let started = Instant::now();
        let outcome = step();
        let took = seconds(started.elapsed());
        match outcome {
            Ok(Outcome::Success) => println!("=== {name} passed ({took})"),
            Ok(Outcome::Failure) => bail!("ci: {name} failed ({took})"),
            Err(error) => return Err(error.context(format!("ci: {name} failed ({took})"))),
        }
    }
    println!("\n=== ci passed");
    Ok(Outcome::Success)
}

fn install() -> Result<Outcome> {
    setup::everything()?;
    Ok(Outcome::Success)
}

fn formatting() -> Result<Outcome> {
    run_cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Result<Outcome> {
    run_cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])
}

fn dependencies() -> Result<Outcome> {
    run_cargo(&["deny", "check", "bans", "licenses", "sources"])
}

fn documentation() -> Result<Outcome> {
    let mut doc = cargo::cargo(&["doc", "--workspace", "--no-deps"]);
    process::run(doc.env("RUSTDOCFLAGS", "-Dwarnings"))?;
    Ok(Outcome::Success)
}

fn tests() -> Result<Outcome> {
    test::run(&[])
}

/// A few seconds of each fuzz target: enough to see that it builds and that
/// no input of its corpus fails.
fn fuzz_smoke() -> Result<Outcome> {
    if !cargo::root().join("fuzz/Cargo.toml").exists() {
        println!("there is no fuzz/ folder: nothing to run");
        return Ok(Outcome::Success);
    }
    if !setup::can_fuzz() {
        println!(
            "needs a nightly toolchain and cargo-fuzz: rustup toolchain install nightly && cargo xtask setup"
        );
        return Ok(Outcome::when(!is_ci()));
    }
    process::run(&mut cargo_fuzz(&["build"]))?;
    let targets = String::from_utf8(process::stdout_of(&mut cargo_fuzz(&["list"]))?)?;
    for target in targets.lines() {
        println!("== fuzz {target}");
        fuzz(target)?;
    }
    Ok(Outcome::Success)
}

fn fuzz(target: &str) -> Result<()> {
    let folder = cargo::root().join("fuzz");
    // New inputs are written to the first folder: one that is not tracked.
    let found = folder.join("target/smoke").join(target);
    fs::create_dir_all(&found)?;
    let seeds = folder.join("corpus").join(target);
    let mut command = cargo_fuzz(&["run", target]);
    command.arg(found);
    command.args(seeds.is_dir().then_some(seeds));
    process::run(command.args(["--", "-max_total_time=5"]))
}

fn run_cargo(arguments: &[&str]) -> Result<Outcome> {
    process::run(&mut cargo::cargo(arguments))?;
    Ok(Outcome::Success)
}

fn cargo_fuzz(arguments: &[&str]) -> Command {
    // `cargo +nightly` is understood only by rustup's proxy, and the cargo
    // that started us may be the toolchain's own.
    let mut command = Command::new("rustup");
    command
        .args(["run", "nightly", "cargo", "fuzz"])
        .args(arguments)
        .current_dir(cargo::root());
    cargo::forget_outer_package(&mut command);
    command
}

fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}
