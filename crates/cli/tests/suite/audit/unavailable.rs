//! Where nothing can be recorded nothing runs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringfence_testkit::{Folder, Outcome, Program, is_root, sh};

use super::super::ringfence;
use super::Ledger;

/// Tries to run something with the log below `state`.
fn attempt(state: &Path, folder: &Folder) -> Outcome {
    ringfence()
        .args(["run", "--", "sh", "-c", "echo > ran"])
        .folder(folder)
        .env("XDG_STATE_HOME", state)
        .run()
}

#[track_caller]
fn is_refused(outcome: Outcome, folder: &Folder, why: &str) {
    let outcome = outcome.expect_code(125);
    // The guard's record is the first that has no room.
    let codes = ["error[audit-unavailable]", "error[guard-record]"];
    let is_told = codes.iter().any(|code| outcome.stderr.contains(code));
    assert!(
        is_told && outcome.stderr.contains("hint:"),
        "{why}: {}",
        outcome.stderr
    );
    assert!(!folder.has("ran"), "{why}");
}

/// What is wrong below the folder of states, and how it came so.
const OBSTACLES: [(&str, &str); 5] = [
    (
        "a file for the folder",
        "mkdir ringfence && echo > ringfence/audit",
    ),
    (
        "a link for the folder",
        "mkdir elsewhere ringfence && ln -s ../elsewhere ringfence/audit",
    ),
    (
        "a link for the log",
        "mkdir -p -m 700 ringfence/audit && echo > elsewhere && ln -s ../../elsewhere ringfence/audit/audit.jsonl",
    ),
    (
        "a folder for the log",
        "mkdir -p -m 700 ringfence/audit && mkdir ringfence/audit/audit.jsonl",
    ),
    (
        "a key that others can read",
        "mkdir -p -m 700 ringfence/audit && head -c 32 /dev/zero > ringfence/audit/audit.key && \
         chmod 644 ringfence/audit/audit.key",
    ),
];

#[test]
fn g7_g10_nothing_runs_without_a_usable_log() {
    for (why, script) in OBSTACLES {
        let (state, folder) = (Folder::new(), Folder::new());
        sh(script, state.path()).expect_code(0);
        is_refused(attempt(state.path(), &folder), &folder, why);
    }
}

/// The folder of the log as we make it ourselves.
fn make_folder(state: &Folder) {
    let audit = state.join("ringfence/audit");
    std::fs::create_dir_all(&audit).expect("a folder");
    std::fs::set_permissions(audit, PermissionsExt::from_mode(0o700)).expect("a mode");
}

#[test]
fn g7_nothing_runs_with_the_folder_of_somebody_else() {
    let folder = Folder::new();
    if is_root() {
        let state = Folder::new();
        make_folder(&state);
        std::os::unix::fs::chown(state.join("ringfence/audit"), Some(1), Some(1))
            .expect("an owner");
        is_refused(attempt(state.path(), &folder), &folder, "another's folder");
    } else {
        // Root's, which cannot be written to.
        is_refused(
            attempt(Path::new("/usr"), &folder),
            &folder,
            "root's folder",
        );
    }
}

#[test]
fn g7_nothing_runs_with_a_folder_that_everybody_can_write_to() {
    let (state, folder) = (Folder::new(), Folder::new());
    make_folder(&state);
    let mode = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(state.join("ringfence/audit"), mode).expect("a mode");
    let outcome = attempt(state.path(), &folder);
    // Refused, or closed to others before it is used.
    let mode = std::fs::metadata(state.join("ringfence/audit"))
        .expect("the folder")
        .permissions()
        .mode();
    assert!(
        outcome.code() == 125 || mode & 0o777 == 0o700,
        "{mode:o} {outcome:?}"
    );
}

#[test]
fn g7_nothing_runs_while_somebody_else_keeps_the_log() {
    let state = Folder::new();
    attempt(state.path(), &Folder::new()).expect_code(0);
    let lock = std::fs::File::open(state.join("ringfence/audit/audit.lock")).expect("a lock");
    lock.lock().expect("the lock");
    // The command's process is there by then, in one way or another.
    for level in ["security", "all"] {
        let folder = Folder::new();
        let outcome = ringfence()
            .args(["run", "--audit", level, "--", "sh", "-c", "echo > ran"])
            .folder(&folder)
            .env("XDG_STATE_HOME", state.path())
            .run();
        is_refused(outcome, &folder, level);
    }
    lock.unlock().expect("no lock");
    attempt(state.path(), &Folder::new()).expect_code(0);
}

#[test]
fn without_a_record_a_log_is_not_needed() {
    let (state, folder) = (Folder::new(), Folder::new());
    state.write("ringfence/audit", "file");
    ringfence()
        .args(["run", "--audit", "off", "--", "sh", "-c", "echo > ran"])
        .folder(&folder)
        .env("XDG_STATE_HOME", state.path())
        .run()
        .expect_code(0);
    assert!(folder.has("ran"));
}

