//! TLS that names no host, which older clients speak: it means the place that
//! its connection leads to.

use ringfence_testkit::place::PUBLIC;

use super::{Host, host};

const NAME: &str = "v4.example.org";
const WAYS: &str = "direct connect socks";

fn prepared() -> Host {
    let host = host();
    host.write("nameless.py", include_str!("scripts/nameless.py"));
    host
}

fn ask(place: &str, ways: &str) -> String {
    format!("/usr/bin/python3 nameless.py {place} {NAME} {ways}")
}

#[test]
fn g11_tls_without_a_name_reaches_the_place_that_was_dialled() {
    let host = prepared();
    let by_address = format!("{{cidr: {PUBLIC}/32, ports: [443]}}");
    for (place, rule) in [(NAME, NAME), (PUBLIC, &by_address)] {
        let flags = host.policy(&format!("{{allow: [{rule}]}}"));
        let run = host.run(&flags, &ask(place, WAYS)).expect_code(0);
        assert_eq!(
            run.stdout(),
            "direct 200\nconnect 200\nsocks 200\n",
            "{place}"
        );
        // It is a connection to that place in the log as well.
        let told = run.told();
        let is_it = |one: &String| one.starts_with(&format!("allowed {place}:443 "));
        assert!(told.len() == 3 && told.iter().all(is_it), "{told:?}");
    }
}

#[test]
fn g1_g3_tls_without_a_name_reaches_no_other_place() {
    let host = prepared();
    host.net().forget();
    let outside = host.online.outside(&ask(NAME, "direct"));
    assert_eq!(outside.expect_code(0).stdout, "direct 200\n");
    assert!(host.net().saw("GET /page"));
    for (place, network, why) in [
        // Nobody's.
        (
            "198.18.77.77",
            format!("{{allow: [{NAME}]}}"),
            "unknown-virtual-address",
        ),
        (PUBLIC, format!("{{allow: [{NAME}]}}"), "not-in-allowlist"),
        (
            NAME,
            "{allow: [web.example.org]}".to_owned(),
            "not-in-allowlist",
        ),
        // Where requests are judged every name has to agree.
        (
            NAME,
            format!("{{allow: [{{host: {NAME}, paths: [/page]}}]}}"),
            "tls-without-name",
        ),
    ] {
        let flags = host.policy(&network);
        let run = host.run(&flags, &ask(place, WAYS)).expect_code(0);
        assert!(!run.stdout().contains("200"), "{place}: {}", run.stdout());
        assert!(!host.net().saw("GET /page"), "{place}");
        let told = run.told();
        let is_refused = |one: &String| one.ends_with(why);
        assert!(told.len() == 3 && told.iter().all(is_refused), "{told:?}");
    }
}
