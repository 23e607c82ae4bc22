//! A secret that a program prints.
//!
//! It runs outside, as the user, with nothing about it that code inside could
//! have made, for a bounded time.

mod program;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ringfence_egress::SecretError;
use rustix::io::Errno;
use zeroize::Zeroizing;

use self::program::Program;
use super::Surroundings;
use super::shared::Shared;
use crate::host_program::{HostProgram, HostProgramError, wait_until};
use crate::secrets::value;

pub(in crate::secrets) use self::program::ProgramError;

/// The longest time that it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A line end may follow.
const LONGEST_OUTPUT: usize = value::LARGEST + 2;

/// A program that prints a secret.
pub(in crate::secrets) struct SecretCommand {
    argv: Vec<String>,
    /// Found once: what is there later, code inside may have put there.
    program: Result<Program, ProgramError>,
    refresh: Option<Duration>,
    home: PathBuf,
    patience: Duration,
    shared: Shared,
}

/// Why a program gave no secret.
enum Failed {
    Program(ProgramError),
    Running(HostProgramError),
    Long,
    Ended(ExitStatus),
}

impl SecretCommand {
    pub(super) fn new(
        argv: &[String],
        refresh: Option<Duration>,
        surroundings: &Surroundings,
    ) -> Self {
        Self {
            argv: argv.to_vec(),
            program: Program::find(argv, surroundings),
            refresh,
            home: surroundings.home.clone(),
            patience: PATIENCE,
            shared: Shared::default(),
        }
    }

    /// Why it must not be run, if code inside could have a say in it.
    pub(super) fn danger(&self) -> Option<&ProgramError> {
        self.program
            .as_ref()
            .err()
            .filter(|error| error.is_unsafe())
    }

    /// What it printed within the last `refresh`, or prints now.
    pub(super) fn read(&self) -> Result<Zeroizing<String>, SecretError> {
        self.shared.get(self.refresh, || self.run())
    }

    fn run(&self) -> Result<Zeroizing<String>, SecretError> {
        let told = |why: String| format!("the command {} {why}", self.name());
        let output = self
            .output()
            .map_err(|why| SecretError::Failed(told(why.text(self.patience))))?;
        value::text(output).map_err(|error| {
            SecretError::Malformed(told(format!("printed what is no secret: {error}")))
        })
    }

    fn output(&self) -> Result<Zeroizing<Vec<u8>>, Failed> {
        let end = Instant::now() + self.patience;
        let program = self.program.as_ref();
        let program = program.map_err(|error| Failed::Program(error.clone()))?;
        let mut running = HostProgram::start(&mut self.command(program))?;
        let output = running.take_output();
        let output = output.ok_or(HostProgramError::Watch(Errno::BADF))?;
        let output = read(output, end)?;
        match running.end(end)? {
            status if status.success() => Ok(output),
            status => Err(Failed::Ended(status)),
        }
    }

