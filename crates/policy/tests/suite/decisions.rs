//! What `decide` answers, case by case.

use ringfence_policy::{Request, Target, decide, explain};

use crate::support::{ask, code, policy};

#[test]
fn g3_empty_means_deny() {
    for rules in ["{}", "{allow: []}", "{mode: allowlist}", "{mode: deny}"] {
        let policy = policy(rules);
        assert!(policy.network_is_closed(), "{rules}");
        for host in [
            "a.example.org",
            "93.184.216.34",
            "[2606:4700::1]",
            "host.ringfence.internal",
        ] {
            assert!(
                !ask(&policy, host, 443, None).is_allowed(),
                "{rules} {host}"
            );
        }
    }
}

#[test]
fn names_ports_and_wildcards() {
    let policy = policy(
        r#"{allow: [api.example.org, "*.w.example.org:8443", "**.s.example.org", {host: r.example.org, ports: [1, "5-7"]}]}"#,
    );
    for (host, port, want) in [
        ("api.example.org", 443, "allowed-by-rule"),
        ("API.Example.org.", 80, "allowed-by-rule"),
        ("api.example.org", 8080, "port-not-allowed"),
        ("api.example.org", 0, "port-not-allowed"),
        ("w.example.org", 8443, "not-in-allowlist"),
        ("a.b.w.example.org", 8443, "allowed-by-rule"),
        ("s.example.org", 443, "allowed-by-rule"),
        ("x.s.example.org", 443, "allowed-by-rule"),
        ("r.example.org", 6, "allowed-by-rule"),
        ("r.example.org", 8, "port-not-allowed"),
        ("evilapi.example.org", 443, "not-in-allowlist"),
        ("api.example.org.evil.test", 443, "not-in-allowlist"),
    ] {
        assert_eq!(code(&policy, host, port, None), want, "{host}:{port}");
    }
}

#[test]
fn g3_deny_wins_across_kinds() {
    let policy = policy(
        r#"{allow: ["*.example.org", {cidr: 10.0.0.0/8}], deny: [bad.example.org, 10.9.0.0/16, 198.51.100.7, "p.example.org:443"]}"#,
    );
    for (host, port, addr, want) in [
        ("bad.example.org", 443, None, "denied-by-rule"),
        ("x.bad.example.org", 443, None, "allowed-by-rule"),
        ("p.example.org", 443, None, "denied-by-rule"),
        ("p.example.org", 80, None, "allowed-by-rule"),
        ("a.example.org", 443, Some("10.1.0.1"), "allowed-by-rule"),
        ("a.example.org", 443, Some("10.9.0.1"), "address-denied"),
        (
            "a.example.org",
            443,
            Some("::ffff:10.9.0.1"),
            "address-denied",
        ),
        (
            "a.example.org",
            443,
            Some("64:ff9b::10.9.0.1"),
            "address-denied",
        ),
        (
            "a.example.org",
            443,
            Some("2002:a09:1::1"),
            "address-denied",
        ),
        ("10.9.0.1", 443, None, "address-denied"),
        ("0x0a.0x09.1", 443, None, "address-denied"),
        ("168361985", 443, None, "address-denied"),
        ("[::ffff:10.9.0.1]", 443, None, "address-denied"),
        ("3325256711", 443, None, "address-denied"),
    ] {
        assert_eq!(
            code(&policy, host, port, addr),
            want,
            "{host}:{port} {addr:?}"
        );
    }
}

