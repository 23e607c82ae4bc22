//! `audit show`, `list` and `tail`: what a person reads.

use ringfence_testkit::is_root;
use serde_json::Value;

use super::Ledger;

/// A run with something of everything.
fn eventful() -> Ledger {
    let ledger = Ledger::new();
    let script = "echo text > kept; mkdir d; for i in 1 2 3; do /bin/true $i; done; rm kept; \
                  echo > .bashrc; ./attack bpf; ./load 2> /dev/null; exec yes";
    // At `security`, for the call that is refused.
    let flags = [
        "--name", "box", "--output", "64KiB", "--quiet", "--audit", "security",
    ];
    ledger.run(&flags, script).expect_code(137);
    ledger
}

#[test]
fn the_story_tells_what_ran_what_was_written_what_was_refused_and_the_limits() {
    let ledger = eventful();
    let told = ledger.audit(&["show"]).expect_code(0).stdout;
    let kept = ledger.path("kept");
    for part in [
        "box",
        "sh -c",
        "/bin/true",
        &kept,
        ".bashrc",
        "protected name",
        "bpf",
        "output",
        "137",
        "memory",
        "pids",
    ] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    let (_, refused) = told.split_once("Refused").expect("what was refused");
    for part in [".bashrc", "bpf"] {
        assert!(refused.contains(part), "no {part} in\n{refused}");
    }
}

#[test]
fn the_story_of_an_earlier_run_is_found_by_the_beginning_of_its_name() {
    let ledger = eventful();
    ledger
        .run(&[], "echo something else > other")
        .expect_code(0);
    let run = ledger.events()[0]["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    let told = ledger.audit(&["show", &run[..8]]).expect_code(0).stdout;
    assert!(
        told.contains(".bashrc") && !told.contains("something else"),
        "{told}"
    );
    let last = ledger.audit(&["show"]).expect_code(0).stdout;
    assert!(last.contains("something else"), "{last}");
    let unknown = ledger.audit(&["show", "0000000000000000"]);
    assert!([1, 2].contains(&unknown.code()), "{unknown:?}");
    assert!(unknown.stderr.contains("hint:"), "{}", unknown.stderr);
}

#[test]
fn the_story_is_there_as_data() {
    let ledger = eventful();
    let story = ledger.audit_json(&["show"]);
    let text = story.to_string();
    for part in ["/bin/true", ".bashrc", "bpf", "\"limit\":\"output\""] {
        assert!(text.contains(part), "no {part} in {story:#}");
    }
    assert_eq!(story["run"], ledger.events()[0]["run"], "{story:#}");
}

#[test]
fn runs_are_listed() {
    let ledger = eventful();
    ledger.run(&[], "exit 3").expect_code(3);
    let told = ledger.audit(&["list"]).expect_code(0).stdout;
    for part in ["box", "137", "3", "exit 3"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    let listed = ledger.audit_json(&["list"]);
    let runs = listed.as_array().or_else(|| listed["runs"].as_array());
    assert_eq!(runs.map(Vec::len), Some(2), "{listed:#}");
}

#[test]
fn the_tail_is_the_records_as_they_came() {
    let ledger = eventful();
    let told = ledger.audit(&["tail", "--json"]).expect_code(0).stdout;
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        lines.last().map(|line| &line["kind"]),
        Some(&"sealed".into())
    );
    let plain = ledger.audit(&["tail"]).expect_code(0).stdout;
    assert!(
        plain.contains(".bashrc") && plain.contains("refused"),
        "{plain}"
    );
}

#[test]
fn without_a_log_that_is_said() {
    let ledger = Ledger::new();
    for words in ["show", "list", "verify"] {
        let outcome = ledger.audit(&[words]);
        let told = outcome.stdout + &outcome.stderr;
        assert!(
            told.contains("no run") || told.contains("empty"),
            "{words}: {told}"
        );
    }
    for words in [&["tail"][..], &["export", "--format", "json"]] {
        assert_eq!(ledger.audit(words).expect_code(0).stdout, "", "{words:?}");
    }
    assert!(ledger.state.listing().is_empty(), "looking makes nothing");
}

#[test]
fn the_story_of_a_run_that_took_too_much_memory_says_so() {
    let ledger = Ledger::new();
    let script = "exec python3 -c 'import time; x = b\"x\" * (512 << 20); time.sleep(1000)'";
    ledger
        .run(&["--memory", "128MiB", "--quiet"], script)
        .expect_code(137);
    let told = ledger.audit(&["show"]).expect_code(0).stdout;
    let by = if is_root() { "cgroup" } else { "watchdog" };
    for part in ["memory", "HIT", "137", by] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
}

#[test]
fn g7_names_made_by_bind_and_undone_by_the_sweep_are_in_the_story() {
    let ledger = Ledger::new();
    let script = "./attack bind socket; mkdir -p a && echo > .bashrc";
    ledger.run(&["--guard", "sweep"], script).expect_code(0);
    let told = ledger.audit(&["show"]).expect_code(0).stdout;
    let (changed, refused) = told.split_once("Refused").expect("what was refused");
    assert!(changed.contains(&ledger.path("socket")), "{told}");
    assert!(refused.contains(&ledger.path(".bashrc")), "{told}");
    assert!(refused.contains("quarantine"), "{told}");
    ledger.audit(&["verify"]).expect_code(0);
}
