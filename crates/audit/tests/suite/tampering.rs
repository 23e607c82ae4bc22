//! Whatever is done to the log is found, at the right place.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use ringfence_audit::{
    BreakReason, Digest, Event, EventKind, Life, Log, ProblemKind, Recorder, Rotation, RunId,
    Stamp, Verification, verify,
};
use ringfence_testkit::Folder;
use sha2::{Digest as _, Sha256};

use crate::support::{TestClock, numbered, refused, start};

const NEWEST: &str = "audit.jsonl";

fn sum_of(line: &str) -> String {
    Digest::from(<[u8; 32]>::from(Sha256::digest(line))).to_string()
}

fn check(folder: &Folder) -> Verification {
    verify(folder.path()).unwrap()
}

/// The first thing that is wrong: what, in which file and line.
fn first_problem(folder: &Folder) -> (ProblemKind, String, u64) {
    let problem = check(folder).problems.into_iter().next();
    let problem = problem.unwrap();
    (problem.kind, problem.place.file, problem.place.line)
}

/// Three runs, the last two at once, all sealed, in several files.
fn filled() -> Folder {
    let folder = Folder::new();
    let rotation = Rotation::new(5000, 32);
    let run = |bits, log: &mut Log, number| {
        let mut event = numbered(0, number);
        event.run = RunId::from_bits(bits);
        log.record(&event).unwrap();
    };
    let seal = |bits, log: &mut Log| {
        let stamp = Stamp {
            time: start(),
            run: RunId::from_bits(bits),
            sandbox: None,
        };
        log.seal(&stamp).unwrap();
    };
    let mut one = Log::open_with(folder.path(), rotation).unwrap();
    (0..20).for_each(|number| run(1, &mut one, number));
    seal(1, &mut one);
    let mut two = Log::open_with(folder.path(), rotation).unwrap();
    for number in 0..10 {
        run(2, &mut one, number);
        run(3, &mut two, number);
    }
    seal(3, &mut two);
    run(2, &mut one, 10);
    seal(2, &mut one);
    folder
}

/// The files of the log, the oldest first.
fn files(folder: &Folder) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = (0..32)
        .map(|age| match age {
            0 => folder.join(NEWEST),
            age => folder.join(format!("{NEWEST}.{age}")),
        })
        .filter(|path| path.exists())
        .collect();
    files.reverse();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

fn write_lines(path: &Path, lines: &[String]) {
    std::fs::write(path, lines.concat()).unwrap();
}

#[test]
fn what_was_written_is_fine() {
    let folder = filled();
    assert!(files(&folder).len() >= 3);
    let found = check(&folder);
    assert!(found.is_fine(), "{found:?}");
    assert_eq!((found.records, found.sealed_runs), (44, 3));
    assert_eq!((found.first_seq, found.last_seq), (Some(1), Some(44)));
    assert_eq!(found.unsealed_runs, []);
}

#[test]
fn a_log_whose_oldest_files_were_rotated_away_is_fine() {
    let folder = Folder::new();
    let mut log = Log::open_with(folder.path(), Rotation::new(2000, 2)).unwrap();
    (0..100).for_each(|number| log.record(&numbered(0, number)).unwrap());
    let stamp = Stamp {
        time: start(),
        run: crate::support::RUN,
        sandbox: None,
    };
    log.seal(&stamp).unwrap();
    let found = check(&folder);
    assert!(found.is_fine(), "{found:?}");
    assert!(found.first_seq > Some(1));
    // But no more than was rotated away may be gone.
    std::fs::remove_file(folder.join("audit.jsonl.2")).unwrap();
    assert!(matches!(
        first_problem(&folder).0,
        ProblemKind::Missing { .. }
    ));
}

#[test]
fn no_log_is_fine_and_one_without_its_parts_is_not() {
    let folder = Folder::new();
    assert!(check(&folder).is_fine());
    assert!(verify(&folder.join("missing")).unwrap().is_fine());
    for (part, kind) in [
        ("audit.head", ProblemKind::HeadMissing),
        ("audit.key", ProblemKind::KeyMissing),
    ] {
        let folder = filled();
        std::fs::remove_file(folder.join(part)).unwrap();
        assert_eq!(first_problem(&folder).0, kind);
    }
    let folder = filled();
    let mut key = std::fs::read(folder.join("audit.key")).unwrap();
    key[7] ^= 1;
    std::fs::write(folder.join("audit.key"), key).unwrap();
    let kinds: Vec<_> = check(&folder).problems.iter().map(|it| it.kind).collect();
    assert!(kinds.contains(&ProblemKind::HeadAltered), "{kinds:?}");
    assert!(kinds.contains(&ProblemKind::WrongSeal), "{kinds:?}");
}

/// Flips a bit of one byte and puts it back.
fn flip(path: &Path, at: usize, bit: u8, test: impl FnOnce()) {
    let whole = std::fs::read(path).unwrap();
    let mut flipped = whole.clone();
    flipped[at] ^= 1 << bit;
    std::fs::write(path, flipped).unwrap();
    test();
    std::fs::write(path, whole).unwrap();
}

