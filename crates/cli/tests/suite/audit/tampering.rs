//! A log that somebody changed says so, and where.

use std::path::Path;

use ringfence_testkit::{Folder, Outcome, Program, is_root, sh, wait_until};

use super::{LOG, Ledger, audit};

/// A log of two runs.
fn two_runs() -> Ledger {
    let ledger = Ledger::new();
    for script in ["echo one > f; echo > .bashrc; true", "echo two > g; rm g"] {
        ledger.run(&["--quiet"], script).expect_code(0);
    }
    ledger.audit(&["verify"]).expect_code(0);
    ledger
}

/// What verifying says of a copy of the log to which something was done.
fn verified_after(ledger: &Ledger, change: impl FnOnce(&mut Vec<String>)) -> Outcome {
    let copy = Folder::new();
    Program::new("cp")
        .args([
            "-a",
            "--",
            ledger.state.join("ringfence").to_str().expect("a path"),
            copy.text(),
        ])
        .run()
        .expect_code(0);
    let path = copy.join(LOG);
    let mut lines = lines_of(&path);
    change(&mut lines);
    std::fs::write(&path, lines.concat()).expect("a written log");
    audit(copy.path(), &["verify"])
}

/// The lines with their ends.
fn lines_of(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("the log");
    text.split_inclusive('\n').map(str::to_owned).collect()
}

/// Verifying found it, and says at which line.
#[track_caller]
fn found_at(outcome: Outcome, line: usize) {
    let outcome = outcome.expect_code(1);
    let told = format!("{}{}", outcome.stdout, outcome.stderr);
    let is_place =
        told.contains(&format!("line {line}")) || told.contains(&format!("audit.jsonl:{line}"));
    assert!(is_place, "no line {line}: {told}");
}

#[test]
fn an_untouched_log_is_fine() {
    let ledger = two_runs();
    verified_after(&ledger, |_| {}).expect_code(0);
    let report = ledger.audit_json(&["verify"]);
    assert!(report.is_object(), "{report}");
}

#[test]
fn one_changed_byte_is_found_in_every_record() {
    let ledger = two_runs();
    let count = lines_of(&ledger.state.join(LOG)).len();
    for line in 0..count {
        let outcome = verified_after(&ledger, |lines| {
            // A letter within a value: still JSON, still a record.
            let at = lines[line].rfind(char::is_alphanumeric).expect("a letter");
            let other = if &lines[line][at..=at] == "7" {
                "8"
            } else {
                "7"
            };
            lines[line].replace_range(at..=at, other);
        });
        let outcome = outcome.expect_code(1);
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        // The record itself, or the next one, which it does not fit any more.
        let is_near = [line + 1, line + 2].iter().any(|place| {
            told.contains(&format!("line {place}"))
                || told.contains(&format!("audit.jsonl:{place}"))
        });
        assert!(is_near, "line {}: {told}", line + 1);
    }
}

#[test]
fn a_record_that_is_missing_is_found() {
    let ledger = two_runs();
    let count = lines_of(&ledger.state.join(LOG)).len();
    for line in [0, 1, count / 2, count - 2] {
        let outcome = verified_after(&ledger, |lines| drop(lines.remove(line)));
        if line == 0 {
            // The log begins in the middle, as one does that was rotated.
            outcome.expect_code(1);
        } else {
            found_at(outcome, line + 1);
        }
    }
}

#[test]
fn records_in_another_order_are_found() {
    let ledger = two_runs();
    let count = lines_of(&ledger.state.join(LOG)).len();
    for line in [0, 2, count - 2] {
        let outcome = verified_after(&ledger, |lines| lines.swap(line, line + 1));
        outcome.expect_code(1);
    }
}

#[test]
fn a_record_that_is_there_twice_is_found() {
    let ledger = two_runs();
    found_at(
        verified_after(&ledger, |lines| lines.insert(3, lines[2].clone())),
        4,
    );
}

#[test]
fn a_log_that_was_cut_is_found() {
    let ledger = two_runs();
    verified_after(&ledger, |lines| drop(lines.pop())).expect_code(1);
    verified_after(&ledger, |lines| lines.truncate(3)).expect_code(1);
    verified_after(&ledger, Vec::clear).expect_code(1);
    verified_after(&ledger, |lines| {
        let last = lines.last_mut().expect("a record");
        last.truncate(last.len() / 2);
    })
    .expect_code(1);
}

#[test]
fn what_was_added_is_found() {
    let ledger = two_runs();
    let count = lines_of(&ledger.state.join(LOG)).len();
    for added in ["nonsense\n", "{}\n", "\n", "no end", "\0\0\0\n"] {
        found_at(
            verified_after(&ledger, |lines| lines.push(added.to_owned())),
            count + 1,
        );
    }
    let copied = verified_after(&ledger, |lines| lines.push(lines[1].clone()));
    found_at(copied, count + 1);
}

#[test]
fn the_first_run_taken_away_whole_is_found() {
    let ledger = two_runs();
    let first = ledger.events()[0]["run"].to_string();
    verified_after(&ledger, |lines| lines.retain(|line| !line.contains(&first))).expect_code(1);
}

