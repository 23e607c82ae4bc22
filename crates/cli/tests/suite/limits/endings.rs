//! Time, CPU time, output, open files and the size of a file.

use std::os::unix::fs::PermissionsExt;

use ringfence_runtime::ExitReason;
use ringfence_testkit::{Program, wait_until};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{Ground, numbers};

#[test]
fn g9_a_sleeper_ends_with_its_time() {
    let ended = Ground::new().is_ended("time", &["--time", "300ms"], "exec sleep 1000");
    let time = ended.limit("time");
    assert_eq!((time.configured, time.unit.as_str()), (300, "milliseconds"));
    assert_eq!(time.mechanism, "timer");
}

/// Whoever opens the file that it is given waits for it.
const LEASE: &str = "
import fcntl, os, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
open(sys.argv[2], 'w').close()
time.sleep(60)
";

#[test]
fn g9_time_holds_also_while_the_program_is_loaded() {
    let ground = Ground::new();
    ground.folder.write("slow", "#!/bin/sh\n");
    let slow = ground.folder.join("slow");
    std::fs::set_permissions(&slow, PermissionsExt::from_mode(0o755)).unwrap();
    let ready = ground.reports.join("ready");
    let holder = Program::new("python3")
        .args(["-c", LEASE, "slow"])
        .args([ready.as_os_str()])
        .folder(&ground.folder)
        .start();
    assert!(wait_until(|| ready.exists()));
    for level in ["off", "network", "standard", "security", "all"] {
        let flags = ["--time", "500ms", "--audit", level];
        let words = ["./slow", ground.folder.text()];
        let ended = ground.finish(ground.command_of(&flags, &words).start());
        ended.by_limit("time");
        ground.is_clean_after(&ended);
    }
    // None of them waited for as long as the kernel lets a file be held.
    let again = OFlags::RDONLY | OFlags::NONBLOCK;
    let held = rustix::fs::open(&slow, again, Mode::empty()).map(drop);
    assert_eq!(held, Err(Errno::AGAIN));
    holder.signal("KILL");
    holder.finish();
}

#[test]
fn g9_cpu_time_ends_a_program_that_only_counts() {
    let flags = ["--cpu-time", "500ms"];
    for script in [
        "./load spin 1",
        "./load spin 4",
        // each too short to be past it alone
        "while :; do ./load short 20; done",
        "./load orphans",
        "trap '' TERM XCPU; while :; do :; done",
    ] {
        let ended = Ground::new().is_ended("cpuTime", &flags, script);
        let used = ended.limit("cpuTime");
        assert_eq!((used.configured, used.unit.as_str()), (500, "milliseconds"));
        assert!(
            used.peak.is_some_and(|peak| peak >= 400),
            "`{script}`: {ended}"
        );
    }
}

#[test]
fn g9_waiting_costs_no_cpu_time() {
    Ground::new().passes(&["--cpu-time", "5s"], "sleep 0.2; true");
}

#[test]
fn g9_a_flood_of_output_ends_the_run_with_what_was_allowed() {
    for script in [
        "yes",
        "yes >&2",
        "yes & yes >&2",
        "exec yes",
        "cat /dev/zero",
    ] {
        let ended = Ground::new().is_ended("output", &["--output", "1MiB"], script);
        let told = ended.outcome.stdout.len() + ended.outcome.stderr.len();
        // With what ringfence itself says.
        assert!(
            ((1 << 20) - 1..(1 << 20) + 4096).contains(&told),
            "{told} for {script}"
        );
        assert_eq!(ended.limit("output").mechanism, "relay");
    }
}

#[test]
fn g9_output_that_is_just_enough_is_passed_on() {
    let flags = ["--output", "1000KiB"];
    let ended = Ground::new().passes(&flags, "head -c 1000K /dev/zero | tr '\\0' x");
    assert_eq!(ended.outcome.stdout.len(), 1000 << 10);
    assert_eq!(ended.limit("output").peak, Some(1000 << 10));
    let ended = Ground::new().run(
        &flags,
        "head -c 1001K /dev/zero | tr '\\0' x; exec sleep 1000",
    );
    ended.by_limit("output");
    assert_eq!(ended.outcome.stdout.len(), 1000 << 10);
}

