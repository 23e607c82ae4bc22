//! Sandboxes do not nest: whoever tries is told at once, and what to do instead.

use ringfence_testkit::{Folder, Outcome, Program};

use super::{inside, inside_with, ringfence};

/// A folder with the binary under test in it, as `rf`.
fn folder() -> Folder {
    let folder = Folder::new();
    let copied = Program::new("cp").args([ringfence().path(), folder.join("rf")]);
    copied.run().expect_code(0);
    folder
}

/// Makes a program in the folder that asks for a user namespace and goes by this name.
fn nester(folder: &Folder, name: &str) {
    let script = format!("cp \"$(command -v unshare)\" '{name}'");
    let made = Program::new("sh").args(["-c", &script]).folder(folder);
    made.run().expect_code(0);
}

fn says_so(outcome: &Outcome) {
    let said = "error[already-inside]: already inside a ringfence sandbox: sandboxes do not nest";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("  hint: run the command as it is"));
}

#[test]
fn g10_a_nested_run_is_refused_at_once_and_says_why() {
    let folder = folder();
    for script in [
        "./rf run -- touch made",
        "./rf run --weaker listener -- touch made",
        "env -u RINGFENCE ./rf run -- touch made",
        "env -i ./rf run --no-network -- /usr/bin/touch made",
        "./rf run --passphrase-fd 3 -- touch made 3</dev/null",
    ] {
        let outcome = inside(&folder, script).expect_code(125);
        says_so(&outcome);
        assert!(!folder.has("made"), "{script}");
    }
    says_so(&inside(&folder, "./rf srt -c 'touch made'").expect_code(1));
    // Nothing was tried that would have to be refused.
    let outcome = inside(&folder, "./rf run -- true").expect_code(125);
    assert!(!outcome.stderr.contains("refused:"), "{}", outcome.stderr);
    // What makes no sandbox works.
    inside(&folder, "./rf run --help").expect_code(0);
    inside(&folder, "./rf policy explain src").expect_code(3);
}

#[test]
fn g10_inside_a_sandbox_without_its_own_folder_or_network_it_is_told_too() {
    let folder = folder();
    let narrow = ["--profile", "restrictive", "--weaker", "limits"];
    for flags in [&["--no-network"][..], &narrow] {
        let outcome = inside_with(&folder, flags, "env -u RINGFENCE ./rf run -- true");
        says_so(&outcome.expect_code(125));
    }
}

#[test]
fn g10_outside_no_variable_and_no_folder_changes_anything() {
    let folder = Folder::new();
    let words = [
        "run",
        "--",
        "sh",
        "-c",
        "unshare -Ur touch made; touch inside",
    ];
    let run = ringfence()
        .args(words)
        .env("RINGFENCE", "1")
        .folder(&folder);
    run.run().expect_code(0);
    assert!(folder.has("inside") && !folder.has("made"));
    let doctor = ringfence().args(["doctor"]).env("RINGFENCE", "1").run();
    assert!(!doctor.stdout.contains("already"), "{}", doctor.stdout);
}

#[test]
fn programs_that_make_a_sandbox_are_named_with_what_to_do() {
    for (name, advice) in [
        ("bwrap", "bwrap: run what it would have run"),
        ("chromium", "Chromium: --no-sandbox"),
        ("codex", "codex --sandbox danger-full-access"),
        ("srt", "`ringfence srt` reads the same settings"),
        ("jailer", "switch theirs off"),
    ] {
        let folder = Folder::new();
        nester(&folder, name);
        let script = format!("./{name} -Ur true");
        let flags = ["--report", "report.json"];
        let outcome = inside_with(&folder, &flags, &script);
        assert_ne!(outcome.code(), 0, "{name}");
        assert!(
            outcome.stderr.contains(advice),
            "{name}: {}",
            outcome.stderr
        );
        let report: serde_json::Value = serde_json::from_str(&folder.read("report.json")).unwrap();
        assert_eq!(report["nested"], serde_json::json!([name]));
        let quiet = inside_with(&folder, &["--quiet"], &script);
        assert!(!quiet.stderr.contains(advice), "{}", quiet.stderr);
    }
    let plain = Folder::new();
    let outcome = inside_with(&plain, &["--report", "r.json"], "true").expect_code(0);
    assert_eq!(outcome.stderr, "");
    assert!(!plain.read("r.json").contains("nested"));
}
