//! Names that look allowed, names that change their mind, and questions that
//! would carry data out.

use ringfence_testkit::Answer;
use ringfence_testkit::place::{METADATA, PRIVATE, PUBLIC};

use super::{Attack, Host, hex, host, stops};

/// Allows the names below one, but for some.
const FLAGS: [&str; 6] = [
    "--allow",
    "*.example.org",
    "--deny",
    "secret.example.org",
    "--deny",
    "*.inner.example.org",
];

/// Names that are not allowed by [`FLAGS`], each with a mark in it where that
/// can be.
const NAMES: &[&str] = &[
    "example.org",
    "evil-example.org",
    "evilexample.org",
    "a.example.org.evil.test",
    "a.example.org-evil.test",
    "a.example.org.",
    "secret.example.org",
    "SECRET.example.org",
    "secret.example.org.",
    "sEcReT.EXAMPLE.org",
    "a.inner.example.org",
    "A.B.INNER.Example.ORG.",
    "a.example.org\0.evil.test",
    "evil.test\0.example.org",
    "evil.test%00.example.org",
    "evil.test%2f.example.org",
    "evil.test/.example.org",
    "evil.test\\.example.org",
    "evil.test#.example.org",
    "evil.test?.example.org",
    "user@evil.test",
    "a.example.org@evil.test",
    "evil.test@a.example.org",
    "evil.test:80.example.org",
    "evil.test .example.org",
    "evil.test\r\n.example.org",
    "evil.test\t.example.org",
    "evil.test,a.example.org",
    "evil.test;a.example.org",
    "..example.org",
    "a..example.org",
    ".example.org",
    "*.example.org",
    "xn--secret-.example.org",
];

/// The names that are refused; `a.example.org.` is allowed and there to show
/// that the others could be.
fn refused() -> impl Iterator<Item = &'static str> {
    NAMES
        .iter()
        .copied()
        .filter(|name| *name != "a.example.org.")
}

fn attack(way: &'static str, host: String) -> Attack {
    Attack {
        way,
        host,
        port: 80,
        says: vec![b"GET / HTTP/1.1\r\nHost: marked.test\r\n\r\n".to_vec()],
        mark: "marked.test".to_owned(),
    }
}

/// Fails the test if anything was asked or sent but for what is allowed.
#[track_caller]
fn only_allowed_was_asked_for(host: &Host) {
    let queries = host.net().dns_queries();
    let stray = |name: &&String| *name != "a.example.org";
    let stray: Vec<_> = queries.iter().filter(stray).collect();
    assert!(stray.is_empty(), "{stray:?}");
    let packets = host.net().packets();
    let beyond =
        |packet: &&String| *packet != "udp 192.168.7.53:53" && *packet != "tcp 45.0.0.10:80";
    let beyond: Vec<_> = packets.iter().filter(beyond).collect();
    assert!(beyond.is_empty(), "{beyond:?}");
}

fn with_zone() -> Host {
    let host = host();
    let zone = host.net().zone();
    for name in [
        "a.example.org",
        "secret.example.org",
        "evil.test",
        "example.org",
    ] {
        zone.set(name, PUBLIC);
    }
    for name in [
        "evil-example.org",
        "a.inner.example.org",
        "a.example.org.evil.test",
    ] {
        zone.set(name, PUBLIC);
        let script = format!("curl -sSf http://{name}/ > /dev/null");
        host.online.outside(&script).expect_code(0);
    }
    host
}

#[test]
fn g2_names_that_look_allowed_are_not_asked_for_through_any_proxy() {
    let host = with_zone();
    let socks = NAMES
        .iter()
        .map(|name| attack("socks", hex(name.as_bytes())));
    let connect = NAMES
        .iter()
        .map(|name| attack("connect", (*name).to_owned()));
    let forward = refused().map(|name| Attack {
        port: 3128,
        says: vec![format!("GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n\r\n").into_bytes()],
        ..attack("direct", "127.0.0.1".to_owned())
    });
    let all: Vec<_> = socks.chain(connect).chain(forward).collect();
    stops(&host, &FLAGS, &all);
    only_allowed_was_asked_for(&host);
    assert!(
        host.net()
            .dns_queries()
            .contains(&"a.example.org".to_owned())
    );
}

