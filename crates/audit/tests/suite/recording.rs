//! What a recorder keeps of a whole run, and what it keeps out.

use std::time::Duration;

use proptest::prelude::*;
use ringfence_audit::{
    Action, Arguments, Call, CallCount, Decided, ErrorName, Event, EventKind, HostText,
    LimitReached, LimitSet, Log, LogError, MethodText, Outcome, PathText, Paths, Peak, Process,
    Recorder, RunEnded, RunStarted, Story, Subject, Summary, Text, Verdict, verify,
};
use ringfence_policy::AuditLevel;
use ringfence_testkit::Folder;

use crate::support::{RUN, TestClock, allowed, closed, read, refused, start};

pub(crate) fn started() -> RunStarted {
    RunStarted {
        command: Arguments::new(["npm", "test", "--token", "abc"]),
        working_folder: "/project".into(),
        uid: 1000,
        level: AuditLevel::Security,
        reduced: None,
        limits: vec![LimitSet {
            limit: "memory".into(),
            configured: 1 << 20,
            unit: "bytes".into(),
            mechanism: "cgroup-v2".into(),
        }],
        policy: None,
        supervisor: None,
    }
}

fn call(action: Action, path: &str, outcome: Outcome) -> Call {
    Call {
        pid: 7,
        call: "openat".into(),
        action,
        paths: Paths::new([path]),
        argv: Arguments::default(),
        outcome,
        rule: None,
    }
}

fn refusal(action: Action, path: &str) -> Call {
    call(action, path, Outcome::Refused(ErrorName::of(13)))
}

fn reached() -> LimitReached {
    LimitReached {
        limit: "memory".into(),
        configured: 1 << 20,
        unit: "bytes".into(),
        peak: Some(1 << 20),
        mechanism: "cgroup-v2".into(),
        evidence: "oom_kill 1".into(),
        ended: true,
    }
}

fn ended() -> RunEnded {
    RunEnded {
        code: 137,
        reason: "limit".into(),
        signal: Some(9),
        duration_ms: 1500,
        peaks: vec![Peak {
            limit: "memory".into(),
            peak: 1 << 20,
            unit: "bytes".into(),
        }],
        refusals: 1,
    }
}

fn recorder(folder: &Folder) -> (Recorder, TestClock) {
    let clock = TestClock::default();
    let log = Log::open(folder.path()).unwrap();
    let recorder = Recorder::with_clock(Some(log), RUN, Some("box"), Box::new(clock.clone()));
    (recorder, clock)
}

fn kind(event: &Event) -> String {
    let event = serde_json::to_value(event).unwrap();
    event["kind"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_told_from_its_start_to_its_seal() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    recorder.run_started(started()).unwrap();
    recorder.decision(allowed("a.example.org")).unwrap();
    let exec = Call {
        argv: Arguments::new(["curl", "-u", "me:hunter2"]),
        ..call(Action::Exec, "/usr/bin/curl", Outcome::Continued)
    };
    recorder
        .calls([(start(), exec), (start(), refusal(Action::Write, "/etc/x"))])
        .unwrap();
    let count = CallCount {
        call: "read".into(),
        count: 9,
        first: start(),
        last: start(),
    };
    recorder.counted([count]).unwrap();
    recorder.limit_hit(reached()).unwrap();
    recorder.run_ended(ended()).unwrap();
    recorder.seal().unwrap();
    recorder.seal().unwrap();

    let (events, skipped) = read(folder.path());
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let want = [
        "run-started",
        "decision",
        "call",
        "call",
        "calls",
        "limit-hit",
        "run-ended",
        "sealed",
    ];
    assert_eq!((kinds, skipped), (want.map(str::to_owned).to_vec(), 0));
    assert_eq!(events[3].verdict(), Verdict::Refused);
    let text = folder.read("audit.jsonl");
    assert!(
        !text.contains("hunter2") && !text.contains("\"abc\""),
        "{text}"
    );
    assert!(
        text.contains("\"outcome\":{\"refused\":\"EACCES\"}"),
        "{text}"
    );
    assert!(text.contains("\"outcome\":\"continued\""), "{text}");
    let found = verify(folder.path()).unwrap();
    assert!(found.is_fine(), "{found:?}");
    assert_eq!(found.sealed_runs, 1);
}

#[test]
fn a_run_is_closed_with_all_that_is_left_and_its_seal() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    let counts = (0..300).map(|count| CallCount {
        call: "read".into(),
        count,
        first: start(),
        last: start(),
    });
    recorder.close(counts.collect(), ended()).unwrap();
    // Twice is as good as once.
    recorder.close(Vec::new(), ended()).unwrap();
    let (events, _) = read(folder.path());
    let kinds: Vec<String> = events.iter().map(kind).collect();
    assert_eq!(kinds.len(), 302);
    assert_eq!(kinds[299..], ["calls", "run-ended", "sealed"]);
    let found = verify(folder.path()).unwrap();
    assert!(found.is_fine() && found.sealed_runs == 1, "{found:?}");
}

