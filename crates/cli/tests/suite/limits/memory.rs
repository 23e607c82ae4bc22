//! Memory of all processes together, wherever it lies.

use super::Ground;

const FLAGS: [&str; 2] = ["--memory", "256MiB"];
const MIB: u64 = 1 << 20;

#[test]
fn g9_memory_past_the_limit_ends_the_run() {
    let ended = Ground::new().is_ended("memory", &FLAGS, "./load memory 512 hold");
    let memory = ended.limit("memory");
    assert_eq!(memory.configured, 256 * MIB);
    let peak = memory.peak.expect("a peak");
    assert!((200 * MIB..640 * MIB).contains(&peak), "{ended}");
}

#[test]
fn g9_many_processes_share_the_limit() {
    // None of them is past it alone.
    let ended = Ground::new().is_ended("memory", &FLAGS, "./load crowd 16 64");
    assert!(!ended.outcome.stderr.contains("EAGAIN"), "{ended}");
}

#[test]
fn g9_private_storage_is_memory() {
    for place in ["/tmp/f", "/dev/shm/f"] {
        let script = format!("./load write {place} 512 hold");
        Ground::new().is_ended("memory", &FLAGS, &script);
    }
}

#[test]
fn g9_private_storage_and_processes_are_counted_together() {
    let script = "./load write /tmp/f 100 && ./load write /dev/shm/f 100 && ./load memory 100 hold";
    Ground::new().is_ended("memory", &FLAGS, script);
}

#[test]
fn g9_shared_memory_without_a_name_counts() {
    let script = "python3 -c '
import mmap, signal
place = mmap.mmap(-1, 512 << 20)
for at in range(0, len(place), 4096): place[at] = 1
signal.pause()'";
    Ground::new().is_ended("memory", &FLAGS, script);
}

#[test]
fn g9_a_file_in_memory_counts() {
    let script = "python3 -c '
import os, signal
file = os.memfd_create(\"x\")
for i in range(512): os.write(file, b\"x\" * (1 << 20))
signal.pause()'";
    Ground::new().is_ended("memory", &FLAGS, script);
}

#[test]
fn memory_below_the_limit_is_had() {
    let ended = Ground::new().passes(&FLAGS, "./load memory 160");
    let peak = ended.limit("memory").peak;
    assert!(peak.is_none_or(|peak| peak <= 256 * MIB), "{ended}");
}

#[test]
fn memory_that_is_only_reserved_costs_nothing() {
    Ground::new().passes(&FLAGS, "./load reserve 8192");
}

#[test]
fn memory_that_is_shared_is_counted_once() {
    Ground::new().passes(&FLAGS, "./load shared 8 128");
}

#[test]
fn memory_that_was_given_back_is_not_counted() {
    Ground::new().passes(
        &FLAGS,
        "for i in 1 2 3 4 5 6; do ./load memory 128 || exit; done",
    );
}

#[test]
fn storage_that_was_given_back_is_not_counted() {
    let script = "for i in 1 2 3 4 5 6; do ./load write /tmp/f 128 || exit; rm /tmp/f; done";
    Ground::new().passes(&FLAGS, script);
}

#[test]
fn files_outside_of_private_storage_are_not_memory() {
    Ground::new().passes(
        &FLAGS,
        "./load write big 512 && cat big big > /dev/null && rm big",
    );
}

#[test]
fn files_that_are_read_through_memory_are_not_memory() {
    let ended = Ground::new().passes(&FLAGS, "./load sparse big 1024 && ./load reads big 1024");
    let peak = ended.limit("memory").peak;
    assert!(peak.is_none_or(|peak| peak <= 256 * MIB), "{ended}");
}

#[test]
fn g9_memory_that_is_given_back_at_once_is_told() {
    let ended = Ground::new().run(&FLAGS, "./load burst 3072; true");
    // Whoever looks in between ends it.
    assert!([0, 137].contains(&ended.code()), "{ended}");
    assert_eq!(ended.hit("memory").ended, ended.code() == 137, "{ended}");
}

#[test]
fn many_short_processes_are_not_ended_for_being_hard_to_look_at() {
    let flags = ["--memory", "256MiB", "--cpu-time", "10m", "--pids", "64"];
    let script = "./load short 4000 & ./load short 4000 & \
                  for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7 8 9; do \
                  (/bin/true; echo $i$j | cat > /dev/null); done; done; wait";
    Ground::new().passes(&flags, script);
}

#[test]
fn g9_memory_is_stopped_on_its_way() {
    // It does not wait for anybody to look.
    Ground::new().is_ended("memory", &FLAGS, "./load memory 4096");
}

#[test]
fn g9_when_the_machine_has_no_memory_left_the_command_goes_first() {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").expect("a score");
    let script = "cat /proc/self/oom_score_adj /proc/1/oom_score_adj";
    let ended = Ground::new().passes(&[], script);
    let scores: Vec<i32> = ended
        .outcome
        .stdout
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    let own: i32 = own.trim().parse().expect("a number");
    assert_eq!(scores, [own.max(500), own]);
}
