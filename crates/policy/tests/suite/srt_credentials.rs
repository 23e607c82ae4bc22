//! srt's `credentials` and `tlsTerminate` in the one model.

use ringfence_policy::{
    LayerKind, NoteKind, Origin, Policy, Request, Resolved, Scheme, SrtError, SrtSource, Target,
    Unmatched, attachments, read_srt, resolve,
};
use serde_json::{Value, json};

use crate::support::{ask, context};

fn read(domains: &Value, tls: &Value, credentials: &Value) -> Result<SrtSource, SrtError> {
    let settings = json!({
        "network": {"allowedDomains": domains, "deniedDomains": [], "tlsTerminate": tls},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
        "credentials": credentials,
    });
    let origin = Origin::new(LayerKind::SrtSettings, "srt.json");
    read_srt(&settings.to_string(), &origin, &context())
}

fn policy(domains: &Value, tls: &Value, credentials: &Value) -> Resolved<Policy> {
    let source = read(domains, tls, credentials).unwrap();
    resolve(vec![source.layer], None).unwrap()
}

fn services(policy: &Resolved<Policy>, host: &str, port: u16) -> Vec<String> {
    let target = Target::parse(host).unwrap();
    let request = Request::connect(&target, port).with_http("POST", "/");
    let all = attachments(policy, &request, Scheme::Https);
    let text = |own: &ringfence_policy::Attachment<'_>| {
        format!("{} {}", own.credential.service, own.binding.attach)
    };
    all.iter().map(text).collect()
}

#[test]
fn a_masked_variable_is_replaced_at_every_allowed_host() {
    let policy = policy(
        &json!(["api.example.org", "*.example.com:8443", "10.1.2.3"]),
        &json!({}),
        &json!({"envVars": [{"name": "TOKEN", "mode": "mask"}, {"name": "HIDDEN", "mode": "deny"}]}),
    );
    let replaced = ["TOKEN in place of its placeholder, bodies too"];
    assert_eq!(services(&policy, "api.example.org", 443), replaced);
    assert_eq!(services(&policy, "a.example.com", 8443), replaced);
    assert!(services(&policy, "a.example.com", 443).is_empty());
    assert!(services(&policy, "other.example.org", 443).is_empty());
    let environment = policy.environment();
    assert!(!environment.passes("TOKEN") && !environment.passes("HIDDEN"));
    assert!(environment.passes("LANG"));
    let managed: Vec<&str> = environment.managed.iter().map(|own| own.as_str()).collect();
    assert_eq!(managed, ["TOKEN"]);
}

#[test]
fn listed_hosts_alone_get_it() {
    let allowed = json!(["*.example.org", "b.example.com"]);
    let inject =
        |hosts: Value| json!({"envVars": [{"name": "T", "mode": "mask", "injectHosts": hosts}]});
    let policy = policy(&allowed, &json!({}), &inject(json!(["api.example.org"])));
    assert_eq!(services(&policy, "api.example.org", 443).len(), 1);
    assert!(services(&policy, "other.example.org", 443).is_empty());
    assert!(services(&policy, "b.example.com", 443).is_empty());
    for hosts in [
        json!(["evil.test"]),
        json!(["*.example.com"]),
        json!(["10.1.2.3"]),
    ] {
        let error = read(&allowed, &json!({}), &inject(hosts)).unwrap_err();
        assert_eq!(error.code(), "srt-inject-host");
    }
}

#[test]
fn files_show_a_placeholder_or_nothing() {
    let policy = policy(
        &json!(["api.example.org"]),
        &json!({}),
        &json!({"files": [
            {"path": "~/.tool/token", "mode": "mask"},
            {"path": "sub/token", "mode": "mask", "extract": "token=(\\w+)", "onExtractNoMatch": "deny"},
            {"path": "/srv/secret", "mode": "deny"},
        ]}),
    );
    let masked: Vec<_> = policy
        .filesystem()
        .masked
        .iter()
        .map(|file| (file.path.display().to_string(), file.service.as_str()))
        .collect();
    assert_eq!(
        masked,
        [
            ("/home/u/.tool/token".to_owned(), "token"),
            ("/home/u/p/sub/token".to_owned(), "token-2")
        ]
    );
    assert_eq!(services(&policy, "api.example.org", 443).len(), 2);
    let credentials = policy.credentials();
    assert_eq!(
        credentials[0].sources[0].to_string(),
        "file /home/u/.tool/token"
    );
    assert!(credentials[0].extract.is_none());
    let extract = credentials[1].extract.as_ref().unwrap();
    assert_eq!(extract.unmatched(), Unmatched::Hide);
    let hidden = &policy.filesystem().read_deny;
    assert!(
        hidden
            .iter()
            .any(|rule| rule.value.to_string() == "/srv/secret")
    );
}

#[test]
fn g5_a_request_shows_no_file_by_masking_it() {
    let masked = json!({"files": [{"path": "/srv/token", "mode": "mask"}]});
    let source = read(&json!(["api.example.org"]), &json!({}), &masked).unwrap();
    let policy = resolve(vec![source.layer.as_request()], None).unwrap();
    assert!(policy.filesystem().masked.is_empty() && policy.credentials().is_empty());
    let hidden = &policy.filesystem().read_deny;
    assert!(
        hidden
            .iter()
            .any(|rule| rule.value.to_string() == "/srv/token")
    );
}

