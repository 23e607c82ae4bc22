//! Signals reach the command, and nothing outlives it.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use ringfence_testkit::{Folder, Outcome, Program, Started, wait_until};

use super::{inside, ringfence};

/// A `sleep` that can be told from all others by its argument.
pub(super) struct Sleeper(String);

impl Sleeper {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("1000.{:07}{count:03}", std::process::id()))
    }
}

/// As it is written in a script.
impl fmt::Display for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sleep {}", self.0)
    }
}

/// Whether any process of the machine is this sleep.
pub(super) fn is_running(sleeper: &Sleeper) -> bool {
    let wanted = format!("sleep\0{}\0", sleeper.0);
    let processes = std::fs::read_dir("/proc").expect("a listing of processes");
    processes
        .flatten()
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .any(|words| words == wanted.as_bytes())
}

/// Starts a script and waits until it has made the file `up`.
fn started(folder: &Folder, script: &str) -> Started {
    let running = ringfence()
        .args(["run", "--", "sh", "-c", script])
        .folder(folder.path())
        .start();
    assert!(wait_until(|| folder.has("up")), "the script did not start");
    running
}

/// What comes of a script that gets a signal once it is up.
fn signalled(script: &str, signal: &str) -> Outcome {
    let folder = Folder::new();
    let running = started(&folder, script);
    running.signal(signal);
    running.finish()
}

#[test]
fn handlers_inside_run_and_their_code_counts() {
    for signal in ["TERM", "INT", "HUP", "USR1", "USR2", "QUIT"] {
        let script =
            format!("trap 'echo got {signal}; exit 9' {signal}; echo > up; sleep 1000 & wait");
        let outcome = signalled(&script, signal).expect_code(9);
        assert_eq!(outcome.stdout, format!("got {signal}\n"));
    }
}

#[test]
fn a_signal_without_a_handler_ends_the_command() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("USR1", 138)] {
        signalled("echo > up; exec sleep 1000", signal).expect_code(code);
    }
}

#[test]
fn a_signal_that_the_command_ignores_does_not_end_the_run() {
    let folder = Folder::new();
    let script = "trap '' TERM; echo > up; while [ ! -e go ]; do sleep 0.02; done; exit 4";
    let running = started(&folder, script);
    running.signal("TERM");
    folder.write("go", "");
    running.finish().expect_code(4);
}

#[test]
fn a_second_signal_reaches_the_command_too() {
    let folder = Folder::new();
    let script =
        "trap 'echo > first' INT; trap 'exit 6' TERM; echo > up; while :; do sleep 0.02; done";
    let running = started(&folder, script);
    running.signal("INT");
    assert!(wait_until(|| folder.has("first")));
    running.signal("TERM");
    running.finish().expect_code(6);
}

#[test]
fn a_termination_asked_for_twice_is_carried_out() {
    let folder = Folder::new();
    let script = "trap 'echo > first' TERM; echo > up; while :; do sleep 0.02; done";
    let running = started(&folder, script);
    running.signal("TERM");
    assert!(wait_until(|| folder.has("first")));
    running.signal("TERM");
    running.finish().expect_code(137);
}

/// How many calls of a flood were served by now.
fn served(folder: &Folder) -> u32 {
    let bytes = std::fs::read(folder.join("counts")).expect("the counts");
    let counts = bytes.chunks_exact(4);
    counts
        .map(|count| u32::from_ne_bytes(count.try_into().expect("four bytes")))
        .sum()
}

/// A flood of slow calls gets these signals, one after the other.
fn flooded(signals: &[&str]) {
    // A turn of serving once had as many calls as this twice over.
    const MOST: u32 = 64;
    let folder = Folder::new();
    folder.write("flood.py", include_str!("flood.py"));
    let flags = ["run", "--", "/usr/bin/python3", "flood.py"];
    let run = ringfence().args(flags).folder(folder.path()).start();
    let is_up = wait_until(|| folder.has("told"));
    assert!(is_up, "the flood did not start");
    for (number, signal) in signals.iter().enumerate() {
        let least = served(&folder) + 8;
        let is_served = wait_until(|| served(&folder) >= least);
        assert!(is_served, "nothing is served");
        let before = served(&folder);
        run.signal(signal);
        let told = || folder.read("told").lines().nth(number).map(str::to_owned);
        assert!(wait_until(|| told().is_some()), "{signal} is not told");
        let after: u32 = told().expect("a line").parse().expect("a number");
        let meanwhile = after - before;
        assert!(meanwhile < MOST, "{meanwhile} calls came before {signal}");
    }
    run.signal("KILL");
    run.finish().expect_code(137);
}

