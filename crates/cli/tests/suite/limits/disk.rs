//! What a run may add to storage, in bytes and in names.

use super::{Ended, Ground, numbers};

const FLAGS: [&str; 2] = ["--disk", "128MiB"];
/// One for every 16 KiB.
const NAMES: u64 = 8192;
const MIB: u64 = 1 << 20;

/// Bytes that lie below the working folder, without the program of loads.
fn bytes_in(ground: &Ground) -> u64 {
    let files = ground.folder.listing().into_iter();
    let files = files.filter(|name| name != "load");
    files
        .filter_map(|name| std::fs::symlink_metadata(ground.folder.join(name)).ok())
        .map(|file| std::os::unix::fs::MetadataExt::blocks(&file) * 512)
        .sum()
}

#[test]
fn g9_one_large_file_in_the_working_folder_ends_the_run() {
    let ground = Ground::new();
    let ended = ground.is_ended("disk", &FLAGS, "./load write big 256 hold");
    let disk = ended.limit("disk");
    assert_eq!((disk.configured, disk.unit.as_str()), (128 * MIB, "bytes"));
    assert!(disk.peak.is_some_and(|peak| peak >= 128 * MIB), "{ended}");
}

#[test]
fn g9_many_files_in_the_working_folder_are_refused_or_end_the_run() {
    let ground = Ground::new();
    let ended = ground.run(&FLAGS, "mkdir d && ./load many d 4096 64 hold");
    let hit = ended.hit("disk");
    assert!(hit.ended || ended.code() == 1, "{ended}");
    // What is refused is refused before it is made.
    assert!(bytes_in(&ground) < 160 * MIB, "{} bytes", bytes_in(&ground));
    ground.is_clean_after(&ended);
}

#[test]
fn g9_private_storage_has_that_size() {
    for script in [
        "./load write /tmp/big 256",
        "mkdir /tmp/d && ./load many /tmp/d 4096 64",
        "./load write /dev/shm/big 256",
    ] {
        let ground = Ground::new();
        let ended = ground.run(&FLAGS, script);
        is_refused_for_want_of_room(&ground, script, &ended);
    }
    // What is gone with its writer must have been seen before.
    for script in [
        "./load deleted /tmp/big 256 show",
        "./load nameless /tmp 256 show",
    ] {
        let ground = Ground::new();
        let ended = ground.run_until_told("disk", &FLAGS, script);
        is_refused_for_want_of_room(&ground, script, &ended);
    }
}

#[track_caller]
fn is_refused_for_want_of_room(ground: &Ground, script: &str, ended: &Ended) {
    assert_eq!(ended.code(), 1, "`{script}`: {ended}");
    // The kernel refuses the next byte; the account, if it looked just then,
    // the next file.
    let last = ended.outcome.stdout.lines().last();
    assert!(
        matches!(last, Some("ENOSPC" | "EDQUOT")),
        "`{script}`: {ended}"
    );
    ended.went_on_at("disk");
    ground.is_clean_after(ended);
}

#[test]
fn g9_private_storage_and_folders_are_counted_together() {
    for script in [
        "./load write /tmp/f 80 && ./load write f 80 hold",
        "./load write f 80 && ./load write /tmp/f 80 hold",
        "./load write /dev/shm/f 60 && ./load write /tmp/f 60 && ./load write f 60 hold",
    ] {
        Ground::new().is_ended("disk", &FLAGS, script);
    }
}

#[test]
fn g9_every_writable_folder_is_counted() {
    let (ground, other) = (Ground::new(), Ground::new());
    let place = other.folder.text();
    let flags = [&FLAGS[..], &["--write", place]].concat();
    let script = format!("./load write f 80 && ./load write {place}/f 80 hold");
    ground.is_ended("disk", &flags, &script);
}

/// How many names a load could make until it met one of these errors.
#[track_caller]
fn names_made(ended: &Ended, errors: &[&str]) -> u64 {
    assert_eq!(ended.code(), 1, "{ended}");
    let last = ended.outcome.stdout.lines().last().unwrap_or_default();
    assert!(errors.contains(&last), "{ended}");
    ended.went_on_at("disk");
    numbers(&ended.outcome)[0]
}

#[test]
fn g9_names_in_the_working_folder_are_counted() {
    let ground = Ground::new();
    let ended = ground.run(&FLAGS, "mkdir d && ./load many d 20000 0");
    let made = names_made(&ended, &["EDQUOT"]);
    assert!((NAMES - 8..=NAMES).contains(&made), "{made}");
    ground.is_clean_after(&ended);
}

