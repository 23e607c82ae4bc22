//! Clients that have the way out hold whatever it will hold for them.

use std::time::Duration;

use ringfence_testkit::{Folder, Outcome, Started, Web, status_of, wait_until};

use super::host;
use crate::suite::clients::Host;

/// What all connections of a sandbox hold together, with the supervisor itself.
const MOST: u64 = 160 << 20;
/// Every request to the one is looked at, and bytes pass to the other.
const NETWORK: &str = "{allow: [{host: web.example.org, methods: [GET, POST], paths: [/**]}, \
                       open.example.org]}";

/// Has a run hoard in this way. The most memory that its supervisor ever had
/// by then, in bytes, and how the run ended.
#[track_caller]
fn hoard(host: &Host, way: &str) -> (u64, Outcome) {
    let folder = &host.online.arena.folder;
    for name in ["web.example.org", "open.example.org"] {
        host.net().web(name, Web::new());
    }
    host.write("hoard.py", include_str!("scripts/hoard.py"));
    let flags = host.policy(NETWORK);
    let state = Folder::new();
    let command = format!("/usr/bin/python3 hoard.py {way}");
    let words = ["run", flags[0], flags[1], "--", "sh", "-c", &command];
    let program = host.online.ringfence();
    let program = program.env("XDG_STATE_HOME", state.path());
    let run = program.args(words).within(Duration::from_mins(5)).start();
    let is_held = (0..8).any(|_| wait_until(|| folder.has("held")));
    let peak = peak_of(&run);
    host.write("go", "");
    let outcome = run.finish();
    assert!(is_held, "{way}: {outcome:?}");
    eprintln!("{way}: {} held, {} MiB", folder.read("held"), peak >> 20);
    let outcome = outcome.expect_code(0);
    assert_eq!(outcome.stdout, "served\n", "{way}");
    (peak, outcome)
}

fn peak_of(run: &Started) -> u64 {
    let text = status_of(run.id(), "VmHWM:");
    let kibibytes: u64 = text.trim_end_matches(" kB").parse().expect("a number");
    kibibytes << 10
}

#[track_caller]
fn is_bounded(way: &str) {
    let (peak, _) = hoard(&host(), way);
    assert!(peak < MOST, "{way}: {} MiB", peak >> 20);
}

#[test]
fn g9_answers_that_nobody_reads_take_no_more_than_their_part() {
    is_bounded("answers 600");
}

/// Whoever has asked and been answered gives his room up when it is wanted.
#[test]
fn g11_connections_that_are_kept_do_not_keep_others_out() {
    is_bounded("idle 500");
}

#[test]
fn g9_streams_that_nobody_reads_take_no_more_than_their_part() {
    is_bounded("streams 60");
}

#[test]
fn g9_large_heads_take_no_more_than_their_part() {
    is_bounded("heads 60");
}

#[test]
fn g9_everything_that_can_be_held_takes_no_more_than_its_part() {
    is_bounded("everything 140");
}

/// Nobody is left waiting in silence where others hold all that there is.
#[test]
fn g9_who_finds_no_room_is_told_so_in_time() {
    let (peak, outcome) = hoard(&host(), "spent 3");
    assert!(peak < MOST, "{} MiB", peak >> 20);
    let told = &outcome.stderr;
    assert!(told.contains("memory-budget"), "{told}");
    assert!(
        told.contains("held all the memory that there is for them"),
        "{told}"
    );
}

/// A stream through which little passes has no use for the room of a transfer.
#[test]
fn g9_hundreds_of_quiet_streams_leave_room_for_others() {
    is_bounded("events 400");
}
