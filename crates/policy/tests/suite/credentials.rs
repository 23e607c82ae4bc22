//! Which requests get which credential.

use ringfence_policy::{
    Attachment, LayerKind, NoteKind, Policy, PolicyError, Request, Resolved, Scheme, SourceError,
    Target, attachments, decide, explain, judges_paths, read_yaml, resolve, rows,
};

use crate::support::{ask, context, layer};

const ALLOW: &str = "network: {allow: [\"**.example.org\", {host: api.example.com, ports: [\"1-65535\"]}], hostPorts: [8080]}";

fn bound(credentials: &str) -> Resolved<Policy> {
    try_bound(credentials).unwrap()
}

fn try_bound(credentials: &str) -> Result<Resolved<Policy>, PolicyError> {
    let body = format!("{ALLOW}\ncredentials: {credentials}");
    resolve(vec![layer(LayerKind::Policy, &body)], None)
}

fn refusal(credentials: &str) -> SourceError {
    let text = format!("version: 1\ncredentials: {credentials}\n");
    let origin = ringfence_policy::Origin::new(LayerKind::Policy, "test.yaml");
    read_yaml(&text, &origin, &context()).unwrap_err()
}

/// One request of a client.
struct Sent<'a> {
    scheme: Scheme,
    host: &'a str,
    port: u16,
    method: &'a str,
    path: &'a str,
}

const GET: Sent<'_> = Sent {
    scheme: Scheme::Https,
    host: "api.example.org",
    port: 443,
    method: "GET",
    path: "/",
};

impl Sent<'_> {
    fn gets(&self, policy: &Resolved<Policy>) -> Vec<String> {
        let target = Target::parse(self.host).unwrap();
        let request = Request::connect(&target, self.port).with_http(self.method, self.path);
        let text =
            |own: Attachment<'_>| format!("{} {}", own.credential.service, own.binding.attach);
        let all = attachments(policy, &request, self.scheme);
        all.into_iter().map(text).collect()
    }
}

#[test]
fn every_kind_is_read() {
    for (kind, want) in [
        ("bearer: true", "s header authorization: Bearer %s"),
        ("header: Authorization", "s header authorization: Bearer %s"),
        ("header: X-Key", "s header x-key: %s"),
        ("header: X-Key, format: \"k %s\"", "s header x-key: k %s"),
        (
            "basic: {username: x-token}",
            "s basic authentication as \"x-token\"",
        ),
        ("query: key", "s query parameter key"),
        ("substitute: {}", "s in place of its placeholder"),
        (
            "substitute: {body: true}",
            "s in place of its placeholder, bodies too",
        ),
    ] {
        let policy = bound(&format!(
            "[{{service: s, env: T, hosts: [api.example.org], {kind}}}]"
        ));
        assert_eq!(GET.gets(&policy), [want], "{kind}");
    }
}

#[test]
fn every_source_is_read_in_order() {
    let policy = bound(
        "[{service: s, sources: [{env: A}, {file: {path: ~/t.json, key: a.b}}, {command: {argv: [tool, x], refresh: 5m}}, {command: {run: tool y}}, {secret: t}], variables: [B], required: true, hosts: [api.example.org], bearer: true}]",
    );
    let credential = &policy.credentials()[0];
    let sources: Vec<String> = credential.sources.iter().map(ToString::to_string).collect();
    assert_eq!(
        sources,
        [
            "$A",
            "file ~/t.json a.b",
            "command tool x",
            "command tool y",
            "secret t"
        ]
    );
    assert!(credential.required);
    assert_eq!(credential.variables, ["B"]);
    let shown = rows(&policy);
    let row = shown
        .iter()
        .find(|row| row.section == "credentials")
        .unwrap();
    assert_eq!(
        row.entry,
        "s: $A, then file ~/t.json a.b, then command tool x, then command tool y, then secret t, header authorization: Bearer %s to https://api.example.org:443"
    );
}

