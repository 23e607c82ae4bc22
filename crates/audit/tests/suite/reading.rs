//! Readers take what is whole, count the rest, and follow through rotations.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use ringfence_audit::{Event, EventKind, Filter, Follower, Log, Records, Rotation, RunId, Verdict};
use ringfence_testkit::Folder;

use crate::support::{allowed, closed, connection, event, line, numbered, read, refused, start};

const FILE: &str = "audit.jsonl";

fn filtered(folder: &Folder, filter: Filter) -> Vec<u64> {
    let records = Records::open(folder.path(), filter).unwrap();
    records
        .map(|record| connection(&record.unwrap().event))
        .collect()
}

/// What a follower has found since the last time.
fn events(follower: &mut Follower) -> Vec<Event> {
    let records = follower.poll().unwrap().into_iter();
    records.map(|record| record.event).collect()
}

#[test]
fn a_missing_folder_and_an_empty_log_have_no_events() {
    let folder = Folder::new();
    assert_eq!(read(&folder.join("missing")), (vec![], 0));
    assert_eq!(read(folder.path()), (vec![], 0));
    folder.write(FILE, "");
    assert_eq!(read(folder.path()), (vec![], 0));
}

#[test]
fn what_is_no_event_is_counted_and_passed_over() {
    let folder = Folder::new();
    let long = "x".repeat(300_000);
    let parts = [
        "not JSON",
        "",
        "{\"version\":1,\"kind\":\"decision\"}",
        &line(&numbered(0, 0)),
        "\u{1b}[2J",
        &long,
        &line(&numbered(0, 1)),
        // The newline between the two is lost.
        &[
            r#"{"version":2,"host":"{\"version\":2"#,
            &line(&numbered(0, 2)),
        ]
        .concat(),
        "{\"version\":2,\"ti",
    ];
    folder.write(FILE, &parts.join("\n"));
    let mut records = Records::open(folder.path(), Filter::default()).unwrap();
    let numbers: Vec<u64> = records
        .by_ref()
        .map(|it| connection(&it.unwrap().event))
        .collect();
    assert_eq!(numbers, [0, 1, 2]);
    // The last one may still be in the making.
    assert_eq!(records.skipped(), 5);
}

#[test]
fn old_files_come_first_and_their_torn_ends_are_counted() {
    let folder = Folder::new();
    folder.write(
        "audit.jsonl.2",
        &format!("{}\n{{\"ver", line(&numbered(0, 0))),
    );
    folder.write("audit.jsonl.1", &line(&numbered(0, 1)));
    folder.write(FILE, &format!("{}\n", line(&numbered(0, 2))));
    let (events, skipped) = read(folder.path());
    assert_eq!(events.iter().map(connection).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(skipped, 1);
}

#[test]
fn a_link_in_place_of_the_log_is_not_followed() {
    let folder = Folder::new();
    folder.write("elsewhere", &line(&numbered(0, 0)));
    std::os::unix::fs::symlink("elsewhere", folder.join(FILE)).unwrap();
    let error = Records::open(folder.path(), Filter::default()).unwrap_err();
    assert_eq!(error.code(), "audit-log-unreadable");
}

#[test]
fn filters_take_what_fits() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    let second = Duration::from_secs(1);
    let changes: [fn(&mut Event); 4] = [
        |_| (),
        |event| event.time = start().plus(Duration::from_secs(1)),
        |event| event.run = RunId::from_bits(0xabc << 116),
        |event| event.sandbox = Some("box".into()),
    ];
    for (number, change) in (0..).zip(changes) {
        let mut event = numbered(0, number);
        change(&mut event);
        log.record(&event).unwrap();
    }
    let mut yes = allowed("a.example.org");
    yes.connection.0 = 4;
    log.record(&event(EventKind::Decision(yes))).unwrap();

    let none = Filter::default;
    let cases = [
        (none(), vec![0, 1, 2, 3, 4]),
        (
            Filter {
                since: Some(start().plus(second)),
                ..none()
            },
            vec![1],
        ),
        (
            Filter {
                run: Some("abc".parse().unwrap()),
                ..none()
            },
            vec![2],
        ),
        (
            Filter {
                sandbox: Some("box".into()),
                ..none()
            },
            vec![3],
        ),
        (
            Filter {
                verdict: Some(Verdict::Allowed),
                ..none()
            },
            vec![4],
        ),
        (
            Filter {
                sandbox: Some("box".into()),
                verdict: Some(Verdict::Allowed),
                ..none()
            },
            vec![],
        ),
    ];
    for (filter, want) in cases {
        assert_eq!(filtered(&folder, filter.clone()), want, "{filter:?}");
    }
    log.record(&event(EventKind::Closed(closed("a.example.org", 1, 1))))
        .unwrap();
    let refusals = Filter {
        verdict: Some(Verdict::Refused),
        ..none()
    };
    assert_eq!(filtered(&folder, refusals), [0, 1, 2, 3]);
}

