//! One file per promise.

mod arena;
mod audit;
mod audit_commands;
mod bad_input;
mod clients;
mod credentials;
mod doctor;
mod egress_attacks;
mod egress_walkthrough;
mod exit_codes;
mod files;
mod first_use;
mod git;
mod hidden;
mod host_id;
mod internet;
mod internet_servers;
mod kits;
mod leftovers;
mod limits;
mod listener;
mod masked;
mod network;
mod ordinary_work;
mod policy_commands;
mod policy_log;
mod privileges;
mod protected;
mod report;
mod secret_commands;
mod secrets;
mod signals;
mod single_ports;
mod smoke;
mod srt;
mod streams;
mod terminal;
mod trust;
mod trust_commands;
mod waiting;

use std::path::Path;

use ringfence_testkit::{Outcome, Program};

/// The binary under test.
pub(crate) fn ringfence() -> Program {
    Program::ringfence(env!("CARGO_BIN_EXE_ringfence"))
}

/// `ringfence run -- sh -c SCRIPT` in `folder`.
pub(crate) fn inside(folder: impl AsRef<Path>, script: &str) -> Outcome {
    inside_with(folder, &[], script)
}

/// The same with more flags.
pub(crate) fn inside_with(folder: impl AsRef<Path>, flags: &[&str], script: &str) -> Outcome {
    let command = ["--", "sh", "-c", script];
    let words = ["run"]
        .into_iter()
        .chain(flags.iter().copied())
        .chain(command);
    ringfence().args(words).folder(folder).run()
}