/// Asks for names in every way that needs no connection.
const LOOKUPS: &str = "
    for name in secret.example.org SECRET.Example.ORG. a.inner.example.org evil.test data.evil.test; do
        getent ahosts $name; getent ahostsv6 $name
        for kind in A AAAA TXT MX SRV HTTPS SVCB CNAME NS SOA ANY NULL CAA TYPE65280; do
            dig +tries=1 +time=5 $name $kind
        done
        dig +tcp +tries=1 +time=5 @45.0.0.53 $name A
        dig +tries=1 +time=5 @192.168.7.53 $name A
        dig +tries=1 +time=5 @10.1.2.3 $name A
        dig +tries=1 +time=5 +nordflag +cdflag +dnssec +subnet=192.0.2.0/24 $name A
        dig +tries=1 +time=5 -x 45.0.0.10
    done > /dev/null 2>&1; true";

#[test]
fn g2_no_lookup_of_any_kind_leaves() {
    let host = with_zone();
    host.online
        .outside("dig +tcp +short @45.0.0.53 data.evil.test TXT")
        .expect_code(0);
    assert!(host.net().saw("data.evil.test"), "it would have left");
    host.run(&FLAGS, LOOKUPS).expect_code(0);
    host.sent_nothing();
}

#[test]
fn g2_names_below_a_wildcard_run_out() {
    let host = host();
    host.write(
        "policy.yaml",
        "version: 1\nnetwork: {mode: allowlist, allow: ['*.example.org']}\n\
         resources: {wildcardNames: 3}\n",
    );
    let script = "for number in 1 2 3 4 5 6 7 8; do curl -s http://data$number.example.org/; \
                  curl -s --noproxy '*' http://Data$number.EXAMPLE.org./; done; true";
    host.run(&["--policy", "policy.yaml"], script)
        .expect_code(0);
    assert_eq!(distinct(host.net().dns_queries()).len(), 3);
}

#[test]
fn g2_names_below_a_wildcard_run_out_through_the_hosts_proxy_too() {
    let host = host();
    host.write(
        "policy.yaml",
        "version: 1\nnetwork: {mode: allowlist, allow: ['*.example.org']}\n\
         resources: {wildcardNames: 3}\n",
    );
    let proxy = format!("http://{PUBLIC}:3128");
    let variables = [
        ("HTTPS_PROXY", proxy.as_str()),
        ("HTTP_PROXY", proxy.as_str()),
    ];
    let script =
        "for number in 1 2 3 4 5 6 7 8; do curl -sk https://data$number.example.org/; done; true";
    host.run_with(&variables, &["--policy", "policy.yaml"], script)
        .expect_code(0);
    let connections = host.net().connections();
    let heads = connections.iter().flat_map(|one| &one.saw);
    let asked = heads.filter_map(|head| head.strip_prefix("CONNECT ")?.split(' ').next());
    assert_eq!(distinct(asked.map(str::to_owned).collect()).len(), 3);
}