#[test]
fn g9_names_in_private_storage_are_counted() {
    let ground = Ground::new();
    let ended = ground.run(&FLAGS, "mkdir /tmp/d && ./load many /tmp/d 20000 0");
    let made = names_made(&ended, &["ENOSPC", "EDQUOT"]);
    assert!((NAMES - 64..=NAMES).contains(&made), "{made}");
    ground.is_clean_after(&ended);
}

#[test]
fn g9_folders_and_links_are_names_too() {
    let ground = Ground::new();
    let ended = ground.run(&FLAGS, "mkdir d && ./load links d 40000");
    let made = names_made(&ended, &["EDQUOT"]);
    // One more hard link costs no more than its name, counted or not.
    assert!((NAMES - 8..=NAMES * 3 / 2 + 8).contains(&made), "{made}");
}

#[test]
fn g9_even_a_small_limit_leaves_a_thousand_names() {
    let ground = Ground::new();
    let ended = ground.run(&["--disk", "8MiB"], "mkdir d && ./load many d 2000 0");
    let made = names_made(&ended, &["EDQUOT"]);
    assert!((1016..=1024).contains(&made), "{made}");
}

#[test]
fn g9_what_is_removed_makes_room_for_more_names() {
    // Of the 1024 that a small limit leaves.
    let script = "for i in 1 2 3; do mkdir d && ./load many d 1000 0 && rm -r d || exit 9; done";
    Ground::new().passes(&["--disk", "8MiB"], script);
}

#[test]
fn g9_no_way_of_writing_gets_around_the_limit() {
    for script in [
        "./load deleted f 256 hold",
        "./load nameless . 256 hold",
        "./load mapped f 256 hold",
        ": > f; ./load append f 256 hold",
        // through a descriptor that a process inherits
        "exec 5> f; head -c 256M /dev/zero >&5; exec sleep 1000",
        // through another name
        ": > f; ln f g; ./load append g 256 hold",
        ": > f; mv f g; ./load append g 256 hold",
        "mkdir d; ln -s d l; ./load write l/f 256 hold",
        // copied by the kernel
        "./load write f 100; cp f g; cp --reflink=never f h; exec sleep 1000",
        "./load write /tmp/f 60; cat /tmp/f > f; cat /tmp/f >> f; exec sleep 1000",
        // in pieces, by several
        "for i in 1 2 3 4; do ./load write f$i 64 & done; wait; exec sleep 1000",
        // of a file that stays open while it is renamed over
        "for i in 1 2 3 4; do ./load write f 64 hold & while [ ! -s f ]; do sleep 0.02; done; mv f g; done; wait",
    ] {
        Ground::new().is_ended("disk", &FLAGS, script);
    }
}

#[test]
fn g9_a_writer_that_is_done_before_anybody_looks_is_told_all_the_same() {
    let ground = Ground::new();
    let ended = ground.run(&["--disk", "1MiB"], "exec ./load write f 4");
    ended.hit("disk");
}

#[test]
fn g9_space_that_is_only_reserved_is_refused_at_once() {
    for (script, error) in [
        ("./load reserved f 256", "EDQUOT\n"),
        ("./load reserved /tmp/f 256", "ENOSPC\n"),
    ] {
        let ground = Ground::new();
        let ended = ground.run(&FLAGS, script);
        assert_eq!(ended.outcome.stdout, error, "`{script}`: {ended}");
        assert_eq!(ended.code(), 1, "`{script}`: {ended}");
    }
    Ground::new().passes(&FLAGS, "./load reserved f 60 && ./load reserved /tmp/f 60");
}

/// What a shell has redirected to a file, whoever opened it.
#[test]
fn g9_a_standard_stream_that_is_a_file_counts() {
    let ground = Ground::new();
    let ringfence = super::ringfence().path().display().to_string();
    let run = |more: &str, stream: &str| {
        let flags = "--disk 32MiB --time 60s";
        let script = format!("{ringfence} run {flags} -- sh -c 'head -c {more} /dev/zero {stream}");
        ringfence_testkit::sh(&script, ground.folder.path())
    };
    run("16M", "' > out").expect_code(0);
    // What was there before does not count.
    run("24M", "' >> out").expect_code(0);
    for stream in ["; sleep 100' >> out", ">&2; sleep 100' 2>> out >&-"] {
        run("64M", stream).expect_code(137);
    }
}
