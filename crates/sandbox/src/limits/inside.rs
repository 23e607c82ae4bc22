//! What is set in the sandbox's own processes: the limits of the command's
//! process, which all it starts inherit, and who dies first when memory is out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ringfence_sys::Errno;
use ringfence_sys::seccomp::{self, Action, Filter, Rule};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};
use rustix::thread::CpuSet;

/// How much later than the whole a single process is ended for its CPU time:
/// a backstop, for when nobody looks.
const CPU_TIME_MARGIN: Duration = Duration::from_secs(5);
/// What makes the command die before the sandbox's first process and before
/// the user's own programs (proc(5): -1000 to 1000).
const COMMAND_SCORE: i32 = 500;
/// The longest text of a score, with room to see that it ends.
const LONGEST_SCORE: usize = 16;

/// Limits of the command's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProcessLimits {
    pub(crate) open_files: Option<u64>,
    /// Bytes.
    pub(crate) file_size: Option<u64>,
    /// Tasks of the sandbox's user in its user namespace.
    pub(crate) processes: Option<u64>,
    pub(crate) cpu_time: Option<Duration>,
    /// The only CPUs that may be used.
    pub(crate) cpus: Option<CpuSet>,
}

impl ProcessLimits {
    /// Sets all but the number of open files for the calling process, for good.
    pub(crate) fn apply(&self) -> Result<(), Errno> {
        let cpu_seconds = self
            .cpu_time
            .map(|time| time.saturating_add(CPU_TIME_MARGIN).as_secs());
        for (resource, most) in [
            (Resource::Fsize, self.file_size),
            (Resource::Nproc, self.processes),
            (Resource::Cpu, cpu_seconds),
        ] {
            if let Some(most) = most {
                lower(resource, most)?;
            }
        }
        self.cpus.as_ref().map_or(Ok(()), stay_on)
    }

    /// Sets the number of open files, when no more are to be opened until the
    /// program is replaced.
    pub(crate) fn apply_to_files(&self) -> Result<(), Errno> {
        self.open_files
            .map_or(Ok(()), |most| lower(Resource::Nofile, most))
    }
}

/// To `most`, or to what already holds if that is less.
fn lower(resource: Resource, most: u64) -> Result<(), Errno> {
    let now = rustix::process::getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    rustix::process::setrlimit(resource, limit)
}

fn stay_on(cpus: &CpuSet) -> Result<(), Errno> {
    rustix::thread::sched_setaffinity(None, cpus)?;
    let refused = Rule::always(
        libc::SYS_sched_setaffinity,
        Action::Fail(Errno::PERM.raw_os_error()),
    );
    seccomp::install(&Filter::new(vec![refused]).assemble()?)
}

/// How readily the kernel ends the calling process when memory is out.
#[derive(Debug)]
pub(crate) struct OomScore {
    file: OwnedFd,
    own: i32,
}

impl OomScore {
    /// That of the calling process, which has its first ids yet. `processes`
    /// is the host's `/proc`: the sandbox's own is read-only.
    pub(crate) fn open(processes: BorrowedFd<'_>) -> Result<Self, Errno> {
        let file = rustix::fs::openat(
            processes,
            "self/oom_score_adj",
            OFlags::RDWR | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut text = [0; LONGEST_SCORE];
        let length = rustix::io::pread(&file, &mut text, 0)?;
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        let own = text.trim().parse().unwrap_or(0);
        Ok(Self { file, own })
    }

    /// From now on for this process and those that it starts.
    pub(crate) fn raise(&self) -> Result<(), Errno> {
        self.set(self.own.max(COMMAND_SCORE))
    }

    /// For this process alone, as it was.
    pub(crate) fn restore(&self) -> Result<(), Errno> {
        self.set(self.own)
    }

    fn set(&self, score: i32) -> Result<(), Errno> {
        let score = score.to_string();
        match rustix::io::pwrite(&self.file, score.as_bytes(), 0)? {
            written if written == score.len() => Ok(()),
            _ => Err(Errno::IO),
        }
    }
}

impl AsFd for OomScore {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