#[test]
fn g9_a_signal_does_not_wait_for_a_flood_of_slow_calls() {
    flooded(&["USR1", "TERM", "USR1", "USR1"]);
    flooded(&["USR1", "INT", "USR1", "USR1"]);
}

#[test]
fn a_stopped_command_goes_on_when_told_to() {
    let folder = Folder::new();
    let mut running = started(&folder, "echo > up; kill -STOP $$; exit 8");
    let is_over = || {
        running.signal("CONT");
        running.child().try_wait().expect("a status").is_some()
    };
    assert!(wait_until(is_over), "the command is still stopped");
    running.finish().expect_code(8);
}

#[test]
fn a_daemon_dies_with_the_run() {
    let folder = Folder::new();
    let sleeper = Sleeper::new();
    // Twice forked, in a session of its own, adopted by the first process.
    let script = format!(
        "setsid sh -c '(exec {sleeper}) &' </dev/null >/dev/null 2>&1
         echo > up
         while [ ! -e go ]; do sleep 0.02; done"
    );
    let running = started(&folder, &script);
    assert!(
        wait_until(|| is_running(&sleeper)),
        "the daemon did not start"
    );
    folder.write("go", "");
    running.finish().expect_code(0);
    assert!(!is_running(&sleeper));
}

#[test]
fn a_background_job_that_holds_the_streams_does_not_hold_up_the_end() {
    let sleeper = Sleeper::new();
    let outcome = inside(Folder::new().path(), &format!("{sleeper} & echo done")).expect_code(0);
    assert_eq!(outcome.stdout, "done\n");
    assert!(!is_running(&sleeper));
}

#[test]
fn a_signal_to_the_run_ends_everything_below_it() {
    let folder = Folder::new();
    let sleeper = Sleeper::new();
    let script = format!("setsid {sleeper} & echo > up; exec sleep 1000");
    let running = started(&folder, &script);
    assert!(wait_until(|| is_running(&sleeper)));
    running.signal("TERM");
    running.finish().expect_code(143);
    assert!(!is_running(&sleeper));
}

#[test]
fn a_signal_at_the_very_start_is_not_lost() {
    let folder = Folder::new();
    for _ in 0..20 {
        let running = ringfence()
            .args(["run", "--", "sleep", "1000"])
            .folder(folder.path())
            .start();
        running.signal("TERM");
        // Before or after the signals are taken over, the code is the same.
        running.finish().expect_code(143);
    }
}

#[test]
fn a_broken_pipe_ends_the_command_whatever_the_starter_ignores() {
    let script = "trap '' PIPE; exec \"$RF\" run -- sh -c 'kill -PIPE $$; exit 0'";
    Program::new("sh")
        .args(["-c", script])
        .env("RF", super::terminal::binary())
        .folder(Folder::new().path())
        .run()
        .expect_code(141);
}

#[test]
fn a_hangup_that_the_starter_ignores_is_ignored_inside() {
    let folder = Folder::new();
    // As nohup does.
    let script = "trap '' HUP; exec \"$RF\" run -- sh -c \
        'echo > up; while [ ! -e go ]; do sleep 0.02; done; exit 4'";
    let running = Program::new("sh")
        .args(["-c", script])
        .env("RF", super::terminal::binary())
        .folder(folder.path())
        .start();
    assert!(wait_until(|| folder.has("up")));
    running.signal("HUP");
    folder.write("go", "");
    running.finish().expect_code(4);
}

#[test]
fn thousands_of_short_lived_children_are_reaped() {
    let script = "
        i=0
        while [ $i -lt 3000 ]; do (true &); i=$((i+1)); done
        tries=0
        while grep -qs '^State:.Z' /proc/[0-9]*/status; do
            tries=$((tries+1))
            [ $tries -gt 500 ] && exit 1
            sleep 0.02
        done
        ls -d /proc/[0-9]* | wc -l";
    let outcome = inside(Folder::new().path(), script).expect_code(0);
    let left: u32 = outcome.stdout.trim().parse().expect("a number");
    assert!(left < 10, "{left} processes are left");
}

#[test]
fn many_runs_at_once_do_not_disturb_each_other() {
    let folders: Vec<Folder> = (0..20).map(|_| Folder::new()).collect();
    let running: Vec<Started> = folders
        .iter()
        .enumerate()
        .map(|(number, folder)| {
            let script = format!("echo {number} > own; cat own; ls /proc | grep -c '^[0-9]'");
            ringfence()
                .args(["run", "--", "sh", "-c", &script])
                .folder(folder.path())
                .start()
        })
        .collect();
    for (number, (run, folder)) in running.into_iter().zip(&folders).enumerate() {
        let outcome = run.finish().expect_code(0);
        assert!(outcome.stdout.starts_with(&format!("{number}\n")));
        assert_eq!(folder.read("own"), format!("{number}\n"));
    }
}
