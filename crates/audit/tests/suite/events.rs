//! What a line says, and that every event fits in one.

use std::net::IpAddr;

use proptest::option;
use proptest::prelude::*;
use ringfence_audit::{
    CloseReason, Closed, ConnectionId, Decided, Digest, Event, EventKind, Group, HostText, Log,
    MethodText, PathText, Process, Protocol, ReasonCode, Record, RunId, Subject, Summary, Text,
    Timestamp, Verdict, Via, event_schema,
};
use ringfence_policy::{HostName, Origin, Reason, Request};
use ringfence_testkit::Folder;
use serde_json::{Value, json};

use crate::support::{RUN, closed, event, line, read, refused, start};

fn as_json(event: &Event) -> Value {
    serde_json::to_value(event).unwrap()
}

#[test]
fn a_decision_says_what_is_known_and_nothing_else() {
    let folder = Folder::new();
    let mut log = Log::open(folder.path()).unwrap();
    log.record(&event(EventKind::Decision(refused("a.example.org"))))
        .unwrap();
    let zeros = "0".repeat(64);
    assert_eq!(
        folder.read("audit.jsonl").replace(&zeros, "0…"),
        "{\"version\":2,\"seq\":1,\"prev\":\"0…\",\"time\":\"2026-01-02T03:04:05.000000Z\",\
         \"run\":\"00000000000000000000000000005eed\",\"kind\":\"decision\",\"connection\":1,\
         \"via\":\"transparent\",\"host\":\"a.example.org\",\"port\":443,\"protocol\":\"tls\",\
         \"verdict\":\"refused\",\"reason\":\"not-in-allowlist\"}\n"
    );
}

#[test]
fn a_decision_takes_its_words_from_the_policy() {
    let host = HostName::parse("a.example.org").unwrap();
    let request = Request {
        host: Some(&host),
        addr: Some(IpAddr::from([192, 0, 2, 7])),
        port: 8443,
        method: Some("POST"),
        path: Some("/v1/items?token=s3cret"),
    };
    let decision = ringfence_policy::Decision {
        verdict: ringfence_policy::Verdict::Deny,
        reason: Reason::MethodNotAllowed,
        rule: Some("a.example.org GET".to_owned()),
        source: Some(Origin::new(ringfence_policy::LayerKind::Policy, "p.yaml").at_line(3)),
        needs_inspection: false,
        message: None,
    };
    let mut decided = Decided::new(
        ConnectionId(9),
        Via::Connect,
        Protocol::Http,
        &request,
        &decision,
    );
    decided.process = Some(Process {
        pid: 42,
        executable: Some(Text::new("/usr/bin/curl")),
        argv_sha256: Some(Digest::from([0xab; 32])),
    });
    let event = Event {
        sandbox: Some("box".into()),
        ..event(EventKind::Decision(decided))
    };
    assert_eq!(
        as_json(&event),
        json!({
            "time": "2026-01-02T03:04:05.000000Z",
            "run": "00000000000000000000000000005eed",
            "sandbox": "box",
            "kind": "decision",
            "connection": 9,
            "process": {"pid": 42, "executable": "/usr/bin/curl", "argvSha256": "ab".repeat(32)},
            "via": "connect",
            "host": "a.example.org",
            "address": "192.0.2.7",
            "port": 8443,
            "protocol": "http",
            "method": "POST",
            "path": "/v1/items",
            "verdict": "refused",
            "reason": "method-not-allowed",
            "rule": "a.example.org GET",
            "source": "policy p.yaml:3",
        })
    );
}

#[test]
fn an_end_and_a_summary_say_how_much() {
    let end = as_json(&event(EventKind::Closed(closed("a.example.org", 10, 20))));
    assert_eq!(end["kind"], "closed");
    assert_eq!(
        (
            &end["bytesUp"],
            &end["bytesDown"],
            &end["durationMs"],
            &end["why"]
        ),
        (&json!(10), &json!(20), &json!(12), &json!("finished"))
    );
    let summary = Summary {
        group: Group::unnamed(Subject::Decision, Verdict::Refused),
        count: 7,
        first: start(),
        last: start(),
        bytes_up: None,
        bytes_down: None,
    };
    let summary = as_json(&event(EventKind::Summary(summary)));
    assert_eq!(
        summary,
        json!({
            "time": "2026-01-02T03:04:05.000000Z",
            "run": "00000000000000000000000000005eed",
            "kind": "summary",
            "of": "decision",
            "verdict": "refused",
            "count": 7,
            "first": "2026-01-02T03:04:05.000000Z",
            "last": "2026-01-02T03:04:05.000000Z",
        })
    );
}

#[test]
fn another_version_is_no_record() {
    let line = line(&event(EventKind::Decision(refused("a.example.org"))));
    let mut line: Value = serde_json::from_str(&line).unwrap();
    assert!(serde_json::from_value::<Record>(line.clone()).is_ok());
    line["version"] = json!(1);
    assert!(serde_json::from_value::<Record>(line).is_err());
}

