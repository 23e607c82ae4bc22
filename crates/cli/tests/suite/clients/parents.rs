//! A host that reaches the world through a proxy of its own.

use ringfence_testkit::place::PRIVATE;
use ringfence_testkit::place::port::{PROXY, PROXY_WITH_PASSWORD};
use ringfence_testkit::{Connection, Service};

use super::{Host, read_log};

const ALLOW: [&str; 2] = ["--allow", "api.example.org"];

fn plain_proxy() -> String {
    format!("http://{PRIVATE}:{PROXY}")
}

/// A settings file with a login in it is no file to be read inside.
#[test]
fn g5_settings_with_a_password_of_the_hosts_proxy_are_hidden() {
    let host = Host::new();
    for (address, is_shown) in [
        ("http://joe:s3cret@10.0.0.9:3128", false),
        ("http://10.0.0.9:3128", true),
    ] {
        let settings = serde_json::json!({
            "network": {"allowedDomains": [], "deniedDomains": [], "parentProxy": {"https": address}},
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
        });
        host.write("own.json", &settings.to_string());
        for (words, tail) in [
            (&["run"][..], &["--", "cat", "own.json"][..]),
            (&["srt"], &["-c", "cat own.json"]),
        ] {
            let words = [words, &["--settings", "own.json"], tail].concat();
            let outcome = host.online.ringfence().args(words).run();
            assert_eq!(outcome.stdout.contains("10.0.0.9"), is_shown, "{outcome:?}");
        }
    }
}

/// The request line of what the proxy was asked for, if it was.
fn asked(host: &Host) -> Vec<String> {
    let is_proxy = |one: &Connection| one.service == Service::Proxy;
    let connections = host.net().connections().into_iter().filter(is_proxy);
    let line = |one: Connection| one.saw[0].lines().next().unwrap_or_default().to_owned();
    connections.map(line).collect()
}

