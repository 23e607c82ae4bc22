//! Running programs from tests, always with an end.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No test's program runs longer than this, unless it says so.
const LONGEST: Duration = Duration::from_mins(5);
/// What has not happened after this does not happen. Both are long, so that
/// they say nothing of how busy the machine is.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program to run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    input: Vec<u8>,
    longest: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A program that is running.
#[derive(Debug)]
pub struct Started {
    child: Child,
    longest: Duration,
}

/// Whether the test runs as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Runs a shell script outside of any sandbox.
pub fn sh(script: &str, folder: &Path) -> Outcome {
    Program::new("sh").args(["-c", script]).folder(folder).run()
}

/// Waits until `condition` holds; false when it does not within a minute.
pub fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Variables of this machine that name certificates: what is tested must not
/// depend on them.
fn certificate_variables() -> impl Iterator<Item = OsString> {
    const PARTS: [&str; 5] = ["CERT", "CA_BUNDLE", "CAINFO", "CA_FILE", "SSL_ROOTS"];
    std::env::vars_os().map(|(name, _)| name).filter(|name| {
        PARTS
            .iter()
            .any(|part| name.to_string_lossy().contains(part))
    })
}

impl Program {
    /// Any program.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        for name in certificate_variables() {
            command.env_remove(name);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            command,
            input: Vec::new(),
            longest: LONGEST,
        }
    }

    /// The `ringfence` under test: `RINGFENCE_BIN`, or else the one that cargo
    /// built for this test binary, whose path is `built`.
    pub fn ringfence(built: &str) -> Self {
        let program =
            std::env::var_os("RINGFENCE_BIN").map_or_else(|| PathBuf::from(built), PathBuf::from);
        Self::new(program)
    }

    /// Where the program is.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.command.get_program())
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.args(arguments.into_iter().map(Into::into));
        self
    }

    /// Runs in `folder`.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Gives it this as standard input.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self.command.stdin(Stdio::piped());
        self
    }

    /// Lets it run for so long, if five minutes are not enough.
    #[must_use]
    pub fn within(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// Changes what the methods here do not cover.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    /// Starts it and returns at once.
    pub fn start(mut self) -> Started {
        let child = self.command.spawn().expect("a started program");
        Started {
            child,
            longest: self.longest,
        }
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Outcome {
        let mut child = self.command.spawn().expect("a started program");
        let input = std::mem::take(&mut self.input);
        let feeder = child.stdin.take().map(|mut stdin| {
            std::thread::spawn(move || {
                // A program may well end before it has read everything.
                let _ = stdin.write_all(&input);
            })
        });
        let longest = self.longest;
        let outcome = Started { child, longest }.finish();
        if let Some(feeder) = feeder {
            feeder.join().expect("a feeder that ended");
        }
        outcome
    }
}

impl Started {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The running process.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends it a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "cannot send {name}"
        );
    }

    /// Waits for its end, and kills it when that does not come.
    pub fn finish(mut self) -> Outcome {
        let readers = [
            self.child.stdout.take().map(collect),
            self.child.stderr.take().map(collect),
        ];
        let longest = self.longest;
        let end = Instant::now() + longest;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            if Instant::now() > end {
                self.child.kill().expect("a kill");
                panic!("the program did not end within {longest:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let [stdout, stderr] = readers.map(|reader| {
            let bytes = reader
                .map(|reader| reader.join().expect("a reader that ended"))
                .unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Outcome {
            status,
            stdout,
            stderr,
        }
    }
}

fn collect(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

impl Outcome {
    /// The exit code; 128 and the number if a signal ended it.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Fails the test, showing everything, unless the exit code is `code`.
    #[track_caller]
    #[allow(clippy::return_self_not_must_use, reason = "the check is the use")]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code(),
            code,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}