#[test]
fn nothing_is_recorded_after_the_seal() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    recorder.decision(allowed("a.example.org")).unwrap();
    recorder.seal().unwrap();
    let error = recorder.decision(allowed("b.example.org")).unwrap_err();
    assert_eq!(error, LogError::Sealed);
    assert_eq!(
        recorder.closed(closed("a.example.org", 1, 1)),
        Err(LogError::Sealed)
    );
    drop(recorder);
    assert!(verify(folder.path()).unwrap().is_fine());
}

#[test]
fn a_clock_that_goes_back_breaks_nothing() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    for second in (0..10).rev() {
        let time = start().plus(Duration::from_secs(second));
        recorder
            .call(time, call(Action::Write, "/project/x", Outcome::Done))
            .unwrap();
    }
    recorder.seal().unwrap();
    let found = verify(folder.path()).unwrap();
    assert!(found.is_fine(), "{found:?}");
    assert_eq!(found.last_seq, Some(11));
}

/// How many calls the log tells of, in records and summaries.
fn told(events: &[Event], action: Action) -> u64 {
    let count = |event: &Event| match &event.kind {
        EventKind::Call(call) if call.action == action => 1,
        EventKind::Summary(summary)
            if summary.group.of == Subject::Call && summary.group.action == Some(action) =>
        {
            summary.count
        }
        _ => 0,
    };
    events.iter().map(count).sum()
}

#[test]
fn a_million_refused_calls_leave_a_small_log_that_knows_of_all() {
    const FLOOD: u64 = 1_000_000;
    let folder = Folder::new();
    let (recorder, clock) = recorder(&folder);
    // To ever new names in ever new folders, a quarter of them starts with
    // arguments as long as there is room for, within a hundred seconds.
    let long = "x".repeat(512);
    let (short, long) = (Arguments::new([&long]), Arguments::new([&long; 64]));
    for batch in 0..FLOOD / 1000 {
        let calls = (0..1000).map(|number| {
            let path = format!("/project/{batch}/{number}");
            let call = match number % 4 {
                0 => Call {
                    argv: if number % 400 == 0 { &long } else { &short }.clone(),
                    ..refusal(Action::Exec, &path)
                },
                _ => refusal(Action::Write, &path),
            };
            (start(), call)
        });
        recorder.calls(calls).unwrap();
        clock.advance(Duration::from_millis(100));
    }
    recorder.seal().unwrap();
    let (events, _) = read(folder.path());
    assert_eq!(told(&events, Action::Exec), FLOOD / 4);
    assert_eq!(told(&events, Action::Write), FLOOD * 3 / 4);
    let size: u64 = ["audit.jsonl", "audit.jsonl.1"]
        .iter()
        .filter_map(|name| folder.join(name).metadata().ok())
        .map(|file| file.len())
        .sum();
    assert!(size < 26 << 20, "{size}");
    assert!(!folder.has("audit.jsonl.2"));
    assert!(verify(folder.path()).unwrap().is_fine());
}

/// The calls about something that are told one by one.
fn one_by_one(events: &[Event], action: Action) -> Vec<&Call> {
    let calls = events.iter().filter_map(|event| match &event.kind {
        EventKind::Call(call) if call.action == action => Some(call),
        _ => None,
    });
    calls.collect()
}

