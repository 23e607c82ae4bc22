//! Stories of runs, lists of them, and exports.

use ringfence_audit::{
    Action, Arguments, Call, ErrorName, Event, EventKind, ExportFormat, Exporter, Filter,
    LimitReached, Log, Outcome, Paths, Peak, Recorder, Records, RunEnded, RunId, Story, line_of,
    runs,
};
use ringfence_testkit::Folder;

use crate::recording::started;
use crate::support::{RUN, TestClock, allowed, closed, event, read, refused, start};

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

fn hit() -> LimitReached {
    LimitReached {
        limit: "memory".into(),
        configured: 1 << 20,
        unit: "bytes".into(),
        peak: None,
        mechanism: "cgroup-v2".into(),
        evidence: "oom_kill 1".into(),
        ended: true,
    }
}

/// A run that did a little of everything.
fn recorded() -> Folder {
    let folder = Folder::new();
    let log = Log::open(folder.path()).unwrap();
    let clock = Box::new(TestClock::default());
    let recorder = Recorder::with_clock(Some(log), RUN, Some("=box"), clock);
    recorder.run_started(started()).unwrap();
    recorder.decision(allowed("a.example.org")).unwrap();
    recorder.closed(closed("a.example.org", 10, 20)).unwrap();
    recorder.decision(refused("b.example.org")).unwrap();
    for program in ["sh", "cc", "cc", "sh"] {
        let exec = Call {
            argv: Arguments::new([program, "-c"]),
            ..call(Action::Exec, &format!("/bin/{program}"), Outcome::Continued)
        };
        recorder.call(start(), exec).unwrap();
    }
    for number in 0..15 {
        let write = call(
            Action::Write,
            &format!("/project/many/{number}"),
            Outcome::Done,
        );
        recorder.call(start(), write).unwrap();
    }
    for done in [Action::Write, Action::Remove] {
        recorder
            .call(start(), call(done, "/project/one", Outcome::Done))
            .unwrap();
    }
    let mut no = call(
        Action::Write,
        "/project/.bashrc\n=x,\"y\"",
        Outcome::Refused(ErrorName::of(13)),
    );
    no.rule = Some("protected name .bashrc".into());
    recorder.call(start(), no).unwrap();
    let kill = call(Action::Signal, "1", Outcome::Refused(ErrorName::of(1)));
    recorder.call(start(), kill).unwrap();
    let connect = Outcome::Refused(ErrorName::of(101));
    recorder
        .call(start(), call(Action::Connect, "192.0.2.1:80", connect))
        .unwrap();
    for (action, subject, rule) in [
        (Action::Read, "/home/a/.ssh/id_rsa", Some("hidden place")),
        (Action::Read, "/project/one", None),
        (Action::Signal, "signal 9 to 1", None),
        (Action::Trace, "process 1", None),
        (Action::Identity, "ids 0", None),
    ] {
        let mut seen = call(action, subject, Outcome::Continued);
        seen.rule = rule.map(Into::into);
        recorder.call(start(), seen).unwrap();
    }
    let failed = Outcome::Failed(ErrorName::of(13));
    recorder
        .call(start(), call(Action::Write, "/project/failed", failed))
        .unwrap();
    recorder.limit_hit(hit()).unwrap();
    let ended = RunEnded {
        code: 137,
        reason: "limit".into(),
        signal: Some(9),
        duration_ms: 1500,
        peaks: vec![Peak {
            limit: "memory".into(),
            peak: 1_048_576,
            unit: "bytes".into(),
        }],
        refusals: 3,
    };
    recorder.run_ended(ended).unwrap();
    recorder.seal().unwrap();
    folder
}

