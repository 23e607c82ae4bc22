//! `ringfence audit`: what a run did, and whether its record is whole.

use ringfence_audit::{
    Action, Arguments, Call, ErrorName, LimitSet, Log, Outcome, Paths, Peak, Recorder, RunEnded,
    RunId, RunStarted, Timestamp,
};
use ringfence_policy::AuditLevel;
use ringfence_testkit::{Folder, Outcome as Ended};
use serde_json::Value;

use super::ringfence;

const LOG: &str = "ringfence/audit/audit.jsonl";

fn audit(state: &Folder, words: &[&str]) -> Ended {
    ringfence()
        .args(["audit"].iter().chain(words).copied())
        .env("XDG_STATE_HOME", state.path())
        .run()
}

fn json_of(outcome: &Ended) -> Value {
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// A finished run whose id begins with `digit`.
fn record(state: &Folder, digit: u128, program: &str) {
    let log = Log::open(&state.join("ringfence/audit")).expect("a log");
    let run = RunId::from_bits(digit << 124);
    let recorder = Recorder::new(Some(log), run, Some("box"));
    let started = RunStarted {
        command: Arguments::new([program, "--password", "hunter2"]),
        working_folder: "/project".into(),
        uid: 1000,
        level: AuditLevel::Security,
        reduced: None,
        limits: [
            ("memory", 128 << 20, "bytes"),
            ("pids", 4096, "tasks"),
            ("time", 2000, "milliseconds"),
        ]
        .map(|(limit, configured, unit)| LimitSet {
            limit: limit.into(),
            configured,
            unit: unit.into(),
            mechanism: "cgroup-v2".into(),
        })
        .into(),
        policy: None,
        supervisor: None,
    };
    recorder.run_started(started).expect("a record");
    let call = |action, path: &str, outcome| Call {
        pid: 7,
        call: "openat".into(),
        action,
        paths: Paths::new([path]),
        argv: Arguments::default(),
        outcome,
        rule: None,
    };
    let calls = [
        call(Action::Exec, &format!("/bin/{program}"), Outcome::Continued),
        call(Action::Write, "/project/out.txt", Outcome::Done),
        call(
            Action::Write,
            "/project/\u{1b}[2J.bashrc",
            Outcome::Refused(ErrorName::of(13)),
        ),
        Call {
            argv: Arguments::new(["sh", "-c", "curl -u me:hunter2 x; ls"]),
            ..call(Action::Exec, "/bin/sh", Outcome::Continued)
        },
        Call {
            rule: Some("hidden place".into()),
            ..call(Action::Read, "/home/a/.ssh/id_rsa", Outcome::Continued)
        },
    ];
    let now = Timestamp::now();
    recorder
        .calls(calls.map(|call| (now, call)))
        .expect("records");
    let ended = RunEnded {
        code: 3,
        reason: "exited".into(),
        signal: None,
        duration_ms: 1234,
        peaks: [("pids", 2, "tasks"), ("time", 1500, "milliseconds")]
            .map(|(limit, peak, unit)| Peak {
                limit: limit.into(),
                peak,
                unit: unit.into(),
            })
            .into(),
        refusals: 1,
    };
    recorder.run_ended(ended).expect("a record");
    recorder.seal().expect("a seal");
}

fn two_runs() -> Folder {
    let state = Folder::new();
    record(&state, 0xa, "first");
    record(&state, 0xb, "second");
    state
}

#[test]
fn a_run_is_shown_as_a_story() {
    let state = two_runs();
    let last = audit(&state, &["show"]).expect_code(0);
    for want in [
        "Command  second --password [redacted]",
        "/bin/second",
        "write  /project/out.txt",
        "sh -c 'curl -u me:[redacted] x; ls'",
        "Seen (how it ended is not known)\n  read  /home/a/.ssh/id_rsa  ×1  hidden place  openat",
        "Refused\n  write  /project/",
        "openat: EACCES",
        "memory  at most 128.0 MiB",
        "pids    2 of 4096 tasks",
        "time    1.500 s of 2.000 s",
        "after 1.234 s: exited with 3; 1 refused.",
        "Record   sealed",
    ] {
        assert!(last.stdout.contains(want), "{want}: {}", last.stdout);
    }
    assert!(!last.stdout.contains('\u{1b}') && !last.stdout.contains("hunter2"));
    let first = json_of(&audit(&state, &["show", "a", "--json"]).expect_code(0));
    assert_eq!(first["programs"][0]["program"], "/bin/first");
    assert_eq!(first["end"]["code"], 3);
    assert_eq!(first["state"], "sealed");
    for (words, code) in [(["show", "c"], "audit-no-run"), (["show", "zz"], "usage")] {
        let outcome = audit(&state, &words);
        assert_ne!(outcome.code(), 0);
        assert!(outcome.stderr.contains(code), "{}", outcome.stderr);
    }
    let none = audit(&Folder::new(), &["show"]).expect_code(1);
    assert!(none.stderr.contains("no run is on record"));
}

#[test]
fn runs_are_listed_and_their_events_printed() {
    let state = two_runs();
    let table = audit(&state, &["list"]).expect_code(0).stdout;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.contains("sealed") && table.contains("box"), "{table}");
    let listed = json_of(&audit(&state, &["list", "--json", "--limit", "1"]).expect_code(0));
    assert_eq!(listed[0]["command"][0], "second");
    let tail = audit(&state, &["tail", "--run", "a", "-n", "2"]).expect_code(0);
    let lines: Vec<&str> = tail.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("ended    exited with 3"), "{}", lines[0]);
    let tail = audit(&state, &["tail", "--run", "a"]).expect_code(0).stdout;
    assert!(tail.contains("seen     read /home/a/.ssh/id_rsa"), "{tail}");
    assert!(tail.contains("allowed  write /project/out.txt"), "{tail}");
    let tail = audit(&state, &["tail", "--json", "-n", "1"]).expect_code(0);
    assert_eq!(json_of(&tail)["kind"], "sealed");
}