fn summaries(events: &[Event]) -> Vec<&Summary> {
    let found = events.iter().filter_map(|event| match &event.kind {
        EventKind::Summary(summary) => Some(summary),
        _ => None,
    });
    found.collect()
}

#[test]
fn a_name_is_not_hidden_behind_thousands_in_the_same_folder() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    let write = |name: &str| call(Action::Write, &format!("/project/{name}"), Outcome::Done);
    let decoys = (0..3000).map(|number| (start(), write(&number.to_string())));
    recorder.calls(decoys).unwrap();
    recorder.call(start(), write("evil")).unwrap();
    recorder.finish().unwrap();
    let (events, _) = read(folder.path());
    let last = one_by_one(&events, Action::Write).pop().unwrap().clone();
    assert_eq!(last.paths.first(), Some("/project/evil"));
    assert!(summaries(&events).is_empty());
}

#[test]
fn what_is_too_much_for_a_run_is_counted_by_folder() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    let write = |number: u32| {
        let path = format!("/project/{}/{number}", number % 2);
        (start(), call(Action::Write, &path, Outcome::Done))
    };
    recorder.calls((0..10_000).map(write)).unwrap();
    // Other actions have a number of their own.
    let starts = (0..100).map(|number| Call {
        argv: Arguments::new(["cc", &number.to_string()]),
        ..call(Action::Exec, "/usr/bin/cc", Outcome::Continued)
    });
    recorder.calls(starts.map(|it| (start(), it))).unwrap();
    recorder.finish().unwrap();
    let (events, _) = read(folder.path());
    assert_eq!(told(&events, Action::Write), 10_000);
    let writes = one_by_one(&events, Action::Write);
    assert!((4000..4100).contains(&writes.len()), "{}", writes.len());
    assert_eq!(one_by_one(&events, Action::Exec).len(), 100);
    let mut counted: Vec<&str> = summaries(&events)
        .into_iter()
        .map(|it| it.group.place.as_ref().unwrap().as_str())
        .collect();
    counted.sort_unstable();
    assert_eq!(counted, ["/project/0/", "/project/1/"]);
}

#[test]
fn a_flood_of_starts_hides_neither_its_last_nor_other_actions() {
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    // Each is spelled in another way, at great length.
    let flood = (0..9000).map(|number| {
        let path = format!("/usr{}/bin/true", "/".repeat(number % 900));
        let argv = Arguments::new(["true", &number.to_string()]);
        let start_of_one = call(Action::Exec, &path, Outcome::Continued);
        Call {
            argv,
            ..start_of_one
        }
    });
    recorder.calls(flood.map(|it| (start(), it))).unwrap();
    let later = [
        call(Action::Exec, "/usr/bin/evil", Outcome::Continued),
        call(Action::Write, "/project/evil", Outcome::Done),
        call(Action::Remove, "/project/evil", Outcome::Done),
    ];
    let decoys = (0..3000).map(|n| call(Action::Write, &format!("/tmp/{n}"), Outcome::Done));
    let later = later.into_iter().chain(decoys);
    recorder.calls(later.map(|it| (start(), it))).unwrap();
    recorder.seal().unwrap();
    let (events, _) = read(folder.path());
    for action in [Action::Exec, Action::Write, Action::Remove] {
        let calls = one_by_one(&events, action);
        let is_evil = |call: &&Call| call.subject().ends_with("/evil");
        assert!(calls.into_iter().any(|call| is_evil(&call)), "{action:?}");
    }
    assert_eq!(told(&events, Action::Exec), 9001);
    assert!(verify(folder.path()).unwrap().is_fine());
}

