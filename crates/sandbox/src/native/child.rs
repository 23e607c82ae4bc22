//! The process that becomes the command: last restrictions, then `execve`.

use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use ringfence_sys::{self as sys, Channel, Errno};

use super::broker;
use super::failure::{During, Failure};
use super::handover::{self, Progress, Ways};
use super::observe::{self, Observer, Pass};
use super::prepared::Way;
use crate::plan::{Plan, Stream};
use crate::wire::{Event, Step};

/// Where a command is looked for when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Becomes the command. Returns only when that failed, after having told the
/// init so, to which the listener of the command's filter goes as well.
pub(super) fn run(
    plan: &Plan,
    terminal: Option<&OwnedFd>,
    ways: &Ways<'_>,
    observer: &Observer,
    progress: &Progress,
) -> i32 {
    if let Err(failure) = prepare(plan, terminal, ways) {
        let _ = tell(ways.init, &failure.event(), &[]);
        return 1;
    }
    let door = Door {
        plan,
        observer,
        progress,
    };
    let Err(errno) = door.search();
    let _ = tell(
        ways.init,
        &Event::ExecFailed {
            errno: errno.raw_os_error(),
        },
        &[],
    );
    1
}

fn prepare(plan: &Plan, terminal: Option<&OwnedFd>, ways: &Ways<'_>) -> Result<(), Failure> {
    if terminal.is_some() {
        rustix::process::setpgid(None, None).during(Step::Session)?;
    } else {
        rustix::process::setsid().during(Step::Session)?;
    }
    // What came to the group that we were in is passed on to us once more.
    sys::reset_signals().during(Step::Session)?;
    use_streams(plan, terminal)?;
    rustix::process::chdir(plan.working_folder()).at(Step::WorkingFolder, plan.working_folder())?;
    sys::set_umask(plan.umask());
    let limits = plan.limits().process();
    limits.apply().during(Step::ProcessLimits)?;
    sys::drop_capabilities().during(Step::Capabilities)?;
    sys::close_all_on_exec().during(Step::CloseDescriptors)?;
    handover::install(plan, ways)?;
    limits.apply_to_files().during(Step::ProcessLimits)
}

/// Replaces those standard streams that are a terminal outside.
fn use_streams(plan: &Plan, terminal: Option<&OwnedFd>) -> Result<(), Failure> {
    let replaced = |at: usize| match &plan.streams()[at] {
        Stream::Keep => None,
        Stream::Terminal => terminal,
        Stream::Given(fd) => Some(fd),
    };
    if let Some(input) = replaced(0) {
        rustix::stdio::dup2_stdin(input).during(Step::Terminal)?;
    }
    if let Some(output) = replaced(1) {
        rustix::stdio::dup2_stdout(output).during(Step::Terminal)?;
    }
    if let Some(error) = replaced(2) {
        rustix::stdio::dup2_stderr(error).during(Step::Terminal)?;
    }
    Ok(())
}

pub(super) fn tell(
    channel: &Channel,
    event: &Event,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(event).map_err(|_| Errno::INVAL)?;
    channel.send(&bytes, descriptors)
}

/// From here to the command. All descriptors but the standard streams are
/// close-on-exec.
struct Door<'a> {
    plan: &'a Plan,
    observer: &'a Observer,
    progress: &'a Progress,
}

impl Door<'_> {
    /// Tries the command where a shell would look for it.
    fn search(&self) -> Result<Infallible, Errno> {
        let program = self.plan.program();
        if program.as_bytes().contains(&b'/') {
            return match rustix::fs::lstat(program) {
                Err(errno) if is_absent(errno, program) => self.miss(program, errno),
                _ => self.enter(program),
            };
        }
        let mut worst = Errno::NOENT;
        let mut missing = None;
        for folder in search_path(self.plan).split(|byte| *byte == b':') {
            let Some(candidate) = candidate(folder, program) else {
                continue;
            };
            // Each try to run something may pass the init, which takes longer.
            if rustix::fs::stat(&candidate).is_err() {
                missing = Some(candidate);
                continue;
            }
            let Err(errno) = self.enter(&candidate);
            match errno {
                Errno::NOENT | Errno::NOTDIR => {}
                Errno::ACCESS => worst = errno,
                errno => return Err(errno),
            }
        }
        match missing {
            Some(missing) if worst == Errno::NOENT => self.miss(&missing, worst),
            _ => Err(worst),
        }
    }

    /// Becomes the program, which is on record before.
    fn enter(&self, program: &CString) -> Result<Infallible, Errno> {
        let shown = match self.plan.prepared().way {
            Way::InMemory(pass) => {
                self.record(program)?;
                pass.map_or([0; 3], |Pass(shown)| shown)
            }
            Way::Copied { .. } => [0; 3],
        };
        let (arguments, environment) = (self.plan.arguments(), self.plan.environment());
        self.progress.rest();
        let failed = sys::exec(program, arguments, environment, shown);
        self.progress.work();
        failed
    }

    /// Has it on record that a program is not there.
    fn miss(&self, program: &CString, errno: Errno) -> Result<Infallible, Errno> {
        match self.plan.prepared().way {
            Way::InMemory(_) => {
                self.observer.count(libc::SYS_execve);
                Err(errno)
            }
            // The init sees this, and has taken our listener by the time that
            // we end.
            Way::Copied { .. } => self.enter(program),
        }
    }

    fn record(&self, program: &CString) -> Result<(), Errno> {
        if !observe::is_of_interest(self.observer.level(), libc::SYS_execve) {
            return Ok(());
        }
        let started = broker::started(program, self.plan.arguments(), self.plan.working_folder());
        if self.observer.tell_command(started, program.as_bytes()) {
            Ok(())
        } else {
            Err(Errno::IO)
        }
    }
}

/// Nothing that could be run, wherever it may lead. In `/proc` and `/dev`, and
/// with a slash at its end, a path is told in any case.
fn is_absent(errno: Errno, program: &CStr) -> bool {
    let path = program.to_bytes();
    let is_told = path.starts_with(b"/proc/") || path.starts_with(b"/dev/") || path.ends_with(b"/");
    !is_told && matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)
}

fn search_path(plan: &Plan) -> Vec<u8> {
    plan.environment()
        .iter()
        .find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH.as_bytes())
        .to_vec()
}

/// An empty entry would mean the current folder, which is the one place that
/// code inside can write: it is passed over.
fn candidate(folder: &[u8], program: &CString) -> Option<CString> {
    if folder.is_empty() {
        return None;
    }
    let path =
        std::path::Path::new(OsStr::from_bytes(folder)).join(OsStr::from_bytes(program.as_bytes()));
    CString::new(path.into_os_string().into_vec()).ok()
}
