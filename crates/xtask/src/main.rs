//! Developer commands, run as `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod cargo;
mod ci;
mod guest;
mod outcome;
mod process;
mod programs;
mod schemas;
mod setup;
mod srt;
mod stage;
mod table;
mod test;

use std::env;
use std::process::ExitCode;

use anyhow::bail;
use outcome::Outcome;

const USAGE: &str = include_str!("usage.txt");

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> anyhow::Result<Outcome> {
    let (command, rest) = match words.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", words),
    };
    match command {
        "setup" => setup::run(rest),
        "test" => test::run(rest),
        "ci" => ci::run(rest),
        "schemas" => schemas::run(rest),
        "guest" => guest::run(rest),
        "bench" => bench::run(rest),
        bench::WORKER => bench::run_worker(rest),
        bench::CALLS => bench::run_calls(rest),
        "help" | "--help" | "-h" => Ok(outcome::say(USAGE)),
        other => bail!("unknown command `{other}`\n\n{USAGE}"),
    }
}