/// Runs a script of root's in which `$1` is the binary and `$2` an empty folder
/// on which a small file system can be put, out of sight of all others.
fn apart(state: &Folder, folder: &Folder, script: &str) -> Outcome {
    let binary = ringfence().path().display().to_string();
    Program::new("unshare")
        .args(["-m", "sh", "-ec", script, "sh", &binary, state.text()])
        .folder(folder)
        .env("XDG_STATE_HOME", state.path())
        .run()
}

#[test]
fn g7_nothing_runs_when_the_log_has_no_room() {
    if !is_root() {
        return;
    }
    for (why, script) in [
        (
            "full",
            "mount -t tmpfs -o size=64k,mode=755 none $2; cat /dev/zero > $2/filler 2>/dev/null || true; \
             exec $1 run -- sh -c 'echo > ran'",
        ),
        (
            "no names",
            "mount -t tmpfs -o size=64k,nr_inodes=2,mode=755 none $2; \
             exec $1 run -- sh -c 'echo > ran'",
        ),
        (
            "read-only",
            "mount -t tmpfs -o ro,mode=755 none $2; exec $1 run -- sh -c 'echo > ran'",
        ),
    ] {
        let (state, folder) = (Folder::new(), Folder::new());
        is_refused(apart(&state, &folder, script), &folder, why);
    }
}

#[test]
fn g7_a_read_only_folder_is_refused() {
    if is_root() {
        return;
    }
    let (state, folder) = (Folder::new(), Folder::new());
    std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o500)).expect("a mode");
    let outcome = attempt(state.path(), &folder);
    is_refused(outcome, &folder, "read-only");
}

#[track_caller]
fn is_told_as_full(outcome: &Outcome) {
    let told = ["error[audit-full]", "hint: make room"];
    let is_told = told.iter().all(|words| outcome.stderr.contains(words));
    assert!(is_told, "{}", outcome.stderr);
}

/// Each of these makes is a record of its own.
const MANY_RECORDS: &str = "name=$(printf %0240d 1); i=0; \
    while [ $i -lt 200000 ]; do : > $name-$i; rm $name-$i; i=$((i+1)); done; echo > finished";

#[test]
fn g7_a_full_disk_is_told_as_that_while_a_command_runs_and_later() {
    let ledger = Ledger::new();
    let folder = &ledger.arena.folder;
    let binary = ringfence().path().display().to_string();
    // What is too large for a file is told as what is too much for its disk.
    // The memory that records are handed over in is a file as well.
    let script = "trap '' XFSZ; ulimit -f 1200; exec \"$0\" \"$@\"";
    let outcome = Program::new("bash")
        .args(["-c", script, &binary])
        .args(["run", "--quiet", "--report", "report.json"])
        .args(["--", "sh", "-c", MANY_RECORDS])
        .folder(folder)
        .env("XDG_STATE_HOME", ledger.state.path())
        .run()
        .expect_code(125);
    is_told_as_full(&outcome);
    assert!(!folder.has("finished"));
    let report = folder.read("report.json");
    let report: serde_json::Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(report["exit"]["reason"], "audit-full", "{report:#}");
    let told = ringfence()
        .args(["audit", "list"])
        .env("XDG_STATE_HOME", ledger.state.path())
        .run()
        .expect_code(0)
        .stdout;
    is_listed_as_that(&told);
}

/// Not as killed. The seal is short, and may have found room.
#[track_caller]
fn is_listed_as_that(list: &str) {
    let known = ["  sealed  ", "  disk full  "];
    assert!(known.iter().any(|words| list.contains(words)), "{list}");
}

#[test]
fn g7_a_command_is_ended_when_it_can_no_longer_be_recorded() {
    if !is_root() {
        return;
    }
    let ledger = Ledger::new();
    // Different names, so that each of them is a record of its own.
    let script = "mount -t tmpfs -o size=256k,mode=755 none $2; \
        code=0; $1 run --quiet --report report.json -- sh -c \
        'i=0; while [ $i -lt 200000 ]; do : > f-$i; rm f-$i; i=$((i+1)); done; echo > finished' || code=$?; \
        $1 audit list; exit $code";
    let outcome = apart(&ledger.state, &ledger.arena.folder, script).expect_code(125);
    is_told_as_full(&outcome);
    is_listed_as_that(&outcome.stdout);
    assert!(!ledger.arena.folder.has("finished"));
    let report: serde_json::Value =
        serde_json::from_str(&ledger.arena.folder.read("report.json")).expect("a report");
    assert_eq!(report["exit"]["reason"], "audit-full", "{report:#}");
    assert_eq!(report["exit"]["code"], 125);
}
