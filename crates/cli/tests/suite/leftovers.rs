//! No litter, and G8: the death of the supervisor ends everything.

use ringfence_testkit::{Folder, Started, processes_with, status_of, wait_until};

use super::arena::{Arena, state};
use super::{inside, ringfence};

#[test]
fn a_run_that_writes_nothing_leaves_the_folder_as_it_was() {
    let arena = Arena::prepared("mkdir -p d .vscode && echo x > d/f && git init -q repo");
    let before = state(arena.folder.path());
    let script = "ls -R > /dev/null; echo evil > .bashrc; mkdir .claude && rmdir .claude; \
                  echo evil > repo/.git/hooks/pre-commit; true";
    arena.inside(script).expect_code(0);
    assert_eq!(state(arena.folder.path()), before);
}

#[test]
fn a_refused_start_leaves_nothing() {
    let folder = Folder::new();
    ringfence()
        .args(["run", "--", "no-such-program"])
        .folder(&folder)
        .run()
        .expect_code(127);
    assert!(folder.listing().is_empty());
}

#[test]
fn six_runs_at_once_in_one_folder_succeed_and_leave_nothing() {
    let arena = Arena::prepared("git init -q repo && mkdir .vscode && echo x > .bashrc");
    let before = state(arena.folder.path());
    let runs: Vec<Started> = (0..6)
        .map(|n| {
            let script = format!(
                "echo {n} > own-{n} && cat own-{n} && rm own-{n}; echo evil > .zshrc; true"
            );
            ringfence()
                .args(["run", "--quiet", "--", "sh", "-c", &script])
                .folder(&arena.folder)
                .start()
        })
        .collect();
    for (n, run) in runs.into_iter().enumerate() {
        assert_eq!(run.finish().expect_code(0).stdout, format!("{n}\n"));
    }
    assert_eq!(state(arena.folder.path()), before);
}

/// The processes of a run other than its supervisor, dead ones left out.
fn inhabitants(marker: &str, run: &Started) -> Vec<u32> {
    let mut found = processes_with(marker);
    found.retain(|pid| *pid != run.id() && !status_of(*pid, "State:").starts_with('Z'));
    found
}

fn mounts() -> usize {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    assert!(!table.is_empty(), "no table of mounts");
    table.lines().count()
}

/// Starts a command with children of every kind, each with the folder's path
/// in its arguments, and waits until all are there.
fn crowd(arena: &Arena) -> Started {
    let marker = arena.folder.text();
    let script = "trap '' TERM HUP INT
        sh -c 'trap \"\" TERM; while :; do sleep 1; done' child \"$0\" &
        setsid sh -c 'while :; do sleep 1; done' session \"$0\" &
        (sh -c 'while :; do sleep 1; done' grandchild \"$0\" &)
        ./attack daemon \"$0\" ready
        wait";
    let run = ringfence()
        .args(["run", "--", "sh", "-c", script, marker])
        .folder(&arena.folder)
        .start();
    let complete = || arena.folder.has("ready") && inhabitants(marker, &run).len() >= 6;
    assert!(wait_until(complete), "{:?}", inhabitants(marker, &run));
    run
}

#[test]
fn g8_the_death_of_the_supervisor_ends_everything() {
    let arena = Arena::new();
    let marker = arena.folder.text().to_owned();
    let before = mounts();
    let run = crowd(&arena);
    run.signal("KILL");
    let gone = wait_until(|| inhabitants(&marker, &run).is_empty());
    assert!(gone, "still there: {:?}", inhabitants(&marker, &run));
    run.finish().expect_code(137);
    assert_eq!(mounts(), before);
    assert_eq!(arena.folder.listing(), ["attack", "ready"]);
}

#[test]
fn g8_the_supervisor_killed_while_it_starts_leaves_no_process() {
    let folder = Folder::new();
    let marker = folder.text();
    for n in 0..20 {
        let run = ringfence()
            .args(["run", "--", "sh", "-c", "while :; do sleep 1; done", marker])
            .folder(&folder)
            .start();
        // At a different moment of the start each time, without a clock.
        for _ in 0..n {
            inhabitants(marker, &run);
        }
        run.signal("KILL");
        assert!(
            wait_until(|| inhabitants(marker, &run).is_empty()),
            "attempt {n}"
        );
        run.finish().expect_code(137);
    }
    assert!(folder.listing().is_empty());
}

#[test]
fn the_end_of_the_command_ends_what_it_left_running() {
    let arena = Arena::new();
    let marker = arena.folder.text();
    let before = mounts();
    let script = "./attack daemon $0 ready; setsid sh -c 'while :; do sleep 1; done' left $0 & \
                  while [ ! -e ready ]; do sleep 0.05; done; exit 7";
    ringfence()
        .args(["run", "--", "sh", "-c", script, marker])
        .folder(&arena.folder)
        .run()
        .expect_code(7);
    // The run is over only when all of it is.
    assert!(processes_with(marker).is_empty());
    assert_eq!(mounts(), before);
}

#[test]
fn what_the_command_made_stays_after_a_kill() {
    let folder = Folder::new();
    inside(&folder, "echo kept > file; kill -9 $$").expect_code(137);
    assert_eq!(folder.read("file"), "kept\n");
}
