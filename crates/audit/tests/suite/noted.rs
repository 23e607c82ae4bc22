//! A record that was noted elsewhere tells whether the log was replaced.

use ringfence_audit::{
    Digest, Log, Noted, ProblemKind, Rotation, Verification, verify, verify_with,
};
use ringfence_testkit::Folder;
use sha2::{Digest as _, Sha256};

use crate::support::numbered;

/// A log with so many records.
fn with_records(count: u64) -> Folder {
    let folder = Folder::new();
    append(&folder, count);
    folder
}

fn append(folder: &Folder, count: u64) {
    let mut log = Log::open_with(folder.path(), Rotation::new(1 << 20, 2)).unwrap();
    (0..count).for_each(|number| log.record(&numbered(1, number)).unwrap());
}

fn check(folder: &Folder, noted: Noted) -> Verification {
    verify_with(folder.path(), Some(noted)).unwrap()
}

fn last(folder: &Folder) -> Noted {
    verify(folder.path()).unwrap().last().unwrap()
}

#[test]
fn the_last_record_is_told_with_the_sum_of_its_line() {
    let folder = with_records(5);
    let noted = last(&folder);
    let text = folder.read("audit.jsonl");
    let line = text.split_inclusive('\n').next_back().unwrap();
    assert_eq!(noted.seq, 5);
    let sum = <[u8; 32]>::from(Sha256::digest(line));
    assert_eq!(noted.sum, Digest::from(sum));
    assert_eq!(
        verify(Folder::new().path()).map(|it| it.last()),
        Ok(None),
        "nothing is the last of nothing"
    );
}

#[test]
fn a_noted_record_is_found_while_the_log_goes_on() {
    let folder = with_records(5);
    let noted = last(&folder);
    assert!(check(&folder, noted).is_fine());
    append(&folder, 20);
    assert!(check(&folder, noted).is_fine());
    assert_eq!(last(&folder).seq, 25);
}

#[test]
fn an_older_copy_another_log_and_none_at_all_are_not_what_was_noted() {
    let folder = with_records(5);
    let old: Vec<_> = ["audit.jsonl", "audit.head", "audit.key"]
        .map(|name| (name, std::fs::read(folder.join(name)).unwrap()))
        .into();
    append(&folder, 5);
    let noted = last(&folder);
    for (name, bytes) in old {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    assert!(verify(folder.path()).unwrap().is_fine());
    for log in [folder, Folder::new()] {
        let found = check(&log, noted);
        let kinds: Vec<ProblemKind> = found.problems.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [ProblemKind::NotedMissing { noted: 10 }]);
    }
    // As many records, and the same ones, made anew.
    let other = with_records(1);
    append(&other, 10);
    let found = check(&other, noted);
    assert_eq!(found.problems[0].kind, ProblemKind::NotAsNoted);
    assert_eq!(found.problems[0].place.seq, Some(10));
    assert_eq!(found.problems.len(), 1);
}