#[test]
fn without_a_network_a_secret_is_masked_all_the_same() {
    let policy = policy(
        &json!([]),
        &json!({}),
        &json!({"envVars": [{"name": "TOKEN", "mode": "mask"}]}),
    );
    assert_eq!(policy.credentials().len(), 1);
    assert!(!policy.environment().passes("TOKEN") && !policy.intercepts());
}

#[test]
fn termination_looks_into_every_allowed_host_but_the_excluded() {
    let tls = json!({"excludeDomains": ["pinned.example.org", "b.example.com"], "extraCaCertPaths": ["~/ca.pem"]});
    let masked = json!({"envVars": [{"name": "TOKEN", "mode": "mask"}]});
    let policy = policy(
        &json!([
            "*.example.org",
            "a.example.com:8443",
            "b.example.com",
            "10.1.2.3"
        ]),
        &tls,
        &masked,
    );
    for (host, port, inspected) in [
        ("api.example.org", 443, true),
        ("pinned.example.org", 443, false),
        ("api.example.org", 22, false),
        ("a.example.com", 8443, true),
        ("b.example.com", 443, false),
        ("10.1.2.3", 443, false),
    ] {
        let decision = ask(&policy, host, port, None);
        assert!(decision.is_allowed(), "{host}:{port}");
        assert_eq!(decision.needs_inspection, inspected, "{host}:{port}");
        assert_eq!(
            !services(&policy, host, port).is_empty(),
            inspected,
            "{host}:{port}"
        );
    }
    assert_eq!(
        policy.authorities()[0].value.display().to_string(),
        "/home/u/ca.pem"
    );
    let plain = resolve(
        vec![
            read(&json!(["a.example.org"]), &json!({}), &Value::Null)
                .unwrap()
                .layer,
        ],
        None,
    )
    .unwrap();
    assert!(plain.intercepts() && ask(&plain, "a.example.org", 443, None).needs_inspection);
}

#[test]
fn what_is_not_done_or_not_safe_is_refused_by_its_name() {
    let masked = |more: Value| {
        let mut item = json!({"name": "T", "mode": "mask"});
        item.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"envVars": [item]})
    };
    for (credentials, code, kind) in [
        (
            masked(json!({"decode": "jwt"})),
            "srt-decode",
            NoteKind::Unsupported,
        ),
        (
            masked(json!({"maskClaims": ["sub"]})),
            "srt-mask-claims",
            NoteKind::Unsupported,
        ),
        (
            masked(json!({"extract": "(x)", "onExtractNoMatch": "warn"})),
            "srt-extract-warn",
            NoteKind::Unsupported,
        ),
        (
            json!({"awsPairs": [{}]}),
            "srt-aws-pairs",
            NoteKind::Unsupported,
        ),
        (
            json!({"sigv4": {"streaming": "deny"}}),
            "srt-sigv4",
            NoteKind::Unsupported,
        ),
        (
            masked(json!({"allowPlaintextInject": true})),
            "srt-plaintext-inject",
            NoteKind::NoEffect,
        ),
    ] {
        let source = read(&json!(["a.example.org"]), &json!({}), &credentials).unwrap();
        let note = source
            .layer
            .notes
            .iter()
            .find(|note| note.code == code)
            .unwrap();
        assert_eq!(note.kind, kind, "{code}");
        assert!(note.message.starts_with("credentials."), "{}", note.message);
        let resolved = resolve(vec![source.layer], None);
        assert_eq!(resolved.is_err(), kind == NoteKind::Unsupported, "{code}");
    }
}

#[test]
fn entries_that_mean_nothing_are_errors() {
    let domains = json!(["a.example.org"]);
    for (credentials, code) in [
        (
            json!({"envVars": [{"mode": "mask"}]}),
            "srt-credential-subject",
        ),
        (
            json!({"envVars": [{"name": "A", "path": "/x", "mode": "mask"}]}),
            "srt-credential-subject",
        ),
        (
            json!({"files": [{"name": "A", "mode": "mask"}]}),
            "srt-credential-subject",
        ),
        (
            json!({"envVars": [{"name": "A B", "mode": "deny"}]}),
            "credential-env",
        ),
        (
            json!({"envVars": [{"name": "A", "mode": "mask"}, {"name": "A", "mode": "mask"}]}),
            "credential-twice",
        ),
        (
            json!({"envVars": [{"name": "A", "mode": "mask", "extract": "x"}]}),
            "credential-extract",
        ),
        (
            json!({"envVars": [{"name": "A", "mode": "mask", "extract": "(?<=a)(b)"}]}),
            "credential-extract",
        ),
        (
            json!({"envVars": [{"name": "A", "mode": "hide"}]}),
            "srt-shape",
        ),
    ] {
        let error = read(&domains, &json!({}), &credentials).unwrap_err();
        assert_eq!(error.code(), code, "{credentials}: {error}");
    }
    let error = read(&domains, &json!({"excludeDomains": ["a b"]}), &Value::Null).unwrap_err();
    assert_eq!(error.code(), "pattern-space");
}
