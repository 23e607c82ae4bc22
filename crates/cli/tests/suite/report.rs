//! `--report` and the summary of refusals.

use ringfence_runtime::{ExitReason, Report};
use ringfence_testkit::{Folder, Outcome, wait_until};
use serde_json::Value;

use super::{inside_with, ringfence};

/// Runs a script with a report; the report's type refuses unknown fields.
fn reported(folder: &Folder, flags: &[&str], script: &str) -> (Outcome, Report) {
    let flags = [&["--report", "report.json"], flags].concat();
    let outcome = inside_with(folder.path(), &flags, script);
    let report = serde_json::from_str(&folder.read("report.json")).expect("a report");
    (outcome, report)
}

#[test]
fn a_report_tells_what_ran_and_how_it_ended() {
    let folder = Folder::new();
    let (outcome, report) = reported(&folder, &[], "echo words; exit 7");
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (7, "words\n"));
    assert_eq!(report.version, 1);
    assert_eq!(report.command, ["sh", "-c", "echo words; exit 7"]);
    assert_eq!(
        report.working_folder,
        folder.path().to_str().expect("a plain path")
    );
    assert_eq!(
        (report.exit.code, report.exit.reason, report.exit.signal),
        (7, ExitReason::Exited, None)
    );
    assert!(report.signals.is_empty() && report.refusals.is_empty());
    assert_eq!(report.more_refusals, 0);
}

#[test]
fn a_report_may_be_above_the_working_folder() {
    let folder = Folder::new();
    let (above, work) = (folder.path(), folder.join("work"));
    std::fs::create_dir_all(folder.join("work/sub")).expect("a folder");
    let place = |path: &str| above.join(path).display().to_string();
    std::os::unix::fs::symlink(above, folder.join("work/link")).expect("a link");
    std::os::unix::fs::symlink("sub", folder.join("work/link-below")).expect("a link");
    let run = |path: &str| {
        let words = ["run", "--report", path, "--", "true"];
        ringfence().args(words).folder(&work).run()
    };
    for (path, made) in [
        ("../rep.json", "rep.json"),
        ("./../again.json", "again.json"),
        ("../work/below.json", "work/below.json"),
        ("sub/../beside.json", "work/beside.json"),
        (&place("work/../whole.json"), "whole.json"),
    ] {
        run(path).expect_code(0);
        assert!(folder.read(made).contains("\"version\""), "{path}");
    }
    // What lies below is reached without any link, also on the way up again.
    for path in ["link/a.json", "../work/link/b.json", "link-below/../c.json"] {
        run(path).expect_code(125);
    }
    for name in ["a.json", "b.json", "c.json", "work/c.json"] {
        assert!(!folder.has(name), "{name}");
    }
}

#[test]
fn a_report_tells_the_reason_of_the_end() {
    let folder = Folder::new();
    let exit = |flags: &[&str], script: &str| {
        let (outcome, report) = reported(&folder, flags, script);
        assert_eq!(i32::from(report.exit.code), outcome.code());
        (report.exit.code, report.exit.reason, report.exit.signal)
    };
    assert_eq!(
        exit(&[], "kill -KILL $$"),
        (137, ExitReason::Signalled, Some(9))
    );
    let (code, reason, _) = exit(&["--time", "100ms"], "exec sleep 1000");
    assert_eq!((code, reason), (124, ExitReason::TimeLimit));
}

#[test]
fn a_report_tells_of_commands_that_did_not_start() {
    let folder = Folder::new();
    for (command, code, reason) in [
        ("no-such-command", 127, ExitReason::NotFound),
        ("/usr", 126, ExitReason::NotExecutable),
    ] {
        ringfence()
            .args(["run", "--report", "report.json", "--", command])
            .folder(folder.path())
            .run()
            .expect_code(code);
        let report: Report = serde_json::from_str(&folder.read("report.json")).expect("a report");
        assert_eq!(report.exit.reason, reason);
    }
}

#[test]
fn a_report_lists_the_signals_that_were_passed_on() {
    let folder = Folder::new();
    let script = "trap 'echo > first' USR1; echo > up; while :; do sleep 0.02; done";
    let running = ringfence()
        .args(["run", "--report", "report.json", "--", "sh", "-c", script])
        .folder(folder.path())
        .start();
    assert!(wait_until(|| folder.has("up")));
    running.signal("USR1");
    assert!(wait_until(|| folder.has("first")));
    running.signal("TERM");
    running.finish().expect_code(143);
    let report: Report = serde_json::from_str(&folder.read("report.json")).expect("a report");
    assert_eq!(report.signals, [10, 15]);
    assert_eq!(report.exit.signal, Some(15));
}

