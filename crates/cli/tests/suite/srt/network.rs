//! Hosts that are reached and hosts that are not, and what a refusal looks
//! like.

use ringfence_testkit::place::{PRIVATE, PUBLIC};
use serde_json::{Value, json};

use super::case::{Case, Speaker, cases, online, script, with};
use crate::suite::internet::Online;

/// The HTTP status of each URL, through the proxy whatever the host is.
fn statuses(urls: &[&str]) -> Case {
    let text = urls.iter().fold(String::new(), |text, url| {
        text + &format!("curl -s -o /dev/null -w '%{{http_code}}\\n' --noproxy '' '{url}'; ")
    });
    online(&(text + "true")).labelled(&urls.join(" "))
}

/// What the helper script prints for each line of words.
fn asked(lines: &[&str]) -> Case {
    let text = lines.iter().fold(String::new(), |text, words| {
        text + &format!("/usr/bin/python3 ask.py {words}; ")
    });
    online(&(text + "true")).labelled(&lines.join("; "))
}

fn network(fields: Value) -> Value {
    with("network", fields)
}

/// An entry of one list, which is taken or refused before anything runs.
fn entry(list: &str, entry: &str, taken: bool) -> Case {
    let settings = network(json!({list: [entry]}));
    let case = script("echo ran")
        .settings(&settings)
        .labelled(&format!("{list}: {entry}"));
    if taken {
        case.prints(&["ran"])
    } else {
        case.code(1)
    }
}

const HEADERS: &str = "curl -s -i --noproxy '' http://web.example.org/ | tr -d '\\r' \
                       | grep -E '^(HTTP|Content-Type|X-Proxy-Error|Connection blocked)' | cut -c -39";
const BODY: &str = "curl -s --noproxy '' http://web.example.org/";

const FRONTED: &str = "curl -s -o /dev/null -w '%{http_code}\\n' \
                       --connect-to other.test:443:web.example.org:443 https://other.test/";
const UDP: &str = "/usr/bin/python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); \
                   s.connect((\"45.0.0.10\", 443)); s.send(b\"x\"); s.settimeout(5); s.recv(1)' \
                   2>&1 | tail -1 | sed 's/.*] //'";