#[test]
fn g1_a_name_cannot_lead_to_a_special_address() {
    let policy = policy("{allow: [a.example.org]}");
    for (addr, want) in [
        ("93.184.216.34", "allowed-by-rule"),
        ("127.0.0.1", "loopback-address"),
        ("::1", "loopback-address"),
        ("0.0.0.0", "unspecified-address"),
        ("::", "unspecified-address"),
        ("10.0.0.1", "private-address"),
        ("100.64.0.1", "private-address"),
        ("fd00::1", "private-address"),
        ("169.254.1.1", "link-local-address"),
        ("fe80::1", "link-local-address"),
        ("169.254.169.254", "metadata-address"),
        ("fd00:ec2::254", "metadata-address"),
        ("224.0.0.1", "multicast-address"),
        ("255.255.255.255", "multicast-address"),
        ("198.18.0.1", "reserved-address"),
        ("240.0.0.1", "reserved-address"),
        ("::ffff:127.0.0.1", "loopback-address"),
        ("::127.0.0.1", "loopback-address"),
        ("64:ff9b::169.254.169.254", "metadata-address"),
        ("64:ff9b:1::10.0.0.1", "private-address"),
        ("2002:7f00:1::", "loopback-address"),
        ("2001:0:5db8:d822::f5ff:fffe", "private-address"),
    ] {
        assert_eq!(
            code(&policy, "a.example.org", 443, Some(addr)),
            want,
            "{addr}"
        );
    }
}

#[test]
fn an_address_rule_lifts_only_what_it_names() {
    let policy = policy(
        r#"{allow: [a.example.org, {cidr: 10.1.0.0/16}, "127.0.0.1:443", {cidr: 169.254.0.0/16}, {cidr: 128.0.0.0/1}]}"#,
    );
    for (host, port, addr, want) in [
        ("a.example.org", 443, Some("10.1.2.3"), "allowed-by-rule"),
        ("a.example.org", 443, Some("10.2.2.3"), "private-address"),
        ("a.example.org", 443, Some("127.0.0.1"), "allowed-by-rule"),
        ("a.example.org", 80, Some("127.0.0.1"), "loopback-address"),
        ("a.example.org", 443, Some("127.0.0.2"), "loopback-address"),
        ("a.example.org", 443, Some("169.254.3.4"), "allowed-by-rule"),
        (
            "a.example.org",
            443,
            Some("169.254.169.254"),
            "metadata-address",
        ),
        ("a.example.org", 443, Some("192.168.0.1"), "private-address"),
        ("192.168.0.1", 443, None, "private-address"),
        ("200.1.1.1", 443, None, "allowed-by-rule"),
        ("169.254.169.254", 443, None, "metadata-address"),
        ("10.1.2.3", 443, None, "allowed-by-rule"),
        ("10.1.2.3", 22, None, "port-not-allowed"),
        ("93.184.216.34", 443, None, "not-in-allowlist"),
    ] {
        assert_eq!(
            code(&policy, host, port, addr),
            want,
            "{host}:{port} {addr:?}"
        );
    }
    let exact = crate::support::policy("{allow: [169.254.169.254, a.example.org]}");
    assert_eq!(code(&exact, "169.254.169.254", 80, None), "allowed-by-rule");
    assert_eq!(
        code(&exact, "a.example.org", 80, Some("169.254.169.254")),
        "allowed-by-rule"
    );
}

#[test]
fn open_is_open_for_the_public_only() {
    let policy = policy(
        "{mode: open, allow: [{cidr: 10.1.0.0/16, ports: [5432]}], deny: [bad.example.org]}",
    );
    assert!(!policy.network_is_closed());
    for (host, port, addr, want) in [
        ("any.example.org", 22, None, "allowed-open"),
        ("any.example.org", 22, Some("93.184.216.34"), "allowed-open"),
        ("any.example.org", 22, Some("10.1.2.3"), "private-address"),
        ("any.example.org", 5432, Some("10.1.2.3"), "allowed-open"),
        ("10.1.2.3", 5432, None, "allowed-by-rule"),
        ("10.1.2.3", 22, None, "private-address"),
        ("93.184.216.34", 1, None, "allowed-open"),
        ("93.184.216.34", 0, None, "not-in-allowlist"),
        ("169.254.169.254", 80, None, "metadata-address"),
        ("localhost", 80, None, "loopback-address"),
        ("x.localhost", 80, Some("93.184.216.34"), "loopback-address"),
        ("bad.example.org", 443, None, "denied-by-rule"),
        ("host.ringfence.internal", 80, None, "host-port-not-allowed"),
    ] {
        assert_eq!(
            code(&policy, host, port, addr),
            want,
            "{host}:{port} {addr:?}"
        );
    }
}

