//! The `ringfence` command.
#![forbid(unsafe_code)]

mod commands;
mod descriptor;
mod error;
mod output;
mod personality;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    personality::of(arguments.first()).start(arguments)
}
