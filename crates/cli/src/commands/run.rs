//! `ringfence run`: one command in a sandbox.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use ringfence_policy::shell_word;
use ringfence_runtime::{
    Asking, AuditRequest, EgressRequest, HostEnv, Remark, Report, RunError, RunRequest,
    SecretSettings, Terminal, examine, is_marked_inside, run,
};
use ringfence_sandbox::{Cradle, SpawnError, Weaker};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::asking::TerminalAsker;
use super::ending::{
    Addition, Advice, explain_start_failure, show_dropped, show_limits, show_reduced, show_refusals,
};
use super::scope::ScopeArgs;
use super::secret::passphrase::asking;
use crate::descriptor;
use crate::environment;
use crate::error::{COULD_NOT_START, Failure};
use crate::exit::ExitCode;
use crate::output;

const EXAMPLES: &str = "Examples:
  ringfence run -- npm test
  ringfence run --allow api.example.org --allow '*.example.net:8443' -- ./agent.sh
  ringfence run --preset node -- npm ci
  ringfence run --write /srv/cache --time 10m -- make -j4
  ringfence run --settings ~/.srt-settings.json -- python3 tool.py
  ringfence run --report run.json -- ./untrusted.sh
  ringfence run --memory 512MiB --pids 64 --disk 1GiB -- ./build.sh

Exit codes: the command's own; 128 and a signal's number; 124 time limit; 125 ringfence could not start it;
126 not executable; 127 not found; 137 and a line limits_hit: ended by another limit.";

/// Where what was refused is told in full, and where rules go.
const ADVICE: Advice = Advice {
    everything: "--report FILE",
    between: " ",
    unprotect: |name| Addition::flag(format!("--unprotect {}", shell_word(name))),
    write: |directory| Addition::flag(format!("--write {}", shell_word(directory))),
    host: |host| Addition::flag(format!("--allow {}", shell_word(host))),
    preset: Some(|name| Addition::flag(format!("--preset {name}"))),
    host_port: |port| Addition::flag(format!("--host-port {port}")),
};

/// Run a command in a sandbox
///
/// The command reads the host but for hidden places (keys, tokens, histories),
/// writes only in the working folder and a private /tmp, and reaches only the
/// hosts that are allowed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// What to call the sandbox in the audit log
    #[arg(long, value_name = "NAME")]
    name: Option<SandboxName>,
    /// Read the passphrase of the secret store from this descriptor
    #[arg(long, value_name = "N", value_parser = descriptor::number)]
    passphrase_fd: Option<i32>,
    /// Ask on the terminal about each host that no rule allows, while the command waits for up to 30 seconds
    #[arg(long, conflicts_with = "no_network")]
    ask: bool,
    /// How long a question waits for its answer, in milliseconds; for tests
    #[arg(long, value_name = "MS", requires = "ask", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    ask_hold: Option<u64>,
    /// Print nothing about what was refused, or written to a private home and gone
    #[arg(long)]
    quiet: bool,
    /// Write a JSON record of the run
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Give the command a terminal of its own on every stream
    #[arg(long, conflicts_with = "no_tty")]
    tty: bool,
    /// Give the command no terminal of its own
    #[arg(long)]
    no_tty: bool,
    /// Accept a weaker form of a layer that this machine lacks (may be given several times)
    #[arg(long, value_name = "LAYER")]
    weaker: Vec<WeakerForm>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A name that stands in one column and in a file's name.
#[derive(Debug, Clone)]
struct SandboxName(String);

impl std::str::FromStr for SandboxName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if (1..=63).contains(&text.len()) && text.chars().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("use 1 to 63 letters, digits, '-', '_' or '.'".to_owned())
        }
    }
}

/// Weaker forms by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WeakerForm {
    /// Root's own id behind the sandbox, where id-mapped mounts are missing
    HostRoot,
    /// No Landlock, where the kernel has none
    Landlock,
    /// Limits of the policy not enforced
    Limits,
    /// Nothing of the host writable and calls not recorded, inside a sandbox that has the listener for them
    Listener,
}

/// Whether a descriptor is named in these words, as far as can be told before
/// they are parsed.
pub(super) fn may_name_descriptor(words: &[OsString]) -> bool {
    let flag = b"--passphrase-fd";
    let mut words = words.iter();
    words.any(|word| word.as_encoded_bytes().starts_with(flag))
}

pub(crate) fn main(arguments: RunArgs, cradle: Option<Cradle>) -> ExitCode {
    let quiet = arguments.quiet;
    match start(arguments, cradle) {
        Ok(report) => {
            explain_start_failure(&report);
            show_limits(&report, quiet);
            if !quiet {
                show_reduced(&report);
                show_refusals(&report, &ADVICE);
                show_dropped(&report);
            }
            ExitCode::from(report.exit.code)
        }
        Err(failure) => failure.exiting(COULD_NOT_START).show(false),
    }
}

