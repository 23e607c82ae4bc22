//! Several writers, torn lines and rotation: no record is lost or broken.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use ringfence_audit::{BreakReason, Event, EventKind, Log, Rotation, verify};
use ringfence_testkit::Folder;

use crate::support::{connection, numbered, read};

const FILE: &str = "audit.jsonl";

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
    assert_eq!(mode("state/audit/audit.jsonl"), 0o600);
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

/// The first event of a log after it was broken, and those after it.
fn after_the_break(folder: &Folder) -> (BreakReason, Vec<Event>) {
    let (events, _) = read(folder.path());
    let is_break = |event: &Event| matches!(event.kind, EventKind::ChainBroken(_));
    let at = events.iter().position(is_break).unwrap();
    let EventKind::ChainBroken(broken) = &events[at].kind else {
        panic!("no break");
    };
    (broken.why, events[at + 1..].to_vec())
}

#[test]
fn a_torn_line_of_somebody_else_does_not_swallow_the_next_record() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    let mut other = OpenOptions::new()
        .append(true)
        .open(folder.join(FILE))
        .unwrap();
    other.write_all(b"{\"version\":2").unwrap();
    log.record(&numbered(0, 1)).unwrap();
    log.record(&numbered(0, 2)).unwrap();
    let text = folder.read(FILE);
    assert_eq!(text.lines().count(), 5, "{text}");
    let after = vec![numbered(0, 1), numbered(0, 2)];
    assert_eq!(after_the_break(&folder), (BreakReason::Appended, after));
}

#[test]
fn a_log_that_was_taken_away_is_made_anew() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::remove_file(folder.join(FILE)).unwrap();
    log.record(&numbered(0, 1)).unwrap();
    let after = vec![numbered(0, 1)];
    assert_eq!(after_the_break(&folder), (BreakReason::LogMissing, after));
}

#[test]
fn a_log_that_was_renamed_by_hand_is_left_at_once() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::rename(folder.join(FILE), folder.join("saved")).unwrap();
    log.record(&numbered(0, 1)).unwrap();
    assert_eq!(folder.read("saved").lines().count(), 1);
    let after = vec![numbered(0, 1)];
    assert_eq!(after_the_break(&folder), (BreakReason::LogMissing, after));
}

#[test]
fn a_folder_that_was_taken_away_is_an_error() {
    let parent = Folder::new();
    let folder = parent.join("audit");
    let mut log = Log::open(&folder).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let error = log.record(&numbered(0, 1)).unwrap_err();
    assert_eq!(error.code(), "audit-unavailable");
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
        "audit.jsonl",
        "audit.jsonl.1",
        "audit.jsonl.2",
        "audit.jsonl.3",
        "audit.head",
        "audit.key",
        "audit.lock",
    ];
    let mut listing = names.to_vec();
    listing.sort_unstable();
    assert_eq!(folder.listing(), listing);
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
fn a_lock_that_somebody_holds_is_waited_for() {
    let folder = Folder::new();
    let lock = std::fs::File::create(folder.join("audit.lock")).unwrap();
    lock.lock().unwrap();
    let mut log = Log::open(folder.path()).unwrap();
    let writer = std::thread::spawn(move || log.record(&numbered(0, 0)));
    assert!(!folder.has(FILE));
    lock.unlock().unwrap();
    writer.join().unwrap().unwrap();
    assert_eq!(read(folder.path()).0.len(), 1);
}

#[test]
fn a_lock_that_was_replaced_is_not_the_lock_any_more() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    std::fs::remove_file(folder.join("audit.lock")).unwrap();
    let mut other = Log::open(folder.path()).unwrap();
    other.record(&numbered(1, 0)).unwrap();
    log.record(&numbered(0, 1)).unwrap();
    assert!(verify(folder.path()).unwrap().is_fine());
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
    assert!(folder.has("audit.jsonl.1"));
    assert!(verify(folder.path()).unwrap().is_fine());
    let (events, skipped) = read(folder.path());
    assert_eq!(skipped, 0);
    assert_eq!(events.len() as u64, WRITERS * RECORDS);
    let different: HashSet<String> = events.iter().map(identity).collect();
    assert_eq!(different.len(), events.len());
}

#[test]
fn many_processes_write_one_chain() {
    const PROCESSES: u64 = 6;
    const RECORDS: u64 = 200;
    /// Where a process that was started for this writes, and as who.
    const PLACE: &str = "RINGFENCE_TEST_PLACE";
    if let Ok(place) = std::env::var(PLACE) {
        let (writer, folder) = place.split_once(':').unwrap();
        let mut log = Log::open_with(folder.as_ref(), Rotation::new(40_000, 32)).unwrap();
        for number in 0..RECORDS {
            log.record(&numbered(writer.parse().unwrap(), number))
                .unwrap();
        }
        return;
    }
    let folder = Folder::new();
    let this = std::env::current_exe().unwrap();
    let name = "appending::many_processes_write_one_chain";
    let processes: Vec<_> = (0..PROCESSES)
        .map(|writer| {
            ringfence_testkit::Program::new(&this)
                .args([name, "--exact"])
                .env(PLACE, format!("{writer}:{}", folder.text()))
                .start()
        })
        .collect();
    // A log that is being written to is never taken for a broken one.
    let mut checks = 0;
    while (read(folder.path()).0.len() as u64) < PROCESSES * RECORDS && checks < 10_000 {
        let found = verify(folder.path()).unwrap();
        assert!(found.is_fine(), "{found:?}");
        checks += 1;
    }
    for process in processes {
        process.finish().expect_code(0);
    }
    let found = verify(folder.path()).unwrap();
    assert!(found.is_fine(), "{found:?}");
    assert_eq!(found.records, PROCESSES * RECORDS);
}

fn identity(event: &Event) -> String {
    match &event.kind {
        EventKind::Decision(decided) => format!("{:?} {:?}", decided.host, decided.connection),
        other => panic!("no decision: {other:?}"),
    }
}