    fn name(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    fn command(&self, program: &Program) -> Command {
        let mut command = Command::new(&program.file);
        command
            // Some programs do as they are called.
            .arg0(self.name())
            .args(self.argv.iter().skip(1))
            .env_clear()
            .env("PATH", &program.path)
            .env("HOME", &self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // It may show the secret.
            .stderr(Stdio::null());
        command
    }
}

impl From<HostProgramError> for Failed {
    fn from(error: HostProgramError) -> Self {
        Self::Running(error)
    }
}

impl Failed {
    fn text(self, patience: Duration) -> String {
        match self {
            Self::Program(error) => error.to_string(),
            Self::Running(HostProgramError::Slow) => format!("did not end within {patience:?}"),
            Self::Running(error) => error.to_string(),
            Self::Long => format!("printed more than {LONGEST_OUTPUT} bytes"),
            Self::Ended(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("ended with {code}"),
                (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
            },
        }
    }
}

/// All that it prints.
fn read(mut output: File, end: Instant) -> Result<Zeroizing<Vec<u8>>, Failed> {
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(vec![0; LONGEST_OUTPUT + 1]);
    let mut length = 0;
    loop {
        wait_until(&output, end)?;
        match output.read(&mut bytes[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HostProgramError::Start(error).into()),
        }
        if length > LONGEST_OUTPUT {
            return Err(Failed::Long);
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::secrets::writable::WritablePlaces;

    fn around(path: &str, writable: &Path) -> Surroundings {
        Surroundings {
            home: "/home/u".into(),
            path: Some(path.into()),
            writable: WritablePlaces::new([writable.to_path_buf()]),
            masked: Vec::new(),
        }
    }

    fn command(argv: &[&str]) -> SecretCommand {
        let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
        let around = around("/usr/bin:/bin", Path::new("/w"));
        SecretCommand::new(&argv, None, &around)
    }

    fn sh(script: &str) -> SecretCommand {
        command(&["sh", "-c", script])
    }

    fn why(command: &SecretCommand) -> String {
        command.read().unwrap_err().to_string()
    }

    #[test]
    fn what_a_program_prints_is_read_each_time() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("token");
        let command = sh(&format!("cat {}", file.display()));
        for value in ["first-value", "second-value\n"] {
            std::fs::write(&file, value).unwrap();
            assert_eq!(command.read().unwrap().as_str(), value);
        }
    }

    #[test]
    fn it_is_run_once_in_the_time_that_its_answer_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let script = format!("echo x >> {0}/runs; cat {0}/runs", place.path().display());
        let mut command = sh(&script);
        command.refresh = Some(Duration::from_hours(1));
        for _ in 0..3 {
            assert_eq!(command.read().unwrap().as_str(), "x\n");
        }
    }

    #[test]
    fn g5_it_starts_with_a_clean_environment_outside_of_the_working_folder() {
        let seen = sh("env | grep -v ^_= | cut -d= -f1 | sort; pwd; cat").read();
        let seen = seen.unwrap();
        let names: Vec<&str> = seen.lines().collect();
        assert_eq!(names, ["HOME", "PATH", "PWD", "/"], "{seen:?}");
    }

    #[test]
    fn g5_its_errors_hold_nothing_that_it_printed() {
        for (script, told) in [
            (
                "echo s3cr3t-value; echo s3cr3t-value >&2; exit 3",
                "ended with 3",
            ),
            ("echo s3cr3t-value; kill -9 $$", "ended by signal 9"),
            ("printf 's3cr3t-value\\377'", "not UTF-8"),
            ("head -c 99999 /dev/zero", "more than"),
        ] {
            let why = why(&sh(script));
            assert!(why.contains(told) && !why.contains("s3cr3t"), "{why}");
        }
        let why = why(&command(&["/none/such"]));
        assert!(why.contains("/none/such is not there"), "{why}");
    }

    #[test]
    fn g4_what_is_planted_during_a_run_is_not_run() {
        let place = tempfile::tempdir().unwrap();
        let [bin, work] = ["bin", "work"].map(|name| place.path().join(name));
        for folder in [&bin, &work] {
            std::fs::create_dir(folder).unwrap();
        }
        let write = |folder: &Path, name: &str, text: &str| {
            let file = folder.join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        };
        let path = format!("{}:{}:/usr/bin:/bin", work.display(), bin.display());
        let argv = ["get-token".to_owned()];
        let early = SecretCommand::new(&argv, None, &around(&path, &work));
        write(&bin, "get-token", "help");
        write(&bin, "help", "echo right");
        let late = SecretCommand::new(&argv, None, &around(&path, &work));
        write(&work, "get-token", "echo planted");
        write(&work, "help", "echo planted");
        assert_eq!(late.read().unwrap().as_str(), "right\n");
        assert!(why(&early).contains("no folder of PATH"));
    }

    #[test]
    fn a_program_is_called_as_it_is_written() {
        let seen = command(&["sh", "-c", "echo $0"]).read().unwrap();
        assert_eq!(seen.as_str(), "sh\n");
    }

    /// Whether a process is there and not just a number that nobody asked for.
    fn lives(pid: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        status.is_ok_and(|text| !text.contains(") Z "))
    }

    #[test]
    fn g8_what_takes_too_long_ends_with_all_that_it_started() {
        let place = tempfile::tempdir().unwrap();
        let note = place.path().join("pids");
        let script = format!("sleep 300 & echo $! $$ > {}; wait", note.display());
        let mut command = sh(&script);
        command.patience = Duration::from_secs(1);
        assert!(why(&command).contains("did not end within 1s"));
        let pids = std::fs::read_to_string(note).unwrap();
        let pids: Vec<&str> = pids.split_whitespace().collect();
        assert_eq!(pids.len(), 2);
        let end = Instant::now() + Duration::from_secs(10);
        while pids.iter().any(|pid| lives(pid)) {
            assert!(Instant::now() < end, "{pids:?} are still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn g8_what_it_leaves_behind_ends_with_it() {
        let left = sh("sleep 300 > /dev/null & printf %s $!").read().unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while lives(&left) {
            assert!(Instant::now() < end, "{} is still there", left.as_str());
            std::thread::yield_now();
        }
    }
}