#[test]
fn a_million_refusals_of_one_path_are_one_summary() {
    const FLOOD: u64 = 1_000_000;
    let folder = Folder::new();
    let (recorder, _) = recorder(&folder);
    let again = Call {
        rule: Some("protected name .bashrc".into()),
        ..refusal(Action::Write, "/project/.bashrc")
    };
    for _ in 0..FLOOD / 1000 {
        let calls = std::iter::repeat_n((start(), again.clone()), 1000);
        recorder.calls(calls).unwrap();
    }
    // One in between is not lost.
    recorder
        .call(start(), refusal(Action::Write, "/project/.zshrc"))
        .unwrap();
    recorder.seal().unwrap();
    let (events, _) = read(folder.path());
    let [summary] = summaries(&events)[..] else {
        panic!("{events:?}");
    };
    let group = &summary.group;
    assert_eq!(group.verdict, Verdict::Refused);
    assert_eq!(group.place, Some("/project/.bashrc".into()));
    assert_eq!(group.rule, again.rule);
    assert_eq!(group.outcome, Some(again.outcome));
    let told = one_by_one(&events, Action::Write);
    assert_eq!(summary.count + told.len() as u64, FLOOD + 1);
    assert_eq!(told.last().unwrap().paths.first(), Some("/project/.zshrc"));
    let size = folder.join("audit.jsonl").metadata().unwrap().len();
    assert!(size < 16 << 10, "{size}");
    let story = Story::of(RUN, &events);
    let counts: Vec<(&str, u64)> = story
        .refused
        .iter()
        .map(|line| (line.subject.as_str(), line.count))
        .collect();
    assert_eq!(
        counts,
        [("/project/.bashrc", FLOOD), ("/project/.zshrc", 1)]
    );
}

/// A text with the secret somewhere in it, also where it is cut.
fn around(secret: String) -> impl Strategy<Value = String> {
    let filler = prop_oneof![
        "[a-z /:=&?\"\\\\-]{0,20}",
        (0..1100_usize).prop_map(|n| "y".repeat(n))
    ];
    (filler.clone(), filler).prop_map(move |(before, after)| [&*before, &secret, &after].concat())
}

fn secret() -> impl Strategy<Value = String> {
    "[A-Z0-9%\"\\\\@:/=+]{3}Q[A-Za-z0-9%\"\\\\@:/=+ ]{4,60}Q"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_named_secret_reaches_the_file(
        (secret, texts) in secret().prop_flat_map(|secret| {
            let texts = prop::collection::vec(around(secret.clone()), 12);
            (Just(secret), texts)
        }),
    ) {
        let folder = Folder::new();
        let log = Log::open(folder.path()).unwrap();
        let sandbox = Some(texts[11].as_str());
        let clock = Box::new(TestClock::default());
        let recorder = Recorder::with_clock(Some(log), RUN, sandbox, clock);
        recorder.forget([&secret]);
        let mut start_of_run = started();
        start_of_run.command = Arguments::new(["x", &texts[0]]);
        start_of_run.working_folder = Text::new(&texts[1]);
        recorder.run_started(start_of_run).unwrap();
        let decided = Decided {
            process: Some(Process {
                pid: 1,
                executable: Some(Text::new(&texts[2])),
                argv_sha256: None,
            }),
            host: Some(HostText::new(&texts[3])),
            method: Some(MethodText::new(&texts[4])),
            path: Some(PathText::new(&format!("/{}", texts[5]))),
            rule: Some(Text::new(&texts[6])),
            source: Some(Text::new(&texts[7])),
            credential: None,
            ..refused("a.example.org")
        };
        // Enough to have a summary too.
        for _ in 0..30 {
            recorder.decision(decided.clone()).unwrap();
        }
        recorder.closed(closed(&texts[3], 1, 1)).unwrap();
        let mut made = refusal(Action::Write, &texts[8]);
        made.argv = Arguments::new([&texts[9]]);
        made.rule = Some(Text::new(&texts[6]));
        for _ in 0..60 {
            recorder.call(start(), made.clone()).unwrap();
        }
        let mut hit = reached();
        hit.evidence = Text::new(&texts[10]);
        recorder.limit_hit(hit).unwrap();
        recorder.seal().unwrap();

        let text = folder.read("audit.jsonl");
        let found = verify(folder.path()).unwrap();
        prop_assert!(found.is_fine(), "{:?}", found);
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let mut strings = Vec::new();
            strings_of(&line, &mut strings);
            for string in strings {
                prop_assert!(!string.contains(&secret), "{} in {}", secret, string);
            }
        }
    }
}

fn strings_of<'a>(value: &'a serde_json::Value, found: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::String(text) => found.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings_of(item, found)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|field| strings_of(field, found));
        }
        _ => {}
    }
}