#[test]
fn a_report_measures_time_and_memory() {
    let folder = Folder::new();
    let (outcome, report) = reported(
        &folder,
        &[],
        "head -c 50M /dev/zero | tail -n 1 | wc -c; sleep 0.3",
    );
    assert_eq!(outcome.code(), 0);
    assert!(report.duration_ms >= 300, "{} ms", report.duration_ms);
    let peak = report.peak_memory_bytes;
    assert!((50 << 20..1 << 30).contains(&peak), "{peak} bytes");
    let own = report.supervisor_peak_bytes.expect("its own peak");
    assert!((1 << 20..1 << 30).contains(&own), "{own} bytes");
}

#[test]
fn a_report_lists_every_layer_of_enforcement() {
    let folder = Folder::new();
    let (_, report) = reported(&folder, &[], "true");
    for name in [
        "namespaces",
        "host-id",
        "view",
        "protected-names",
        "landlock",
        "seccomp",
        "capabilities",
        "network",
        "limits",
    ] {
        let layer = report.enforcement.iter().find(|layer| layer.layer == name);
        assert!(
            layer.is_some_and(|layer| layer.applied && !layer.detail.is_empty()),
            "{name}"
        );
    }
}

#[test]
fn a_report_says_what_holds_the_limits() {
    let folder = Folder::new();
    folder.write("policy.yaml", "version: 1\nresources: {memory: 1GiB}\n");
    let (outcome, report) = reported(&folder, &["--policy", "policy.yaml"], "true");
    assert_eq!(outcome.code(), 0);
    let mut layers = report.enforcement.iter();
    let limits = layers.find(|layer| layer.layer == "limits");
    let limits = limits.expect("the layer");
    assert!(
        limits.applied && limits.detail.contains("memory"),
        "{limits:?}"
    );
    let memory = report.limits.iter().find(|limit| limit.limit == "memory");
    let memory = memory.expect("the limit");
    assert_eq!(
        (memory.configured, memory.unit.as_str()),
        (1 << 30, "bytes")
    );
}

#[test]
fn a_report_lists_what_was_refused_and_how_often() {
    let folder = Folder::new();
    let script = "for i in 1 2 3; do echo > .bashrc; done; mkdir .vscode; true";
    let (outcome, report) = reported(&folder, &[], script);
    assert_eq!(outcome.code(), 0);
    let about = |name: &str| {
        let path = folder.join(name).display().to_string();
        let found = report
            .refusals
            .iter()
            .find(|refusal| refusal.subject == path);
        found.unwrap_or_else(|| panic!("no {path} in {:?}", report.refusals))
    };
    let refusal = about(".bashrc");
    assert_eq!(refusal.count, 3);
    assert!(
        ["create", "write"].contains(&refusal.operation.as_str()),
        "{refusal:?}"
    );
    assert!(refusal.rule.contains(".bashrc"), "{refusal:?}");
    assert_eq!(about(".vscode").count, 1);
}