cases! {
    entries_are_taken_or_refused: [
        entry("allowedDomains", "example.org", true),
        entry("allowedDomains", "EXAMPLE.org:443", true),
        entry("allowedDomains", "*.example.org", true),
        entry("allowedDomains", "*.example.org:8443", true),
        entry("allowedDomains", "localhost", true),
        entry("allowedDomains", "localhost:3000", true),
        entry("allowedDomains", "127.0.0.1:8080", true),
        entry("allowedDomains", "[::1]:8080", true),
        entry("allowedDomains", "[2001:db8::1]", true),
        entry("allowedDomains", "xn--bcher-kva.example.org", true),
        entry("allowedDomains", "*", false),
        entry("allowedDomains", "*.org", false),
        entry("allowedDomains", "a*.example.org", false),
        entry("allowedDomains", "https://example.org", false),
        entry("allowedDomains", "example.org/path", false),
        entry("allowedDomains", "example", false),
        entry("allowedDomains", ".example.org", false),
        entry("allowedDomains", "example.org.", false),
        entry("allowedDomains", "10.0.0.0/8", false),
        entry("allowedDomains", "::1", false),
        entry("allowedDomains", "*.localhost", false),
        entry("allowedDomains", "example.org:0443", false),
        entry("allowedDomains", "example.org:0", false),
        entry("allowedDomains", "example.org:65536", false),
        entry("deniedDomains", "*", true),
        entry("deniedDomains", "*:22", true),
    ];
    entries_that_could_never_match_are_refused: [
        entry("deniedDomains", "exa mple.org", false).but_srt(0, &["ran"]),
        entry("deniedDomains", "example.org ", false).but_srt(0, &["ran"]),
    ];
    an_entry_that_is_not_ascii_is_what_is_sent_for_it: [
        asked(&["connect xn--bcher-kva.example.org:443"])
            .settings(&network(json!({
                "allowedDomains": ["*.example.org"], "deniedDomains": ["bücher.example.org"]
            })))
            .prints(&["403 host is on the deny list"])
            .but_srt(0, &["502 Bad Gateway"]),
    ];
    the_name_in_a_handshake_is_the_one_of_the_tunnel: [
        online(FRONTED)
            .labelled("another name in the handshake")
            .allowing(&["web.example.org"])
            .code(35)
            .prints(&["000"])
            .but_srt(0, &["200"]),
    ];
    plain_requests_are_refused_with_403: [
        online(HEADERS).prints(&[
            "HTTP/1.1 403 Forbidden",
            "Content-Type: text/plain",
            "X-Proxy-Error: blocked-by-allowlist",
            "Connection blocked by network allowlist",
        ]),
        online(BODY)
            .labelled("the body is srt's own")
            .prints(&["Connection blocked by network allowlist"]),
    ];
    tunnels_are_refused_with_the_reason_in_their_status: [
        online("curl -sS https://web.example.org/ 2>&1")
            .code(56)
            .prints(&["curl: (56) CONNECT tunnel failed, response 403"]),
        asked(&["connect web.example.org:443"]).prints(&["403 host is not on the allow list"]),
        asked(&["answer web.example.org:443"]).prints(&[
            "403 host is not on the allow list",
            "X-Proxy-Error: blocked-by-allowlist",
            "Content-Type: text/plain",
            "'Connection blocked by network allowlist'",
        ]),
        asked(&["connect web.example.org:444"])
            .allowing(&["web.example.org:443"])
            .prints(&["403 host is not on the allow list"]),
        asked(&["connect web.example.org:443"])
            .settings(&network(json!({
                "deniedDomains": ["web.example.org"],
                "deniedDomainReasons": {"web.example.org": "use the mirror"}
            })))
            .prints(&["403 use the mirror"]),
    ];
    a_denied_host_is_said_to_be_denied: [
        asked(&["connect web.example.org:443"])
            .settings(&network(json!({"deniedDomains": ["web.example.org"]})))
            .prints(&["403 host is on the deny list"]),
    ];
    what_is_denied_is_denied_whatever_allows_it: [
        statuses(&["http://web.example.org/", "http://api.example.org/", "http://api.example.org:8080/"])
            .settings(&network(json!({
                "allowedDomains": ["*.example.org"],
                "deniedDomains": ["web.example.org", "*:8080"]
            })))
            .prints(&["403", "200", "403"]),
        statuses(&["http://web.example.org/"])
            .settings(&network(json!({"allowedDomains": ["*.example.org"], "deniedDomains": ["*"]})))
            .prints(&["403"]),
    ];
    a_wildcard_is_what_is_below_and_not_the_name_itself: [
        asked(&["connect example.org:443", "get http://web.example.org/", "get http://webexample.org/"])
            .allowing(&["*.example.org"])
            .prints(&["403 host is not on the allow list", "200", "403"]),
    ];
    case_and_one_final_dot_do_not_matter: [
        asked(&["get http://WEB.Example.ORG/", "get http://web.example.org./"])
            .allowing(&["web.example.org"])
            .prints(&["200", "200"]),
        asked(&["get http://web.example.org/"]).allowing(&["WEB.EXAMPLE.ORG"]).prints(&["200"]),
    ];
    two_final_dots_are_no_name: [
        asked(&["get http://web.example.org../"])
            .allowing(&["web.example.org"])
            .prints(&["403"]),
    ];
    an_address_with_a_port_is_allowed_on_that_port: [
        statuses(&["http://127.0.0.1:8080/", "http://127.0.0.1:5432/"])
            .allowing(&["127.0.0.1:8080"])
            .prints(&["200", "403"]),
        statuses(&["http://[::1]:8080/"]).allowing(&["[::1]:8080"]).prints(&["200"]),
    ];
    every_spelling_of_an_address_is_that_address: [
        asked(&[
            "get http://2130706433:8080/",
            "get http://[::ffff:127.0.0.1]:8080/",
            "get http://127.1:8080/",
            "get http://0x7f.1:8080/",
        ])
        .allowing(&["127.0.0.1:8080"])
        .prints(&["200"; 4]),
        asked(&["get http://2130706433:8080/", "get http://[::ffff:127.0.0.1]:8080/"])
            .settings(&network(json!({
                "allowedDomains": ["127.0.0.1"], "deniedDomains": ["127.0.0.1:8080"]
            })))
            .prints(&["403"; 2]),
    ];
    names_that_do_not_resolve_are_bad_gateways: [
        asked(&["get http://missing.example.org/", "connect missing.example.org:443"])
            .allowing(&["*.example.org"])
            .prints(&["502", "502 Bad Gateway"]),
    ];
    proxies_want_the_token: [
        asked(&["without_token http://web.example.org/", "wrong_token http://web.example.org/"])
            .allowing(&["web.example.org"])
            .prints(&[
                r#"407 Proxy Authentication Required; Basic realm="srt""#,
                "407 Proxy Authentication Required",
            ]),
    ];
    socks_clients_are_refused_by_code: [
        asked(&["socks 1 other.test 80", "socks 1 web.example.org 80"])
            .allowing(&["web.example.org"])
            .prints(&["2", "0"]),
        asked(&["socks 3 web.example.org 80"]).allowing(&["web.example.org"]).prints(&["7"]),
        asked(&[r"socks 1 'other.test\x00.example.org' 80", "socks 1 '%61.example.org' 80"])
            .allowing(&["*.example.org"])
            .prints(&["2", "2"]),
    ];
    resolved_addresses_are_judged: [
        statuses(&["http://loopback.test:8080/", "http://metadata.test/", "http://private.test/"])
            .allowing(&["loopback.test", "metadata.test", "private.test"])
            .prints(&["403", "403", "200"]),
        statuses(&["http://private.test/"])
            .settings(&network(json!({
                "allowedDomains": ["private.test"], "deniedResolvedAddresses": ["10.0.0.0/8"]
            })))
            .prints(&["403"]),
        online("curl -s -i http://metadata.test/ | tr -d '\\r' | grep -i '^X-Proxy-Error'")
            .labelled("the header of a refused address")
            .allowing(&["metadata.test"])
            .prints(&["X-Proxy-Error: blocked-by-sandbox-runtime"]),
        online("curl -s http://loopback.test:8080/; curl -s http://metadata.test/")
            .labelled("the body of a refused address")
            .allowing(&["loopback.test", "metadata.test"])
            .prints(&[
                "Connection to loopback.test blocked: resolved to a loopback address",
                "Connection to metadata.test blocked: resolved to a link-local address",
            ]),
        asked(&["answer private.test:443"])
            .settings(&network(json!({
                "allowedDomains": ["private.test"], "deniedResolvedAddresses": ["10.0.0.0/8"]
            })))
            .prints(&[
                "403 resolved to a listed address",
                "X-Proxy-Error: blocked-by-sandbox-runtime",
                "Content-Type: text/plain",
                "'Connection to private.test blocked: resolved to a listed address'",
            ]),
    ];
    hosts_are_reached_by_name_over_tls: [
        online("curl -sS https://web.example.org/ | grep -o '\"sni\": *\"[^\"]*\"' | tr -d ' '")
            .allowing(&["web.example.org"])
            .prints(&[r#""sni":"web.example.org""#]),
    ];
    clients_that_know_no_proxy: [
        online("curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '*' http://web.example.org/")
            .labelled("an allowed host without a proxy")
            .allowing(&["web.example.org"])
            .prints(&["200"])
            .but_srt(6, &["000"]),
        online("curl -s -o /dev/null -w '%{http_code}\\n' --noproxy '*' http://other.test/")
            .labelled("a host that is not allowed, without a proxy")
            .allowing(&["web.example.org"])
            .prints(&["403"])
            .but_srt(6, &["000"]),
        online(UDP)
            .labelled("a datagram")
            .allowing(&["web.example.org"])
            .prints(&["Connection refused"])
            .but_srt(0, &["Network is unreachable"]),
        online("getent ahostsv4 web.example.org > /dev/null && echo found")
            .labelled("a lookup")
            .allowing(&["web.example.org"])
            .prints(&["found"])
            .but_srt(2, &[]),
    ];
}

#[test]
fn g1_nothing_leaves_without_a_proxy_either() {
    let online = Online::new();
    let file = online
        .arena
        .folder
        .write("s.json", &super::case::settings().to_string());
    let run = |text: &str| {
        let words = ["srt", "-s", file.to_str().unwrap(), "-c", text];
        online.ringfence().args(words).run()
    };
    for attack in [
        format!("./attack tcp {PUBLIC} 7"),
        format!("./attack udp {PUBLIC} 443"),
        format!("./attack tcp {PRIVATE} 22"),
    ] {
        online.net.forget();
        online.outside(&attack).expect_code(0);
        assert!(!online.net.packets().is_empty(), "{attack}");
        online.net.forget();
        run(&attack);
        assert_eq!(online.net.packets(), Vec::<String>::new(), "{attack}");
    }
    run("getent hosts web.example.org; dig +tries=1 +time=1 web.example.org @45.0.0.53; true");
    assert_eq!(online.net.packets(), Vec::<String>::new());
}

#[test]
fn refusals_are_told_at_the_end_with_what_to_add() {
    let outcome = statuses(&["http://other.test/"])
        .run(&Speaker::Ours)
        .expect_code(0);
    let want = "\"other.test:80\" in network.allowedDomains";
    assert!(outcome.stderr.contains(want), "{}", outcome.stderr);
}

#[test]
fn debug_tells_of_decisions_as_they_are_made() {
    let hosts = ["http://other.test/", "http://web.example.org/"];
    let case = statuses(&hosts).allowing(&["web.example.org"]);
    let outcome = case.debugging().run(&Speaker::Ours).expect_code(0);
    for want in [
        "[SandboxDebug] Refused: other.test:80 (not-in-allowlist)",
        "[SandboxDebug] Allowed: web.example.org:80 (allowed-by-rule, web.example.org:*)",
    ] {
        assert!(outcome.stderr.contains(want), "{}", outcome.stderr);
    }
}

#[test]
fn the_hosts_own_proxy_stands_between() {
    let proxy = format!("http://{PUBLIC}:3128");
    for (fields, variable) in [
        (json!({"http": proxy}), None),
        (json!({}), Some(proxy.as_str())),
    ] {
        let online = Online::new();
        let settings = network(json!({
            "allowedDomains": ["web.example.org"], "parentProxy": fields
        }));
        let file = online.arena.folder.write("s.json", &settings.to_string());
        let text = "curl -sS http://web.example.org/ && curl -sS https://web.example.org/ \
                    && ! curl -sS -f http://other.test/";
        let words = ["srt", "-s", file.to_str().unwrap(), "-c", text];
        let mut program = online.ringfence().args(words);
        if let Some(value) = variable {
            program = program.env("HTTP_PROXY", value);
        }
        program.run().expect_code(0);
        let sent: Vec<String> = online.net.packets();
        let want = format!("tcp {PUBLIC}:3128");
        assert!(
            !sent.is_empty() && sent.iter().all(|packet| *packet == want),
            "{sent:?}"
        );
    }
}
