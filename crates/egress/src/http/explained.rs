//! What is explained of a request is what becomes of it: `policy explain` reads
//! what the proxies read, and refuses what they call malformed.

use std::rc::Rc;

use proptest::prelude::*;
use proptest::sample::select;
use ringfence_audit::ConnectionId;
use ringfence_policy::{HostPort, HttpUrl, Request, explain, is_misspelt};

use super::order::{Order, Orders};
use crate::exit::{Exit, Settings};
use crate::proxy::Caller;
use crate::testing::{Yard, policy_of, run};

const RULES: &[&str] = &[
    "a.test",
    "\"*.b.test:8080\"",
    "\"**.c.test\"",
    "{host: a.test, methods: [GET, PUT], paths: [\"/v1/**\"], ports: [80, 81]}",
    "{host: d.test, paths: [\"/a b/*\", \"/é/**\"]}",
    "{host: \"x.b.test\", inspect: true}",
    "{cidr: 127.0.0.0/8, ports: [80, 443]}",
    "{cidr: \"2001:db8::/32\"}",
    "xn--bcher-kva.test",
];

const DENIES: &[&str] = &["evil.a.test", "\"a.test:81\"", "127.0.0.2", "c.test"];

const HOSTS: &[&str] = &[
    "a.test",
    "A.TEST",
    "a.test.",
    "a.test..",
    "evil.a.test",
    "x.b.test",
    "b.test",
    "c.test",
    "x.c.test",
    "d.test",
    "xn--bcher-kva.test",
    "bücher.test",
    "a%2etest",
    "a。test",
    "me@a.test",
    "a.test@evil.test",
    "a.test\\",
    "a.test,b.test",
    "*.test",
    "-a.test",
    "_a.test",
    "127.0.0.1",
    "127.1",
    "0x7f.2",
    "2130706433",
    "[::1]",
    "[::ffff:127.0.0.2]",
    "[2001:db8::1]",
    "2001:db8::1",
    "[fe80::1%25lo]",
    "localhost",
    "",
];

const PORTS: &[&str] = &[
    "", ":80", ":80", ":81", ":443", ":8080", ":080", ":0", ":", ":+80", ":65536", ":80:80", ":8o",
];

const PATHS: &[&str] = &[
    "/", "/v1/", "..", ".", "%2e", "%2E%2e", "%2f", "%zz", "%", "%00", "%c3%a9", "é", "a", "a%20b",
    " ", "\\", "//", ";", "?", "?q=/../", "\"", "<", "{", "|", "^", "`", "~", "\u{7f}", "\t",
    "/a%20b/x", "+", "@", ":",
];

const METHODS: &[&str] = &[
    "GET", "GET", "PUT", "POST", "get", "HEAD", "head", "DELETE", "X-ODD", "Connect", "G@T", "GÉT",
    "",
];

/// What a client asks for.
#[derive(Debug)]
struct Asked {
    method: &'static str,
    place: String,
    path: String,
}

fn asked() -> impl Strategy<Value = Asked> {
    let path = prop::collection::vec(select(PATHS), 0..5);
    let any_host = prop_oneof![8 => select(HOSTS).prop_map(str::to_owned), 1 => "[!-~]{1,12}"];
    let parts = (select(METHODS), any_host, select(PORTS), path);
    let whole = parts.prop_map(|(method, host, port, path)| Asked {
        method,
        place: format!("{host}{port}"),
        path: path.concat(),
    });
    whole.prop_filter("a host and a path, as they are told apart", |asked| {
        let is_apart = asked.path.is_empty() || asked.path.starts_with(['/', '?']);
        is_apart && !asked.place.contains(['/', '?', '#'])
    })
}

fn rules() -> impl Strategy<Value = String> {
    let some = |of: &'static [&'static str]| prop::collection::vec(select(of), 0..4);
    let mode = select(&["allowlist", "allowlist", "open", "deny"][..]);
    (mode, some(RULES), some(DENIES)).prop_map(|(mode, allow, deny)| {
        let [allow, deny] = [allow, deny].map(|list| list.join(", "));
        let allow = if mode == "deny" { "" } else { &allow };
        format!("version: 1\nnetwork: {{mode: {mode}, allow: [{allow}], deny: [{deny}]}}\n")
    })
}

/// The reason code of a refusal, or that it is allowed.
type Answer = Result<(), String>;

/// What the proxy says; `None` where it calls the request malformed.
fn proxied(exit: &Rc<Exit>, line: &str, place: &str) -> Option<Answer> {
    let caller = Caller {
        connection: ConnectionId(1),
        process: None,
    };
    let head = format!("{line} HTTP/1.1\r\nHost: {place}\r\n\r\n");
    let order = Orders::new(caller, Rc::clone(exit)).read(head.as_bytes());
    let (Order::Request(_, attempt) | Order::Tunnel(attempt)) = order.ok()?;
    let admitted = exit.admit(&attempt);
    Some(admitted.map_err(|refused| refused.code.to_owned()))
}

/// What is explained; `None` where it calls the request malformed.
fn explained(exit: &Exit, asked: &Asked) -> Option<Answer> {
    let url = HttpUrl::parse(&format!("http://{}{}", asked.place, asked.path)).ok()?;
    if is_misspelt(asked.method) {
        return None;
    }
    let path = url.path.as_deref().unwrap_or("/");
    let request = Request::connect(&url.target, url.port).with_http(asked.method, path);
    Some(answer(exit, &request))
}

/// The same of a connection.
fn explained_tunnel(exit: &Exit, place: &str) -> Option<Answer> {
    let url = HttpUrl::parse(place).ok()?;
    Some(answer(exit, &Request::connect(&url.target, url.port)))
}

fn answer(exit: &Exit, request: &Request<'_>) -> Answer {
    let told = explain(&exit.policy(), request).decision;
    if told.is_allowed() {
        Ok(())
    } else {
        Err(told.reason.code().to_owned())
    }
}

/// Which port is meant has to be said to a proxy, and an address of IPv6 alone
/// is none for it.
fn is_whole(place: &str) -> bool {
    let has_port = HostPort::parse(place).is_ok_and(|place| place.port.is_some());
    has_port || HttpUrl::parse(place).is_err()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn g3_what_is_explained_is_what_the_proxies_do(
        rules in rules(),
        all in prop::collection::vec(asked(), 64),
    ) {
        let mut answers = Vec::new();
        run(async {
            let yard = Yard::under(|_| policy_of(&rules), Settings::default()).await;
            for asked in all {
                let Asked { method, place, path } = &asked;
                let line = format!("{method} http://{place}{path}");
                let pair = [proxied(&yard.exit, &line, place), explained(&yard.exit, &asked)];
                let tunnel = format!("CONNECT {place}");
                let tunnels = [
                    proxied(&yard.exit, &tunnel, place),
                    explained_tunnel(&yard.exit, place),
                ];
                answers.push((asked, pair, tunnels));
            }
        });
        for (asked, [proxied, explained], tunnels) in answers {
            if is_whole(&asked.place) {
                prop_assert_eq!(&tunnels[0], &tunnels[1], "{:?} under {}", asked.place, rules);
            }
            if asked.path.is_ascii() {
                prop_assert_eq!(proxied, explained, "{:?} under {}", asked, rules);
            } else {
                // Some clients send it as it is, and it passes where no path is
                // judged; who asks is told to write what is judged.
                prop_assert_eq!(explained, None, "{:?}", asked);
            }
        }
    }
}