#[test]
fn g9_output_counts_both_streams_together() {
    let script = "head -c 60K /dev/zero; head -c 60K /dev/zero >&2; exec sleep 1000";
    Ground::new().is_ended("output", &["--output", "100KiB"], script);
}

#[test]
fn g9_files_past_the_number_are_refused() {
    let ground = Ground::new();
    let ended = ground.run(&["--files", "32"], "./load open 100");
    assert_eq!(ended.code(), 1, "{ended}");
    assert!(ended.outcome.stdout.ends_with("EMFILE\n"), "{ended}");
    assert!((24..=29).contains(&numbers(&ended.outcome)[0]), "{ended}");
    let limit = ended.limit("openFiles");
    assert_eq!((limit.configured, limit.mechanism.as_str()), (32, "rlimit"));
}

#[test]
fn g9_limits_of_a_process_cannot_be_raised() {
    let script = "ulimit -n 64 2>/dev/null && exit 1; ulimit -n; ulimit -f unlimited 2>/dev/null && exit 2; true";
    let flags = ["--files", "32", "--file-size", "1MiB"];
    let ended = Ground::new().passes(&flags, script);
    assert_eq!(ended.outcome.stdout, "32\n");
}

#[test]
fn g9_a_file_past_its_size_ends_the_program() {
    for place in ["f", "/tmp/f"] {
        let ground = Ground::new();
        let flags = ["--file-size", "1MiB"];
        let ended = ground.is_ended("fileSize", &flags, &format!("exec ./load write {place} 2"));
        assert_eq!(ended.report.exit.signal, Some(25), "{ended}");
        let limit = ended.limit("fileSize");
        assert_eq!(
            (limit.configured, limit.mechanism.as_str()),
            (1 << 20, "rlimit")
        );
    }
}

#[test]
fn g9_a_shell_outlives_a_program_whose_file_is_too_large() {
    let ground = Ground::new();
    let flags = ["--file-size", "1MiB"];
    let ended = ground.run(&flags, "./load write f 2; test $? = 153 && echo after");
    assert_eq!(
        (ended.code(), ended.outcome.stdout.as_str()),
        (0, "after\n"),
        "{ended}"
    );
    assert_eq!(
        std::fs::metadata(ground.folder.join("f"))
            .expect("the file")
            .len(),
        1 << 20
    );
}

#[test]
fn a_file_of_just_that_size_is_fine() {
    Ground::new().passes(&["--file-size", "1MiB"], "./load write f 1");
}

#[test]
fn g9_a_fraction_of_a_core_is_told_when_it_slowed_the_command() {
    // Only a control group can hold a fraction.
    if !super::ladder::has_groups() {
        return;
    }
    // So little that it gets more than that on a busy machine too.
    let flags = ["--cpu", "0.05", "--cpu-time", "200ms"];
    let ended = Ground::new().is_ended("cpuTime", &flags, "./load spin 1");
    assert!(!ended.hit("cpu").ended, "{ended}");
    assert_eq!(ended.limit("cpu").configured, 50);
}

#[test]
fn a_command_that_ends_by_itself_within_all_limits_is_its_own() {
    let flags = [
        "--cpu",
        "1",
        "--memory",
        "256MiB",
        "--pids",
        "32",
        "--disk",
        "32MiB",
        "--time",
        "1m",
        "--cpu-time",
        "1m",
        "--output",
        "1MiB",
        "--files",
        "64",
        "--file-size",
        "16MiB",
    ];
    let ended = Ground::new().run(&flags, "echo words; exit 7");
    assert_eq!(ended.report.exit.reason, ExitReason::Exited, "{ended}");
    assert_eq!(
        (ended.code(), ended.outcome.stdout.as_str()),
        (7, "words\n")
    );
    assert_eq!(ended.report.limits.len(), 9, "{ended}");
    assert!(ended.report.limits_hit.is_empty(), "{ended}");
    assert_eq!(ended.outcome.stderr, "");
}
