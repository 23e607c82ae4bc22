//! From a refusal to a rule, as people go through it: variables, flags and
//! files that open the network, what is said about the rest, what to add.

use ringfence_runtime::Report;
use ringfence_testkit::Outcome;
use ringfence_testkit::place::{HOST, HOST6, METADATA, PRIVATE};
use serde_json::Value;

use super::clients::{Host, Run};
use super::ringfence;

const KAGENT: [(&str, &str); 2] = [
    ("KAGENT_ALLOWED_DOMAINS", "api.esios.test,*.api.esios.test"),
    ("KAGENT_DENIED_DOMAINS", "malicious.test,bad.api.esios.test"),
];

fn esios() -> Host {
    let host = Host::new();
    for name in ["api", "v1.api", "bad.api"] {
        host.net()
            .zone()
            .set(&format!("{name}.esios.test"), "45.0.0.10");
    }
    host.net().zone().set("malicious.test", "45.0.0.11");
    host
}

#[test]
fn the_lists_of_kagent_hold_for_any_command() {
    let host = esios();
    for name in ["api.esios.test", "v1.api.esios.test"] {
        let script = format!("curl -sS https://{name}/");
        let run = host.run_with(&KAGENT, &[], &script).expect_code(0);
        assert!(
            run.stdout().contains(&format!(r#""sni":"{name}""#)),
            "{}",
            run.stdout()
        );
        assert_eq!(run.outcome.stderr, "");
        host.asked_only_for(name);
    }
    for (name, reason) in [
        ("malicious.test", "denied-by-rule"),
        ("bad.api.esios.test", "denied-by-rule"),
        ("esios.test", "not-in-allowlist"),
        ("web.example.org", "not-in-allowlist"),
        ("api.esios.test.other.test", "not-in-allowlist"),
    ] {
        let script = format!("curl -sS https://{name}/");
        let run = host.run_with(&KAGENT, &[], &script).expect_code(56);
        let first = run.outcome.stderr.lines().next();
        assert_eq!(
            first,
            Some("curl: (56) CONNECT tunnel failed, response 403"),
            "{name}"
        );
        assert_eq!(
            run.told(),
            [format!("refused {name}:443 connect curl {reason}")]
        );
        host.sent_nothing();
    }
}

#[test]
fn an_empty_list_of_kagent_closes_the_network() {
    let host = esios();
    let run = host.run_with(
        &[("KAGENT_ALLOWED_DOMAINS", "")],
        &[],
        "curl -sSf http://api.esios.test/",
    );
    assert_ne!(run.outcome.code(), 0);
    host.sent_nothing();
}

/// What the block at the end says to add.
fn to_add(outcome: &Outcome) -> String {
    let lines = outcome.stderr.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("  to allow: "));
    lines.collect::<Vec<_>>().join(" ")
}

/// The flags as a shell reads them.
fn run_with_flags(host: &Host, flags: &str, script: &str) -> Outcome {
    host.write("script", script);
    let state = ringfence_testkit::Folder::new();
    let binary = ringfence().path();
    host.online.outside(&format!(
        "XDG_STATE_HOME={} {} run {flags} -- sh script",
        state.text(),
        binary.display()
    ))
}

#[test]
fn what_the_block_at_the_end_says_to_add_is_all_that_is_missing() {
    let host = Host::new();
    for script in [
        "curl -sSf https://web.example.org/",
        "curl -sSf http://web.example.org:8080/ --next -sSf https://api.example.org:8443/",
        "curl -sSf --noproxy '*' https://other.test/",
        "curl -sSf --noproxy '*' 'https://[2a0f:ffff::10]:8443/' --next --noproxy '*' -sSf http://45.0.0.11/",
        "printf x | socat -t 60 - tcp:web.example.org:5432 | grep total",
    ] {
        let flags = "--allow elsewhere.example.org";
        let refused = run_with_flags(&host, flags, script);
        assert_ne!(refused.code(), 0, "{script}");
        assert!(
            refused.stderr.contains("ringfence: refused:\n"),
            "{}",
            refused.stderr
        );
        let added = format!("{flags} {}", to_add(&refused));
        let allowed = run_with_flags(&host, &added, script).expect_code(0);
        assert_eq!(allowed.stderr, "", "{script}");
    }
}

#[test]
fn the_answer_to_a_refused_request_says_the_same() {
    let host = Host::new();
    let script = "curl -s http://web.example.org:8080/";
    let refused = run_with_flags(&host, "--allow elsewhere.example.org", script);
    let lines: Vec<&str> = refused.stdout.lines().collect();
    let blocked = "Connection blocked by network allowlist: host is not on the allow list";
    assert_eq!(
        lines,
        [blocked, "To allow it: --allow web.example.org:8080"]
    );
    assert_eq!(to_add(&refused), "--allow web.example.org:8080");
    let row = "  connect  web.example.org:8080  ×1  not-in-allowlist\n";
    assert!(refused.stderr.contains(row), "{}", refused.stderr);
}

#[test]
fn what_a_rule_denies_has_nothing_to_add() {
    let host = Host::new();
    let flags = ["--allow", "*.example.org", "--deny", "web.example.org"];
    let run = host
        .run(&flags, "curl -sS https://web.example.org/")
        .expect_code(56);
    assert!(
        run.outcome
            .stderr
            .contains("denied-by-rule: web.example.org")
    );
    assert_eq!(to_add(&run.outcome), "");
    host.run(&flags, "curl -sSf https://api.example.org/")
        .expect_code(0);
}

#[test]
fn quiet_says_nothing_about_refused_connections() {
    let host = Host::new();
    let flags = ["--quiet", "--allow", "elsewhere.example.org"];
    let run = host
        .run(&flags, "curl -s https://web.example.org/")
        .expect_code(56);
    assert_eq!(run.outcome.stderr, "");
    assert_eq!(run.told().len(), 1);
}

/// Something that opens `web.example.org`.
#[derive(Default)]
struct Layer<'a> {
    variables: &'a [(&'a str, &'a str)],
    flags: &'a [&'a str],
    source: &'a str,
}

