//! The sweep at the end of a run, also of one that was cut off.
//!
//! While a run goes on, a record of what it may write lies in the guard's
//! directory, locked by the supervisor. Whoever finds one that nobody holds
//! sweeps in its place.

use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_policy::{PathRule, Policy, Resolved};
use ringfence_sandbox::{Plan, SweepRecord, Sweeper, Swept};
use ringfence_sys::Errno;
use rustix::fs::FlockOperation;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// The most records of other runs that are looked at.
const MOST_RECORDS: usize = 1000;
/// How long everything of a run may go on after its supervisor was killed.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// How often making a record is tried.
const MOST_TRIES: usize = 8;
/// The largest record that is read.
const LARGEST_RECORD: u64 = 4 << 20;
/// From when on a record that cannot be read is nobody's: its owner has long
/// written it.
const OLD: Duration = Duration::from_mins(1);
/// From when on directories that are not there are taken for gone, and not for
/// those of a disk that is away.
const VERY_OLD: Duration = Duration::from_hours(24);

/// What lies in the directory while a run goes on.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The process that sweeps if it lives.
    supervisor: i32,
    record: SweepRecord,
}

/// Why a run cannot be swept should it be cut off.
#[derive(Debug, thiserror::Error)]
#[error("cannot write down what is to be looked at when the run is over: {path}: {error}")]
pub struct SweepError {
    path: PathBuf,
    error: std::io::Error,
}

impl SweepError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        "guard-record"
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "make the directory writable, or name another: XDG_STATE_HOME=DIR"
    }
}

/// A sweep that is due.
pub(crate) struct Due {
    sweeper: Sweeper,
    record: PathBuf,
    quarantine: PathBuf,
    is_done: bool,
    /// Locked for as long as this process lives.
    _held: File,
}

impl Due {
    /// Writes down what a plan lets be written. Nothing where nothing of the
    /// host is writable.
    pub(crate) fn begin(plan: &Plan, folder: &Path, run: &str) -> Result<Option<Self>, SweepError> {
        let Some(sweeper) = plan.sweeper() else {
            return Ok(None);
        };
        let path = folder.join(format!("{run}.json"));
        let held = write(folder, &path, &sweeper.record()).map_err(|error| SweepError {
            path: path.clone(),
            error,
        })?;
        Ok(Some(Self {
            sweeper,
            record: path,
            quarantine: folder.join("quarantine").join(run),
            is_done: false,
            _held: held,
        }))
    }

    /// The command is let go now.
    pub(crate) fn begin_now(&mut self) {
        self.sweeper.begin_now();
    }

    /// Looks at what the run left.
    pub(crate) fn finish(mut self) -> Vec<Swept> {
        self.is_done = true;
        self.sweep()
    }

    /// Directories that are empty then go too.
    fn sweep(&self) -> Vec<Swept> {
        let swept = self.sweeper.sweep(&self.quarantine);
        let _ = std::fs::remove_file(&self.record);
        for directory in self.record.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(directory);
        }
        swept
    }
}

impl Drop for Due {
    /// A run that failed is swept too. Nothing of it may be alive by then.
    fn drop(&mut self) {
        if !self.is_done {
            self.sweep();
        }
    }
}

fn write(folder: &Path, path: &Path, record: &SweepRecord) -> std::io::Result<File> {
    let create = || {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600).open(path)
    };
    // Another run may just have removed the directory, which was empty.
    let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    let mut tries = (0..MOST_TRIES).map(|_| create());
    let made = tries.find(|made| !made.as_ref().is_err_and(is_gone));
    let mut file = made.unwrap_or_else(create)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    let written = Written {
        supervisor: rustix::process::getpid().as_raw_pid(),
        record: record.clone(),
    };
    file.write_all(&serde_json::to_vec(&written)?)?;
    Ok(file)
}

/// Sweeps after runs in the same directories that were cut off.
pub(crate) fn sweep_after_others(
    policy: &Resolved<Policy>,
    working_folder: &Path,
    folder: &Path,
) -> Vec<Swept> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let named = policy.filesystem().write_allow.iter();
    let named = named.filter_map(|rule| match &rule.value {
        PathRule::Literal(path) => Some(path.as_path()),
        PathRule::Glob(_) => None,
    });
    let writable: Vec<&Path> = named.chain([working_folder]).collect();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let records = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    records
        .take(MOST_RECORDS)
        .flat_map(|path| sweep_after(&path, &writable, folder))
        .collect()
}

fn sweep_after(path: &Path, writable: &[&Path], folder: &Path) -> Vec<Swept> {
    let Some((record, held)) = abandoned(path) else {
        return Vec::new();
    };
    if record.is_moot() && is_older(&held, VERY_OLD) {
        let _ = std::fs::remove_file(path);
        return Vec::new();
    }
    if !record.overlaps(writable) {
        return Vec::new();
    }
    let run = path.file_stem().unwrap_or_default();
    let swept = Sweeper::of_record(&record).sweep(&folder.join("quarantine").join(run));
    let _ = std::fs::remove_file(path);
    swept
}

/// A record that nobody holds. One that cannot be read is of no use, and is
/// removed.
fn abandoned(path: &Path) -> Option<(SweepRecord, File)> {
    let file = File::open(path).ok()?;
    // Of a supervisor that was killed, others may hold it for a moment more.
    let deadline = Instant::now() + LAST_MOMENT;
    while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let written = read(&file)?;
        if is_alive(written.supervisor) || Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let written = read(&file);
    if written.is_none() && is_older(&file, OLD) {
        let _ = std::fs::remove_file(path);
    }
    Some((written?.record, file))
}

fn is_older(file: &File, than: Duration) -> bool {
    let modified = file.metadata().and_then(|about| about.modified());
    let age = modified.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > than)
}

/// Empty, and so nothing: its owner is about to write it.
fn read(file: &File) -> Option<Written> {
    let mut file = file;
    let size = file.metadata().ok()?.len().min(LARGEST_RECORD);
    let mut text = Vec::with_capacity(usize::try_from(size).ok()? + 1);
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(LARGEST_RECORD).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn is_alive(process: i32) -> bool {
    let process = Pid::from_raw(process);
    process.is_none_or(|process| rustix::process::test_kill_process(process) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn record(folder: &Path, name: &str, text: &str, age: Duration) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
        path
    }

    #[test]
    fn records_of_no_use_are_removed_once_they_are_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let gone = r#"{"supervisor": 0, "record": {"version": 1, "roots": [{"Unix": [47, 46, 120]}],
            "names": [], "gitHooks": true, "gitConfig": true, "since": 0, "there": [],
            "ledTo": [], "links": [], "relativeHooks": []}}"#;
        let minutes = Duration::from_mins;
        let cases = [
            ("young", "", minutes(0), true),
            ("empty", "", minutes(2), false),
            ("unknown", "{}", minutes(2), false),
            ("away", gone, minutes(2), true),
            ("gone", gone, minutes(60 * 25), false),
        ];
        for (name, text, age, stays) in cases {
            let record = record(path, name, text, age);
            assert!(sweep_after(&record, &[Path::new("/.y")], path).is_empty());
            assert_eq!(record.exists(), stays, "{name}");
        }
    }
}