#[test]
fn host_ports_are_the_only_way_to_the_hosts_loopback() {
    let policy = policy("{hostPorts: [5432]}");
    assert_eq!(
        code(&policy, "host.ringfence.internal", 5432, None),
        "allowed-host-port"
    );
    assert_eq!(
        code(&policy, "host.ringfence.internal", 5432, Some("127.0.0.1")),
        "allowed-host-port"
    );
    assert_eq!(
        code(&policy, "host.ringfence.internal", 5432, Some("10.0.0.1")),
        "host-port-not-allowed"
    );
    assert_eq!(
        code(&policy, "host.ringfence.internal", 22, None),
        "host-port-not-allowed"
    );
    assert_eq!(code(&policy, "127.0.0.1", 5432, None), "loopback-address");
}

#[test]
fn the_hosts_own_addresses_need_an_exact_rule() {
    let own = ["203.0.114.9", "10.1.0.5", "127.0.0.1"].map(|text| text.parse().unwrap());
    let policy = policy("{allow: [a.example.org, {cidr: 10.1.0.0/16}]}").with_host_addresses(own);
    assert_eq!(
        code(&policy, "a.example.org", 443, Some("203.0.114.9")),
        "host-own-address"
    );
    assert_eq!(
        code(&policy, "a.example.org", 443, Some("10.1.0.5")),
        "host-own-address"
    );
    assert_eq!(
        code(&policy, "a.example.org", 443, Some("10.1.0.6")),
        "allowed-by-rule"
    );
    let exact =
        crate::support::policy("{allow: [a.example.org, 203.0.114.9]}").with_host_addresses(own);
    assert_eq!(
        code(&exact, "a.example.org", 443, Some("203.0.114.9")),
        "allowed-by-rule"
    );
}

#[test]
fn methods_and_paths() {
    let policy = policy(
        r#"{allow: [{host: a.example.org, methods: [GET], paths: ["/v1/**"]}, {host: a.example.org, methods: [POST], paths: ["/v2/x"]}]}"#,
    );
    let target = Target::parse("a.example.org").unwrap();
    let connect = decide(&policy, &Request::connect(&target, 443));
    assert!(connect.is_allowed() && connect.needs_inspection);
    for (method, path, want) in [
        ("GET", "/v1/a", "allowed-by-rule"),
        ("GET", "/v1/a?x=1", "allowed-by-rule"),
        ("POST", "/v2/x", "allowed-by-rule"),
        ("GET", "/v2/x", "path-not-allowed"),
        ("POST", "/v1/a", "path-not-allowed"),
        ("DELETE", "/v1/a", "method-not-allowed"),
        ("get", "/v1/a", "method-not-allowed"),
        ("GET", "/v1/../admin", "path-not-allowed"),
        ("GET", "/v1/%2e%2e/admin", "path-not-allowed"),
        ("GET", "/v1/..;/admin", "path-not-allowed"),
        ("GET", "/v1%2fa", "path-not-allowed"),
        ("GET", "//v1//a", "allowed-by-rule"),
    ] {
        let request = Request::connect(&target, 443).with_http(method, path);
        assert_eq!(
            decide(&policy, &request).reason.code(),
            want,
            "{method} {path}"
        );
    }
    let free =
        crate::support::policy("{allow: [a.example.org, {host: a.example.org, methods: [GET]}]}");
    let request = Request::connect(&target, 443);
    assert!(!decide(&free, &request).needs_inspection);
    assert!(decide(&free, &request.with_http("DELETE", "/")).is_allowed());
    let asked = crate::support::policy("{allow: [{host: a.example.org, inspect: true}]}");
    assert!(decide(&asked, &request).needs_inspection);
}

#[test]
fn a_request_without_destination_is_malformed() {
    let policy = policy("{mode: open}");
    let request = Request {
        host: None,
        addr: None,
        port: 443,
        method: None,
        path: None,
    };
    assert_eq!(decide(&policy, &request).reason.code(), "malformed-host");
    assert!(explain(&policy, &request).suggestions.is_empty());
}
