//! Limits that make no sense, and those that nothing here can hold.

use ringfence_testkit::{Folder, Outcome};

use super::super::inside_with;

/// Runs a script that must not run.
#[track_caller]
fn never_runs(flags: &[&str]) -> Outcome {
    let folder = Folder::new();
    let outcome = inside_with(&folder, flags, "echo > ran");
    assert!(!folder.has("ran"), "{flags:?}");
    assert!([2, 125].contains(&outcome.code()), "{flags:?}: {outcome:?}");
    outcome
}

const FLAGS: [&str; 9] = [
    "--cpu",
    "--memory",
    "--pids",
    "--disk",
    "--time",
    "--cpu-time",
    "--output",
    "--files",
    "--file-size",
];

#[test]
fn a_limit_that_makes_no_sense_is_refused_in_one_line_with_a_hint() {
    let values = [
        "0",
        "-1",
        "-0.5",
        "",
        "x",
        "lots",
        "1e3x",
        "NaN",
        "inf",
        "-inf",
        "99999999999999999999",
        "1 2",
        "0x10",
        "1MiBs",
        "１",
        "\u{1b}[31m",
    ];
    for flag in FLAGS {
        for value in values {
            let outcome = never_runs(&[flag, value]);
            let mut lines = outcome.stderr.lines();
            let first = lines.next().unwrap_or_default();
            assert!(first.contains(flag), "{flag} {value}: {}", outcome.stderr);
            let has_hint = outcome.stderr.contains("hint:") || outcome.stderr.contains("such as");
            assert!(has_hint, "{flag} {value}: {}", outcome.stderr);
            assert!(lines.count() <= 3, "{flag} {value}: {}", outcome.stderr);
            assert!(
                !outcome.stderr.contains('\u{1b}'),
                "{flag}: {}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn units_belong_to_their_limit() {
    for (flag, value) in [
        ("--memory", "10s"),
        ("--disk", "5 parsecs"),
        ("--time", "10MiB"),
        ("--cpu-time", "3 fortnights"),
        ("--pids", "10MiB"),
        ("--pids", "1.5"),
        ("--files", "10k"),
        ("--cpu", "50%"),
        ("--cpu", "2cores"),
    ] {
        let outcome = never_runs(&[flag, value]);
        assert!(
            outcome.stderr.contains(flag),
            "{flag} {value}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn a_limit_in_a_policy_is_read_as_strictly() {
    let folder = Folder::new();
    for line in [
        "memory: 0",
        "memory: -1",
        "memory: much",
        "pids: 0",
        "pids: 1.5",
        "disk: 0MiB",
        "cpu: 0",
        "cpu: -2",
        "cpuTime: 0s",
        "time: never",
        "openFiles: 0",
        "fileSize: 0",
        "output: 0",
        "memory: 1GiB\n  memory: 2GiB",
        "memroy: 1GiB",
        "required: perhaps",
    ] {
        folder.write(
            "policy.yaml",
            &format!("version: 1\nresources:\n  {line}\n"),
        );
        let outcome = inside_with(&folder, &["--policy", "policy.yaml"], "echo > ran");
        assert_eq!(outcome.code(), 125, "{line}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("policy.yaml"),
            "{line}: {}",
            outcome.stderr
        );
        assert!(!folder.has("ran"), "{line}");
    }
}

#[test]
fn an_unknown_level_of_audit_is_refused() {
    for level in ["", "everything", "OFF?", "none"] {
        let outcome = never_runs(&["--audit", level]);
        assert!(outcome.stderr.contains("--audit"), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("security"), "{}", outcome.stderr);
    }
}

#[test]
fn the_least_that_makes_sense_is_taken_or_refused_with_a_reason() {
    // So little that the command may not start; but it must end, and be told.
    for flags in [
        ["--memory", "1MiB"],
        ["--memory", "1"],
        ["--pids", "1"],
        ["--disk", "1"],
        ["--time", "1ms"],
        ["--cpu-time", "1ms"],
        ["--output", "1"],
        ["--files", "1"],
        ["--files", "3"],
        ["--file-size", "1"],
    ] {
        let outcome = inside_with(
            Folder::new().path(),
            &flags,
            "echo words; cat /etc/hostname; true",
        );
        let code = outcome.code();
        let is_told = code == 0 || !outcome.stderr.is_empty();
        assert!(is_told, "{flags:?} ended with {code} and no word");
        assert!(
            !outcome.stderr.contains("panicked"),
            "{flags:?}: {}",
            outcome.stderr
        );
        assert!(
            !outcome.stderr.contains("internal"),
            "{flags:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn limits_beyond_the_machine_change_nothing() {
    for flags in [
        ["--memory", "1PiB"],
        ["--pids", "4000000"],
        ["--disk", "1PiB"],
        ["--cpu", "1000"],
        ["--time", "1000h"],
        ["--cpu-time", "1000h"],
        ["--output", "1PiB"],
        ["--files", "1000000000"],
        ["--file-size", "1PiB"],
    ] {
        let outcome = inside_with(
            Folder::new().path(),
            &flags,
            "echo words > /tmp/f && cat /tmp/f",
        );
        match outcome.code() {
            0 => assert_eq!(outcome.stdout, "words\n"),
            // Refused for a reason, not failed on the way.
            125 => assert!(
                outcome.stderr.contains("hint:"),
                "{flags:?}: {}",
                outcome.stderr
            ),
            _ => panic!("{flags:?}: {outcome:?}"),
        }
    }
}
