//! Tests of the whole reader.

use serde_json::{Value, json};

use super::*;
use crate::decide::{Reason, Request, decide, explain};
use crate::host::Target;
use crate::note::NoteKind;
use crate::origin::LayerKind;
use crate::resolve::resolve;

fn context() -> PathContext {
    PathContext {
        home: "/home/u".into(),
        base: "/w".into(),
    }
}

fn read(value: &Value) -> Result<SrtSource, SrtError> {
    read_srt(
        &value.to_string(),
        &Origin::new(LayerKind::SrtSettings, "s.json"),
        &context(),
    )
}

fn settings() -> Value {
    json!({
        "network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}
    })
}

/// The settings with one field of one part set.
fn with(part: &str, field: &str, value: Value) -> Value {
    let mut all = settings();
    match part {
        "" => all[field] = value,
        _ => all[part][field] = value,
    }
    all
}

#[test]
fn missing_lists_are_named_one_by_one() {
    let network_alone = json!({"network": {"allowedDomains": [], "deniedDomains": []}});
    let kagents = read(&network_alone).unwrap();
    assert_eq!(kagents.layer.filesystem.write_allow, Some(Vec::new()));
    let error = read(&json!({"network": {"allowedDomains": []}, "filesystem": {}})).unwrap_err();
    assert_eq!(error.code(), "srt-missing");
    for name in [
        "network.deniedDomains",
        "filesystem.denyRead",
        "filesystem.allowWrite",
        "filesystem.denyWrite",
    ] {
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(!error.to_string().contains("allowedDomains"));
    for text in ["", "{", "[]", "null", "// x\n{}"] {
        assert!(
            read_srt(text, &Origin::new(LayerKind::SrtSettings, "s"), &context()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn refused_settings() {
    for (part, field, value, code) in [
        (
            "network",
            "allowedDomains",
            json!(["*"]),
            "pattern-everything",
        ),
        ("network", "allowedDomains", json!("x"), "srt-shape"),
        (
            "network",
            "deniedDomains",
            json!(["exa mple.org"]),
            "pattern-space",
        ),
        (
            "network",
            "deniedResolvedAddresses",
            json!(["example.org"]),
            "malformed-cidr",
        ),
        ("network", "httpProxyPort", json!(0), "srt-shape"),
        ("network", "httpProxyPort", json!(65536), "srt-shape"),
        (
            "network",
            "mitmProxy",
            json!({"socketPath": "/s", "domains": []}),
            "srt-mitm-domains",
        ),
        (
            "network",
            "tlsTerminate",
            json!({"caCertPath": "/c"}),
            "srt-half-authority",
        ),
        (
            "network",
            "allowMachLookup",
            json!(["a*b"]),
            "srt-mach-lookup",
        ),
        (
            "network",
            "ambiguousRequestTarget",
            json!("maybe"),
            "srt-shape",
        ),
        (
            "filesystem",
            "denyRead",
            json!(["*.x/"]),
            "srt-trailing-slash",
        ),
        (
            "filesystem",
            "allowWrite",
            json!(["*.lock"]),
            "path-glob-not-allowed",
        ),
        (
            "filesystem",
            "allowWrite",
            json!([{"path": "a", "literal": false}]),
            "srt-shape",
        ),
        (
            "filesystem",
            "allowWrite",
            json!([{"path": "a", "literal": true, "x": 1}]),
            "srt-shape",
        ),
        (
            "filesystem",
            "allowWrite",
            json!(["a/../../x"]),
            "path-leaves-base",
        ),
        (
            "",
            "mandatoryDenySearchDepth",
            json!(11),
            "srt-search-depth",
        ),
        ("", "javaAgentJarPath", json!("a.jar"), "srt-relative-jar"),
        ("", "credentials", json!({"unknown": 1}), "srt-shape"),
        (
            "",
            "credentials",
            json!({"envVars": [{"name": "A", "mode": "mask"}]}),
            "srt-mask-without-terminate",
        ),
    ] {
        let error = read(&with(part, field, value)).unwrap_err();
        assert_eq!(error.code(), code, "{part}.{field}: {error}");
    }
}

#[test]
fn what_has_no_effect_is_told_and_what_cannot_be_honoured_is_refused() {
    for (part, field, value, code, kind) in [
        (
            "network",
            "allowUnixSockets",
            json!(["/s"]),
            "srt-unix-sockets",
            NoteKind::NoEffect,
        ),
        (
            "network",
            "strictAllowlist",
            json!(true),
            "srt-strict-allowlist",
            NoteKind::NoEffect,
        ),
        (
            "network",
            "newThing",
            json!(1),
            "srt-unknown-key",
            NoteKind::UnknownKey,
        ),
        (
            "",
            "$schema",
            json!("x"),
            "srt-unknown-key",
            NoteKind::UnknownKey,
        ),
        ("", "windows", json!({}), "srt-windows", NoteKind::NoEffect),
        (
            "network",
            "deniedDomainReasons",
            json!({"a.example.org": "x"}),
            "srt-unused-reason",
            NoteKind::NoEffect,
        ),
        (
            "network",
            "tlsTerminate",
            json!({"caCertPath": "/c", "caKeyPath": "/k"}),
            "srt-own-authority",
            NoteKind::NoEffect,
        ),
        (
            "network",
            "tlsTerminate",
            json!({"maxTunnels": 3}),
            "srt-max-tunnels",
            NoteKind::NoEffect,
        ),
        (
            "network",
            "mitmProxy",
            json!({"socketPath": "/s", "domains": ["a.example.org"]}),
            "srt-mitm-proxy",
            NoteKind::Unsupported,
        ),
        (
            "network",
            "httpProxyPort",
            json!(3128),
            "srt-http-proxy-port",
            NoteKind::Unsupported,
        ),
        (
            "network",
            "socksProxyPort",
            json!(1080),
            "srt-socks-proxy-port",
            NoteKind::Unsupported,
        ),
        (
            "filesystem",
            "disabled",
            json!(true),
            "srt-filesystem-disabled",
            NoteKind::Unsupported,
        ),
    ] {
        let source = read(&with(part, field, value)).unwrap();
        assert_eq!(source.layer.notes.len(), 1, "{field}");
        assert_eq!(
            (source.layer.notes[0].code, source.layer.notes[0].kind),
            (code, kind)
        );
        let resolved = resolve(vec![source.layer], None);
        assert_eq!(resolved.is_err(), kind == NoteKind::Unsupported, "{field}");
    }
    assert!(read(&settings()).unwrap().layer.notes.is_empty());
}

#[test]
fn paths_keep_their_meaning() {
    let mut all = settings();
    all["filesystem"] = json!({
        "denyRead": ["~/.ssh", "secrets/*.pem"],
        "allowRead": ["~/.ssh/known_hosts"],
        "allowWrite": [
            ".", "/data/**", {"path": "we[i]rd", "literal": true}, "../beside", "..", "../../top/"
        ],
        "denyWrite": ["*.lock", ".env"],
        "allowGitConfig": true
    });
    let layer = read(&all).unwrap().layer;
    let texts = |list: &[crate::Sourced<crate::PathRule>]| {
        list.iter()
            .map(|rule| rule.value.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&layer.filesystem.read_deny),
        ["/home/u/.ssh", "/w/secrets/*.pem"]
    );
    assert_eq!(
        texts(layer.filesystem.write_allow.as_ref().unwrap()),
        ["/w", "/data", "/w/we[i]rd", "/beside", "/", "/top"]
    );
    assert_eq!(
        texts(&layer.filesystem.write_deny),
        ["/w/*.lock", "/w/.env"]
    );
    assert_eq!(layer.filesystem.unprotect[0].value, ".git/config");
}

#[test]
fn g3_decisions_have_srts_meaning_and_deny_wins() {
    let mut all = settings();
    all["network"] = json!({
        "allowedDomains": ["*.example.org", "localhost:3000", "127.0.0.1:8080", "[::1]:8080"],
        "deniedDomains": ["bücher.example.org", "*:22", "bad.example.org:443"],
        "deniedDomainReasons": {"bad.example.org:443": "use the mirror"},
        "deniedResolvedAddresses": ["10.9.0.0/16"]
    });
    let policy = resolve(vec![read(&all).unwrap().layer], None).unwrap();
    let ask = |host: &str, port: u16, addr: Option<&str>| {
        let target = Target::parse(host).unwrap();
        let mut request = Request::connect(&target, port);
        request.addr = addr.map(|text| text.parse().unwrap()).or(request.addr);
        decide(&policy, &request)
    };
    for (host, port, addr, reason) in [
        ("a.example.org", 9999, None, Reason::AllowedByRule),
        ("A.Example.ORG.", 443, None, Reason::AllowedByRule),
        ("example.org", 443, None, Reason::NotInAllowlist),
        ("a.example.org", 22, None, Reason::DeniedByRule),
        ("xn--bcher-kva.example.org", 443, None, Reason::DeniedByRule),
        ("bad.example.org", 80, None, Reason::AllowedByRule),
        ("bad.example.org", 443, None, Reason::DeniedByRule),
        (
            "a.example.org",
            443,
            Some("10.1.2.3"),
            Reason::AllowedByRule,
        ),
        (
            "a.example.org",
            443,
            Some("10.9.2.3"),
            Reason::AddressDenied,
        ),
        (
            "a.example.org",
            443,
            Some("127.0.0.1"),
            Reason::LoopbackAddress,
        ),
        (
            "a.example.org",
            8080,
            Some("127.0.0.1"),
            Reason::AllowedByRule,
        ),
        (
            "a.example.org",
            443,
            Some("169.254.169.254"),
            Reason::MetadataAddress,
        ),
        (
            "a.example.org",
            443,
            Some("64:ff9b::a9fe:a9fe"),
            Reason::MetadataAddress,
        ),
        ("localhost", 3000, Some("127.0.0.1"), Reason::AllowedByRule),
        (
            "localhost",
            3000,
            Some("93.184.216.34"),
            Reason::NotInAllowlist,
        ),
        ("localhost", 3001, None, Reason::PortNotAllowed),
        ("2130706433", 8080, None, Reason::AllowedByRule),
        ("[::ffff:127.0.0.1]", 8080, None, Reason::AllowedByRule),
        ("127.0.0.1", 8081, None, Reason::PortNotAllowed),
        ("10.1.2.3", 443, None, Reason::PrivateAddress),
    ] {
        assert_eq!(
            ask(host, port, addr).reason,
            reason,
            "{host}:{port} {addr:?}"
        );
    }
    assert_eq!(
        ask("bad.example.org", 443, None).message.as_deref(),
        Some("use the mirror")
    );
}

#[test]
fn what_to_add_is_a_line_of_the_settings_first() {
    let policy = resolve(vec![read(&settings()).unwrap().layer], None).unwrap();
    let target = Target::parse("a.example.org").unwrap();
    let explained = explain(&policy, &Request::connect(&target, 443));
    let first = &explained.suggestions[0];
    assert_eq!(first.place, "network.allowedDomains");
    assert_eq!(first.line, "\"a.example.org:443\"");
}
