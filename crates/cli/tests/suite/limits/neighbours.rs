//! A neighbour does not notice what another sandbox does to its own limits,
//! and the machine keeps what it had.

use ringfence_testkit::{Started, wait_until};

use super::Ground;

/// A sandbox that works on and on: a program, a file and private storage.
struct Neighbour {
    ground: Ground,
    run: Started,
}

impl Neighbour {
    fn start() -> Self {
        let ground = Ground::new();
        let script = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i > /tmp/n && \
                      cat /tmp/n > next && mv next count || exit 9; ./load memory 4 || exit 8; done";
        let flags = ["--memory", "256MiB", "--pids", "64", "--disk", "64MiB"];
        let run = ground.start(&flags, script);
        let neighbour = Self { ground, run };
        assert!(wait_until(|| neighbour.count() > 0), "no neighbour");
        neighbour
    }

    fn count(&self) -> u64 {
        let text = std::fs::read_to_string(self.ground.folder.join("count"));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0)
    }

    /// It goes on working.
    #[track_caller]
    fn works(&self, meanwhile: &str) {
        let before = self.count();
        assert!(
            wait_until(|| self.count() > before + 2),
            "after `{meanwhile}`"
        );
    }

    #[track_caller]
    fn stop(self) {
        self.ground.folder.write("stop", "");
        let ended = self.ground.finish(self.run);
        assert_eq!(ended.code(), 0, "{ended}");
        assert!(ended.report.limits_hit.is_empty(), "{ended}");
    }
}

fn mounts() -> usize {
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("the table of mounts");
    table.lines().count()
}

#[test]
fn g9_a_neighbour_does_not_notice() {
    let neighbour = Neighbour::start();
    let before = mounts();
    for (limit, flags, script) in [
        ("memory", &["--memory", "128MiB"][..], "./load memory 4096"),
        ("memory", &["--memory", "128MiB"], "./load crowd 64 64"),
        (
            "memory",
            &["--memory", "128MiB"],
            "./load write /dev/shm/f 2048 hold",
        ),
        ("time", &["--pids", "64", "--time", "1s"], "./load bomb"),
        ("cpuTime", &["--cpu-time", "1s"], "./load spin 4"),
        ("disk", &["--disk", "32MiB"], "./load write f 1024 hold"),
        ("output", &["--output", "1MiB"], "yes"),
        ("time", &["--time", "300ms"], "./load family \"$0\" family"),
        (
            "fileSize",
            &["--file-size", "1MiB"],
            "exec ./load write f 4",
        ),
    ] {
        let ground = Ground::new();
        let running = ground.start(flags, script);
        neighbour.works(script);
        let ended = ground.finish(running);
        ended.by_limit(limit);
        ground.is_clean_after(&ended);
        neighbour.works(script);
    }
    assert_eq!(mounts(), before);
    neighbour.stop();
}

#[test]
fn g9_six_bombs_at_once_end_each_for_its_own_reason() {
    let grounds: Vec<Ground> = (0..6).map(|_| Ground::new()).collect();
    let bombs = [
        ("memory", ["--memory", "64MiB"], "./load memory 512 hold"),
        ("memory", ["--memory", "64MiB"], "./load crowd 16 32"),
        ("cpuTime", ["--cpu-time", "300ms"], "./load spin 2"),
        ("disk", ["--disk", "16MiB"], "./load write f 64 hold"),
        ("output", ["--output", "64KiB"], "yes"),
        ("time", ["--time", "300ms"], "exec sleep 1000"),
    ];
    let runs: Vec<Started> = grounds
        .iter()
        .zip(bombs)
        .map(|(ground, (_, flags, script))| ground.start(&flags, script))
        .collect();
    for ((ground, run), (limit, ..)) in grounds.iter().zip(runs).zip(bombs) {
        let ended = ground.finish(run);
        ended.by_limit(limit);
        ground.is_clean_after(&ended);
    }
}

#[test]
fn g8_a_run_leaves_no_group_and_no_mount() {
    let before = mounts();
    for _ in 0..10 {
        let ground = Ground::new();
        ground.passes(
            &["--memory", "64MiB", "--pids", "16", "--disk", "16MiB"],
            "true",
        );
        assert_eq!(ground.folder.listing(), ["load"]);
    }
    assert_eq!(mounts(), before);
}
