//! `ringfence policy log`: what was let out and what was not, grouped or as it
//! comes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use ringfence_testkit::{Folder, Outcome, Program, wait_until};
use serde_json::{Value, json};

use super::ringfence;

const RUN: &str = "00000000000000000000000000000abc";
const OTHER_RUN: &str = "fff00000000000000000000000000000";
const LOG: &str = "ringfence/audit/audit.jsonl";

/// `ringfence policy log WORDS…` over the log below `state`.
fn command(state: &Folder, words: &[&str]) -> Program {
    ringfence()
        .args(["policy", "log"].iter().chain(words).copied())
        .env("XDG_STATE_HOME", state.path())
}

fn log(state: &Folder, words: &[&str]) -> Outcome {
    command(state, words).run()
}

fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// A decision at a second of one minute, with fields changed or added.
fn decision(second: u32, fields: Value) -> String {
    let mut event = json!({
        "version": 2,
        "seq": second,
        "prev": "0".repeat(64),
        "time": format!("2026-01-02T03:04:{second:02}.000000Z"),
        "run": RUN,
        "kind": "decision",
        "connection": second,
        "via": "transparent",
        "host": "a.example.org",
        "port": 443,
        "protocol": "tls",
        "verdict": "refused",
        "reason": "not-in-allowlist",
    });
    let Value::Object(fields) = fields else {
        panic!("no fields")
    };
    event.as_object_mut().expect("fields").extend(fields);
    format!("{event}\n")
}

fn allowed(second: u32, host: &str) -> String {
    let fields = json!({
        "host": host, "via": "connect", "verdict": "allowed", "reason": "allowed-by-rule",
        "rule": "*.example.org", "source": "flag --allow",
    });
    decision(second, fields)
}

/// A log in two files with every kind of event in it.
fn filled() -> Folder {
    let state = Folder::new();
    let old = [decision(1, json!({})), allowed(2, "b.example.org")];
    state.write("ringfence/audit/audit.jsonl.1", &old.concat());
    let summary = json!({
        "kind": "summary", "of": "decision", "count": 40,
        "first": "2026-01-02T03:04:03.000000Z", "last": "2026-01-02T03:04:20.000000Z",
    });
    let closed = json!({
        "kind": "closed", "bytesUp": 10, "bytesDown": 2000, "durationMs": 12, "why": "finished",
        "host": "b.example.org",
    });
    let new = [
        decision(
            3,
            json!({"run": OTHER_RUN, "sandbox": "box", "host": "c.example.org"}),
        ),
        decision(21, summary),
        decision(22, closed),
        decision(
            23,
            json!({"host": null, "address": "2001:db8::1", "reason": "private-address"}),
        ),
    ];
    state.write(LOG, &new.concat());
    state
}

