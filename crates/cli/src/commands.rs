//! The commands of `ringfence`, one file each.
//!
//! Only the command that was asked for is built: describing all of them would
//! cost a good part of a start.

mod allow;
mod asking;
mod audit;
mod completions;
mod doctor;
mod ending;
mod home;
mod kit;
mod limits;
mod man;
mod policy;
mod preset;
mod run;
mod scope;
mod secret;
pub(crate) mod srt;
mod srt_settings;
mod trust;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, Command};
use ringfence_runtime::is_marked_inside;
use ringfence_sandbox::Cradle;

use crate::environment;
use crate::error::{COULD_NOT_START, Failure};
use crate::exit::ExitCode;

/// The exit code for a command line that makes no sense.
const WRONG_USAGE: u8 = 2;

const ABOUT: &str =
    "A sandbox with egress control for AI-agent skills: nothing leaves unless the policy names it.";
const EXAMPLES: &str = "Examples:
  ringfence run -- npm test                 run a command with the network closed
  ringfence run --time 5m -- make           … and for five minutes at most
  ringfence run --preset node -- npm ci     … with the hosts that npm needs
  ringfence policy explain api.example.org  why a host is allowed or not
  ringfence audit show                      what the last run did
  ringfence doctor                          what this machine can enforce";

/// One command: its name and how to run it.
struct Entry {
    name: &'static str,
    describe: fn() -> Command,
    main: fn(Vec<OsString>) -> ExitCode,
}

const ENTRIES: &[Entry] = &[
    Entry {
        name: "run",
        describe: describe::<run::RunArgs>,
        main: run_main,
    },
    Entry {
        name: "allow",
        describe: describe::<allow::AllowArgs>,
        main: |words| start("allow", words, |arguments| allow::allow(&arguments)),
    },
    Entry {
        name: "deny",
        describe: describe::<allow::DenyArgs>,
        main: |words| start("deny", words, |arguments| allow::deny(&arguments)),
    },
    Entry {
        name: "policy",
        describe: describe::<policy::PolicyArgs>,
        main: |words| start("policy", words, policy::main),
    },
    Entry {
        name: "preset",
        describe: describe::<preset::PresetArgs>,
        main: |words| start("preset", words, |arguments| preset::main(&arguments)),
    },
    Entry {
        name: "audit",
        describe: describe::<audit::AuditArgs>,
        main: |words| start("audit", words, audit::main),
    },
    Entry {
        name: "secret",
        describe: describe::<secret::SecretArgs>,
        main: |words| start("secret", words, |arguments| secret::main(&arguments)),
    },
    Entry {
        name: "home",
        describe: describe::<home::HomeArgs>,
        main: |words| start("home", words, |arguments| home::main(&arguments)),
    },
    Entry {
        name: "trust",
        describe: describe::<trust::TrustArgs>,
        main: |words| start("trust", words, |arguments| trust::main(&arguments)),
    },
    Entry {
        name: "kit",
        describe: describe::<kit::KitArgs>,
        main: |words| start("kit", words, |arguments| kit::main(&arguments)),
    },
    Entry {
        name: "srt",
        describe: describe::<srt::SrtArgs>,
        main: srt::main,
    },
    Entry {
        name: "srt-settings",
        describe: describe::<srt_settings::SrtSettingsArgs>,
        main: |words| {
            start("srt-settings", words, |arguments| {
                srt_settings::main(&arguments)
            })
        },
    },
    Entry {
        name: "doctor",
        describe: describe::<doctor::DoctorArgs>,
        main: |words| start("doctor", words, |arguments| doctor::main(&arguments)),
    },
    Entry {
        name: "completions",
        describe: describe::<completions::CompletionsArgs>,
        main: |words| {
            start("completions", words, |arguments| {
                completions::main(&arguments)
            })
        },
    },
    Entry {
        name: "man",
        describe: describe::<man::ManArgs>,
        main: |words| start("man", words, |arguments| man::main(&arguments)),
    },
];

/// Runs the command that `arguments`, which start with the program, name.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    let named = arguments.get(1).and_then(|word| word.to_str());
    match ENTRIES.iter().find(|entry| Some(entry.name) == named) {
        Some(entry) => (entry.main)(arguments.into_iter().skip(1).collect()),
        None => show_help(arguments),
    }
}

fn run_main(words: Vec<OsString>) -> ExitCode {
    // Before anything else, all of which it is made beside, unless a descriptor
    // may be named: it could be taken for one of our own then.
    let is_possible = !run::may_name_descriptor(&words) && !is_marked_inside(&environment::own());
    let cradle = is_possible.then(Cradle::prepare);
    match parse::<run::RunArgs>("run", words) {
        Ok(arguments) => run::main(arguments, cradle),
        Err(error) => usage("run", &error, COULD_NOT_START),
    }
}

fn start<A: Args>(name: &'static str, words: Vec<OsString>, main: fn(A) -> ExitCode) -> ExitCode {
    match parse::<A>(name, words) {
        Ok(arguments) => main(arguments),
        Err(error) => usage(name, &error, WRONG_USAGE),
    }
}

/// Help and versions as they are; a mistake as one line and a hint.
pub(crate) fn usage(name: &str, error: &clap::Error, exit: u8) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(if error.use_stderr() { exit } else { 0 });
    }
    let text = error.render().to_string();
    let message: Vec<&str> = text
        .lines()
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let message = message.join("; ").replace(":;", ":");
    let message = message.trim_start_matches("error: ").to_owned();
    let words = ["ringfence", name, "--help"];
    let help = words
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    Failure::new("usage", message, help)
        .exiting(exit)
        .show(false)
}

fn parse<A: Args>(name: &'static str, words: Vec<OsString>) -> Result<A, clap::Error> {
    let mut command = describe::<A>()
        .name(name)
        .bin_name(format!("ringfence {name}"));
    let matches = command.try_get_matches_from_mut(words)?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn describe<A: Args>() -> Command {
    A::augment_args(Command::new("command"))
}

/// The whole command line, for help, completions and manual pages.
fn whole() -> Command {
    let subcommands = ENTRIES
        .iter()
        .map(|entry| (entry.describe)().name(entry.name));
    Command::new("ringfence")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(subcommands)
}

/// Not one of the commands: help, the version, or an error that says so.
fn show_help(arguments: Vec<OsString>) -> ExitCode {
    match whole().try_get_matches_from(arguments) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => usage("", &error, WRONG_USAGE),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::whole().debug_assert();
    }
}