#[test]
fn a_flipped_bit_is_found_in_its_line() {
    let folder = filled();
    for path in files(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        // All of the first two lines and the last, and some of the others.
        let places =
            (0..bytes.len()).filter(|at| *at < 700 || *at + 300 > bytes.len() || at % 23 == 0);
        for at in places {
            let line = bytes[..at].split(|byte| *byte == b'\n').count() as u64;
            flip(&path, at, u8::try_from(at % 8).unwrap(), || {
                let (kind, file, found) = first_problem(&folder);
                assert_eq!((file, found), (name(&path), line), "{kind:?} at {at}");
            });
        }
    }
    assert!(check(&folder).is_fine());
}

#[test]
fn a_line_that_was_taken_out_is_found() {
    let folder = filled();
    let mut seq = 0;
    for path in files(&folder) {
        let whole = lines(&path);
        for at in 0..whole.len() {
            seq += 1;
            let mut fewer = whole.clone();
            fewer.remove(at);
            write_lines(&path, &fewer);
            let (kind, file, line) = first_problem(&folder);
            if seq == 44 {
                assert_eq!(kind, ProblemKind::Truncated { to: 44 });
                assert_eq!(line, at as u64);
            } else {
                assert_eq!(kind, ProblemKind::Missing { from: seq, to: seq });
                // The record after it, which may be the first of the next file.
                if at < fewer.len() {
                    assert_eq!((file, line), (name(&path), at as u64 + 1));
                }
            }
        }
        write_lines(&path, &whole);
    }
}

#[test]
fn lines_that_were_swapped_or_doubled_are_found() {
    let folder = filled();
    for path in files(&folder) {
        let whole = lines(&path);
        for at in 0..whole.len() {
            let mut doubled = whole.clone();
            doubled.insert(at, whole[at].clone());
            write_lines(&path, &doubled);
            let want = (ProblemKind::Duplicated, name(&path), at as u64 + 2);
            assert_eq!(first_problem(&folder), want);
            if at + 1 < whole.len() {
                let mut swapped = whole.clone();
                swapped.swap(at, at + 1);
                write_lines(&path, &swapped);
                let want = (ProblemKind::Reordered, name(&path), at as u64 + 1);
                assert_eq!(first_problem(&folder), want);
            }
        }
        write_lines(&path, &whole);
    }
}

#[test]
fn a_file_that_was_cut_or_taken_away_is_found() {
    let folder = filled();
    for path in files(&folder) {
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(37) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(!check(&folder).is_fine(), "{} {length}", path.display());
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!check(&folder).is_fine(), "{}", path.display());
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(check(&folder).is_fine());
}

/// A record that follows on the last one of the newest file, as anybody could
/// make it.
fn forged(folder: &Folder) -> String {
    let last = lines(&folder.join(NEWEST)).pop().unwrap();
    let fields: serde_json::Value = serde_json::from_str(&last).unwrap();
    let seq = fields["seq"].as_u64().unwrap();
    let sum = sum_of(&last);
    let mut event = numbered(0, 99);
    event.run = RunId::from_bits(9);
    let event = serde_json::to_string(&event).unwrap();
    format!(
        "{{\"version\":2,\"seq\":{},\"prev\":\"{sum}\",{}\n",
        seq + 1,
        &event[1..]
    )
}

fn append(folder: &Folder, text: &str) -> u64 {
    let mut all = lines(&folder.join(NEWEST));
    all.push(text.to_owned());
    write_lines(&folder.join(NEWEST), &all);
    all.len() as u64
}

#[test]
fn what_somebody_else_appends_is_found_also_if_it_is_well_chained() {
    for torn in [false, true] {
        for well_chained in [true, false] {
            let folder = filled();
            let text = if well_chained {
                forged(&folder)
            } else {
                "{}\n".to_owned()
            };
            let text = if torn { text.trim_end() } else { &text };
            let line = append(&folder, text);
            let want = (ProblemKind::Foreign, NEWEST.to_owned(), line);
            assert_eq!(first_problem(&folder), want);
            // A new run still works, says so, and leaves it to be found.
            let mut log = Log::open(folder.path()).unwrap();
            (0..3).for_each(|number| log.record(&numbered(0, number)).unwrap());
            let found = check(&folder);
            assert_eq!(first_problem(&folder), want, "{found:?}");
            assert_eq!(found.problems.len(), 1, "{found:?}");
            assert_eq!(found.unsealed_runs.len(), if well_chained { 2 } else { 1 });
        }
    }
}