#[test]
fn g5_no_variable_that_may_hold_the_secret_is_taken_in() {
    let body = format!(
        "{ALLOW}\nenvironment: {{pass: [\"*\"], set: {{INSIDE: x, OTHER: y}}}}\ncredentials: [{{service: s, env: OUTSIDE, variables: [INSIDE], hosts: [api.example.org], bearer: true}}]"
    );
    let policy = resolve(vec![layer(LayerKind::Policy, &body)], None).unwrap();
    let environment = policy.environment();
    assert!(!environment.passes("OUTSIDE") && !environment.passes("INSIDE"));
    assert!(environment.passes("LANG"));
    let managed: Vec<&str> = environment.managed.iter().map(|own| own.as_str()).collect();
    assert_eq!(managed, ["INSIDE"]);
    assert_eq!(environment.set.keys().collect::<Vec<_>>(), ["OTHER"]);
}

#[test]
fn a_binding_holds_for_its_host_port_scheme_method_and_path() {
    let policy = bound(
        "[{service: s, env: T, hosts: [api.example.com], ports: [443, 8443], methods: [GET, POST], paths: [\"/v1/**\"], bearer: true}]",
    );
    let fits = Sent {
        host: "api.example.com",
        path: "/v1/items?x=1",
        ..GET
    };
    assert_eq!(fits.gets(&policy).len(), 1);
    assert_eq!(Sent { port: 8443, ..fits }.gets(&policy).len(), 1);
    for other in [
        Sent { port: 444, ..fits },
        Sent {
            host: "api.example.org",
            ..fits
        },
        Sent {
            scheme: Scheme::Http,
            ..fits
        },
        Sent {
            method: "PUT",
            ..fits
        },
        Sent {
            method: "get",
            ..fits
        },
        Sent {
            path: "/v2/items",
            ..fits
        },
        Sent {
            path: "/v1/../v2",
            ..fits
        },
        Sent {
            path: "/v1/%2e%2e/v2",
            ..fits
        },
        Sent {
            path: "/v1/a%2fb",
            ..fits
        },
        Sent { path: "*", ..fits },
    ] {
        assert!(
            other.gets(&policy).is_empty(),
            "{} {}",
            other.host,
            other.path
        );
    }
}

#[test]
fn wildcards_bind_what_they_cover() {
    let policy = bound("[{service: s, env: T, hosts: [\"*.example.org\"], bearer: true}]");
    let at = |host| Sent { host, ..GET }.gets(&policy).len();
    assert_eq!(
        (
            at("a.example.org"),
            at("b.a.example.org"),
            at("example.org")
        ),
        (1, 1, 0)
    );
    assert!(ask(&policy, "a.example.org", 443, None).needs_inspection);
    assert!(!ask(&policy, "example.org", 443, None).needs_inspection);
    assert!(!ask(&policy, "a.example.org", 80, None).needs_inspection);
}

#[test]
fn several_ways_for_one_secret() {
    let policy = bound(
        "[{service: s, env: T, bindings: [{hosts: [api.example.org], bearer: true}, {hosts: [git.example.org], basic: {username: x}, replace: true}]}]",
    );
    assert_eq!(GET.gets(&policy), ["s header authorization: Bearer %s"]);
    let git = Sent {
        host: "git.example.org",
        ..GET
    };
    assert_eq!(git.gets(&policy), ["s basic authentication as \"x\""]);
    assert!(policy.credentials()[0].bindings[1].replace);
}

#[test]
fn g5_clear_text_goes_to_a_listed_port_of_this_machine_only() {
    let clear = |port: u16| {
        format!(
            "[{{service: s, env: T, hosts: [host.ringfence.internal], ports: [{port}], scheme: http, bearer: true}}]"
        )
    };
    let policy = bound(&clear(8080));
    let sent = Sent {
        scheme: Scheme::Http,
        host: "host.ringfence.internal",
        port: 8080,
        ..GET
    };
    assert_eq!(sent.gets(&policy).len(), 1);
    assert!(ask(&policy, sent.host, 8080, None).needs_inspection);
    assert!(!policy.intercepts());
    let error = try_bound(&clear(8081)).unwrap_err();
    assert_eq!(error.code(), "credential-host-not-allowed");
    let elsewhere =
        refusal("[{service: s, env: T, hosts: [api.example.org], scheme: http, bearer: true}]");
    assert_eq!(elsewhere.code(), "credential-in-clear");
}

