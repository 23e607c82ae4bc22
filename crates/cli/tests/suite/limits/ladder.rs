//! What holds each limit on this machine, and what is refused because nothing
//! does.

use ringfence_testkit::is_root;

use super::super::inside_with;
use super::Ground;

/// Whether control groups can be made here: root can, whichever kind there is.
pub(super) fn has_groups() -> bool {
    is_root()
}

const GROUPS: [&str; 3] = ["cgroup-v1", "cgroup-v2", "systemd-scope"];

#[test]
fn defaults_are_in_the_report_with_what_holds_them() {
    let ended = Ground::new().passes(&[], "true");
    let memory = ended.limit("memory");
    assert_eq!(memory.unit, "bytes");
    let total = memory_of_the_machine();
    // A group that this test runs in may have less.
    assert!(memory.configured <= total / 100 * 80 + 100, "{ended}");
    assert!(memory.configured > total / 100 * 5, "{ended}");
    let pids = ended.limit("pids");
    assert_eq!((pids.configured, pids.unit.as_str()), (4096, "tasks"));
    if has_groups() {
        assert!(GROUPS.contains(&memory.mechanism.as_str()), "{ended}");
        assert!(GROUPS.contains(&pids.mechanism.as_str()), "{ended}");
    } else {
        assert_eq!(memory.mechanism, "watchdog");
        assert_eq!(pids.mechanism, "rlimit");
    }
    assert_eq!(ended.report.limits.len(), 2, "{ended}");
}

fn memory_of_the_machine() -> u64 {
    let table = std::fs::read_to_string("/proc/meminfo").expect("the machine's memory");
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok())
        .expect("a number")
        * 1024
}

#[test]
fn the_layer_of_limits_says_what_holds_them() {
    let ended = Ground::new().passes(&["--disk", "1GiB", "--time", "1h"], "true");
    let layers = ended.report.enforcement.iter();
    let layer = layers.clone().find(|layer| layer.layer == "limits");
    let layer = layer.expect("the layer");
    assert!(layer.applied, "{layer:?}");
    for limit in &ended.report.limits {
        let word = format!("{} by {}", limit.limit, limit.mechanism);
        assert!(layer.detail.contains(&word), "no {word} in {layer:?}");
    }
}

#[test]
fn g10_a_fraction_of_a_core_is_refused_where_no_group_can_hold_it() {
    let ground = Ground::new();
    let flags = ["--cpu", "0.5"];
    if has_groups() {
        let ended = ground.passes(&flags, "true");
        assert!(
            GROUPS.contains(&ended.limit("cpu").mechanism.as_str()),
            "{ended}"
        );
        return;
    }
    let outcome = inside_with(&ground.folder, &flags, "echo > ran").expect_code(125);
    for part in [
        "error[limit-unenforceable]",
        "cpu",
        "hint:",
        "--weaker limits",
    ] {
        assert!(
            outcome.stderr.contains(part),
            "no {part}: {}",
            outcome.stderr
        );
    }
    assert!(!ground.folder.has("ran"));
    let ended = ground.passes(&["--cpu", "0.5", "--weaker", "limits"], "true");
    assert_eq!(ended.limit("cpu").mechanism, "nothing");
    let layers = ended.report.enforcement.iter();
    let layer = layers.clone().find(|layer| layer.layer == "limits");
    assert!(layer.is_some_and(|layer| !layer.applied), "{ended}");
}

#[test]
fn g9_a_whole_core_is_held_everywhere_and_cannot_be_left() {
    let ground = Ground::new();
    let ended = ground.passes(&["--cpu", "1"], "taskset -p $$ > before; nproc");
    let mechanism = ended.limit("cpu").mechanism.clone();
    if has_groups() {
        assert!(GROUPS.contains(&mechanism.as_str()), "{ended}");
        return;
    }
    if mechanism == "affinity" {
        assert_eq!(ended.outcome.stdout, "1\n", "{ended}");
        // The way back is refused.
        let leave = "python3 -c 'import os; os.sched_setaffinity(0, range(64))' 2> /dev/null";
        let ended = ground.run(&["--cpu", "1"], &format!("{leave}; nproc"));
        assert_eq!(ended.outcome.stdout, "1\n", "{ended}");
    } else {
        assert_eq!(mechanism, "machine", "{ended}");
    }
}

#[test]
fn g10_limits_that_are_required_need_a_group() {
    for flags in [
        &["--memory", "1GiB"][..],
        &["--pids", "100"],
        &["--cpu-time", "1h"],
        &["--cpu", "1"],
    ] {
        let ground = Ground::new();
        let flags = [&["--require-limits"], flags].concat();
        if has_groups() {
            let ended = ground.passes(&flags, "true");
            let limits = ended.report.limits.iter();
            let held = ["cpu", "memory", "pids", "cpuTime"];
            for limit in limits.filter(|limit| held.contains(&limit.limit.as_str())) {
                assert!(GROUPS.contains(&limit.mechanism.as_str()), "{ended}");
            }
            continue;
        }
        let outcome = inside_with(&ground.folder, &flags, "echo > ran").expect_code(125);
        for part in ["error[limit-unenforceable]", "hint:"] {
            assert!(
                outcome.stderr.contains(part),
                "no {part}: {}",
                outcome.stderr
            );
        }
        assert!(!ground.folder.has("ran"));
    }
}

#[test]
fn g10_requiring_limits_refuses_without_a_group_even_where_none_is_stated() {
    let ground = Ground::new();
    let outcome = inside_with(&ground.folder, &["--require-limits"], "echo > ran");
    let want = if has_groups() { 0 } else { 125 };
    assert_eq!(outcome.code(), want, "{}", outcome.stderr);
    assert_eq!(ground.folder.has("ran"), has_groups());
}

#[test]
fn a_policy_can_require_limits() {
    let ground = Ground::new();
    let text = "version: 1\nresources: {memory: 1GiB, required: true}\n";
    ground.folder.write("policy.yaml", text);
    let outcome = inside_with(&ground.folder, &["--policy", "policy.yaml"], "echo > ran");
    let want = if has_groups() { 0 } else { 125 };
    assert_eq!(outcome.code(), want, "{}", outcome.stderr);
    assert_eq!(ground.folder.has("ran"), has_groups());
}

#[test]
fn peaks_are_plausible() {
    const MIB: u64 = 1 << 20;
    let ground = Ground::new();
    let flags = [
        "--memory",
        "512MiB",
        "--pids",
        "64",
        "--cpu-time",
        "1m",
        "--disk",
        "64MiB",
    ];
    let script = "./load fork 40; ./load memory 150 hold > held & \
                  while [ ! -s held ]; do sleep 0.02; done; ./load write f 10; ./load short 200; \
                  i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; kill $!; wait; true";
    let ended = ground.run(&flags, script);
    assert_eq!(ended.code(), 0, "{ended}");
    for (limit, range) in [
        ("memory", 140 * MIB..300 * MIB),
        ("pids", 2..65),
        ("cpuTime", 20..60_000),
        ("disk", 10 * MIB..12 * MIB),
    ] {
        let peak = ended.limit(limit).peak.expect("a peak");
        assert!(
            range.contains(&peak),
            "{limit}: {peak} not in {range:?}\n{ended}"
        );
    }
}