#[test]
fn every_layer_can_open_a_host_and_any_can_deny_it() {
    let host = Host::new();
    let file = host.policy("{allow: [web.example.org]}");
    for layer in [
        Layer {
            flags: &file,
            source: "policy policy.yaml:2",
            ..Layer::default()
        },
        Layer {
            variables: &[("RINGFENCE_ALLOW", "api.example.org, web.example.org")],
            source: "environment RINGFENCE_ALLOW",
            ..Layer::default()
        },
        Layer {
            variables: &[("KAGENT_ALLOWED_DOMAINS", "web.example.org")],
            source: "environment KAGENT_ALLOWED_DOMAINS",
            ..Layer::default()
        },
        Layer {
            flags: &["--allow", "web.example.org"],
            source: "flag --allow",
            ..Layer::default()
        },
    ] {
        check_layer(&host, &layer);
    }
}

fn check_layer(host: &Host, layer: &Layer<'_>) {
    let script = "curl -sSf http://web.example.org/";
    let Layer {
        variables, flags, ..
    } = *layer;
    let run = host.run_with(variables, flags, script).expect_code(0);
    assert_eq!(sources(&run), [layer.source]);

    let denied = [flags, &["--deny", "web.example.org"]].concat();
    let run = host.run_with(variables, &denied, script).expect_code(22);
    assert_eq!(sources(&run), ["flag --deny"]);
    host.sent_nothing();

    let denied = [variables, &[("RINGFENCE_DENY", "*.example.org")]].concat();
    let run = host.run_with(&denied, flags, script).expect_code(22);
    assert_eq!(sources(&run), ["environment RINGFENCE_DENY"]);
    host.sent_nothing();

    let closed = [flags, &["--no-network"]].concat();
    host.run_with(variables, &closed, script).expect_code(6);
    host.sent_nothing();
}

/// Where the rules were written that decided.
fn sources(run: &Run) -> Vec<String> {
    let sources = run.decisions().filter_map(|made| made.source.as_ref());
    sources.map(ToString::to_string).collect()
}

