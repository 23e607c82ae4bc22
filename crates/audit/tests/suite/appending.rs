//! Several writers, torn lines and rotation: no record is lost or broken.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use ringfence_audit::{Event, EventKind, Log, Rotation};
use ringfence_testkit::Folder;

use crate::support::{connection, numbered, read};

const FILE: &str = "network.jsonl";

#[test]
fn nothing_is_on_disk_before_the_first_record() {
    let parent = Folder::new();
    let folder = parent.join("state/audit");
    let mut log = Log::open(&folder).unwrap();
    assert_eq!(parent.listing(), ["state", "state/audit"]);
    log.record(&numbered(0, 0)).unwrap();
    let mode = |name: &str| {
        let path = parent.join(name);
        path.metadata().unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("state/audit"), 0o700);
    assert_eq!(mode("state/audit/network.jsonl"), 0o600);
}

#[test]
fn laxer_modes_of_our_own_are_tightened() {
    let folder = Folder::new();
    let file = folder.write(FILE, "");
    let set = |mode| PermissionsExt::from_mode(mode);
    std::fs::set_permissions(&file, set(0o666)).unwrap();
    std::fs::set_permissions(folder.path(), set(0o777)).unwrap();
    Log::open(folder.path())
        .unwrap()
        .record(&numbered(0, 0))
        .unwrap();
    for (path, mode) in [(folder.path(), 0o700), (file.as_path(), 0o600)] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_torn_line_does_not_swallow_the_next_record() {
    let folder = Folder::new();
    folder.write(FILE, "{\"version\":1,\"ti");
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    // Another process crashes while this one has the file open.
    let mut other = OpenOptions::new()
        .append(true)
        .open(folder.join(FILE))
        .unwrap();
    other.write_all(b"{\"version\":1").unwrap();
    log.record(&numbered(0, 1)).unwrap();
    log.record(&numbered(0, 2)).unwrap();
    let text = folder.read(FILE);
    assert_eq!(text.lines().count(), 5, "{text}");
    assert_eq!(
        read(folder.path()),
        ((0..3).map(|n| numbered(0, n)).collect(), 2)
    );
}

#[test]
fn a_log_that_was_taken_away_is_made_anew() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::remove_file(folder.join(FILE)).unwrap();
    log.record(&numbered(0, 1)).unwrap();
    assert_eq!(read(folder.path()), (vec![numbered(0, 1)], 0));
}

#[test]
fn a_log_that_was_renamed_by_hand_is_left_after_a_while() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::rename(folder.join(FILE), folder.join("saved")).unwrap();
    for number in 1..=100 {
        log.record(&numbered(0, number)).unwrap();
    }
    let saved = folder.read("saved").lines().count();
    let (events, _) = read(folder.path());
    assert_eq!(saved + events.len(), 101);
    assert_eq!(events.last().map(connection), Some(100));
}

#[test]
fn a_folder_that_was_taken_away_is_an_error() {
    let parent = Folder::new();
    let folder = parent.join("audit");
    let mut log = Log::open(&folder).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let error = log.record(&numbered(0, 1)).unwrap_err();
    assert_eq!(error.code(), "audit-log-unusable");
}

#[test]
fn full_files_are_moved_on_and_the_oldest_goes() {
    const FULL: u64 = 2000;
    let folder = Folder::new();
    let mut log = Log::open_with(folder.path(), Rotation::new(FULL, 3)).unwrap();
    for number in 0..100 {
        log.record(&numbered(0, number)).unwrap();
    }
    let names = [
        "network.jsonl",
        "network.jsonl.1",
        "network.jsonl.2",
        "network.jsonl.3",
        "network.lock",
    ];
    assert_eq!(folder.listing(), names);
    for name in &names[..4] {
        let size = folder.join(name).metadata().unwrap().len();
        assert!(size < FULL + 500, "{size}");
    }
    let (events, skipped) = read(folder.path());
    let numbers: Vec<u64> = events.iter().map(connection).collect();
    let first = numbers[0];
    assert_eq!(numbers, (first..100).collect::<Vec<_>>());
    assert!((1..95).contains(&first), "{first}");
    assert_eq!(skipped, 0);
}

#[test]
fn a_lock_that_somebody_holds_delays_rotation_only() {
    let folder = Folder::new();
    let lock = std::fs::File::create(folder.join("network.lock")).unwrap();
    lock.lock().unwrap();
    let mut log = Log::open_with(folder.path(), Rotation::new(500, 3)).unwrap();
    for number in 0..10 {
        log.record(&numbered(0, number)).unwrap();
    }
    assert!(!folder.has("network.jsonl.1"));
    lock.unlock().unwrap();
    log.record(&numbered(0, 10)).unwrap();
    assert!(folder.has("network.jsonl.1"));
    let (events, skipped) = read(folder.path());
    assert_eq!((events.len(), skipped), (11, 0));
}

#[test]
fn many_writers_and_rotations_lose_and_tear_nothing() {
    const WRITERS: u64 = 8;
    const RECORDS: u64 = 400;
    let folder = Folder::new();
    // Enough files that none goes: 3200 lines of about 250 bytes in 32 × 40 kB.
    let rotation = Rotation::new(40_000, 32);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut log = Log::open_with(folder.path(), rotation).unwrap();
            scope.spawn(move || {
                for number in 0..RECORDS {
                    log.record(&numbered(writer, number)).unwrap();
                }
            });
        }
    });
    assert!(folder.has("network.jsonl.1"));
    let (events, skipped) = read(folder.path());
    assert_eq!(skipped, 0);
    assert_eq!(events.len() as u64, WRITERS * RECORDS);
    let different: HashSet<String> = events.iter().map(identity).collect();
    assert_eq!(different.len(), events.len());
}

fn identity(event: &Event) -> String {
    match &event.kind {
        EventKind::Decision(decided) => format!("{:?} {:?}", decided.host, decided.connection),
        other => panic!("no decision: {other:?}"),
    }
}