#[test]
fn a_chain_that_was_made_anew_without_the_key_is_found() {
    let folder = filled();
    let path = folder.join(NEWEST);
    let mut changed = lines(&path);
    changed[1] = changed[1].replace("w0.example.org", "w9.example.org");
    for at in 2..changed.len() {
        let sum = sum_of(&changed[at - 1]);
        let from = changed[at].find("\"prev\":\"").unwrap() + 8;
        changed[at].replace_range(from..from + 64, &sum);
    }
    write_lines(&path, &changed);
    assert_eq!(first_problem(&folder).0, ProblemKind::WrongSeal);
    // Without any seal after it, the head still tells.
    let unsealed = Folder::new();
    let mut log = Log::open(unsealed.path()).unwrap();
    log.record(&numbered(0, 0)).unwrap();
    let changed = unsealed.read(NEWEST).replace("w0.example", "w9.example");
    unsealed.write(NEWEST, &changed);
    let want = (ProblemKind::Altered, NEWEST.to_owned(), 1);
    assert_eq!(first_problem(&unsealed), want);
}

#[test]
fn a_record_after_the_seal_of_its_run_is_found() {
    let folder = filled();
    let mut log = Log::open(folder.path()).unwrap();
    let mut event = numbered(0, 0);
    event.run = RunId::from_bits(1);
    log.record(&event).unwrap();
    assert_eq!(first_problem(&folder).0, ProblemKind::Foreign);
}

/// What a new run finds and says after `harm` was done.
fn found_by_a_new_run(harm: impl FnOnce(&Folder)) -> (BreakReason, Verification) {
    let folder = filled();
    harm(&folder);
    let mut log = Log::open(folder.path()).unwrap();
    (0..3).for_each(|number| log.record(&numbered(0, number)).unwrap());
    let found = check(&folder);
    let why = found
        .problems
        .iter()
        .find_map(|problem| match problem.kind {
            ProblemKind::Broken { why } => Some(why),
            _ => None,
        });
    (why.unwrap(), found)
}

#[test]
fn a_new_run_works_after_any_harm_and_the_harm_is_still_told() {
    let cut = |folder: &Folder| {
        let whole = lines(&folder.join(NEWEST));
        write_lines(&folder.join(NEWEST), &whole[..whole.len() - 2]);
    };
    let tear = |folder: &Folder| {
        let text = folder.read(NEWEST);
        std::fs::write(folder.join(NEWEST), &text[..text.len() - 100]).unwrap();
    };
    let remove = |name: &'static str| {
        move |folder: &Folder| std::fs::remove_file(folder.join(name)).unwrap()
    };
    let spoil = |folder: &Folder| {
        folder.write("audit.head", "nonsense");
    };
    let (why, found) = found_by_a_new_run(cut);
    assert_eq!(why, BreakReason::Truncated);
    assert_eq!(
        found.problems[0].kind,
        ProblemKind::Missing { from: 43, to: 44 }
    );
    assert_eq!(found.last_seq, Some(48));
    assert_eq!(found_by_a_new_run(tear).0, BreakReason::Truncated);
    assert_eq!(
        found_by_a_new_run(remove(NEWEST)).0,
        BreakReason::LogMissing
    );
    assert_eq!(
        found_by_a_new_run(remove("audit.head")).0,
        BreakReason::HeadMissing
    );
    assert_eq!(found_by_a_new_run(spoil).0, BreakReason::HeadAltered);
}

#[test]
fn runs_without_a_seal_are_listed_as_running_or_killed() {
    let folder = Folder::new();
    let recorder = |bits| {
        let log = Log::open(folder.path()).unwrap();
        let clock = Box::new(TestClock::default());
        Recorder::with_clock(Some(log), RunId::from_bits(bits), None, clock)
    };
    let running = recorder(1);
    running.run_started(crate::recording::started()).unwrap();
    let sealed = recorder(2);
    sealed.run_started(crate::recording::started()).unwrap();
    sealed.decision(refused("a.example.org")).unwrap();
    sealed.seal().unwrap();
    let text = folder.read(NEWEST);
    let first = text.lines().next().unwrap();
    let mut killed: Event = serde_json::from_str(first).unwrap();
    killed.run = RunId::from_bits(3);
    if let EventKind::RunStarted(started) = &mut killed.kind {
        started.supervisor.as_mut().unwrap().started += 1;
    }
    Log::open(folder.path()).unwrap().record(&killed).unwrap();
    let found = check(&folder);
    assert!(found.is_fine(), "{found:?}");
    let open: Vec<_> = found
        .unsealed_runs
        .iter()
        .map(|run| (run.run, run.life))
        .collect();
    let want = [
        (RunId::from_bits(1), Life::Running),
        (RunId::from_bits(3), Life::Ended),
    ];
    assert_eq!(open, want);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_change_to_any_file_is_found(
        file in 0..16_usize,
        at in any::<prop::sample::Index>(),
        removed in 0..400_usize,
        added in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let folder = filled();
        let mut all = files(&folder);
        all.push(folder.join("audit.head"));
        let path = &all[file % all.len()];
        let whole = std::fs::read(path).unwrap();
        let at = at.index(whole.len());
        let end = (at + removed).min(whole.len());
        let mut changed = whole.clone();
        changed.splice(at..end, added);
        std::fs::write(path, &changed).unwrap();
        prop_assert_eq!(check(&folder).is_fine(), changed == whole);
    }
}
