//! G9: limits hold, the reason is told, and nothing stays behind.

mod bad_values;
mod disk;
mod disk_account;
mod endings;
mod ladder;
mod memory;
mod neighbours;
mod processes;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ringfence_runtime::{ExitReason, LimitHitReport, LimitReport, Report};
use ringfence_testkit::{Folder, Outcome, Program, Started, processes_with, status_of, wait_until};

use super::ringfence;

/// A working folder with the program of loads in it as `load`.
pub(super) struct Ground {
    pub(super) folder: Folder,
    /// Where the report goes: not where the command can write.
    reports: Folder,
}

/// What came of a run, and what its report says.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) report: Report,
    /// The supervisor's process id.
    supervisor: u32,
}

impl Ground {
    pub(super) fn new() -> Self {
        Self::over(Folder::new())
    }

    fn over(folder: Folder) -> Self {
        // By a program of its own: a copy that this process had open to write
        // could not be executed while a child of another test still holds it.
        Program::new("cp")
            .args([program(), &folder.join("load")])
            .run()
            .expect_code(0);
        let reports = Folder::new();
        Self { folder, reports }
    }

    fn command(&self, flags: &[&str], script: &str) -> Program {
        // The folder's name marks the processes of this run.
        self.command_of(flags, &["sh", "-c", script, self.folder.text()])
    }

    /// A run of these words, as they are.
    pub(super) fn command_of(&self, flags: &[&str], words: &[&str]) -> Program {
        let report = self.reports.join("report.json").display().to_string();
        ringfence()
            .args(["run", "--report", &report])
            .args(flags.iter().copied())
            .args(["--"])
            .args(words.iter().copied())
            .folder(&self.folder)
            .env("XDG_STATE_HOME", self.reports.path())
    }

    /// Starts a script and returns at once.
    pub(super) fn start(&self, flags: &[&str], script: &str) -> Started {
        self.command(flags, script).start()
    }

    /// Runs a script to its end.
    #[track_caller]
    pub(super) fn run(&self, flags: &[&str], script: &str) -> Ended {
        self.finish(self.start(flags, script))
    }

    /// Runs a load that stays at its limit until that is on record (`show`):
    /// what holds it may look but now and then.
    #[track_caller]
    pub(super) fn run_until_told(&self, limit: &str, flags: &[&str], script: &str) -> Ended {
        let started = self.start(flags, script);
        let is_told = wait_until(|| self.is_on_record(limit));
        self.let_go();
        let ended = self.finish(started);
        assert!(is_told, "`{script}`: {ended}");
        ended
    }

    /// Has loads that stay (`show`) go on, also those that are yet to come.
    pub(super) fn let_go(&self) {
        self.folder.write("seen", "");
    }

    fn is_on_record(&self, limit: &str) -> bool {
        let log = self.reports.join("ringfence/audit/audit.jsonl");
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let events = text.lines().map(serde_json::from_str::<serde_json::Value>);
        events
            .flatten()
            .any(|event| event["kind"] == "limit-hit" && event["limit"] == limit)
    }

    /// Waits for a script's end and reads the report.
    #[track_caller]
    pub(super) fn finish(&self, started: Started) -> Ended {
        let supervisor = started.id();
        let outcome = started.finish();
        let text = std::fs::read_to_string(self.reports.join("report.json"));
        let Ok(text) = text else {
            panic!("no report; stderr:\n{}", outcome.stderr)
        };
        let report: Report = serde_json::from_str(&text).expect("a report");
        assert_eq!(i32::from(report.exit.code), outcome.code());
        Ended {
            outcome,
            report,
            supervisor,
        }
    }

    /// Runs a load that the limits leave alone.
    #[track_caller]
    pub(super) fn passes(&self, flags: &[&str], script: &str) -> Ended {
        let ended = self.run(flags, script);
        assert_eq!(ended.code(), 0, "`{script}`: {ended}");
        assert!(ended.report.limits_hit.is_empty(), "`{script}`: {ended}");
        self.is_clean_after(&ended);
        ended
    }

    /// Runs a load that a limit ends; its time ends it if that limit does not.
    #[track_caller]
    pub(super) fn is_ended(&self, limit: &str, flags: &[&str], script: &str) -> Ended {
        let last = if flags.contains(&"--time") {
            &[][..]
        } else {
            &["--time", "90s"]
        };
        let ended = self.run(&[flags, last].concat(), script);
        ended.by_limit(limit);
        self.is_clean_after(&ended);
        ended
    }