#[test]
fn the_head_and_the_key_are_needed_and_kept_from_others() {
    use std::os::unix::fs::PermissionsExt;
    let ledger = two_runs();
    let folder = ledger.state.join("ringfence/audit");
    for name in ["audit.jsonl", "audit.key", "audit.head"] {
        let mode = std::fs::metadata(folder.join(name))
            .expect(name)
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    std::fs::write(folder.join("audit.head"), "").expect("an altered head");
    ledger.audit(&["verify"]).expect_code(1);
}

/// Something that happens to a log.
struct Damage {
    name: &'static str,
    script: &'static str,
}

const DAMAGES: [Damage; 6] = [
    Damage {
        name: "cut",
        script: "truncate -s -20 audit.jsonl",
    },
    Damage {
        name: "emptied",
        script: ": > audit.jsonl",
    },
    Damage {
        name: "added to",
        script: "printf 'nonsense without an end' >> audit.jsonl",
    },
    Damage {
        name: "overwritten",
        script: "head -c 5000 /dev/zero | tr '\\0' '\\377' > audit.jsonl",
    },
    Damage {
        name: "removed",
        script: "rm audit.jsonl",
    },
    Damage {
        name: "headless",
        script: "rm audit.head",
    },
];

#[test]
fn the_next_run_works_after_every_kind_of_damage_and_the_damage_stays_known() {
    for Damage { name, script } in DAMAGES {
        let ledger = two_runs();
        sh(script, &ledger.state.join("ringfence/audit")).expect_code(0);
        let words = ["sh", "-c", "echo three > h"];
        let outcome = ledger.command(&[], &words).run().expect_code(0);
        assert_eq!(outcome.stderr, "", "{name}");
        assert_eq!(ledger.arena.folder.read("h"), "three\n");
        let verified = ledger.audit(&["verify"]);
        assert_eq!(verified.code(), 1, "{name}: {verified:?}");
        let told = ledger.audit(&["show"]).expect_code(0).stdout;
        assert!(told.contains("echo three"), "{name}: {told}");
    }
}

#[test]
fn a_run_that_was_killed_is_listed_as_ended_without_a_seal() {
    let ledger = two_runs();
    let words = ["sh", "-c", "echo > up; exec sleep 1000"];
    let run = ledger.command(&["--name", "victim"], &words).start();
    assert!(wait_until(|| ledger.arena.folder.has("up")));
    // While it runs the log is whole, and it is known to be running.
    let verified = ledger.audit(&["verify"]).expect_code(0);
    assert!(verified.stdout.contains("running"), "{}", verified.stdout);
    run.signal("KILL");
    run.finish().expect_code(137);
    let verified = ledger.audit(&["verify"]).expect_code(0);
    assert!(
        verified.stdout.contains("without a seal"),
        "{}",
        verified.stdout
    );
    ledger.run(&[], "true").expect_code(0);
    let listed = ledger.audit_json(&["list"]);
    let runs = listed
        .as_array()
        .or_else(|| listed["runs"].as_array())
        .expect("runs");
    assert_eq!(runs.len(), 4, "{listed:#}");
    let victim = runs
        .iter()
        .find(|run| run["sandbox"] == "victim" || run["name"] == "victim");
    let victim = victim.unwrap_or_else(|| panic!("{listed:#}"));
    assert_ne!(victim["sealed"], true, "{victim:#}");
    let sealed = runs.iter().filter(|run| run["sealed"] == true);
    assert_eq!(sealed.count(), 3, "{listed:#}");
}

/// The processes that `parent` started.
fn children_of(parent: u32) -> Vec<String> {
    let listed = std::fs::read_dir("/proc").expect("processes");
    let names = listed.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.into_string().ok());
    let is_child = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
        let ppid = after_name.and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        ppid == Some(parent)
    };
    pids.filter(is_child).collect()
}

#[test]
fn g7_what_was_seen_before_the_init_was_lost_is_on_record() {
    let ledger = Ledger::new();
    let words = ["sh", "-c", "echo > .bashrc; echo > up; exec sleep 1000"];
    let run = ledger.command(&[], &words).start();
    assert!(wait_until(|| ledger.arena.folder.has("up")));
    let killed = Program::new("kill")
        .args(["-KILL"])
        .args(children_of(run.id()))
        .run();
    // With subordinate ids, the init is somebody else's.
    if killed.code() != 0 && !is_root() {
        run.signal("KILL");
        run.finish().expect_code(137);
        return;
    }
    run.finish().expect_code(125);
    let told = ledger.audit(&["show"]).expect_code(0).stdout;
    for part in ["init-died", "sh -c", ".bashrc", "protected name"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn runs_at_the_same_time_share_one_chain() {
    let ledger = Ledger::new();
    let runs: Vec<_> = (0..6)
        .map(|n| {
            let script = format!("for i in 1 2 3 4 5 6 7 8; do echo > f-{n}-$i; done");
            ledger.command(&[], &["sh", "-c", &script]).start()
        })
        .collect();
    for run in runs {
        run.finish().expect_code(0);
    }
    ledger.audit(&["verify"]).expect_code(0);
    let events = ledger.events();
    let seals = events.iter().filter(|event| event["kind"] == "sealed");
    assert_eq!(seals.count(), 6);
    let numbers = events.iter().filter_map(|event| event["seq"].as_u64());
    let numbers: Vec<_> = numbers.collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
}