#[test]
fn an_altered_record_is_found_and_told_by_the_exit_code() {
    let state = two_runs();
    let fine = audit(&state, &["verify"]).expect_code(0);
    assert!(
        fine.stdout
            .contains("16 records in 1 files, 1 to 16; 2 runs sealed, 0 not.")
    );
    let text = state.read(LOG);
    state.write(LOG, &text.replacen("out.txt", "OUT.txt", 1));
    let altered = audit(&state, &["verify"]).expect_code(1);
    assert!(
        altered
            .stdout
            .starts_with("ALTERED  audit.jsonl:3 (record 3): the record was altered"),
        "{}",
        altered.stdout
    );
    let found = json_of(&audit(&state, &["verify", "--json"]).expect_code(1));
    assert_eq!(found["fine"], false);
    assert_eq!(found["problems"][0]["problem"], "altered");
    assert_eq!(found["problems"][0]["line"], 3);
    std::fs::remove_file(state.join(LOG)).expect("no log");
    std::fs::create_dir(state.join(LOG)).expect("a folder");
    let unreadable = audit(&state, &["verify"]).expect_code(2);
    assert!(unreadable.stderr.contains("audit-log-unreadable"));
}

#[test]
fn a_record_that_was_noted_must_still_be_there() {
    let state = two_runs();
    let told = audit(&state, &["verify"]).expect_code(0).stdout;
    let (_, noted) = told.split_once("Last record: ").expect("the last record");
    let noted = noted.lines().next().expect("a line");
    assert!(noted.starts_with("16:"), "{noted}");
    let json = json_of(&audit(&state, &["verify", "--json"]).expect_code(0));
    assert_eq!(json["last"], noted);
    record(&state, 0xc, "third");
    audit(&state, &["verify", "--expect", noted]).expect_code(0);
    let replaced = two_runs();
    let other = audit(&replaced, &["verify", "--expect", noted]).expect_code(1);
    assert!(
        other.stdout.starts_with(
            "ALTERED  audit.jsonl:16 (record 16): the record is not the one that was noted"
        ),
        "{}",
        other.stdout
    );
    let gone = audit(&Folder::new(), &["verify", "--expect", noted]).expect_code(1);
    assert!(
        gone.stdout
            .starts_with("MISSING  record 16, which was noted, is not in the log"),
        "{}",
        gone.stdout
    );
    let wrong = audit(&state, &["verify", "--expect", "16:abc"]).expect_code(2);
    assert!(wrong.stderr.contains("64 hexadecimal digits"));
}

#[test]
fn records_are_exported_for_others() {
    let state = two_runs();
    let file = state.join("out.csv");
    let path = file.to_str().expect("a path");
    let words = [
        "export", "--format", "skillhub", "--run", "b", "--output", path,
    ];
    assert_eq!(audit(&state, &words).expect_code(0).stdout, "");
    let rows = state.read("out.csv");
    assert_eq!(rows.lines().count(), 4, "{rows}");
    assert!(rows.contains("SANDBOX_FILE_DENIED"), "{rows}");
    let table = audit(&state, &["export", "--format", "csv", "--since", "1h"]).expect_code(0);
    assert_eq!(table.stdout.lines().count(), 17);
    let words = ["export", "--format", "json", "--output", "/dev/full"];
    let full = audit(&state, &words).expect_code(1);
    assert!(full.stderr.contains("export-unwritable"), "{}", full.stderr);
    audit(&state, &["export"]).expect_code(2);
}