const MISTAKES: &[(&str, &str, u32)] = &[
    (
        "{service: s, hosts: [a.example.org], bearer: true}",
        "credential-no-source",
        15,
    ),
    (
        "{service: s, env: T, bearer: true}",
        "credential-no-hosts",
        15,
    ),
    (
        "{service: s, env: T, hosts: [], bearer: true}",
        "credential-no-hosts",
        15,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org]}",
        "credential-no-kind",
        15,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], bearer: false}",
        "credential-no-kind",
        15,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], bearer: true, query: k}",
        "credential-kinds",
        15,
    ),
    (
        "{service: s, env: T, secret: t, hosts: [a.example.org], bearer: true}",
        "credential-sources",
        15,
    ),
    (
        "{service: s, env: T, sources: [{env: U}], hosts: [a.example.org], bearer: true}",
        "credential-sources",
        15,
    ),
    (
        "{service: s, sources: [{}], hosts: [a.example.org], bearer: true}",
        "credential-sources",
        38,
    ),
    (
        "{service: s, command: {refresh: 5m}, hosts: [a.example.org], bearer: true}",
        "credential-command",
        37,
    ),
    (
        "{service: s, secret: t, hosts: [a.example.org], substitute: {}}",
        "credential-no-variable",
        15,
    ),
    (
        "{service: s, sources: [{secret: t}], hosts: [a.example.org], substitute: {}}",
        "credential-no-variable",
        15,
    ),
    (
        "{service: s, env: T, variables: [], hosts: [a.example.org], substitute: {}}",
        "credential-no-variable",
        15,
    ),
    (
        "{service: s, env: T, hosts: [\"*.org\"], bearer: true}",
        "pattern-too-broad",
        44,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], header: Host}",
        "credential-framing-header",
        68,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], header: A, format: Bearer}",
        "credential-format",
        79,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], header: A, format: \"%s %s\"}",
        "credential-format",
        79,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], format: \"%s\"}",
        "credential-format",
        68,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], header: \"A\\r\\nB\"}",
        "credential-header",
        68,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], bindings: [{hosts: [b.example.org], bearer: true}]}",
        "credential-bindings",
        15,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], bearer: true, methods: []}",
        "malformed-method",
        44,
    ),
    (
        "{service: s, env: T, hosts: [a.example.org], bearer: true, nonsense: 1}",
        "malformed-document",
        74,
    ),
];

#[test]
fn mistakes_are_named_with_their_place() {
    for (entry, code, column) in MISTAKES {
        let error = refusal(&format!("[{entry}]"));
        assert_eq!(error.code(), *code, "{entry}: {error}");
        assert_eq!(
            (error.origin.line, error.column),
            (Some(2), Some(*column)),
            "{entry}: {error}"
        );
        assert!(!error.hint().is_empty());
    }
    let entry = "{service: s, env: T, hosts: [a.example.org], bearer: true}";
    assert_eq!(
        refusal(&format!("[{entry}, {entry}]")).code(),
        "credential-twice"
    );
}

#[test]
fn g5_a_host_that_is_not_allowed_is_an_error() {
    for hosts in [
        "[evil.test]",
        "[api.example.org, evil.test]",
        "[\"*.example.com\"]",
        "[host.ringfence.internal]",
    ] {
        let error = try_bound(&format!(
            "[{{service: s, env: T, hosts: {hosts}, bearer: true}}]"
        ))
        .unwrap_err();
        assert_eq!(error.code(), "credential-host-not-allowed", "{hosts}");
        assert!(
            error.to_string().starts_with("policy test.yaml:3: "),
            "{error}"
        );
    }
    let other_port =
        "[{service: s, env: T, hosts: [api.example.org], ports: [8443], bearer: true}]";
    assert!(try_bound(other_port).is_err());
    let body = "network: {allow: [api.example.org], deny: [api.example.org:443]}\ncredentials: [{service: s, env: T, hosts: [api.example.org], bearer: true}]";
    assert!(resolve(vec![layer(LayerKind::Policy, body)], None).is_err());
}

