//! Rules by method and path: what is matched is what is sent, over TLS and
//! in clear.

use ringfence_testkit::Web;

use super::Bound;

const SITE: &str = "ruled.my-service.test";

fn ruled(bound: &Bound) -> [String; 2] {
    bound.net().web(SITE, Web::new());
    let text = format!(
        "version: 1\nnetwork:\n  allow:\n    - {{host: {SITE}, methods: [GET, HEAD], paths: ['/v1/**', '/exact']}}\n"
    );
    let path = bound.policies.write("ruled.yaml", &text);
    ["--policy".to_owned(), path.display().to_string()]
}

/// Schemes and versions of HTTP, each with the proxies and without.
const WAYS: [&str; 6] = [
    "--http1.1 https",
    "--http2 https",
    "--http1.1 http",
    "--noproxy * --http1.1 https",
    "--noproxy * --http2 https",
    "--noproxy * --http1.1 http",
];

fn script(way: &str, words: &str, path: &str) -> String {
    let (flags, scheme) = way.rsplit_once(' ').expect("a scheme");
    let flags = flags.replace('*', "'*'");
    format!(
        "curl -sS -o answer -w '%{{http_code}}' --path-as-is {flags} {words} '{scheme}://{SITE}{path}'"
    )
}

/// The targets that servers were asked for, without the name.
fn targets(bound: &Bound) -> Vec<String> {
    let connections = bound.net().connections();
    let saw = connections.iter().flat_map(|one| one.saw.clone());
    let heads = saw.filter(|text| text.contains(" HTTP/"));
    let targets = heads.filter_map(|head| Some(head.split(' ').nth(1)?.to_owned()));
    targets
        .map(|target| target.replace(&format!("https://{SITE}"), ""))
        .collect()
}

#[test]
fn g3_what_a_rule_allows_is_sent_in_its_normal_form() {
    let bound = Bound::new();
    let flags = ruled(&bound);
    for way in WAYS {
        for (path, sent) in [
            ("/v1/page", "/v1/page"),
            ("/v1/a/../b", "/v1/b"),
            ("/v2/../v1/c", "/v1/c"),
            ("//v1///d", "/v1/d"),
            ("/%76%31/e", "/v1/e"),
            ("/v1/f?x=/../y", "/v1/f?x=/../y"),
            ("/exact", "/exact"),
        ] {
            let run = bound.run(&flags, &script(way, "", path)).expect_code(0);
            assert_eq!(run.stdout(), "200", "{way} {path}");
            assert_eq!(targets(&bound), [sent], "{way} {path}");
        }
    }
}

#[test]
fn g1_what_no_rule_allows_is_refused() {
    let bound = Bound::new();
    let flags = ruled(&bound);
    for way in WAYS {
        for (words, path) in [
            ("", "/"),
            ("", "/v2/page"),
            ("", "/v1"),
            ("", "/v1/../v2/page"),
            ("", "/v1/%2e%2e/v2"),
            ("", "/v1/%2E%2E/v2"),
            ("", "/v1/x/..%2f..%2fv2"),
            ("", "/v1/..;/v2"),
            ("", "/v1/..;a=b/v2"),
            ("", "/v1/.%2e/v2"),
            ("", "/v1/%252e%252e/%2e%2e/%2e%2e/v2"),
            ("", "/exact/more"),
            ("-X POST -d body", "/v1/page"),
            ("-X DELETE", "/v1/page"),
            ("-X PATCH -d x", "/exact"),
            ("-H 'X-HTTP-Method-Override: DELETE' -X POST", "/v1/page"),
        ] {
            let run = bound.run(&flags, &script(way, words, path));
            assert!(
                ["403", "400"].contains(&run.stdout()),
                "{way} {words} {path}: {:?}",
                run.outcome
            );
            assert_eq!(targets(&bound), [""; 0], "{way} {words} {path}");
            assert!(
                run.told().iter().any(|one| one.starts_with("refused ")),
                "{:?}",
                run.told()
            );
        }
    }
}

/// On one connection, each request by itself.
#[test]
fn g1_each_request_of_a_connection_is_judged() {
    let bound = Bound::new();
    let flags = ruled(&bound);
    for version in ["--http1.1", "--http2"] {
        let urls = ["v1/a", "v2/b", "v1/c"].map(|path| format!("https://{SITE}/{path} -o answer"));
        let script = format!("curl -sS {version} -w '%{{http_code}} ' {}", urls.join(" "));
        let run = bound.run(&flags, &script).expect_code(0);
        assert_eq!(run.stdout(), "200 403 200 ");
        assert_eq!(targets(&bound), ["/v1/a", "/v1/c"]);
    }
}

/// Hosts without such a rule are not looked into.
#[test]
fn a_host_without_rules_keeps_its_own_certificate() {
    let bound = Bound::new();
    bound.host.write("own.pem", &bound.net().ca_pem());
    let flags = bound.policy(super::BEARER);
    let own = "--cacert own.pem --capath /dev/null";
    let script = format!(
        "curl -sSf {own} https://{}/; curl -sS {own} https://{}/",
        super::OTHER,
        super::HOST
    );
    let run = bound.run(&flags, &script).expect_code(60);
    assert!(run.stdout().contains("\"method\":\"GET\""));
}

#[test]
fn explain_knows_method_and_path() {
    let bound = Bound::new();
    let [flag, policy] = ruled(&bound);
    let url = |path: &str| format!("https://{SITE}{path}");
    for (method, path, code) in [
        ("GET", "/v1/page", 0),
        ("GET", "/v1/../v2", 3),
        ("POST", "/v1/page", 3),
    ] {
        let words = [
            "policy",
            "explain",
            &flag,
            &policy,
            "--method",
            method,
            &url(path),
        ]
        .map(str::to_owned);
        let outcome = bound.host.online.ringfence().args(words).run();
        assert_eq!(outcome.code(), code, "{method} {path}: {outcome:?}");
    }
}