#[test]
fn decisions_are_grouped_and_the_latest_is_last() {
    let outcome = log(&filled(), &[]).expect_code(0);
    let want = "\
HOST               VIA          VERDICT  RULE           REASON            COUNT  LAST SEEN
b.example.org:443  connect      allowed  *.example.org  allowed-by-rule   1      2026-01-02 03:04:02Z
c.example.org:443  transparent  refused  -              not-in-allowlist  1      2026-01-02 03:04:03Z
a.example.org:443  transparent  refused  -              not-in-allowlist  41     2026-01-02 03:04:20Z
[2001:db8::1]:443  transparent  refused  -              private-address   1      2026-01-02 03:04:23Z
";
    assert_eq!(outcome.stdout, want);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn json_has_the_same_in_two_lists() {
    let printed = json_of(&log(&filled(), &["--json"]).expect_code(0));
    let allowed = json!([{
        "host": "b.example.org:443",
        "via": "connect",
        "verdict": "allowed",
        "rule": "*.example.org",
        "source": "flag --allow",
        "reason": "allowed-by-rule",
        "count": 1,
        "firstSeen": "2026-01-02T03:04:02.000000Z",
        "lastSeen": "2026-01-02T03:04:02.000000Z",
    }]);
    assert_eq!(printed["allowed"], allowed);
    let blocked = printed["blocked"].as_array().expect("a list");
    let hosts: Vec<&Value> = blocked.iter().map(|row| &row["host"]).collect();
    assert_eq!(
        hosts,
        [
            "c.example.org:443",
            "a.example.org:443",
            "[2001:db8::1]:443"
        ]
    );
    assert_eq!(blocked[1]["count"], 41);
    assert_eq!(blocked[1]["firstSeen"], "2026-01-02T03:04:01.000000Z");
}

/// The hosts that a table shows, without their port.
fn hosts(outcome: &Outcome) -> Vec<&str> {
    let rows = outcome.stdout.lines().skip(1);
    rows.filter_map(|row| row.split(":443").next()).collect()
}

#[test]
fn flags_choose_what_is_shown() {
    let state = filled();
    let all = [
        "b.example.org",
        "c.example.org",
        "a.example.org",
        "[2001:db8::1]",
    ];
    let cases: [(&[&str], &[&str]); 8] = [
        (&[], &all),
        (&["--blocked"], &all[1..]),
        (&["--sandbox", "box"], &all[1..2]),
        (&["--run", "fff"], &all[1..2]),
        (&["--run", OTHER_RUN], &all[1..2]),
        (&["--limit", "2"], &all[2..]),
        (&["--blocked", "--limit", "9"], &all[1..]),
        (
            &["--since", "366d", "--run", "0000"],
            &[all[0], all[2], all[3]],
        ),
    ];
    for (words, want) in cases {
        assert_eq!(hosts(&log(&state, words).expect_code(0)), want, "{words:?}");
    }
}

#[test]
fn since_leaves_out_what_is_older() {
    let state = Folder::new();
    let old = decision(
        1,
        json!({"time": "1999-01-01T00:00:00Z", "host": "old.example.org"}),
    );
    let late = decision(
        1,
        json!({"time": "9999-01-01T00:00:00Z", "host": "late.example.org"}),
    );
    state.write(LOG, &(old + &late));
    let outcome = log(&state, &["--since", "10m"]).expect_code(0);
    assert_eq!(hosts(&outcome), ["late.example.org"]);
}

#[test]
fn an_empty_log_is_said_and_no_error() {
    let state = Folder::new();
    for words in [&[][..], &["--blocked"]] {
        let outcome = log(&state, words).expect_code(0);
        assert_eq!(outcome.stdout, "");
        assert!(
            outcome.stderr.contains("no such decisions"),
            "{}",
            outcome.stderr
        );
    }
    let printed = json_of(&log(&state, &["--json"]).expect_code(0));
    assert_eq!(printed, json!({"blocked": [], "allowed": []}));
    assert!(state.listing().is_empty(), "looking makes nothing");
}

#[test]
fn wrong_flags_are_refused() {
    let state = filled();
    for words in [
        &["--since", "yesterday"][..],
        &["--limit", "0"],
        &["--run", "xyz"],
        &["--run", "0", "--sandbox", "box"],
    ] {
        let outcome = log(&state, words).expect_code(2);
        assert!(
            outcome.stderr.contains("error[usage]"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn foreign_lines_are_counted() {
    let state = Folder::new();
    let text = ["nonsense\n", &decision(1, json!({})), "{\"version\":9}\n"].concat();
    state.write(LOG, &text);
    let outcome = log(&state, &[]).expect_code(0);
    assert_eq!(hosts(&outcome), ["a.example.org"]);
    assert!(outcome.stderr.contains("2 lines"), "{}", outcome.stderr);
}

#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    let state = Folder::new();
    state.write("ringfence/audit", "a file in place of the folder");
    let outcome = log(&state, &[]).expect_code(1);
    assert!(
        outcome.stderr.contains("error[audit-log-unreadable]"),
        "{}",
        outcome.stderr
    );
    let printed = json_of(&log(&state, &["--json"]).expect_code(1));
    assert_eq!(printed["error"]["code"], "audit-log-unreadable");
}

#[test]
fn what_was_sent_from_inside_cannot_drive_the_terminal() {
    let state = Folder::new();
    let hostile = json!({
        "host": "\u{1b}[2J\u{9b}x\nb", "rule": "\u{1b}]0;x\u{7}", "method": "\u{1b}c", "path": "/\r",
    });
    state.write(LOG, &decision(1, hostile));
    let outputs = [
        log(&state, &[]).expect_code(0).stdout,
        followed(&state, &["--limit", "1"], &[], 1).concat(),
    ];
    for output in outputs {
        let is_plain = |line: &str| !line.chars().any(char::is_control);
        assert!(output.lines().all(is_plain), "{output:?}");
        assert!(output.contains("\u{fffd}[2J"), "{output:?}");
    }
}

/// Whether a process has read `file` to its end.
fn is_at_end(process: u32, file: &Path) -> bool {
    let end = std::fs::metadata(file).expect("the log").len();
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).expect("its files");
    let descriptors = open.flatten().filter(|entry| {
        let target = std::fs::read_link(entry.path());
        target.is_ok_and(|target| target == file)
    });
    descriptors
        .filter_map(|entry| {
            let number = entry.file_name().into_string().ok()?;
            std::fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()
        })
        .any(|info| info.starts_with(&format!("pos:\t{end}\n")))
}

/// The first `count` lines that following prints, while `added` are appended
/// one by one after it has begun.
fn followed(state: &Folder, words: &[&str], added: &[String], count: usize) -> Vec<String> {
    let words: Vec<&str> = ["--follow"].iter().chain(words).copied().collect();
    let mut program = command(state, &words).start();
    let stdout = program.child().stdout.take().expect("its output");
    let reader = std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines();
        lines
            .take(count)
            .map(|line| line.expect("a line"))
            .collect()
    });
    let path = state.join(LOG);
    if !added.is_empty() {
        assert!(
            wait_until(|| is_at_end(program.id(), &path)),
            "not at the end"
        );
    }
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("the log");
    for line in added {
        file.write_all(line.as_bytes()).expect("an added line");
    }
    assert!(wait_until(|| reader.is_finished()), "too few lines");
    let lines = reader.join().expect("its lines");
    // The pipe is closed now, and that ends it.
    let outcome = program.finish().expect_code(0);
    assert_eq!(outcome.stderr, "");
    lines
}

#[test]
fn following_prints_each_event_as_it_comes() {
    let state = filled();
    let request = json!({"protocol": "http", "method": "GET", "path": "/v1", "rule": "a rule"});
    let end = json!({
        "kind": "closed", "bytesUp": 10, "bytesDown": 2000, "durationMs": 12, "why": "finished",
    });
    let counted = json!({
        "kind": "summary", "of": "decision", "count": 40,
        "first": "2026-01-02T03:04:03.000000Z", "last": "2026-01-02T03:04:20.000000Z",
    });
    let added = [
        decision(31, request),
        decision(32, end),
        decision(33, counted),
    ];
    assert_eq!(
        followed(&state, &[], &added, 3),
        [
            "2026-01-02 03:04:31Z  refused  a.example.org:443 (transparent) GET /v1: not-in-allowlist, rule a rule",
            "2026-01-02 03:04:32Z  closed   a.example.org:443 (transparent): finished, 10 bytes up, 2000 bytes down, 12 ms",
            "2026-01-02 03:04:33Z  refused  a.example.org:443 (transparent) 40 more: not-in-allowlist",
        ]
    );
}

#[test]
fn following_gives_json_lines_of_what_was_asked_for() {
    let state = filled();
    let added = [
        allowed(31, "x.example.org"),
        decision(32, json!({"host": "y.example.org"})),
    ];
    let lines = followed(&state, &["--json", "--blocked", "--limit", "1"], &added, 2);
    let events: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(events[0]["address"], "2001:db8::1");
    assert_eq!(
        events[1],
        serde_json::from_str::<Value>(&added[1]).expect("JSON")
    );
}

#[test]
fn following_ends_with_an_interrupt() {
    let state = filled();
    let mut program = command(&state, &["--follow", "--since", "366d"]).start();
    let stdout = program.child().stdout.take().expect("its output");
    let first = BufReader::new(stdout).lines().next();
    assert!(first.is_some_and(|line| line.is_ok()));
    program.signal("INT");
    assert!([0, 130].contains(&program.finish().code()));
}

#[test]
fn the_schema_of_an_event_is_printed() {
    let outcome = ringfence()
        .args(["policy", "schema", "audit-event"])
        .run()
        .expect_code(0);
    let schema = json_of(&outcome);
    assert_eq!(schema["title"], "Record");
}

/// The last run of this folder, wherever a run is named.
#[test]
fn last_names_the_last_run_in_this_folder() {
    let (state, here, elsewhere) = (Folder::new(), Folder::new(), Folder::new());
    let ringfence = |folder: &Folder, words: &[&str]| {
        let program = ringfence().env("XDG_STATE_HOME", state.path());
        program
            .args(words.iter().copied())
            .folder(folder.path())
            .run()
    };
    let named = [
        &["policy", "log", "--run", "last"][..],
        &["policy", "log", "--run", "last", "--json"],
        &["audit", "show", "last", "--json"],
        &["audit", "tail", "--run", "last", "--json"],
        &["audit", "export", "--run", "last", "--format", "json"],
    ];
    for words in named {
        let none = ringfence(&here, words).expect_code(1);
        let told = none.stdout + &none.stderr;
        assert!(told.contains("no run in this folder"), "{words:?}: {told}");
    }
    let want = |host: &str| {
        format!("getent ahosts {host}.example.org; exec 3<>/dev/tcp/{host}.example.org/80; true")
    };
    for (folder, host) in [(&here, "first"), (&here, "second"), (&elsewhere, "other")] {
        let script = want(host);
        ringfence(folder, &["run", "--", "bash", "-c", &script]).expect_code(0);
    }
    for words in named {
        let told = ringfence(&here, words).expect_code(0).stdout;
        assert!(told.contains("second.example.org"), "{words:?}: {told}");
        for other in ["first.example.org", "other.example.org"] {
            assert!(!told.contains(other), "{words:?}: {told}");
        }
    }
}