#[test]
fn two_secrets_for_one_place_are_an_error_where_text_can_tell() {
    let two = |one: &str, other: &str| {
        try_bound(&format!(
            "[{{service: a, env: A, {one}}}, {{service: b, env: B, {other}}}]"
        ))
    };
    let clash = two(
        "hosts: [\"*.example.org\"], bearer: true",
        "hosts: [api.example.org], basic: {username: x}",
    );
    let error = clash.unwrap_err();
    assert_eq!(error.code(), "credential-clash");
    assert!(error.to_string().contains("credential b"), "{error}");
    for (one, other) in [
        (
            "hosts: [api.example.org], bearer: true",
            "hosts: [b.example.org], bearer: true",
        ),
        (
            "hosts: [api.example.org], bearer: true",
            "hosts: [api.example.org], header: X-Key",
        ),
        (
            "hosts: [api.example.org], bearer: true, methods: [GET]",
            "hosts: [api.example.org], bearer: true, methods: [PUT]",
        ),
        (
            "hosts: [api.example.org], query: k",
            "hosts: [api.example.org], query: l",
        ),
        (
            "hosts: [api.example.org], substitute: {}",
            "hosts: [api.example.org], substitute: {}",
        ),
    ] {
        assert!(two(one, other).is_ok(), "{one} / {other}");
    }
    let unseen = two(
        "hosts: [api.example.org], bearer: true, paths: [\"/a/**\"]",
        "hosts: [api.example.org], bearer: true, paths: [\"/**\"]",
    )
    .unwrap();
    let path = |path| Sent { path, ..GET }.gets(&unseen);
    assert_eq!(path("/a/x"), ["a header authorization: Bearer %s"]);
    assert_eq!(path("/b"), ["b header authorization: Bearer %s"]);
}

#[test]
fn a_stronger_layer_replaces_a_weaker_one() {
    let entry = |env: &str, kind: &str| {
        format!(
            "{ALLOW}\ncredentials: [{{service: s, env: {env}, hosts: [api.example.org], {kind}}}]"
        )
    };
    let layers = vec![
        layer(LayerKind::Policy, &entry("STRONG", "header: X-Key")),
        layer(LayerKind::Config, &entry("WEAK", "bearer: true")),
    ];
    let policy = resolve(layers, None).unwrap();
    assert_eq!(GET.gets(&policy), ["s header x-key: %s"]);
    assert_eq!(policy.credentials().len(), 1);
    let replaced = policy
        .notes()
        .iter()
        .find(|note| note.code == "credential-replaced");
    assert_eq!(
        replaced.unwrap().message,
        "credential s: policy test.yaml:3 takes its place"
    );
}

#[test]
fn where_tls_is_looked_into() {
    let policy = |rules: &str| crate::support::policy(rules);
    for (rules, want) in [
        ("{allow: [a.example.org]}", false),
        ("{mode: open}", false),
        ("{allow: [{host: a.example.org, inspect: true}]}", true),
        ("{allow: [{host: a.example.org, inspect: false}]}", false),
        ("{allow: [{host: a.example.org, methods: [GET]}]}", true),
        ("{allow: [{host: a.example.org, paths: [\"/x\"]}]}", true),
        (
            "{mode: open, allow: [{host: a.example.org, inspect: true}]}",
            true,
        ),
    ] {
        let policy = policy(rules);
        assert_eq!(policy.intercepts(), want, "{rules}");
        let decision = ask(&policy, "a.example.org", 443, None);
        assert_eq!(decision.needs_inspection, want, "{rules}");
    }
    let elsewhere = policy("{mode: open, allow: [{host: a.example.org, inspect: true}]}");
    assert!(!ask(&elsewhere, "b.example.org", 443, None).needs_inspection);
    let bound = bound("[{service: s, env: T, hosts: [api.example.org], bearer: true}]");
    assert!(bound.intercepts());
    assert!(!ask(&bound, "b.example.org", 443, None).needs_inspection);
}

