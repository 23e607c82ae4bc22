//! curl, with the proxies that its variables name and without.

use ringfence_testkit::place::{METADATA, OTHER_PRIVATE, PRIVATE};

use super::{Client, Host, PLAIN_WAYS};

const PAGES: [(&str, &str); 8] = [
    ("http://v4.example.org/", "v4.example.org:80"),
    ("https://v4.example.org/", "v4.example.org:443"),
    ("http://v6.example.org:8080/", "v6.example.org:8080"),
    ("https://v6.example.org:8443/", "v6.example.org:8443"),
    ("http://45.0.0.10/", "45.0.0.10:80"),
    ("https://45.0.0.10:8443/", "45.0.0.10:8443"),
    ("http://[2a0f:ffff::10]:8080/", "[2a0f:ffff::10]:8080"),
    ("https://[2a0f:ffff::10]/", "[2a0f:ffff::10]:443"),
];

#[test]
fn curl_through_the_proxy() {
    let host = Host::new();
    for (url, to) in PAGES {
        let via = if url.starts_with("https") {
            "connect"
        } else {
            "http-proxy"
        };
        host.check(&Client {
            via,
            program: "curl",
            to,
            script: &format!("curl -sSf '{url}'"),
        });
    }
}

#[test]
fn curl_without_a_proxy() {
    let host = Host::new();
    for (url, to) in PAGES {
        host.check(&Client {
            via: "transparent",
            program: "curl",
            to,
            script: &format!("curl -sSf --noproxy '*' '{url}'"),
        });
    }
}

#[test]
fn curl_through_the_socks_proxy() {
    let host = Host::new();
    for (url, to) in PAGES {
        host.check(&Client {
            via: "socks",
            program: "curl",
            to,
            script: &format!("curl -sSf -x socks5h://localhost:1080 '{url}'"),
        });
    }
}

#[test]
fn curl_that_looks_a_name_up_before_it_asks_the_proxy() {
    let host = Host::new();
    for (url, to) in [
        ("http://web.example.org/", "web.example.org:80"),
        ("https://web.example.org/", "web.example.org:443"),
    ] {
        host.check(&Client {
            via: "socks",
            program: "curl",
            to,
            script: &format!("curl -sSf -x socks5://localhost:1080 '{url}'"),
        });
    }
}

#[test]
fn curl_with_the_first_version_of_http() {
    let host = Host::new();
    for (flags, via) in PLAIN_WAYS {
        host.check(&Client {
            via,
            program: "curl",
            to: "web.example.org:80",
            script: &format!("curl -sSf -0 {flags} http://web.example.org/"),
        });
    }
}

#[test]
fn curl_uploads_in_every_way() {
    let host = Host::new();
    host.write("upload", &"x".repeat(300_000));
    for way in [
        "",
        "-H 'Transfer-Encoding: chunked'",
        "-H 'Expect: 100-continue' --expect100-timeout 60",
        "-H 'Transfer-Encoding: chunked' -H 'Expect: 100-continue' --expect100-timeout 60",
    ] {
        for (flags, via) in PLAIN_WAYS {
            let script = format!(
                "curl -sSf {flags} {way} -T upload http://web.example.org/ > shown \
                 && grep -o '\"body_bytes\":300000' shown"
            );
            let to = "web.example.org:80";
            host.check(&Client {
                via,
                program: "curl",
                to,
                script: &script,
            });
        }
    }
}

#[test]
fn curl_reads_pages_without_a_known_length() {
    let host = Host::new();
    let text = "chunk 1\nchunk 2\nchunk 3\nthe end\n";
    for flags in ["", "--noproxy '*'"] {
        for site in ["http://web.example.org", "https://web.example.org"] {
            let script = format!("curl -sSf {flags} {site}/chunks/3 {site}/until-end");
            let run = host.run(&["--allow", "web.example.org"], &script);
            assert_eq!(run.expect_code(0).stdout(), text, "{script}");
        }
    }
}

fn redirected(flags: &str, to: &str) -> String {
    let encoded = to.replace(':', "%3A").replace('/', "%2F");
    format!("curl -sSfL {flags} 'http://web.example.org/redirect?to={encoded}'")
}

#[test]
fn curl_follows_redirects_to_what_is_allowed() {
    let host = Host::new();
    for (flags, via) in PLAIN_WAYS {
        let script = redirected(flags, "http://api.example.org/");
        let allowed = [
            "--allow",
            "web.example.org:80",
            "--allow",
            "api.example.org:80",
        ];
        let run = host.run(&allowed, &script).expect_code(0);
        let told = ["web", "api"]
            .map(|name| format!("{name}.example.org:80"))
            .map(|to| format!("allowed {to} {via} curl {to}"));
        assert_eq!(run.told(), told, "{script}");
    }
}

#[test]
fn curl_is_refused_redirects_to_what_is_not_allowed() {
    let host = Host::new();
    let (private, other) = (format!("{PRIVATE}:80"), format!("{OTHER_PRIVATE}:80"));
    let metadata = format!("{METADATA}:80");
    // The names of private places are allowed as names.
    let flags = ["web.example.org:80", "private.test", "metadata.test"];
    let flags: Vec<&str> = flags.iter().flat_map(|entry| ["--allow", entry]).collect();
    for (way, via) in PLAIN_WAYS {
        for (to, reason) in [
            ("other.test:80", "not-in-allowlist"),
            ("private.test:80", "private-address"),
            ("metadata.test:80", "metadata-address"),
            (&private, "private-address"),
            (&other, "private-address"),
            (&metadata, "metadata-address"),
        ] {
            let script = redirected(way, &format!("http://{}/", to.trim_end_matches(":80")));
            let run = host.run(&flags, &script).expect_code(22);
            let first = format!("allowed web.example.org:80 {via} curl web.example.org:80");
            let second = format!("refused {to} {via} curl {reason}");
            assert_eq!(run.told(), [first, second], "{script}");
            let connections = host.net().connections();
            assert_eq!(connections.len(), 1, "{connections:?}");
            assert!(!host.net().dns_queries().contains(&"other.test".to_owned()));
        }
    }
}