fn start(arguments: RunArgs, cradle: Option<Cradle>) -> Result<Report, Failure> {
    let env = environment::own();
    if is_marked_inside(&env) {
        return Err(RunError::AlreadyInside.into());
    }
    let passphrase = asking(arguments.passphrase_fd);
    let cradle = cradle.unwrap_or_else(Cradle::prepare);
    let asker = arguments.ask.then(TerminalAsker::open).transpose()?;
    let scope = arguments.scope.resolve(&env)?;
    let record = arguments.report.as_deref();
    let record = record
        .map(|path| Record::open(path, &scope.here.directory))
        .transpose()?;
    if !arguments.quiet {
        for remark in &scope.remarks {
            output::tell!("ringfence: {}", output::printable(&told(remark)));
        }
    }
    let project = scope.here.project();
    let report = run(RunRequest {
        policy: &scope.policy,
        host: &scope.here.host,
        command: arguments.command,
        setup: scope.setup,
        cradle,
        working_folder: scope.here.directory,
        env: env.clone(),
        terminal: terminal(arguments.tty, arguments.no_tty),
        untouchable: record
            .iter()
            .map(|record| record.path.clone())
            .chain(scope.files)
            .collect(),
        weaker: Weaker {
            host_root: arguments.weaker.contains(&WeakerForm::HostRoot),
            no_landlock: arguments.weaker.contains(&WeakerForm::Landlock),
            no_limits: arguments.weaker.contains(&WeakerForm::Limits),
            no_listener: arguments.weaker.contains(&WeakerForm::Listener),
        },
        egress: EgressRequest {
            parents: scope.parents,
            asking: asker.map(|asker| Asking {
                asker: Box::new(asker),
                project,
                hold: arguments.ask_hold.map(Duration::from_millis),
            }),
            secrets: SecretSettings {
                store: scope.here.directories.secrets,
                passphrase: Some(passphrase),
            },
            ..EgressRequest::default()
        },
        homes: scope.here.directories.homes,
        audit: AuditRequest {
            name: arguments.name.map(|name| name.0),
            folder: scope.here.directories.audit,
            observer: None,
        },
        guard_folder: scope.here.directories.guard,
    })
    .map_err(|error| with_examination(error, &env))?;
    if let Some(record) = record {
        record.write(&report)?;
    }
    // The process ends next, and with it all of its memory, which is quicker.
    std::mem::forget(scope.policy);
    Ok(report)
}

/// With what to do about it.
fn told(remark: &Remark) -> String {
    match remark {
        Remark::Withheld { service, .. } => {
            format!("{remark}; to approve it in this run: --approve {service}")
        }
        other => other.to_string(),
    }
}

fn terminal(always: bool, never: bool) -> Terminal {
    match (always, never) {
        (true, _) => Terminal::Always,
        (_, true) => Terminal::Never,
        _ => Terminal::Auto,
    }
}

/// When the sandbox could not be built, says what `doctor` would say.
pub(crate) fn with_examination(error: RunError, env: &HostEnv) -> Failure {
    // A network that cannot be entered has a hint of its own.
    let is_machine = matches!(&error, RunError::Spawn(cause)
        if !matches!(cause, SpawnError::EnterNetwork(_)));
    let failure = Failure::from(error);
    if !is_machine {
        return failure;
    }
    let missing: Vec<_> = examine(env)
        .into_iter()
        .filter(|finding| finding.health == ringfence_runtime::Health::Missing)
        .collect();
    if missing.is_empty() {
        failure
    } else {
        failure.because(&super::doctor::table(&missing))
    }
}

/// The whole path of a record, without those `..` that only walk up from the
/// folder of the command line or from the working folder. Neither has a link on
/// its way. What goes below the working folder and up again keeps its `..`, since
/// a link may lie there.
fn record_path(path: &Path, working_folder: &Path) -> std::io::Result<PathBuf> {
    let here = std::env::current_dir()?;
    let mut found = PathBuf::new();
    for part in here.join(path).components() {
        let is_on_the_way = working_folder.starts_with(&found) || here.starts_with(&found);
        if part == Component::ParentDir && is_on_the_way {
            found.pop();
        } else {
            found.push(part);
        }
    }
    Ok(found)
}

/// The record of a run, opened before the command starts and kept from it.
struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Opens it without following a link that an earlier command may have left
    /// in its folder (as in CVE-2026-39861).
    fn open(path: &Path, working_folder: &Path) -> Result<Self, Failure> {
        let unwritable = |error: std::io::Error| {
            let message = format!("{}: {error}", path.display());
            let hint = "name a file in an existing folder; links are not followed";
            Failure::new("report-unwritable", message, hint)
        };
        let path = record_path(path, working_folder).map_err(unwritable)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let opened = match path.strip_prefix(working_folder) {
            Ok(below) => {
                let folder_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let folder = rustix::fs::open(working_folder, folder_flags, Mode::empty());
                let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
                folder.and_then(|folder| rustix::fs::openat2(folder, below, flags, mode, resolve))
            }
            Err(_) => rustix::fs::open(&path, flags, mode),
        };
        let file = File::from(opened.map_err(|errno| unwritable(errno.into()))?);
        file.set_len(0).map_err(unwritable)?;
        let path = std::fs::canonicalize(&path).map_err(unwritable)?;
        Ok(Self { file, path })
    }

    fn write(mut self, report: &Report) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(report).unwrap_or_default();
        let written = self
            .file
            .set_len(0)
            .and_then(|()| writeln!(self.file, "{text}"));
        written.map_err(|error| {
            let message = format!("{}: {error}", self.path.display());
            Failure::new("report-unwritable", message, "make room for it")
        })
    }
}