#[test]
fn a_path_that_is_judged_is_sent_in_normal_form() {
    let judged = |policy: &Resolved<Policy>, host: &str, port: u16| {
        let target = Target::parse(host).unwrap();
        judges_paths(policy, &Request::connect(&target, port))
    };
    let ruled = crate::support::policy(
        "{allow: [{host: a.example.org, paths: [\"/x\"]}, {host: b.example.org, methods: [GET]}]}",
    );
    assert!(judged(&ruled, "a.example.org", 443));
    assert!(!judged(&ruled, "a.example.org", 8443));
    assert!(!judged(&ruled, "b.example.org", 443));
    let bound = bound(
        "[{service: s, env: T, hosts: [api.example.org], paths: [\"/x\"], bearer: true}, {service: t, env: U, hosts: [b.example.org], bearer: true}]",
    );
    assert!(judged(&bound, "api.example.org", 443));
    assert!(!judged(&bound, "b.example.org", 443));
}

#[test]
fn explain_tells_which_credential_would_be_added() {
    let policy = bound(
        "[{service: s, env: T, hosts: [api.example.org], paths: [\"/v1/**\"], bearer: true}]",
    );
    let target = Target::parse("api.example.org").unwrap();
    let told = |path| {
        let request = Request::connect(&target, 443).with_http("GET", path);
        let told = explain(&policy, &request);
        assert_eq!(told.decision, decide(&policy, &request));
        told.credentials
    };
    let got = told("/v1/x");
    assert_eq!(got.len(), 1);
    assert_eq!(
        got[0].binding,
        "header authorization: Bearer %s to https://api.example.org:443 /v1/**"
    );
    assert_eq!(got[0].origin.to_string(), "policy test.yaml:3");
    assert!(told("/v2/x").is_empty());
    let refused = Target::parse("evil.test").unwrap();
    assert!(
        explain(&policy, &Request::connect(&refused, 443))
            .credentials
            .is_empty()
    );
}

const ASKED: &str = "network: {allow: [api.example.org]}\ncredentials: [{service: s, env: T, variables: [V], hosts: [api.example.org], bearer: true}]";

#[test]
fn g5_what_a_kit_or_a_request_asks_for_waits_for_approval() {
    for (kind, request, operator) in [
        (LayerKind::Kit, false, ""),
        (LayerKind::Skill, true, ""),
        (LayerKind::Config, true, ""),
        (LayerKind::Skill, true, "requests: allow\n"),
    ] {
        let asked = || {
            let asked = layer(kind, ASKED);
            if request { asked.as_request() } else { asked }
        };
        let operator = layer(
            LayerKind::Policy,
            &format!("{operator}{ALLOW}\nenvironment: {{pass: [\"*\"]}}"),
        );
        let policy = resolve(vec![operator.clone(), asked()], None).unwrap();
        assert!(
            policy.credentials().is_empty() && GET.gets(&policy).is_empty(),
            "{kind:?}"
        );
        assert_eq!(policy.withheld()[0].service, "s");
        let target = Target::parse("api.example.org").unwrap();
        let told = explain(&policy, &Request::connect(&target, 443));
        assert_eq!((told.credentials.len(), told.withheld.len()), (0, 1));
        assert!(!policy.environment().passes("T") && !policy.environment().passes("V"));
        assert!(policy.environment().managed.is_empty());
        let notes: Vec<_> = policy
            .notes()
            .iter()
            .filter(|note| note.code == "credential-withheld")
            .collect();
        assert_eq!(notes.len(), 1, "{kind:?}");
        assert_eq!(notes[0].kind, NoteKind::Pending);

        let mut approved = asked();
        approved.approve("other");
        assert_eq!(
            resolve(vec![operator.clone(), approved.clone()], None)
                .unwrap()
                .withheld()
                .len(),
            1
        );
        approved.approve("s");
        let policy = resolve(vec![operator, approved], None).unwrap();
        assert_eq!(GET.gets(&policy).len(), 1, "{kind:?}");
        assert!(policy.withheld().is_empty());
    }
}

