//! Layers from the working folder and from skills.

use ringfence_policy::{Layer, LayerKind, Note, NoteKind, Policy, Resolved, resolve};

use crate::support::{code, layer, network};

fn with_request(operator: &str, request: &str) -> Resolved<Policy> {
    let operator: Layer = layer(LayerKind::Config, operator);
    resolve(
        vec![operator, layer(LayerKind::Skill, request).as_request()],
        None,
    )
    .unwrap()
}

fn pending(policy: &Resolved<Policy>) -> Vec<&str> {
    let notes = policy
        .notes()
        .iter()
        .filter(|note: &&Note| note.kind == NoteKind::Pending);
    notes.map(|note| note.message.as_str()).collect()
}

#[test]
fn g1_a_request_cannot_widen_the_network() {
    let policy = with_request(
        "network: {allow: [\"*.example.org\"]}",
        "network: {mode: open, allow: [a.example.org, evil.test, {cidr: 10.0.0.0/8}], hostPorts: [1]}",
    );
    assert_eq!(code(&policy, "a.example.org", 443, None), "allowed-by-rule");
    assert_eq!(code(&policy, "evil.test", 443, None), "not-in-allowlist");
    assert_eq!(code(&policy, "10.0.0.1", 443, None), "private-address");
    assert_eq!(
        code(&policy, "host.ringfence.internal", 1, None),
        "host-port-not-allowed"
    );
    assert_eq!(pending(&policy).len(), 3);
}

#[test]
fn a_request_narrows_freely() {
    let policy = with_request(
        "network: {mode: open}\nresources: {memory: 2g}\nfilesystem: {write: {allow: [/w]}}",
        "network: {mode: allowlist, allow: [a.example.org], deny: [b.example.org]}\nresources: {memory: 1g, pids: 5}\nfilesystem: {read: {deny: [/x], scope: system}, write: {deny: [/w/y]}}\naudit: {level: all}",
    );
    assert_eq!(code(&policy, "a.example.org", 443, None), "allowed-by-rule");
    assert_eq!(
        code(&policy, "c.example.org", 443, None),
        "not-in-allowlist"
    );
    assert_eq!(
        policy.limits().memory.as_ref().unwrap().value.to_string(),
        "1GiB"
    );
    assert_eq!(policy.limits().pids.as_ref().unwrap().get(), 5);
    assert_eq!(policy.filesystem().scope.as_str(), "system");
    assert_eq!(policy.filesystem().write_deny.len(), 1);
    assert_eq!(policy.audit().as_str(), "all");
    assert!(pending(&policy).is_empty());
}

#[test]
fn g1_a_request_cannot_undo_what_another_narrowed() {
    let open = || network(LayerKind::Config, "{mode: open}");
    let narrowing = "{mode: allowlist, allow: [a.example.org]}";
    for other in [
        "{allow: [b.example.org]}",
        "{mode: allowlist, allow: [b.example.org]}",
    ] {
        for kinds in [
            [LayerKind::Kit, LayerKind::Skill],
            [LayerKind::Skill, LayerKind::Kit],
        ] {
            let layers = vec![
                open(),
                network(kinds[0], narrowing).as_request(),
                network(kinds[1], other).as_request(),
            ];
            let policy = resolve(layers, None).unwrap();
            let answer = code(&policy, "b.example.org", 443, None);
            assert_eq!(answer, "not-in-allowlist", "{other} {kinds:?}");
        }
    }
}

#[test]
fn g4_g5_a_request_cannot_widen_anything_else() {
    let policy = with_request(
        "resources: {memory: 1g}\nfilesystem: {write: {allow: [/w]}}\nenvironment: {pass: [LANG], set: {A: op}}\naudit: {level: security}",
        "resources: {memory: 2g}\nfilesystem: {read: {allow: [~/.ssh], scope: host}, write: {allow: [/w/sub, /etc], unprotect: [.vscode]}}\nenvironment: {pass: [LANG, TOKEN, \"*\"], set: {A: req, B: req}}\naudit: {level: off}\ncredentials: [{service: s, env: T, hosts: [a.example.org], bearer: true}]",
    );
    assert_eq!(
        policy.limits().memory.as_ref().unwrap().value.to_string(),
        "1GiB"
    );
    assert_eq!(policy.filesystem().write_allow.len(), 1);
    assert!(policy.filesystem().read_allow.is_empty());
    assert!(policy.filesystem().unprotect.is_empty());
    assert!(!policy.environment().passes("TOKEN"));
    assert_eq!(policy.environment().set["A"].value, "op");
    assert_eq!(policy.environment().set["B"].value, "req");
    assert_eq!(policy.audit().as_str(), "security");
    assert!(policy.credentials().is_empty());
    assert_eq!(pending(&policy).len(), 6, "{:?}", pending(&policy));
}

#[test]
fn the_operator_can_let_requests_count() {
    let policy = with_request(
        "requests: allow\nnetwork: {allow: [a.example.org]}",
        "network: {allow: [b.example.org, 169.254.169.254]}\nfilesystem: {write: {allow: [/w]}}",
    );
    assert_eq!(code(&policy, "b.example.org", 443, None), "allowed-by-rule");
    assert_eq!(
        code(&policy, "169.254.169.254", 80, None),
        "metadata-address"
    );
    assert_eq!(policy.filesystem().write_allow.len(), 1);
    assert_eq!(pending(&policy).len(), 1);
}

#[test]
fn a_request_cannot_give_itself_permission() {
    let layers = vec![layer(LayerKind::Skill, "requests: allow").as_request()];
    assert_eq!(
        resolve(layers, None).unwrap_err().code(),
        "requests-by-request"
    );
}
