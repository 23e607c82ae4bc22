//! The exit code is the command's own, or says what went wrong, as in a shell.

use ringfence_testkit::Folder;

use super::signals::{Sleeper, is_running};
use super::{inside, inside_with, ringfence};

/// `ringfence run -- COMMAND…` and its exit code.
fn code_of(folder: &Folder, command: &[&str]) -> i32 {
    let words = ["run", "--"].into_iter().chain(command.iter().copied());
    ringfence().args(words).folder(folder.path()).run().code()
}

#[test]
fn success_is_zero() {
    assert_eq!(code_of(&Folder::new(), &["true"]), 0);
}

#[test]
fn the_commands_own_code_is_passed_on() {
    let folder = Folder::new();
    for code in [1, 7, 100, 124, 125, 255] {
        let outcome = inside(folder.path(), &format!("exit {code}")).expect_code(code);
        assert_eq!(outcome.stderr, "", "exit {code} is the command's own");
    }
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let folder = Folder::new();
    for name in ["no-such-command-here", "./no-such-file", "/no/such/file"] {
        let outcome = ringfence()
            .args(["run", "--", name])
            .folder(folder.path())
            .run()
            .expect_code(127);
        assert!(
            outcome.stderr.contains("command not found"),
            "{}",
            outcome.stderr
        );
        assert!(outcome.stderr.contains(name), "{}", outcome.stderr);
    }
}

#[test]
fn a_file_that_is_not_executable_is_126() {
    let folder = Folder::new();
    folder.write("plain", "#!/bin/sh\nexit 0\n");
    let outcome = ringfence()
        .args(["run", "--", "./plain"])
        .folder(folder.path())
        .run()
        .expect_code(126);
    assert!(outcome.stderr.contains("./plain"), "{}", outcome.stderr);
}

#[test]
fn a_folder_as_the_command_is_126() {
    let folder = Folder::new();
    folder.write("sub/file", "");
    assert_eq!(code_of(&folder, &["./sub"]), 126);
    assert_eq!(code_of(&folder, &["/usr"]), 126);
}

#[test]
fn a_kill_inside_is_137() {
    inside(Folder::new().path(), "kill -KILL $$").expect_code(137);
}

#[test]
fn a_signal_that_ends_the_command_is_128_and_its_number() {
    let folder = Folder::new();
    for (name, code) in [("HUP", 129), ("ABRT", 134), ("USR1", 138), ("TERM", 143)] {
        inside(folder.path(), &format!("kill -{name} $$")).expect_code(code);
    }
}

#[test]
fn g9_the_time_limit_is_124_and_leaves_nothing() {
    let folder = Folder::new();
    let sleeper = Sleeper::new();
    let script = format!("{sleeper} & {sleeper}");
    let outcome = inside_with(folder.path(), &["--time", "200ms"], &script).expect_code(124);
    assert!(outcome.stderr.contains("time limit"), "{}", outcome.stderr);
    assert!(!is_running(&sleeper));
}

#[test]
fn g9_the_time_limit_holds_for_a_command_that_ignores_the_request() {
    let folder = Folder::new();
    let sleeper = Sleeper::new();
    let script = format!("trap '' TERM; echo > up; setsid {sleeper} & {sleeper}");
    inside_with(folder.path(), &["--time", "200ms"], &script).expect_code(124);
    assert!(folder.has("up"));
    assert!(!is_running(&sleeper));
}

#[test]
fn g9_the_time_limit_holds_for_a_stopped_command() {
    let folder = Folder::new();
    inside_with(folder.path(), &["--time", "200ms"], "kill -STOP $$").expect_code(124);
}

#[test]
fn a_time_limit_that_is_not_reached_changes_nothing() {
    inside_with(Folder::new().path(), &["--time", "1h"], "exit 3").expect_code(3);
}

#[test]
fn a_configuration_error_is_125_and_nothing_runs() {
    let folder = Folder::new();
    let policy = folder.write("policy.yaml", "version: 1\nnonsense: true\n");
    let policy = policy.to_str().expect("a plain path");
    inside_with(folder.path(), &["--policy", policy], "echo > ran").expect_code(125);
    assert!(!folder.has("ran"));
}
