//! The command line of `srt`: its settings, flags and exit codes, upon the
//! same sandbox as `ringfence run`.
//!
//! Its words before the command are srt's; from the first word of the command
//! on everything is the command's own.

mod arguments;
mod control;
mod debug;
mod shell;
mod words;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use data_encoding::BASE64;
use ringfence_audit::RunId;
use ringfence_policy::variables::QUIET;
use ringfence_policy::{Policy, Resolved};
use ringfence_runtime::{
    AuditRequest, EgressRequest, Here, HostEnv, MISSING_AUTHORITY, ProxyToken, RefusalWords,
    Report, RunError, RunRequest, SecretSettings, SrtInputs, SrtLoaded, Terminal, is_marked_inside,
    run, withheld,
};
use ringfence_sandbox::{Cradle, Intercept, ProxyUser, Weaker};

use self::control::Control;
use self::debug::Debug;
use super::ending::{Addition, Advice, explain_start_failure, show_limits, show_refusals};
use super::run::with_examination;
use crate::environment;
use crate::error::Failure;
use crate::exit::ExitCode;
use crate::output;

pub(super) use self::arguments::SrtArgs;

/// For whatever keeps the command from being run.
const NOT_RUN: u8 = 1;
/// Characters of the command that the proxies are shown as a name.
const SHOWN_OF_COMMAND: usize = 100;

const ALLOWED_DOMAINS: &str = "network.allowedDomains of the settings";

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const ADVICE: Advice = Advice {
    everything: "ringfence policy log --blocked",
    between: ", ",
    unprotect: |name| Addition {
        place: "filesystem.write.unprotect of a file that RINGFENCE_POLICY names",
        text: json_text(name),
    },
    write: |directory| Addition {
        place: "filesystem.allowWrite of the settings",
        text: json_text(directory),
    },
    host: |host| Addition {
        place: ALLOWED_DOMAINS,
        text: json_text(host),
    },
    preset: None,
    host_port: |port| Addition {
        place: ALLOWED_DOMAINS,
        text: json_text(&format!("localhost:{port}")),
    },
};

/// Runs it; `words` start with the program's name.
pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let arguments = match SrtArgs::parse(words) {
        Ok(arguments) => arguments,
        Err(error) => return error.show(NOT_RUN),
    };
    match start(&arguments) {
        Ok(report) => {
            explain_start_failure(&report);
            show_limits(&report, false);
            if !is_quiet(&arguments, &environment::own()) {
                show_refusals(&report, &ADVICE);
            }
            ExitCode::from(report.exit.code)
        }
        Err(failure) => failure.exiting(NOT_RUN).show(false),
    }
}

/// By the flag or, for callers that have no say in the words, by the variable.
fn is_quiet(arguments: &SrtArgs, env: &HostEnv) -> bool {
    let by_variable = env
        .text(QUIET)
        .is_some_and(|value| !["", "0"].contains(&value.as_str()));
    arguments.quiet || by_variable
}

/// What settings ask for that is passed over here, where people would not expect it.
fn show_skipped(policy: &Resolved<Policy>) {
    let skipped = policy.notes().iter();
    for note in skipped.filter(|note| note.code == MISSING_AUTHORITY) {
        output::tell!("srt: {}", output::printable(&note.message));
    }
}

fn start(arguments: &SrtArgs) -> Result<Report, Failure> {
    // Before there are descriptors of our own, one of which it could be.
    let control = arguments.control_fd.map(Control::open).transpose()?;
    let env = environment::own();
    if is_marked_inside(&env) {
        return Err(RunError::AlreadyInside.into());
    }
    // Before anything else, all of which it is made beside.
    let cradle = Cradle::prepare();
    let debug = Debug::new(arguments.debug, &env);
    let here = Here::look(&env, None)?;
    let inputs = SrtInputs {
        settings: arguments.settings.clone(),
        hide: here.directories_to_hide().map(ToOwned::to_owned).collect(),
    };
    let loaded = inputs.load(&here.sources())?;
    for remark in withheld(&loaded.policy) {
        let told = format!("{remark}; to approve it: ringfence trust FILE");
        output::tell!("srt: {}", output::printable(&told));
    }
    if !is_quiet(arguments, &env) {
        show_skipped(&loaded.policy);
    }
    debug.show_policy(&loaded);
    let command = arguments.command()?;
    debug.say(|| format!("Command: {}", command.display()));
    let report = run_command(&command, cradle, loaded, here, control, debug)?;
    debug.show_layers(&report);
    Ok(report)
}

fn run_command(
    command: &OsStr,
    cradle: Cradle,
    loaded: SrtLoaded,
    here: Here,
    control: Option<Control>,
    debug: Debug,
) -> Result<Report, Failure> {
    let token = token()?;
    let rest = loaded.rest;
    let own = here.directories.closed().map(Path::to_path_buf);
    run(RunRequest {
        policy: &loaded.policy,
        host: &here.host,
        command: vec!["bash".into(), "-c".into(), command.to_owned()],
        working_folder: here.directory,
        env: here.env.clone(),
        terminal: Terminal::Auto,
        untouchable: loaded.untouchable.into_iter().chain(own).collect(),
        weaker: Weaker::default(),
        setup: None,
        cradle,
        egress: EgressRequest {
            asking: None,
            words: RefusalWords::Srt,
            intercept: Intercept::Always,
            proxy_user: ProxyUser::Named {
                name: user_name(command),
                password: token.clone(),
            },
            token: Some(ProxyToken {
                realm: "srt",
                password: token,
            }),
            parents: Some(loaded.parents),
            changes: control.map(|control| control.into_changes(rest, debug)),
            secrets: SecretSettings {
                store: here.directories.secrets,
                passphrase: None,
            },
        },
        homes: here.directories.homes,
        audit: AuditRequest {
            name: None,
            folder: here.directories.audit,
            observer: debug.observer(),
        },
        guard_folder: here.directories.guard,
    })
    .map_err(|error| with_examination(error, &here.env))
}

/// What the proxies are shown as a password: known inside this sandbox only.
fn token() -> Result<String, Failure> {
    match RunId::random() {
        Ok(random) => Ok(random.to_string()),
        Err(error) => Err(Failure::new(
            "no-random-numbers",
            error.to_string(),
            "see what this machine can enforce: ringfence doctor",
        )),
    }
}

/// The name that tells which command asks, as srt makes it.
fn user_name(command: &OsStr) -> String {
    let text = command.to_string_lossy();
    let start: String = text.chars().take(SHOWN_OF_COMMAND).collect();
    format!("srt.{}", BASE64.encode(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxies_are_shown_the_start_of_the_command() {
        assert_eq!(
            user_name(OsStr::new("env | sort; exit 9")),
            "srt.ZW52IHwgc29ydDsgZXhpdCA5"
        );
        let long = "ä".repeat(SHOWN_OF_COMMAND + 1);
        let shown = user_name(OsStr::new(&long));
        let shown = BASE64.decode(shown.trim_start_matches("srt.").as_bytes());
        assert_eq!(shown.unwrap(), "ä".repeat(SHOWN_OF_COMMAND).as_bytes());
    }

    #[test]
    fn g5_no_two_runs_have_the_same_token() {
        assert_ne!(token().unwrap(), token().unwrap());
        assert_eq!(token().unwrap().len(), 32);
    }
}