#[test]
fn a_request_for_what_the_operator_has_changes_nothing() {
    let own = |env: &str| {
        format!(
            "{ALLOW}\ncredentials: [{{service: s, env: {env}, hosts: [api.example.org], bearer: true}}]"
        )
    };
    let same = vec![
        layer(LayerKind::Config, &own("T")),
        layer(LayerKind::Skill, &own("T")).as_request(),
    ];
    let policy = resolve(same, None).unwrap();
    assert!(policy.withheld().is_empty());
    let mut other = layer(LayerKind::Skill, &own("OTHER")).as_request();
    other.approve("s");
    let policy = resolve(vec![layer(LayerKind::Config, &own("T")), other], None).unwrap();
    assert_eq!(policy.credentials()[0].sources[0].to_string(), "$T");
}

#[test]
fn a_ceiling_bounds_services_sources_and_hosts() {
    let body = format!(
        "{ALLOW}\nenvironment: {{pass: [\"*\"]}}\ncredentials: [{{service: s, env: T, hosts: [api.example.org, b.example.org], bearer: true}}]"
    );
    let under = |ceiling: &str| {
        let ceiling = layer(LayerKind::Ceiling, &format!("credentials: {ceiling}"));
        resolve(vec![layer(LayerKind::Policy, &body)], Some(ceiling)).unwrap()
    };
    let kept = |policy: &Resolved<Policy>| {
        policy
            .credentials()
            .iter()
            .map(|own| own.bindings.len())
            .sum::<usize>()
    };
    assert_eq!(kept(&under("[{service: s}]")), 2);
    assert_eq!(
        kept(&under("[{service: s, hosts: [\"**.example.org\"]}]")),
        2
    );
    assert_eq!(kept(&under("[{service: s, hosts: [api.example.org]}]")), 1);
    assert_eq!(kept(&under("[{service: s, env: T}]")), 2);
    for ceiling in [
        "[]",
        "[{service: other}]",
        "[{service: s, env: OTHER}]",
        "[{service: s, hosts: [c.example.org]}]",
        "[{service: s, hosts: [\"**.example.org\"], methods: [GET]}]",
        "[{service: s, hosts: [\"**.example.org\"], paths: [\"/v1/**\"]}]",
        "[{service: s, hosts: [\"**.example.org\"], ports: [8443]}]",
    ] {
        let policy = under(ceiling);
        assert_eq!(kept(&policy), 0, "{ceiling}");
        assert_eq!(policy.withheld().len(), 1, "{ceiling}");
        assert!(!policy.environment().passes("T"), "{ceiling}");
        assert!(
            policy
                .notes()
                .iter()
                .any(|note| note.code == "beyond-ceiling"),
            "{ceiling}"
        );
    }
}

#[test]
fn root_certificates_come_from_the_operator_alone() {
    let body = |files: &str| {
        layer(
            LayerKind::Config,
            &format!("network: {{authorities: {files}}}"),
        )
    };
    let files = |policy: &Resolved<Policy>| {
        let files = policy.authorities().iter();
        files
            .map(|file| file.value.display().to_string())
            .collect::<Vec<_>>()
    };
    let policy = resolve(vec![body("[ca.pem, ~/b.pem, /c.pem]")], None).unwrap();
    assert_eq!(
        files(&policy),
        ["/home/u/p/ca.pem", "/home/u/b.pem", "/c.pem"]
    );
    let ceiling = layer(LayerKind::Ceiling, "network: {authorities: [/c.pem]}");
    let policy = resolve(vec![body("[ca.pem, /c.pem]")], Some(ceiling)).unwrap();
    assert_eq!(files(&policy), ["/c.pem"]);
    let allowed = layer(LayerKind::Policy, "requests: allow");
    let policy = resolve(vec![allowed, body("[/c.pem]").as_request()], None).unwrap();
    assert!(policy.authorities().is_empty());
    assert!(
        policy
            .notes()
            .iter()
            .any(|note| note.kind == NoteKind::Pending)
    );
}