#[test]
fn an_open_profile_opens_public_places_only() {
    let host = Host::new();
    let flags = ["--profile", "permissive"];
    for url in [
        "http://other.test/",
        "https://other.test:8443/",
        "http://45.0.0.10/",
    ] {
        host.run(&flags, &format!("curl -sSf {url}")).expect_code(0);
        host.run(&flags, &format!("curl -sSf --noproxy '*' {url}"))
            .expect_code(0);
    }
    for (place, reason) in [
        (PRIVATE, "private-address"),
        (METADATA, "metadata-address"),
        ("private.test", "private-address"),
        ("metadata.test", "metadata-address"),
        ("loopback.test", "loopback-address"),
        (HOST, "host-own-address"),
        (HOST6, "host-own-address"),
    ] {
        for way in ["", "--noproxy '*'"] {
            let place = if place.contains(':') {
                format!("[{place}]")
            } else {
                place.to_owned()
            };
            let script = format!("curl -sSf {way} 'http://{place}:8080/'");
            let run = host.run(&flags, &script).expect_code(22);
            let told = run.told();
            assert!(
                told.len() == 1 && told[0].ends_with(&format!("curl {reason}")),
                "{told:?}"
            );
            assert!(host.net().connections().is_empty(), "{script}");
        }
    }
}

#[test]
fn a_report_tells_the_traffic_of_each_destination() {
    let host = Host::new();
    let flags = [
        "--report",
        "report.json",
        "--allow",
        "web.example.org",
        "--allow",
        "v4.example.org:5432",
    ];
    let script = "curl -sS http://web.example.org/bytes/100000 > /dev/null
        curl -sS --noproxy '*' http://web.example.org/bytes/50000 > /dev/null
        curl -sS https://web.example.org/bytes/200000 > /dev/null
        head -c 300000 /dev/zero | socat -t 60 - tcp:v4.example.org:5432 > /dev/null
        curl -sS http://other.test/";
    host.run(&flags, script).expect_code(0);
    let report = host.online.arena.folder.read("report.json");
    let report: Report = serde_json::from_str(&report).expect("a report");
    let row = |to: &str| {
        let found = report.traffic.iter().find(|row| row.destination == to);
        found.unwrap_or_else(|| panic!("no {to} in {:?}", report.traffic))
    };
    let plain = row("web.example.org:80");
    assert_eq!(plain.connections, 2);
    assert!((150_000..152_000).contains(&plain.bytes_down), "{plain:?}");
    let tunnel = row("web.example.org:443");
    assert_eq!(tunnel.connections, 1);
    assert!(
        (200_000..210_000).contains(&tunnel.bytes_down),
        "{tunnel:?}"
    );
    assert_eq!(row("v4.example.org:5432").bytes_up, 300_000);
    assert_eq!(report.traffic.len(), 3, "{:?}", report.traffic);
    assert!(
        report
            .refusals
            .iter()
            .any(|one| one.subject == "other.test:80")
    );
    assert!(report.run.is_some());
}

#[test]
fn the_log_of_decisions_shows_the_run() {
    let host = Host::new();
    let script = "curl -sS https://web.example.org/ > /dev/null
        curl -s --noproxy '*' http://other.test/; curl -s http://other.test/; true";
    let run = host
        .run(&["--allow", "web.example.org"], script)
        .expect_code(0);
    let log = host.online.ringfence().args(["policy", "log", "--json"]);
    let log = log
        .env("XDG_STATE_HOME", run.state.path())
        .run()
        .expect_code(0);
    let log: Value = serde_json::from_str(&log.stdout).expect("JSON");
    let rows = |list: &str| -> Vec<String> {
        let rows = log[list].as_array().expect("a list").iter();
        rows.map(|row| format!("{} {} {}", row["host"], row["via"], row["count"]).replace('"', ""))
            .collect()
    };
    // The latest is last.
    let allowed = ["web.example.org dns 1", "web.example.org:443 connect 1"];
    assert_eq!(rows("allowed"), allowed);
    let blocked = [
        "other.test dns 2",
        "other.test:80 transparent 1",
        "other.test:80 http-proxy 1",
    ];
    assert_eq!(rows("blocked"), blocked);
}
