//! Each call that is recorded is there once, with what it said.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Ledger, Recorded, argv};

const COUNT: usize = 12;

/// Levels that see programs once they have begun, and those that see the attempt.
const OUTCOMES: [(&str, &str); 3] = [
    ("network", "done"),
    ("standard", "done"),
    ("security", "continued"),
];

/// How often each mark is among the words of started programs.
fn marks_started(recorded: &Recorded, outcome: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for call in recorded.calls("exec") {
        if let [_, mark] = argv(call)[..] {
            assert_eq!(call["outcome"], outcome, "{call}");
            *found.entry(mark.to_owned()).or_default() += 1;
        }
    }
    found
}

fn each_once() -> BTreeMap<String, usize> {
    (0..COUNT).map(|n| (format!("mark-{n}"), 1)).collect()
}

#[test]
fn g7_every_started_program_is_recorded_once() {
    for program in ["./probe", "./probe-linked"] {
        for order in ["one-by-one", "threads"] {
            for way in ["fork", "vfork", "spawn", "descriptor"] {
                let ledger = Ledger::new();
                let words = [program, order, way, &COUNT.to_string()];
                for (level, outcome) in OUTCOMES {
                    let recorded = ledger.run_words(&["--audit", level], &words);
                    let marks = marks_started(&recorded.expect_code(0), outcome);
                    assert_eq!(marks, each_once(), "{words:?} at {level}");
                }
            }
        }
    }
}

#[test]
fn g7_the_command_itself_is_the_first_program() {
    let ledger = Ledger::new();
    for level in ["network", "standard", "security", "all"] {
        let words = ["./probe", "nothing", "1"];
        let recorded = ledger.run_words(&["--audit", level], &words);
        let recorded = recorded.expect_code(0);
        let started = recorded.calls("exec");
        assert_eq!(started.len(), 1, "{level}: {started:?}");
        assert_eq!(argv(started[0]), words);
        assert_eq!(started[0]["paths"][0], ledger.path("probe").as_str());
    }
}

#[test]
fn g7_every_made_file_is_recorded_once() {
    for program in ["./probe", "./probe-linked"] {
        for order in ["one-by-one", "threads"] {
            let ledger = Ledger::new();
            let words = [program, order, "make", &COUNT.to_string(), "."];
            let recorded = ledger
                .run_words(&["--audit", "security"], &words)
                .expect_code(0);
            for n in 0..COUNT {
                let path = ledger.path(&format!("mark-{n}"));
                let made = recorded.naming("write", &path);
                assert_eq!(made.len(), 1, "{words:?} {path}: {made:?}");
                assert_eq!(made[0]["outcome"], "done", "{made:?}");
            }
        }
    }
}

#[test]
fn g7_a_call_that_signals_interrupt_is_recorded_once() {
    let ledger = Ledger::new();
    let words = ["./probe", "signalled", "15", "."];
    let recorded = ledger
        .run_words(&["--audit", "security"], &words)
        .expect_code(0);
    for n in 0..15 {
        let path = ledger.path(&format!("mark-{n}"));
        assert_eq!(recorded.naming("write", &path).len(), 1, "{path}");
    }
}

#[test]
fn g7_a_write_cannot_be_hidden_behind_a_hundred_others() {
    let ledger = Ledger::new();
    let script = "./probe one-by-one make 100 . && echo > last";
    let recorded = ledger.run(&["--audit", "security"], script).expect_code(0);
    let last = recorded.naming("write", &ledger.path("last"));
    assert_eq!(last.len(), 1, "{}", recorded.text());
}

#[test]
fn g7_every_way_of_changing_names_is_recorded() {
    let ledger = Ledger::new();
    let recorded = ledger
        .run_words(&["--audit", "security"], &["./probe", "names", "."])
        .expect_code(0);
    for (action, names) in [
        ("make", &["made"][..]),
        ("write", &["written"]),
        ("rename", &["written", "renamed"]),
        ("link", &["renamed", "linked"]),
        ("mode", &["renamed"]),
        ("write", &["renamed"]),
        ("remove", &["linked"]),
        ("remove", &["made"]),
    ] {
        let paths: Vec<Value> = names.iter().map(|name| ledger.path(name).into()).collect();
        let calls = recorded.calls(action);
        let found = calls
            .iter()
            .filter(|call| call["paths"] == Value::Array(paths.clone()));
        assert_eq!(found.count(), 1, "{action} {names:?} in {calls:#?}");
    }
    let link = recorded.naming("link", &ledger.path("pointer"));
    assert_eq!(link.len(), 1, "{:#?}", recorded.calls("link"));
    for (action, address) in [("bind", "127.0.0.1:4321"), ("connect", "127.0.0.1:1234")] {
        assert_eq!(
            recorded.naming(action, address).len(),
            1,
            "{:#?}",
            recorded.calls(action)
        );
    }
}