#[test]
fn a_follower_sees_what_is_added_only_and_only_whole() {
    let folder = Folder::new();
    let mut follower = Follower::open(&folder.join("audit"), Filter::default()).unwrap();
    assert_eq!(follower.poll().unwrap(), []);
    // The log appears after the follower.
    let mut log = Log::open(&folder.join("audit")).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    assert_eq!(events(&mut follower), [numbered(0, 0)]);

    let mut late = Follower::open(&folder.join("audit"), Filter::default()).unwrap();
    let text = format!("{}\n", line(&numbered(0, 1)));
    let (beginning, rest) = text.split_at(40);
    let mut file = OpenOptions::new()
        .append(true)
        .open(folder.join("audit/audit.jsonl"))
        .unwrap();
    file.write_all(beginning.as_bytes()).unwrap();
    assert_eq!(late.poll().unwrap(), []);
    file.write_all(rest.as_bytes()).unwrap();
    assert_eq!(events(&mut late), [numbered(0, 1)]);
    assert_eq!(late.poll().unwrap(), []);
    assert_eq!(late.skipped(), 0);
}

#[test]
fn a_follower_goes_through_rotations() {
    let folder = Folder::new();
    let mut log = Log::open_with(folder.path(), Rotation::new(1000, 32)).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    let mut records = Records::open(folder.path(), Filter::default()).unwrap();
    assert_eq!(records.by_ref().count(), 1);
    let mut follower = records.follow();
    let mut seen = Vec::new();
    for number in 1..=60 {
        log.record(&numbered(0, number)).unwrap();
        // Not after each one: several rotations may come between two looks.
        if number % 20 == 0 {
            seen.extend(events(&mut follower).iter().map(connection));
        }
    }
    assert!(folder.has("audit.jsonl.10"));
    assert_eq!(seen, (1..=60).collect::<Vec<_>>());
    assert_eq!(follower.skipped(), 0);
}

#[test]
fn a_follower_that_was_left_behind_starts_with_what_is_left() {
    let folder = Folder::new();
    let mut log = Log::open_with(folder.path(), Rotation::new(1000, 1)).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    let mut follower = Follower::open(folder.path(), Filter::default()).unwrap();
    for number in 1..=60 {
        log.record(&numbered(0, number)).unwrap();
    }
    let seen: Vec<u64> = events(&mut follower).iter().map(connection).collect();
    assert_eq!(seen.last(), Some(&60));
    assert!(seen.len() < 60);
    assert!(seen.is_sorted());
}

#[test]
fn a_long_past_comes_in_parts() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    let mut follower = Follower::open(folder.path(), Filter::default()).unwrap();
    for number in 0..3000 {
        log.record(&numbered(0, number)).unwrap();
    }
    let mut seen = 0;
    loop {
        let part = follower.poll().unwrap().len();
        assert!(part <= 1024);
        if part == 0 {
            break;
        }
        seen += part;
    }
    assert_eq!(seen, 3000);
    let mut refusals = refused("a.example.org");
    refusals.connection.0 = 3000;
    log.record(&event(EventKind::Decision(refusals))).unwrap();
    assert_eq!(follower.poll().unwrap().len(), 1);
}
