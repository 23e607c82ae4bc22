//! Processes and threads: refused past the limit, and all of them gone at the
//! end.

use std::path::Path;

use ringfence_testkit::wait_until;

use super::ladder::has_groups;
use super::{Ended, Ground, numbers};

/// Runs a load that is refused processes. A control group counts that; where
/// there is none they stay until somebody has counted them.
#[track_caller]
fn run_at_the_limit(ground: &Ground, flags: &[&str], script: &str) -> Ended {
    if has_groups() {
        ground.let_go();
        ground.run(flags, script)
    } else {
        ground.run_until_told("pids", flags, script)
    }
}

#[test]
fn g9_forks_past_the_limit_are_refused_and_the_command_goes_on() {
    let ground = Ground::new();
    let script = "./load fork 200 show && echo after";
    let ended = run_at_the_limit(&ground, &["--pids", "128"], script);
    assert_eq!(ended.code(), 0, "{ended}");
    let counts = numbers(&ended.outcome);
    let [made, again, other] = counts[..] else {
        panic!("{counts:?}")
    };
    assert_eq!((made + again, other), (200, 0));
    // The shell and the program are in the count.
    assert!((120..=127).contains(&made), "{made} of 128");
    assert!(ended.outcome.stdout.ends_with("after\n"), "{ended}");
    ended.went_on_at("pids");
    ground.is_clean_after(&ended);
}

#[test]
fn g9_threads_are_counted_like_processes() {
    let ground = Ground::new();
    let ended = run_at_the_limit(&ground, &["--pids", "32"], "./load threads 60 show");
    assert_eq!(ended.code(), 0, "{ended}");
    let counts = numbers(&ended.outcome);
    assert!((24..=31).contains(&counts[0]), "{ended}");
    assert_eq!((counts[0] + counts[1], counts[2]), (60, 0));
    ended.went_on_at("pids");
    ground.is_clean_after(&ended);
}

#[test]
fn processes_one_after_the_other_are_not_added_up() {
    let ground = Ground::new();
    let ended = ground.passes(&["--pids", "16"], "./load short 2000");
    let peak = ended.limit("pids").peak;
    assert!(peak.is_none_or(|peak| peak <= 16), "{ended}");
}

#[test]
fn a_number_that_is_just_enough_is_enough() {
    let ground = Ground::new();
    // The shell becomes the program.
    let ended = ground.run(&["--pids", "21"], "exec ./load fork 20");
    assert_eq!(numbers(&ended.outcome), [20, 0, 0], "{ended}");
    assert_eq!(ended.code(), 0);
}

#[test]
fn g9_the_number_of_one_run_is_not_taken_from_another() {
    let ground = Ground::new();
    let other = Ground::new();
    let holder = other.start(
        &["--pids", "64"],
        "(for i in $(seq 50); do sleep 1000 & done; echo > held; wait)",
    );
    assert!(wait_until(|| other.folder.has("held")));
    let ended = ground.run(&["--pids", "64"], "./load fork 60");
    assert_eq!(numbers(&ended.outcome), [60, 0, 0], "{ended}");
    holder.signal("TERM");
    other.finish(holder);
}

#[test]
fn g9_a_fork_bomb_is_held_and_ends_with_its_cpu_time() {
    let ground = Ground::new();
    // However slow the machine is, there are as many as may be long before.
    let flags = ["--pids", "100", "--cpu-time", "1s"];
    let ended = ground.is_ended("cpuTime", &flags, "./load bomb");
    assert!(!ended.hit("pids").ended, "{ended}");
}

#[test]
fn g9_a_fork_bomb_is_held_by_the_default_limit_and_ends_with_its_time() {
    let ground = Ground::new();
    let ended = ground.is_ended("time", &["--time", "2s"], "./load bomb");
    let pids = ended.limit("pids");
    assert_eq!(pids.configured, 4096);
    assert!(pids.peak.is_none_or(|peak| peak <= 4096), "{ended}");
}

#[test]
fn g9_a_fork_bomb_leaves_the_calls_of_the_init_working() {
    let ground = Ground::new();
    // The shell itself may get no process any more.
    let script = "./load bomb & i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo $i > file-$i; done; \
                  echo all > done";
    let ended = ground.run(&["--pids", "64", "--time", "60s"], script);
    assert_eq!(ended.code(), 0, "{ended}");
    assert_eq!(ground.folder.read("done"), "all\n");
    ground.is_clean_after(&ended);
}

#[test]
fn g9_the_end_by_a_limit_takes_everything() {
    for (limit, flags, last) in [
        ("memory", ["--memory", "64MiB"], "./load memory 256 hold"),
        // Long enough for the family to be there, on a busy machine too.
        ("time", ["--time", "5s"], "./load family \"$0\" more"),
        ("cpuTime", ["--cpu-time", "1s"], "./load spin 1"),
        ("output", ["--output", "64KiB"], "yes"),
        ("disk", ["--disk", "8MiB"], "./load write big 64 hold"),
    ] {
        let ground = Ground::new();
        let script = format!(
            "trap '' TERM; ./load family \"$0\" family & \
             while read -r all 2> /dev/null < family; [ \"$all\" != xxxx ]; do sleep 0.02; done; \
             {last}"
        );
        ground.is_ended(limit, &flags, &script);
        assert_eq!(ground.folder.read("family"), "xxxx", "{limit}");
    }
}

#[test]
fn g8_the_death_of_the_supervisor_ends_what_is_limited() {
    let ground = Ground::new();
    let flags = ["--memory", "256MiB", "--pids", "64", "--cpu-time", "1h"];
    let script = "trap '' TERM; ./load family \"$0\" family & wait";
    let run = ground.start(&flags, script);
    let is_up = || ground.folder.has("family") && ground.folder.read("family") == "xxxx";
    assert!(wait_until(is_up));
    let supervisor = run.id();
    run.signal("KILL");
    assert!(
        wait_until(|| ground.inhabitants(&run).is_empty()),
        "{:?}",
        ground.inhabitants(&run)
    );
    run.finish().expect_code(137);
    // A process loses its words before it leaves its group.
    let are_empty = || {
        super::groups_of(supervisor)
            .iter()
            .all(|group| is_empty(group))
    };
    assert!(wait_until(are_empty));
    // Its group, if it had one, goes when the next run makes one.
    Ground::new().passes(&flags, "true");
    let left = super::groups_of(supervisor);
    assert!(left.is_empty(), "{left:?}");
}

fn is_empty(group: &Path) -> bool {
    std::fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| processes.is_empty())
}