#[test]
fn everything_goes_through_the_hosts_proxy() {
    let host = Host::new();
    let proxy = plain_proxy();
    for (script, via, line) in [
        (
            "curl -sSf http://api.example.org/x",
            "http-proxy",
            "GET http://api.example.org/x HTTP/1.1",
        ),
        (
            "curl -sSf https://api.example.org/x",
            "connect",
            "CONNECT api.example.org:443 HTTP/1.1",
        ),
        (
            "curl -sSf --noproxy '*' https://api.example.org/x",
            "transparent",
            "CONNECT api.example.org:443 HTTP/1.1",
        ),
    ] {
        for names in [["HTTP_PROXY", "HTTPS_PROXY"], ["http_proxy", "https_proxy"]] {
            let variables = names.map(|name| (name, proxy.as_str()));
            let run = host.run_with(&variables, &ALLOW, script).expect_code(0);
            assert!(run.stdout().contains(r#""host":"api.example.org""#));
            let asked = asked(&host).join("\n").replace(".org:80/", ".org/");
            assert_eq!(asked, line, "{script}");
            let told = run.told();
            let start = format!(
                "allowed api.example.org:{} {via} curl ",
                if line.starts_with('C') { 443 } else { 80 }
            );
            assert!(told.len() == 1 && told[0].starts_with(&start), "{told:?}");
            // The proxy looks names up.
            assert!(host.net().dns_queries().is_empty());
        }
    }
}

#[test]
fn the_hosts_proxy_is_not_told_of_what_is_refused() {
    let host = Host::new();
    let proxy = plain_proxy();
    let variables = [("HTTP_PROXY", proxy.as_str()), ("HTTPS_PROXY", &proxy)];
    for script in [
        "curl -sSf http://other.test/",
        "curl -sSf https://other.test/",
        "curl -sSf --noproxy '*' http://other.test/",
        "curl -sSf --noproxy '*' https://other.test/",
        &format!("curl -sSf -x {proxy} http://other.test/"),
    ] {
        let run = host.run_with(&variables, &ALLOW, script);
        assert_ne!(run.outcome.code(), 0, "{script}");
        assert_eq!(run.told().len(), 1, "{:?}", run.told());
        host.sent_nothing();
    }
}

#[test]
fn what_is_exempt_is_reached_without_the_hosts_proxy() {
    let host = Host::new();
    let proxy = plain_proxy();
    for (exempt, direct) in [
        ("api.example.org", true),
        ("localhost, .example.org", true),
        ("*", true),
        ("other.test", false),
    ] {
        let variables = [
            ("HTTP_PROXY", proxy.as_str()),
            ("HTTPS_PROXY", &proxy),
            ("NO_PROXY", exempt),
        ];
        for script in [
            "curl -sSf http://api.example.org/",
            "curl -sSf https://api.example.org/",
        ] {
            host.run_with(&variables, &ALLOW, script).expect_code(0);
            assert_eq!(asked(&host).is_empty(), direct, "{exempt}: {script}");
        }
        let run = host.run_with(&variables, &ALLOW, "curl -sSf http://web.example.org/");
        run.expect_code(22);
        host.sent_nothing();
    }
}

/// Everything inside that could tell of the password; each is also what a
/// command prints where it does.
const LOOK: &str = "curl -sSf http://api.example.org/ https://api.example.org/ > shown \
                    && env && cat /proc/*/environ /proc/*/cmdline shown | tr '\\0' '\\n'";

#[test]
fn g5_the_password_of_the_hosts_proxy_stays_outside() {
    let host = Host::new();
    let place = format!("{PRIVATE}:{PROXY_WITH_PASSWORD}");
    let proxy = format!("http://user:password@{place}");
    let variables = [("HTTP_PROXY", proxy.as_str()), ("HTTPS_PROXY", &proxy)];
    let flags = [&ALLOW[..], &["--report", "report.json"]].concat();
    let run = host.run_with(&variables, &flags, LOOK).expect_code(0);
    assert_eq!(asked(&host).len(), 2);
    // It was shown to the proxy.
    assert!(host.net().saw("dXNlcjpwYXNzd29yZA=="));
    let report = host.online.arena.folder.read("report.json");
    let log = read_log(&run.state);
    for text in [run.stdout(), &run.outcome.stderr, &log, &report] {
        assert!(
            !text.contains("password") && !text.contains("dXNlcjpwYXNzd29yZA"),
            "{text}"
        );
    }
    assert!(run.stdout().contains("RINGFENCE=1"));

    let wrong = proxy.replace("password", "other");
    let variables = [("HTTP_PROXY", wrong.as_str()), ("HTTPS_PROXY", &wrong)];
    host.run_with(&variables, &ALLOW, "curl -sSf https://api.example.org/")
        .expect_code(22);
}

/// Asked to go no further, a proxy answers with what it got.
#[test]
fn g5_the_hosts_proxy_does_not_tell_its_password() {
    let host = Host::new();
    let place = format!("{PRIVATE}:{PROXY_WITH_PASSWORD}");
    let proxy = format!("http://user:password@{place}");
    for (method, is_refused) in [("TRACE", true), ("trace", true), ("OPTIONS", false)] {
        let ask = format!("curl -sS -i -X {method} -H 'Max-Forwards: 0' http://api.example.org/");
        let outside = host.online.outside(&format!("http_proxy={proxy} {ask}"));
        let is_told = outside.stdout.contains("dXNlcjpwYXNzd29yZA");
        assert_eq!(is_told, method != "trace", "{outside:?}");
        let run = host.run_with(&[("HTTP_PROXY", proxy.as_str())], &ALLOW, &ask);
        assert!(
            !run.stdout().contains("dXNlcjpwYXNzd29yZA"),
            "{}",
            run.stdout()
        );
        let refused = run.stdout().contains("trace-not-allowed");
        assert_eq!(refused, is_refused, "{method}: {}", run.stdout());
    }
}

/// What is wrong is often explained by the request itself.
#[test]
fn g5_error_pages_of_the_hosts_proxy_do_not_tell_its_password() {
    let host = Host::new();
    let place = format!("{PRIVATE}:{PROXY_WITH_PASSWORD}");
    let proxy = format!("http://user:password@{place}");
    let ask = "curl -sS -i http://api.example.org:9999/".to_owned();
    let outside = host.online.outside(&format!("http_proxy={proxy} {ask}"));
    assert!(outside.stdout.contains("dXNlcjpwYXNzd29yZA"), "{outside:?}");
    let allow = ["--allow", "api.example.org:9999"];
    let run = host.run_with(&[("HTTP_PROXY", proxy.as_str())], &allow, &ask);
    let page = run.stdout();
    assert!(page.contains("502 Bad Gateway"), "{page}");
    assert!(page.contains("Basic ********************\r\n"), "{page}");
    assert!(!page.contains("dXNl"), "{page}");
}