fn distinct(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

#[test]
fn g3_a_name_that_changes_to_a_private_address_is_not_followed() {
    let host = host();
    let turns = || {
        let public = Answer::addresses(&[PUBLIC]).ttl(0);
        vec![public, Answer::addresses(&[PRIVATE]).ttl(0)]
    };
    for way in ["", "--noproxy '*'", "--socks5-hostname 127.0.0.1:1080"] {
        // A host of its own, which no server has.
        let until_it_changes = |way: &str| {
            format!(
                "while curl -4sSf {way} http://turns.test/ | grep -F '\"to\":\"{PUBLIC}:80\"'; do :; done"
            )
        };
        host.net().zone().set_in_turn("turns.test", turns());
        host.net().forget();
        host.online.outside(&until_it_changes("")).expect_code(0);
        assert!(
            host.net().packets().contains(&format!("tcp {PRIVATE}:80")),
            "outside"
        );
        host.net().zone().set_in_turn("turns.test", turns());
        let run = host.run(&["--allow", "turns.test"], &until_it_changes(way));
        assert!(
            run.stdout().contains(PUBLIC),
            "{way}: it was reached at first"
        );
        let packets = host.net().packets();
        assert!(
            !packets.iter().any(|one| one.contains(PRIVATE)),
            "{way}: {packets:?}"
        );
        let refused = run
            .told()
            .iter()
            .any(|one| one.ends_with("private-address"));
        assert!(refused, "{way}: {:?}", run.told());
    }
}

#[test]
fn g3_an_alias_of_a_private_name_is_not_followed() {
    let host = host();
    let zone = host.net().zone();
    zone.set("alias.test", Answer::alias("private.test"));
    zone.set("metadata-alias.test", Answer::alias("metadata.test"));
    zone.set("both.test", [PRIVATE, METADATA]);
    zone.set("tunnel.test", "64:ff9b::a01:203");
    zone.set("mapped.test", "::ffff:10.1.2.3");
    zone.set("zero.test", "0.0.0.0");
    for name in [
        "alias.test",
        "metadata-alias.test",
        "both.test",
        "tunnel.test",
        "mapped.test",
        "zero.test",
        "private.test",
        "private6.test",
        "shared.test",
        "metadata.test",
        "reserved.test",
        "loopback.test",
    ] {
        for way in ["", "--noproxy '*'", "--socks5-hostname 127.0.0.1:1080"] {
            let script = format!("curl -sSf {way} http://{name}/");
            let run = host.run(&["--allow", name], &script);
            assert_ne!(run.outcome.code(), 0, "{name} {way}");
            host.asked_only_for(name);
            let packets = host.net().packets();
            let only_lookups = packets.iter().all(|one| one.ends_with("192.168.7.53:53"));
            assert!(only_lookups, "{name} {way}: {packets:?}");
        }
    }
    host.online
        .outside("curl -sSf http://alias.test/")
        .expect_code(0);
}

#[test]
fn g3_a_redirect_leads_to_nothing_that_is_not_allowed() {
    let host = host();
    for place in [
        "http://10.1.2.3/",
        "http://private.test/",
        "http://169.254.169.254/latest/",
        "http://other.test/",
        "http://46.0.0.7/",
        "http://web.example.org@other.test/",
    ] {
        let encoded = place.replace('@', "%40");
        for way in ["", "--noproxy '*'"] {
            let attack = format!("curl -sSfL {way} 'http://web.example.org/redirect?to={encoded}'");
            host.online
                .outside(&attack.replace("--noproxy '*'", ""))
                .expect_code(0);
            let run = host.run(&["--allow", "web.example.org"], &attack);
            assert_ne!(run.outcome.code(), 0, "{attack}");
            host.asked_only_for("web.example.org");
            let packets = host.net().packets();
            let near = |one: &String| {
                one.ends_with(":53") || one == "tcp 45.0.0.10:80" || one == "tcp [2a0f:ffff::10]:80"
            };
            assert!(packets.iter().all(near), "{attack}: {packets:?}");
        }
    }
}

#[test]
fn g1_other_ports_of_an_allowed_name_are_not_reached() {
    let host = host();
    for way in ["direct", "connect", "socks"] {
        let ports = [22, 25, 5432, 6379, 7, 8080, 8443, 3128, 1, 65535];
        let name = |way| match way {
            "socks" => hex(b"web.example.org"),
            _ => "web.example.org".to_owned(),
        };
        let attacks: Vec<_> = ports
            .into_iter()
            .map(|port| Attack {
                port,
                ..attack(way, name(way))
            })
            .collect();
        stops(&host, &["--allow", "web.example.org"], &attacks);
        host.sent_nothing();
    }
}
