//! A flood fills neither the disk nor the memory, and is counted to the last.

use std::path::Path;
use std::time::Duration;

use ringfence_audit::{Event, EventKind, Grouped, Log, Recorder, Subject};
use ringfence_testkit::Folder;

use crate::support::{RUN, TestClock, allowed, closed, read, refused};

fn recorder(folder: &Folder) -> (Recorder, TestClock) {
    let clock = TestClock::default();
    let log = Log::open(folder.path()).unwrap();
    let recorder = Recorder::with_clock(Some(log), RUN, Some("box"), Box::new(clock.clone()));
    (recorder, clock)
}

/// How many decisions the log tells of.
pub(crate) fn counted(folder: &Path) -> u64 {
    let mut grouped = Grouped::default();
    for event in &read(folder).0 {
        grouped.add(event);
    }
    let sightings = grouped.into_sorted();
    sightings.iter().map(|(_, seen)| seen.count).sum()
}

fn is_summary(event: &Event) -> bool {
    matches!(event.kind, EventKind::Summary(_))
}

#[test]
fn ordinary_work_is_written_one_by_one() {
    let folder = Folder::new();
    let (recorder, clock) = recorder(&folder);
    for number in 0..60 {
        recorder
            .decision(allowed(&format!("h{}.example.org", number % 3)))
            .unwrap();
        clock.advance(Duration::from_millis(100));
    }
    recorder.finish().unwrap();
    let (events, _) = read(folder.path());
    assert_eq!(events.len(), 60);
    assert!(!events.iter().any(is_summary));
    assert!(events.iter().all(|it| it.sandbox == Some("box".into())));
}

#[test]
fn repetitions_are_counted_when_their_window_ends() {
    let folder = Folder::new();
    let (recorder, clock) = recorder(&folder);
    for _ in 0..50 {
        recorder.decision(refused("a.example.org")).unwrap();
    }
    assert_eq!(read(folder.path()).0.len(), 20);
    clock.advance(Duration::from_secs(1));
    recorder.tick().unwrap();
    let (events, _) = read(folder.path());
    let EventKind::Summary(summary) = &events[20].kind else {
        panic!("no summary: {:?}", events[20]);
    };
    assert_eq!((events.len(), summary.count), (21, 30));
    assert_eq!(summary.group.destination().unwrap(), "a.example.org:443");
    // A second later there is room for ten more, and then for none.
    for _ in 0..12 {
        recorder.decision(refused("a.example.org")).unwrap();
    }
    drop(recorder);
    assert_eq!(read(folder.path()).0.len(), 21 + 10 + 1);
    assert_eq!(counted(folder.path()), 62);
}

#[test]
fn what_differs_is_not_a_repetition() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    for _ in 0..15 {
        recorder.decision(refused("a.example.org")).unwrap();
        recorder.decision(allowed("a.example.org")).unwrap();
        let mut other_port = refused("a.example.org");
        other_port.port = 80;
        recorder.decision(other_port).unwrap();
    }
    assert_eq!(read(folder.path()).0.len(), 45);
}

#[test]
fn ends_of_connections_are_limited_and_their_bytes_add_up() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    for _ in 0..100 {
        recorder.closed(closed("a.example.org", 10, 100)).unwrap();
    }
    recorder.finish().unwrap();
    let (events, _) = read(folder.path());
    assert_eq!(events.len(), 21);
    let EventKind::Summary(summary) = &events[20].kind else {
        panic!("no summary: {:?}", events[20]);
    };
    assert_eq!(summary.group.of, Subject::Closed);
    assert_eq!(
        (summary.count, summary.bytes_up, summary.bytes_down),
        (80, Some(800), Some(8000))
    );
    let totals = recorder.totals();
    let traffic: Vec<_> = totals.traffic().collect();
    assert_eq!(traffic[0].0, "a.example.org:443");
    assert_eq!(
        (traffic[0].1.connections, traffic[0].1.bytes_down),
        (100, 10_000)
    );
    assert_eq!(counted(folder.path()), 0);
}

#[test]
fn a_million_refusals_leave_a_small_log_that_knows_of_all() {
    const FLOOD: u64 = 1_000_000;
    let folder = Folder::new();
    let (recorder, clock) = recorder(&folder);
    // Half of them alike, half to ever new names, within ten seconds.
    for number in 0..FLOOD {
        let host = if number % 2 == 0 {
            "a.example.org".to_owned()
        } else {
            format!("x{number}.example.org")
        };
        recorder.decision(refused(&host)).unwrap();
        clock.advance(Duration::from_micros(10));
    }
    recorder.finish().unwrap();
    assert_eq!(counted(folder.path()), FLOOD);
    let size = folder.join("audit.jsonl").metadata().unwrap().len();
    assert!(size < 2_000_000, "{size}");
    assert!(!folder.has("audit.jsonl.1"));

    let totals = recorder.totals();
    let told_apart: u64 = totals.refusals().iter().map(|one| one.count).sum();
    assert_eq!(told_apart + totals.refusals().more(), FLOOD);
    assert_eq!(totals.refused(), FLOOD);
}

#[test]
fn many_groups_at_once_take_turns_with_their_summaries() {
    let folder = Folder::new();
    let (recorder, clock) = recorder(&folder);
    // More groups than summaries a second, each beyond its pace.
    for times in [1, 29] {
        for host in (0..150).flat_map(|host| std::iter::repeat_n(host, times)) {
            let decided = allowed(&format!("h{host}.example.org"));
            recorder.decision(decided).unwrap();
        }
    }
    let before = read(folder.path()).0.len();
    clock.advance(Duration::from_secs(1));
    recorder.tick().unwrap();
    assert_eq!(read(folder.path()).0.len() - before, 100);
    clock.advance(Duration::from_secs(1));
    recorder.tick().unwrap();
    recorder.finish().unwrap();
    assert_eq!(counted(folder.path()), 150 * 30);
}

#[test]
fn without_a_log_there_are_still_totals() {
    let recorder = Recorder::new(None, RUN, None);
    recorder.decision(refused("a.example.org")).unwrap();
    recorder.decision(allowed("b.example.org")).unwrap();
    recorder.closed(closed("b.example.org", 1, 2)).unwrap();
    recorder.finish().unwrap();
    let totals = recorder.totals();
    assert_eq!((totals.allowed(), totals.refused()), (1, 1));
    let refusals: Vec<_> = totals.refusals().iter().collect();
    assert_eq!(refusals[0].subject, "a.example.org:443");
    assert_eq!(refusals[0].rule, "not-in-allowlist");
    assert_eq!(totals.more_traffic().connections, 0);
}

#[test]
fn a_recorder_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Recorder>();
}