#[test]
fn g7_words_that_change_while_they_are_read_do_no_harm() {
    let ledger = Ledger::new();
    for (level, _) in OUTCOMES {
        let words = ["./probe", "changing", "100"];
        let recorded = ledger.run_words(&["--audit", level], &words);
        let recorded = recorded.expect_code(0);
        let started = recorded.calls("exec");
        assert_eq!(started.len(), 101, "{level}: {started:?}");
        for call in &started[1..] {
            let words = argv(call);
            assert_eq!(words[0], "true", "{call}");
            // A word whose end the kernel missed goes on with the environment,
            // also for the program.
            let is_ours = |word: &str| {
                let is_changed = word.len() < 128 && word.chars().all(|c| "ab".contains(c));
                is_changed || (level != "security" && word.contains('='))
            };
            assert!(words[1..].iter().all(|word| is_ours(word)), "{call}");
        }
    }
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn g7_words_that_are_no_memory_and_words_without_end_do_no_harm() {
    let ledger = Ledger::new();
    let recorded = ledger
        .run_words(&[], &["./probe", "hostile"])
        .expect_code(0);
    let started = recorded.calls("exec");
    let longest = started.iter().map(|call| argv(call).len()).max();
    assert!(
        longest.is_some_and(|longest| (2..=64).contains(&longest)),
        "{longest:?}"
    );
    let last = argv(started.last().expect("the last program"));
    assert_eq!(last.len(), 3, "{last:?}");
    assert!(
        !last[1].contains('\u{1b}') && !last[1].contains('\n'),
        "{last:?}"
    );
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn a_search_through_the_path_is_only_counted() {
    let ledger = Ledger::new();
    // Folders that are not there, and mounts of the view.
    let script = "env PATH=/no/a:/no/b:$PWD:/tmp:/usr/bin:/bin env true";
    let recorded = ledger.run(&[], script).expect_code(0);
    let started = recorded.calls("exec");
    let programs: Vec<_> = started.iter().map(|call| argv(call)[0]).collect();
    assert_eq!(programs, ["sh", "env", "env", "true"], "{started:#?}");
}

#[test]
fn g7_a_run_is_told_from_its_start_to_its_seal() {
    let ledger = Ledger::new();
    let recorded = ledger
        .run(&["--name", "box", "--memory", "1GiB"], "exit 7")
        .expect_code(7);
    let first = &recorded.events[0];
    assert_eq!(first["kind"], "run-started", "{first}");
    let command: Vec<_> = first["command"].as_array().into_iter().flatten().collect();
    assert_eq!(command, ["sh", "-c", "exit 7"]);
    assert_eq!(first["workingFolder"], ledger.arena.folder.text());
    assert_eq!(first["level"], "standard");
    let memory = first["limits"].as_array().into_iter().flatten();
    let memory = memory.filter(|limit| limit["limit"] == "memory");
    assert_eq!(
        memory.map(|limit| &limit["configured"]).collect::<Vec<_>>(),
        [1_u64 << 30]
    );
    let [ended, sealed] = &recorded.events[recorded.events.len() - 2..] else {
        panic!("no end")
    };
    assert_eq!(
        (&ended["kind"], &ended["code"]),
        (&"run-ended".into(), &7.into())
    );
    assert_eq!(ended["reason"], "exited");
    assert_eq!(sealed["kind"], "sealed");
    assert_eq!(sealed["records"], recorded.events.len() - 1);
    assert!(
        recorded
            .events
            .iter()
            .all(|event| event["run"] == first["run"])
    );
    assert!(
        recorded
            .events
            .iter()
            .all(|event| event["sandbox"] == "box")
    );
    let numbers: Vec<_> = recorded
        .events
        .iter()
        .filter_map(|event| event["seq"].as_u64())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
}

#[test]
fn g7_a_limit_that_ended_a_run_is_on_record() {
    let ledger = Ledger::new();
    let recorded = ledger
        .run(&["--time", "300ms"], "exec sleep 1000")
        .expect_code(124);
    let hits: Vec<_> = recorded.of_kind("limit-hit").collect();
    let [hit] = hits[..] else { panic!("{hits:?}") };
    assert_eq!(
        (&hit["limit"], &hit["configured"]),
        (&"time".into(), &300.into())
    );
    assert_eq!(
        (&hit["unit"], &hit["mechanism"]),
        (&"milliseconds".into(), &"timer".into())
    );
    assert_eq!(hit["ended"], true);
    let ended = recorded.of_kind("run-ended").next().expect("its end");
    assert_eq!(
        (&ended["code"], &ended["reason"]),
        (&124.into(), &"time-limit".into())
    );
}
