//! The ceiling only narrows.

use ringfence_policy::{Layer, LayerKind, NoteKind, Policy, Resolved, resolve};

use crate::support::{ask, code, layer, network};

fn under(body: &str, ceiling: &str) -> Resolved<Policy> {
    let ceiling: Layer = layer(LayerKind::Ceiling, ceiling);
    resolve(vec![layer(LayerKind::Policy, body)], Some(ceiling)).unwrap()
}

#[test]
fn both_must_allow() {
    let policy = under(
        "network: {allow: [a.example.org, b.example.org, {cidr: 10.0.0.0/8}], hostPorts: [1, 2]}",
        "network: {allow: [\"*.example.org:443\", {cidr: 10.1.0.0/16}], deny: [b.example.org], hostPorts: [2]}",
    );
    for (host, port, addr, want) in [
        ("a.example.org", 443, None, "allowed-by-rule"),
        ("a.example.org", 80, None, "ceiling"),
        ("b.example.org", 443, None, "ceiling"),
        ("c.example.org", 443, None, "not-in-allowlist"),
        ("10.1.0.1", 443, None, "allowed-by-rule"),
        ("10.2.0.1", 443, None, "ceiling"),
        ("a.example.org", 443, Some("10.1.0.1"), "allowed-by-rule"),
        ("a.example.org", 443, Some("10.2.0.1"), "ceiling"),
        ("host.ringfence.internal", 1, None, "ceiling"),
        ("host.ringfence.internal", 2, None, "allowed-host-port"),
    ] {
        assert_eq!(
            code(&policy, host, port, addr),
            want,
            "{host}:{port} {addr:?}"
        );
    }
    let refused = ask(&policy, "b.example.org", 443, None);
    assert_eq!(refused.source.unwrap().layer, LayerKind::Ceiling);
}

#[test]
fn a_section_that_is_absent_does_not_narrow() {
    let body = "network: {mode: open}\nresources: {memory: 1g}\nfilesystem: {write: {allow: [/a]}}\nenvironment: {pass: [A], set: {B: \"1\"}}";
    let policy = under(body, "network: {deny: [bad.example.org]}");
    assert_eq!(code(&policy, "a.example.org", 443, None), "allowed-open");
    assert_eq!(code(&policy, "bad.example.org", 443, None), "ceiling");
    assert_eq!(policy.filesystem().write_allow.len(), 1);
    assert!(policy.environment().passes("A"));
    assert!(policy.environment().set.contains_key("B"));
}

#[test]
fn an_empty_list_is_a_bound() {
    let body = "network: {allow: [a.example.org]}\nfilesystem: {write: {allow: [/a]}}";
    let policy = under(
        body,
        "network: {allow: []}\nfilesystem: {write: {allow: []}}",
    );
    assert!(policy.network_is_closed());
    assert_eq!(code(&policy, "a.example.org", 443, None), "ceiling");
    assert!(policy.filesystem().write_allow.is_empty());
    assert!(
        policy
            .notes()
            .iter()
            .any(|note| note.kind == NoteKind::Ceiling)
    );
}

#[test]
fn limits_paths_and_variables_are_cut() {
    let policy = under(
        "resources: {memory: 2g, pids: 10}\nfilesystem: {write: {allow: [/data, /srv/x, /other]}}\nenvironment: {pass: [LC_ALL, SECRET, \"*\"], set: {A: \"1\", B: \"2\"}}\naudit: {level: off}",
        "resources: {memory: 1g, pids: 20, cpu: 1}\nfilesystem: {write: {allow: [/data/in, /srv]}, read: {deny: [/x], scope: system}}\nenvironment: {pass: [LC_*, A]}\naudit: {level: security}",
    );
    let limits = policy.limits();
    assert_eq!(limits.memory.as_ref().unwrap().value.to_string(), "1GiB");
    assert_eq!(limits.pids.as_ref().unwrap().get(), 10);
    assert_eq!(limits.cpu.as_ref().unwrap().millis(), 1000);
    let writable: Vec<_> = policy
        .filesystem()
        .write_allow
        .iter()
        .map(|rule| rule.value.to_string())
        .collect();
    assert_eq!(writable, ["/data/in", "/srv/x"]);
    assert_eq!(policy.filesystem().scope.as_str(), "system");
    assert!(!policy.environment().pass_all);
    assert!(policy.environment().passes("LC_TIME"));
    assert!(!policy.environment().passes("SECRET"));
    assert_eq!(policy.environment().set.keys().collect::<Vec<_>>(), ["A"]);
    assert_eq!(policy.audit().as_str(), "security");
}

#[test]
fn credentials_beyond_the_ceiling_are_taken_away() {
    let body = "network: {mode: open}\ncredentials: [{service: s, env: T, hosts: [a.example.org], bearer: true}]";
    let kept = under(
        body,
        "credentials: [{service: s, env: T, hosts: [\"*.example.org\"]}]",
    );
    assert_eq!(kept.credentials().len(), 1);
    let cut = under(body, "credentials: []");
    assert!(cut.credentials().is_empty());
    assert!(cut.notes().iter().any(|note| note.code == "beyond-ceiling"));
}

#[test]
fn a_ceiling_that_would_widen_is_an_error() {
    for body in [
        "requests: allow",
        "filesystem: {write: {unprotect: [.vscode]}}",
    ] {
        let error = resolve(vec![], Some(layer(LayerKind::Ceiling, body))).unwrap_err();
        assert_eq!(error.code(), "ceiling-widens");
    }
}

#[test]
fn a_ceiling_that_restricts_methods_asks_for_inspection() {
    let policy = resolve(
        vec![network(LayerKind::Policy, "{allow: [a.example.org]}")],
        Some(network(
            LayerKind::Ceiling,
            "{allow: [{host: a.example.org, methods: [GET]}]}",
        )),
    )
    .unwrap();
    assert!(ask(&policy, "a.example.org", 443, None).needs_inspection);
}

#[test]
fn a_home_is_narrowed_and_never_widened() {
    let home = |own: &str, bound: &str| {
        let policy = under(
            &format!("filesystem: {{home: {own}}}"),
            &format!("filesystem: {{home: {bound}}}"),
        );
        policy.filesystem().home.value.to_string()
    };
    for (own, bound, want) in [
        ("keep=a", "keep", "keep=a"),
        ("keep=a", "private", "private"),
        ("keep", "none", "none"),
        ("private", "keep=b", "private"),
        ("none", "private", "none"),
    ] {
        assert_eq!(home(own, bound), want, "{own} under {bound}");
    }
}

#[test]
fn a_request_narrows_the_home_and_asks_for_more() {
    let asked = |wanted: &str| {
        let own = layer(LayerKind::Policy, "filesystem: {home: private}");
        let request = layer(LayerKind::Skill, &format!("filesystem: {{home: {wanted}}}"));
        let policy = resolve(vec![own, request.as_request()], None).unwrap();
        let pending = policy
            .notes()
            .iter()
            .any(|note| note.kind == NoteKind::Pending);
        (policy.filesystem().home.value.to_string(), pending)
    };
    assert_eq!(asked("none"), ("none".to_owned(), false));
    assert_eq!(asked("private"), ("private".to_owned(), false));
    assert_eq!(asked("keep=a"), ("private".to_owned(), true));
}