    /// Nothing of a run is left: no process, no group. What the processes held
    /// of the machine went with them.
    #[track_caller]
    pub(super) fn is_clean_after(&self, ended: &Ended) {
        let left = inhabitants(self.folder.text(), None);
        assert!(left.is_empty(), "processes are left: {left:?}\n{ended}");
        let groups = groups_of(ended.supervisor);
        assert!(groups.is_empty(), "groups are left: {groups:?}\n{ended}");
    }

    /// The processes inside that are alive.
    pub(super) fn inhabitants(&self, run: &Started) -> Vec<u32> {
        inhabitants(self.folder.text(), Some(run.id()))
    }
}

fn inhabitants(marker: &str, supervisor: Option<u32>) -> Vec<u32> {
    let mut found = processes_with(marker);
    found.retain(|pid| Some(*pid) != supervisor && !status_of(*pid, "State:").starts_with('Z'));
    found
}

/// The control groups that a supervisor made, in every hierarchy there is.
pub(super) fn groups_of(supervisor: u32) -> Vec<PathBuf> {
    let name = format!("ringfence-{supervisor}-");
    groups_where(|group| group.starts_with(&name))
}

/// The control groups with such a name, five folders deep at most.
fn groups_where(is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = folders.pop() {
        // A group may go while we look.
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name().to_str().is_some_and(&is_wanted) {
                found.push(entry.path());
            } else if depth < 5 {
                folders.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

impl Ended {
    pub(super) fn code(&self) -> i32 {
        self.outcome.code()
    }

    /// A limit with what was used of it.
    #[track_caller]
    pub(super) fn limit(&self, name: &str) -> &LimitReport {
        let found = self.report.limits.iter().find(|limit| limit.limit == name);
        found.unwrap_or_else(|| panic!("no limit {name}: {self}"))
    }

    /// The only word about a limit that was reached.
    #[track_caller]
    pub(super) fn hit(&self, name: &str) -> &LimitHitReport {
        let hits = self.report.limits_hit.iter();
        let hits: Vec<_> = hits.filter(|hit| hit.limit == name).collect();
        let [hit] = hits[..] else {
            panic!("{} hits of {name}: {self}", hits.len())
        };
        assert!(!hit.evidence.is_empty(), "{self}");
        hit
    }

    /// The run was ended by this limit, and says so everywhere.
    #[track_caller]
    pub(super) fn by_limit(&self, name: &str) {
        let (code, reason) = match name {
            "time" => (124, ExitReason::TimeLimit),
            _ => (137, ExitReason::Limit),
        };
        assert_eq!(
            (self.code(), self.report.exit.reason),
            (code, reason),
            "{self}"
        );
        assert!(self.hit(name).ended, "{self}");
        let line = format!("ringfence: limits_hit: {name} ");
        let is_told = |text: &str| text.lines().any(|told| told.starts_with(&line));
        assert!(is_told(&self.outcome.stderr), "{self}");
    }

    /// The limit was reached, something was refused, and the command went on.
    #[track_caller]
    pub(super) fn went_on_at(&self, name: &str) {
        assert!(!self.hit(name).ended, "{self}");
        assert_eq!(self.report.exit.reason, ExitReason::Exited, "{self}");
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Outcome { stdout, stderr, .. } = &self.outcome;
        let stdout = stdout.chars().take(500).collect::<String>();
        write!(
            f,
            "exit {:?}\nlimits {:#?}\nhits {:#?}\nstdout:\n{stdout}\nstderr:\n{stderr}",
            self.report.exit, self.report.limits, self.report.limits_hit
        )
    }
}

/// The numbers that a load printed on its first line.
#[track_caller]
pub(super) fn numbers(outcome: &Outcome) -> Vec<u64> {
    let line = outcome.stdout.lines().next().unwrap_or_default();
    let words = line.split(' ').map(str::parse);
    words
        .collect::<Result<_, _>>()
        .unwrap_or_else(|_| panic!("no numbers: {outcome:?}"))
}

/// The program of loads, built once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(Folder, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = Folder::new();
        let source = folder.write("load.c", include_str!("load.c"));
        let program = folder.join("load");
        let flags = ["-std=gnu11", "-O1", "-static", "-pthread", "-o"];
        Program::new("cc")
            .args(flags)
            .args([&program, &source])
            .run()
            .expect_code(0);
        (folder, program)
    });
    program
}
