//! `audit export`: formats that other programs read.

use ringfence_testkit::Program;
use serde_json::Value;

use super::Ledger;

fn filled() -> Ledger {
    let ledger = Ledger::new();
    let script = "echo > .bashrc; ./attack unshare 0x10000000; /bin/true '=cmd()' '+1' \"a,b\" 'c\"d'; \
                  d=$(printf 'a\\nb'); mkdir \"$d\"; echo > \"$d/x\"; exec yes";
    ledger
        .run(&["--quiet", "--output", "64KiB"], script)
        .expect_code(137);
    ledger
}

/// What Python's reader of CSV makes of a text: a list of rows.
fn rows(text: &str) -> Vec<Vec<String>> {
    let script = "import csv, io, json, sys; \
                  print(json.dumps(list(csv.reader(io.StringIO(sys.stdin.read(), newline='')))))";
    let outcome = Program::new("python3")
        .args(["-c", script])
        .input(text)
        .run()
        .expect_code(0);
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

#[test]
fn json_is_every_record() {
    let ledger = filled();
    let outcome = ledger.audit(&["export", "--format", "json"]).expect_code(0);
    let script = "import json, sys; text = sys.stdin.read()
try: print(len(json.loads(text)))
except ValueError: print(len([json.loads(line) for line in text.splitlines()]))";
    let read = Program::new("python3")
        .args(["-c", script])
        .input(outcome.stdout)
        .run()
        .expect_code(0);
    assert_eq!(read.stdout.trim(), ledger.events().len().to_string());
}

#[test]
fn csv_has_one_row_for_each_record_and_no_formulas() {
    let ledger = filled();
    let text = ledger
        .audit(&["export", "--format", "csv"])
        .expect_code(0)
        .stdout;
    let rows = rows(&text);
    assert_eq!(rows.len(), ledger.events().len() + 1, "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    for column in ["time", "run", "kind"] {
        assert!(rows[0].iter().any(|name| name == column), "{:?}", rows[0]);
    }
    no_formulas(&rows);
    assert!(text.contains(".bashrc"), "{text}");
}

/// No cell is something that a spreadsheet would work out.
#[track_caller]
fn no_formulas(rows: &[Vec<String>]) {
    for cell in rows.iter().flatten() {
        assert!(
            !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
            "{cell:?}"
        );
    }
}

#[test]
fn skillhub_has_the_columns_of_its_table() {
    let ledger = filled();
    let text = ledger
        .audit(&["export", "--format", "skillhub"])
        .expect_code(0)
        .stdout;
    let rows = rows(&text);
    let columns: Vec<&str> = rows[0].iter().map(String::as_str).collect();
    for column in [
        "actor_user_id",
        "action",
        "target_type",
        "target_id",
        "request_id",
        "client_ip",
        "user_agent",
        "detail_json",
        "created_at",
    ] {
        assert!(columns.contains(&column), "no {column}: {columns:?}");
    }
    let at = |name: &str| {
        columns
            .iter()
            .position(|column| *column == name)
            .expect("a column")
    };
    let run = ledger.events()[0]["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    let mut actions = Vec::new();
    for row in &rows[1..] {
        assert_eq!(row.len(), columns.len(), "{row:?}");
        assert_eq!(row[at("request_id")], run);
        assert_eq!(row[at("target_type")], "SKILL_VERSION");
        let detail: Value = serde_json::from_str(&row[at("detail_json")]).expect("JSON");
        assert!(detail.is_object(), "{detail}");
        actions.push(row[at("action")].as_str());
    }
    for action in [
        "SANDBOX_RUN_STARTED",
        "SANDBOX_FILE_DENIED",
        "SANDBOX_SYSCALL_DENIED",
        "SANDBOX_QUOTA_EXCEEDED",
        "SANDBOX_RUN_FINISHED",
    ] {
        assert!(actions.contains(&action), "no {action}: {actions:?}");
    }
    no_formulas(&rows);
}

#[test]
fn an_export_of_one_run_goes_to_a_file() {
    let ledger = filled();
    ledger.run(&[], "true").expect_code(0);
    let run = ledger.events()[0]["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    let file = ledger.path("export.csv");
    let words = [
        "export",
        "--format",
        "csv",
        "--run",
        &run[..10],
        "--output",
        &file,
    ];
    let outcome = ledger.audit(&words).expect_code(0);
    assert_eq!(outcome.stdout, "");
    let text = ledger.arena.folder.read("export.csv");
    let own = ledger
        .events()
        .iter()
        .filter(|event| event["run"] == run.as_str())
        .count();
    assert_eq!(rows(&text).len(), own + 1);
}

#[test]
fn unknown_formats_are_refused() {
    let ledger = filled();
    for format in ["xml", "", "JSONL?"] {
        let outcome = ledger.audit(&["export", "--format", format]).expect_code(2);
        assert!(outcome.stderr.contains("skillhub"), "{}", outcome.stderr);
    }
}