#[test]
fn a_report_lists_refused_connections() {
    let folder = Folder::new();
    let script = "python3 -c '
import socket
try: socket.create_connection((\"192.0.2.1\", 443), 5)
except OSError: pass
'";
    let (outcome, report) = reported(&folder, &[], script);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let found = report
        .refusals
        .iter()
        .any(|refusal| refusal.subject == "192.0.2.1:443");
    assert!(found, "{:?}", report.refusals);
    assert!(
        outcome.stderr.contains("192.0.2.1:443"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_flood_of_refusals_is_bounded_and_counted() {
    let folder = Folder::new();
    folder.write(".vscode/settings.json", "");
    let script =
        "i=0; while [ $i -lt 3000 ]; do touch .vscode/$i; i=$((i+1)); done 2> /dev/null; true";
    let (outcome, report) = reported(&folder, &[], script);
    assert_eq!(outcome.code(), 0);
    let listed: u64 = report.refusals.iter().map(|refusal| refusal.count).sum();
    assert!(report.refusals.len() <= 1024, "{}", report.refusals.len());
    assert!(
        listed + report.more_refusals >= 3000,
        "{listed} and {}",
        report.more_refusals
    );
    assert!(outcome.stderr.lines().count() < 40, "{}", outcome.stderr);
}

#[test]
fn a_report_has_the_fields_of_its_schema() {
    let folder = Folder::new();
    reported(&folder, &[], "echo > .bashrc");
    let report: Value = serde_json::from_str(&folder.read("report.json")).expect("JSON");
    let schema = ringfence()
        .args(["policy", "schema", "report"])
        .run()
        .expect_code(0);
    let schema: Value = serde_json::from_str(&schema.stdout).expect("JSON");
    let fields: Vec<&String> = report.as_object().expect("an object").keys().collect();
    for name in [
        "exit",
        "signals",
        "durationMs",
        "enforcement",
        "refusals",
        "peakMemoryBytes",
        "supervisorPeakBytes",
    ] {
        assert!(report.get(name).is_some(), "no {name}");
    }
    let required = schema["required"].as_array().expect("required fields");
    assert!(
        required
            .iter()
            .all(|name| report.get(name.as_str().unwrap_or_default()).is_some())
    );
    assert!(
        fields
            .iter()
            .all(|name| schema["properties"].get(name).is_some()),
        "{fields:?}"
    );
}

#[test]
fn a_report_replaces_an_old_one_whole() {
    let folder = Folder::new();
    folder.write("report.json", &"old ".repeat(100_000));
    let (_, report) = reported(&folder, &[], "exit 4");
    assert_eq!(report.exit.code, 4);
}

#[test]
fn the_command_cannot_forge_its_report() {
    let folder = Folder::new();
    let script = "echo forged > report.json; rm -f report.json; ln -s target report.json; exit 5";
    let outcome = inside_with(folder.path(), &["--report", "report.json"], script);
    assert_eq!(outcome.code(), 5, "{}", outcome.stderr);
    // The record may have lost its name to the command's link, but that is
    // not followed, and the command's own words are never taken for it.
    assert!(!folder.has("target"));
    if let Ok(text) = std::fs::read_to_string(folder.join("report.json")) {
        let report: Report = serde_json::from_str(&text).expect("a report");
        assert_eq!(report.exit.code, 5);
    }
}

#[test]
fn a_summary_tells_what_was_refused_and_what_to_add() {
    let folder = Folder::new();
    let outcome = inside_with(folder.path(), &[], "echo > .bashrc; true").expect_code(0);
    let path = folder.join(".bashrc").display().to_string();
    for part in [
        "ringfence: refused:",
        &path,
        "×1",
        "protected name .bashrc",
        "to allow: ",
    ] {
        assert!(
            outcome.stderr.contains(part),
            "no {part} in {}",
            outcome.stderr
        );
    }
}

#[test]
fn what_the_summary_says_to_add_lifts_the_refusal() {
    let folder = Folder::new();
    let outcome = inside_with(folder.path(), &[], "echo > .bashrc; true");
    let line = outcome
        .stderr
        .lines()
        .find_map(|line| line.trim().strip_prefix("to allow: "));
    let flags: Vec<&str> = line.expect("a line to add").split(' ').collect();
    inside_with(folder.path(), &flags, "echo text > .bashrc").expect_code(0);
    assert_eq!(folder.read(".bashrc"), "text\n");
}

#[test]
fn all_that_the_summary_says_to_add_can_be_pasted_at_once() {
    let folder = Folder::new();
    let script = "echo text > .bashrc; mkdir .vscode; true";
    let outcome = inside_with(folder.path(), &[], script);
    let lines = outcome.stderr.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("  to allow: "));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines, ["--unprotect .bashrc --unprotect .vscode"]);
    let flags: Vec<&str> = lines[0].split(' ').collect();
    let outcome = inside_with(folder.path(), &flags, script).expect_code(0);
    assert_eq!(outcome.stderr, "");
    assert!(folder.has(".bashrc") && folder.has(".vscode"));
}

#[test]
fn nothing_refused_is_nothing_said() {
    let outcome = inside_with(Folder::new().path(), &[], "echo > file").expect_code(0);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn quiet_says_nothing_about_refusals() {
    let folder = Folder::new();
    let outcome = inside_with(
        folder.path(),
        &["--quiet"],
        "touch .bashrc 2> /dev/null; true",
    );
    assert_eq!(outcome.expect_code(0).stderr, "");
    let (outcome, report) = reported(&folder, &["--quiet"], "touch .bashrc 2> /dev/null; true");
    assert_eq!(outcome.stderr, "");
    assert_eq!(report.refusals.len(), 1);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let script =
        "d=$(printf 'a\\033[31m\\r\\007\\302\\233b'); touch \".vscode/$d\" 2> /dev/null; true";
    folder.write(".vscode/settings.json", "");
    let outcome = inside_with(folder.path(), &[], script).expect_code(0);
    assert!(outcome.stderr.contains(".vscode"), "{}", outcome.stderr);
    let is_raw = |character: char| character.is_control() && character != '\n';
    assert!(!outcome.stderr.contains(is_raw), "{:?}", outcome.stderr);
}

#[test]
fn control_characters_in_a_command_do_not_reach_the_terminal() {
    let outcome = ringfence()
        .args(["run", "--", "no-such-\u{1b}[31m-command"])
        .folder(Folder::new().path())
        .run()
        .expect_code(127);
    assert!(!outcome.stderr.contains('\u{1b}'), "{:?}", outcome.stderr);
}

#[test]
fn control_characters_in_an_error_do_not_reach_the_terminal() {
    for flag in [
        "--policy",
        "--settings",
        "--cwd",
        "--report",
        "--write",
        "--time",
    ] {
        let outcome = ringfence()
            .args([
                "run",
                flag,
                "/no/such/\u{1b}[31m\nringfence: all is well",
                "--",
                "true",
            ])
            .folder(Folder::new().path())
            .run();
        assert!(
            !outcome.stderr.contains('\u{1b}'),
            "{flag}: {:?}",
            outcome.stderr
        );
        let forged = outcome
            .stderr
            .lines()
            .any(|line| line.starts_with("ringfence: all is well"));
        assert!(!forged, "{flag}: {:?}", outcome.stderr);
    }
}
