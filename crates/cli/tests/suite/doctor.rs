//! `doctor`, help, completions and the version.

use ringfence_testkit::{Folder, Program};
use serde_json::Value;

use super::ringfence;

fn printed(words: &[&str]) -> String {
    let outcome = ringfence()
        .args(words.iter().copied())
        .folder(Folder::new().path())
        .run();
    let outcome = outcome.expect_code(0);
    assert_eq!(outcome.stderr, "", "{words:?}");
    outcome.stdout
}

#[test]
fn doctor_says_that_the_native_backend_runs_here() {
    let text = printed(&["doctor"]);
    for part in [
        "user namespaces",
        "own /proc",
        "Landlock",
        "seccomp listener",
        "limits",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("MISSING"), "{text}");
    assert!(text.ends_with("The native backend runs here.\n"), "{text}");
}

#[test]
fn doctor_prints_json() {
    let answer: Value = serde_json::from_str(&printed(&["doctor", "--json"])).expect("JSON");
    assert_eq!(answer["native"], true);
    let checks = answer["checks"].as_array().expect("checks");
    for check in checks {
        assert!(
            check["check"].is_string() && check["detail"].is_string(),
            "{check}"
        );
        let health = check["health"].as_str().expect("a health");
        assert!(["ok", "absent"].contains(&health), "{check}");
        // What is not there comes with what to do about it.
        assert_eq!(check["fix"].is_string(), health != "ok", "{check}");
    }
    assert!(
        checks
            .iter()
            .any(|check| check["check"] == "landlock" && check["health"] == "ok")
    );
}

#[test]
fn doctor_leaves_nothing_behind() {
    let folder = Folder::new();
    ringfence()
        .args(["doctor"])
        .folder(folder.path())
        .run()
        .expect_code(0);
    assert!(folder.listing().is_empty());
}

const COMMANDS: &[&[&str]] = &[
    &[],
    &["run"],
    &["policy"],
    &["policy", "check"],
    &["policy", "explain"],
    &["policy", "show"],
    &["policy", "schema"],
    &["doctor"],
    &["completions"],
    &["man"],
];

#[test]
fn help_has_an_example_for_every_command() {
    for command in COMMANDS {
        let text = printed(&[command, &["--help"][..]].concat());
        assert!(text.contains("Example"), "{command:?}: {text}");
        let call = ["ringfence"]
            .iter()
            .chain(*command)
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        let examples = text
            .split_once("Example")
            .map(|(_, rest)| rest)
            .unwrap_or_default();
        assert!(examples.contains(&call), "no {call:?} in {examples}");
    }
}

#[test]
fn help_says_what_each_command_is_for() {
    let mut seen = Vec::new();
    for command in COMMANDS {
        let text = printed(&[command, &["--help"][..]].concat());
        let about = text.lines().next().unwrap_or_default().to_owned();
        assert!(
            !seen.contains(&about),
            "{command:?}: {about:?} is another command's"
        );
        seen.push(about);
    }
    let text = printed(&["--help"]);
    for line in ["Run a command in a sandbox", "Print a completion script"] {
        assert!(text.contains(line), "no {line:?} in {text}");
    }
}

#[test]
fn the_examples_of_help_are_accepted() {
    let text = printed(&["policy", "explain", "--help"]);
    let examples = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ringfence "));
    let examples: Vec<&str> = examples.collect();
    assert!(!examples.is_empty());
    for example in examples {
        let outcome = ringfence()
            .args(example.split(' '))
            .folder(Folder::new().path())
            .run();
        assert!(
            [0, 3].contains(&outcome.code()),
            "{example}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn help_fits_a_terminal_and_goes_to_standard_output() {
    let short = printed(&["run", "-h"]);
    assert!(
        short.contains("--policy") && short.contains("--report"),
        "{short}"
    );
}

#[test]
fn without_a_command_there_is_help_and_an_error() {
    let outcome = ringfence().args::<&str>([]).run();
    assert_ne!(outcome.code(), 0);
    assert!(outcome.stderr.contains("Usage"), "{}", outcome.stderr);
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for word in ["run", "policy", "doctor", "no-network", "explain"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let outcome = ringfence().args(["completions", "none"]).run();
    assert_ne!(outcome.code(), 0);
}

#[test]
fn the_completions_of_bash_are_a_script() {
    let script = printed(&["completions", "bash"]);
    Program::new("bash")
        .args(["-n"])
        .input(script)
        .run()
        .expect_code(0);
}

#[test]
fn the_version_is_the_packages() {
    assert_eq!(
        printed(&["--version"]),
        format!("ringfence {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let script = "set -o pipefail; for words in doctor 'policy show' 'policy schema' 'completions bash' --help; do \
                  \"$RF\" $words | true; done";
    let outcome = Program::new("bash")
        .args(["-c", script])
        .env("RF", super::terminal::binary())
        .folder(Folder::new().path())
        .run();
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
}