#[test]
fn a_story_tells_what_a_run_did() {
    let (events, _) = read(recorded().path());
    let story = Story::of(RUN, &events);
    let programs: Vec<(&str, u64)> = story
        .programs
        .iter()
        .map(|line| (line.program.as_str(), line.count))
        .collect();
    assert_eq!(programs, [("/bin/sh", 1), ("/bin/cc", 2), ("/bin/sh", 1)]);
    let connection = &story.connections[0];
    assert_eq!(connection.destination, "a.example.org:443");
    assert_eq!(
        (connection.count, connection.bytes_up, connection.bytes_down),
        (1, 10, 20)
    );
    let files: Vec<(Action, &str, u64, u64)> = story
        .files
        .iter()
        .map(|line| (line.action, line.path.as_str(), line.files, line.count))
        .collect();
    assert_eq!(
        files,
        [
            (Action::Write, "/project/one", 1, 1),
            (Action::Write, "/project/many/", 15, 15),
            (Action::Remove, "/project/one", 1, 1),
        ]
    );
    let refused: Vec<(&str, &str)> = story
        .refused
        .iter()
        .map(|line| (line.action.as_str(), line.rule.as_str()))
        .collect();
    assert_eq!(
        refused,
        [
            ("connect", "not-in-allowlist"),
            ("write", "protected name .bashrc"),
            ("signal", ""),
            ("connect", ""),
        ]
    );
    let by: Vec<(Option<&str>, Option<&str>)> = story
        .refused
        .iter()
        .map(|line| (line.call.as_deref(), line.error.as_deref()))
        .collect();
    assert_eq!(by[0], (None, None));
    assert_eq!(by[2], (Some("openat"), Some("EPERM")));
    let seen: Vec<(&str, &str)> = story
        .seen
        .iter()
        .map(|line| (line.action.as_str(), line.subject.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("read", "/home/a/.ssh/id_rsa"),
            ("signal", "signal 9 to 1"),
            ("trace", "process 1"),
            ("identity", "ids 0"),
        ]
    );
    assert_eq!(story.seen[0].rule.as_deref(), Some("hidden place"));
    let limit = &story.limits[0];
    assert_eq!((limit.hits, limit.ended), (1, true));
    assert_eq!(
        (limit.configured, limit.peak),
        (Some(1 << 20), Some(1 << 20))
    );
    assert_eq!(story.end.map(|end| end.code), Some(137));
    assert!(story.sealed);
}

#[test]
fn a_line_says_what_is_known_of_the_end() {
    let lines: Vec<String> = [
        Outcome::Continued,
        Outcome::Done,
        Outcome::Failed(ErrorName::of(2)),
        Outcome::Refused(ErrorName::of(13)),
    ]
    .into_iter()
    .map(|outcome| line_of(&event(EventKind::Call(call(Action::Write, "/x", outcome)))))
    .collect();
    assert_eq!(
        lines,
        [
            "seen     write /x (openat, pid 7)",
            "allowed  write /x (openat, pid 7)",
            "failed   write /x (openat, pid 7): ENOENT",
            "refused  write /x (openat, pid 7): EACCES",
        ]
    );
    let hit = line_of(&event(EventKind::LimitHit(hit())));
    assert_eq!(hit, "limit    memory of 1.0 MiB (cgroup-v2): oom_kill 1");
    let mut many = Vec::new();
    for _ in 0..30 {
        many.push((
            start(),
            call(Action::Trace, "process 1", Outcome::Continued),
        ));
    }
    let folder = Folder::new();
    let log = Log::open(folder.path()).unwrap();
    let recorder = Recorder::with_clock(Some(log), RUN, None, Box::<TestClock>::default());
    recorder.calls(many).unwrap();
    recorder.finish().unwrap();
    let last = line_of(read(folder.path()).0.last().unwrap());
    assert_eq!(last, "seen     trace process 1 (openat) 10 more");
}