#[test]
fn the_schema_names_every_kind_and_field() {
    let schema = event_schema();
    let text = schema.to_string();
    for kind in [
        "run-started",
        "decision",
        "closed",
        "call",
        "calls",
        "summary",
        "limit-hit",
        "run-ended",
        "sealed",
        "chain-broken",
    ] {
        assert!(text.contains(&format!("\"const\":\"{kind}\"")), "{kind}");
    }
    for field in ["argvSha256", "bytesUp", "durationMs", "reason", "source"] {
        assert!(text.contains(&format!("\"{field}\"")), "{field}");
    }
    assert_eq!(
        schema["properties"]["version"]["$ref"],
        "#/$defs/FormatVersion"
    );
}

/// Texts as code inside a sandbox may choose them.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[\\x00-\\x1f\\x7f\"\\\\{}@?#/]{0,60}",
        (0..3000_usize).prop_map(|length| "\u{1}".repeat(length)),
        (0..1500_usize).prop_map(|length| "é\u{202e}".repeat(length)),
        Just(r#"{"version":2,"#.to_owned()),
    ]
}

fn via() -> impl Strategy<Value = Via> {
    use Via::{Connect, Dns, HttpProxy, Socks, Transparent};
    prop::sample::select(vec![Transparent, HttpProxy, Connect, Socks, Dns])
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop::sample::select(vec![Verdict::Allowed, Verdict::Refused])
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(Timestamp::from_micros)
}

prop_compose! {
    fn process()(
        pid in any::<u32>(),
        executable in option::of(hostile()),
        sum in option::of(any::<[u8; 32]>()),
    ) -> Process {
        Process {
            pid,
            executable: executable.map(|path| Text::new(&path)),
            argv_sha256: sum.map(Digest::from),
        }
    }
}

prop_compose! {
    fn decided()(
        (connection, process) in (any::<u64>(), option::of(process())),
        (via, verdict) in (via(), verdict()),
        (host, address, port) in (option::of(hostile()), any::<Option<IpAddr>>(), any::<u16>()),
        (method, path) in (option::of(hostile()), option::of(hostile())),
        reason in prop::sample::select(Reason::ALL.to_vec()),
        (rule, source, credential) in option::of((hostile(), hostile(), hostile())).prop_map(|texts| match texts {
            Some((rule, source, credential)) => (Some(rule), Some(source), Some(credential)),
            None => (None, None, None),
        }),
    ) -> Decided {
        Decided {
            connection: ConnectionId(connection),
            process,
            via,
            host: host.as_deref().map(HostText::new),
            address,
            port,
            protocol: Protocol::Http,
            method: method.as_deref().map(MethodText::new),
            path: path.as_deref().map(PathText::new),
            verdict,
            reason: reason.into(),
            rule: rule.as_deref().map(Text::new),
            source: source.as_deref().map(Text::new),
            credential: credential.as_deref().map(Text::new),
        }
    }
}

prop_compose! {
    fn ended()(
        (via, host, address) in (via(), option::of(hostile()), any::<Option<IpAddr>>()),
        numbers in any::<(u64, u16, u64, u64, u64)>(),
    ) -> Closed {
        Closed {
            connection: ConnectionId(numbers.0),
            via,
            host: host.as_deref().map(HostText::new),
            address,
            port: numbers.1,
            bytes_up: numbers.2,
            bytes_down: numbers.3,
            duration_ms: numbers.4,
            why: CloseReason::ClientReset,
        }
    }
}

prop_compose! {
    fn summary()(
        decided in decided(),
        (first, last) in (time(), time()),
        (count, bytes) in any::<(u64, Option<u64>)>(),
    ) -> Summary {
        Summary {
            group: Group::of_decision(&decided),
            count,
            first,
            last,
            bytes_up: bytes,
            bytes_down: bytes,
        }
    }
}

fn kinds() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        decided().prop_map(EventKind::Decision),
        ended().prop_map(EventKind::Closed),
        summary().prop_map(EventKind::Summary),
    ]
}

prop_compose! {
    fn events()(
        kind in kinds(),
        time in time(),
        run in any::<u128>(),
        sandbox in option::of(hostile()),
    ) -> Event {
        Event {
            time,
            run: RunId::from_bits(run),
            sandbox: sandbox.as_deref().map(Text::new),
            kind,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_event_reads_back_from_the_log_as_it_was(
        events in prop::collection::vec(events(), 1..8),
    ) {
        let folder = Folder::new();
        let mut log = Log::open(folder.path()).unwrap();
        for event in &events {
            log.record(event).unwrap();
        }
        prop_assert_eq!(read(folder.path()), (events, 0));
    }

    #[test]
    fn texts_keep_their_bounds(text in hostile()) {
        prop_assert!(HostText::new(&text).as_str().len() <= 255);
        prop_assert!(PathText::new(&text).as_str().len() <= 1024);
        prop_assert!(MethodText::new(&text).as_str().len() <= 32);
        prop_assert!(!PathText::new(&text).as_str().contains(['?', '#']));
        prop_assert!(!HostText::new(&text).as_str().contains('@'));
        prop_assert!(!text.is_empty() || PathText::new(&text).as_str().is_empty());
    }
}

#[test]
fn codes_of_other_parts_are_kept() {
    let mut decided = refused("a.example.org");
    decided.reason = ReasonCode::new("tls-without-name");
    let event = event(EventKind::Decision(decided));
    assert_eq!(event.run, RUN);
    assert_eq!(as_json(&event)["reason"], "tls-without-name");
}