#[test]
fn a_story_is_of_one_run_only_and_bounded() {
    let mut other = read(recorded().path()).0;
    for event in &mut other {
        event.run = RunId::from_bits(9);
    }
    let story = Story::of(RUN, &other);
    assert!(story.start.is_none() && story.programs.is_empty());
    let flood: Vec<Event> = (0..3000)
        .map(|number| Event {
            time: start(),
            run: RUN,
            sandbox: None,
            kind: EventKind::Call(call(
                Action::Exec,
                &format!("/{number}"),
                Outcome::Refused(ErrorName::of(1)),
            )),
        })
        .collect();
    let story = Story::of(RUN, &flood);
    assert_eq!(story.programs.len() as u64 + story.more_programs, 3000);
    let told: u64 = story.refused.iter().map(|line| line.count).sum();
    assert_eq!(told + story.more_refused, 3000);
    assert!(story.refused.len() <= 1000);
}

#[test]
fn runs_are_listed_in_order() {
    let folder = recorded();
    let log = Log::open(folder.path()).unwrap();
    let later = Recorder::new(Some(log), RunId::from_bits(1), None);
    later.run_started(started()).unwrap();
    let found = runs(folder.path()).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].run, RUN);
    assert_eq!(
        (found[0].code, found[0].refusals, found[0].sealed),
        (Some(137), Some(3), true)
    );
    assert_eq!(found[0].command, ["npm", "test", "--token", "[redacted]"]);
    assert!(!found[1].sealed && found[1].code.is_none());
}

fn exported(format: ExportFormat) -> String {
    let folder = recorded();
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(format, &mut bytes).unwrap();
    for record in Records::open(folder.path(), Filter::default()).unwrap() {
        exporter.add(&record.unwrap()).unwrap();
    }
    exporter.finish().unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The cells of lines of comma-separated values.
fn cells(text: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let mut cells = vec![String::new()];
        let mut is_quoted = false;
        for character in line.chars() {
            match character {
                '"' => {
                    is_quoted = !is_quoted;
                    cells.last_mut().unwrap().push('"');
                }
                ',' if !is_quoted => cells.push(String::new()),
                other => cells.last_mut().unwrap().push(other),
            }
        }
        let unquoted =
            |cell: String| match cell.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
                Some(inner) => inner.replace("\"\"", "\""),
                None => cell,
            };
        cells.into_iter().map(unquoted).collect()
    };
    text.lines().map(line).collect()
}

#[test]
fn json_is_exported_as_it_is() {
    let text = exported(ExportFormat::Json);
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], 1);
    assert_eq!(first["kind"], "run-started");
}

#[test]
fn a_table_has_as_many_cells_in_every_line_and_no_formulas() {
    let rows = cells(&exported(ExportFormat::Csv));
    assert_eq!(rows[0][..4], ["seq", "time", "run", "sandbox"]);
    for row in &rows {
        assert_eq!(row.len(), rows[0].len(), "{row:?}");
        assert!(
            row.iter()
                .all(|cell| !cell.starts_with(['=', '+', '-', '@']))
        );
    }
    assert_eq!(rows[1][3], "'=box");
}

#[test]
fn a_skillhub_gets_its_columns_and_words() {
    let rows = cells(&exported(ExportFormat::Skillhub));
    let actions: Vec<&str> = rows[1..].iter().map(|row| row[1].as_str()).collect();
    assert_eq!(
        actions,
        [
            "SANDBOX_RUN_STARTED",
            "SANDBOX_EGRESS_ALLOWED",
            "SANDBOX_EGRESS_DENIED",
            "SANDBOX_FILE_DENIED",
            "SANDBOX_SYSCALL_DENIED",
            "SANDBOX_EGRESS_DENIED",
            "SANDBOX_QUOTA_EXCEEDED",
            "SANDBOX_RUN_FINISHED",
        ]
    );
    for row in &rows[1..] {
        assert_eq!(row.len(), rows[0].len());
        assert_eq!((row[2].as_str(), row[0].as_str()), ("SKILL_VERSION", ""));
        assert_eq!(row[4], RUN.to_string());
        let detail: serde_json::Value = serde_json::from_str(&row[7]).unwrap();
        assert!(detail["kind"].is_string());
    }
}
