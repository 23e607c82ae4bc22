//! Every client gets the credential added, whether it sends what its variable
//! holds or nothing, through the proxies and without, over the version of HTTP
//! that it would speak with the server itself.

use ringfence_testkit::place::port;

use super::{ADDED, BEARER, Bound, HOST, SECRET, VARIABLE, placeholder};

/// Makes a client ignore the proxies that its variables name.
const ALONE: &str = "NO_PROXY='*' no_proxy='*'";

/// A way to ask for a page.
struct Way<'a> {
    /// A command with `{header}` and `{url}` in it.
    command: &'a str,
    /// What stands for `{header}` when the client sends what it has.
    header: &'a str,
    /// The version of HTTP, by the server's own word.
    version: &'a str,
}

impl Way<'_> {
    fn script(&self, header: &str, path: &str) -> String {
        let url = format!("https://{HOST}/{path}");
        let command = self.command.replace("{header}", header);
        command.replace("{url}", &url)
    }
}

impl Bound {
    /// Asks for a page with the proxies and without: on the host with the
    /// secret itself, inside with what stands for it, and with nothing.
    #[track_caller]
    fn check(&self, way: &Way<'_>) {
        let flags = self.policy(BEARER);
        let sent = way.script(way.header, "page");
        self.outside(&sent).expect_code(0);
        self.proves(&sent, way.version);
        let unsent = way.script("", "page");
        for script in [sent, unsent] {
            for before in ["", ALONE] {
                let script = format!("{before} {script}\necho; echo token=${VARIABLE}");
                let run = self.run(&flags, &format!("set -e; {script}"));
                let run = run.expect_code(0);
                self.proves(&script, way.version);
                self.went_only_there();
                let shown = format!("Bearer {}", placeholder(&run));
                assert!(run.stdout().contains(&shown), "{script}: {}", run.stdout());
                assert_eq!(run.credentials(), [ADDED], "{script}");
            }
        }
    }

    /// Fails the test unless the secret arrived, over that protocol.
    #[track_caller]
    fn proves(&self, script: &str, version: &str) {
        let header = format!("authorization: Bearer {SECRET}");
        for text in [&header, version] {
            let seen = self.net().connections();
            assert!(self.saw(HOST, text), "{text} by `{script}`: {seen:#?}");
        }
    }
}

/// Whether the secret arrived at its host, as a bearer's token.
pub(super) fn arrived(bound: &Bound) -> bool {
    bound.saw(HOST, &format!("authorization: Bearer {SECRET}"))
}

#[test]
fn curl() {
    let bound = Bound::new();
    let header = "-H \"Authorization: Bearer $API_TOKEN\"";
    for (flag, version) in [("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2.0")] {
        let command = &format!("curl -sSf {flag} {{header}} {{url}}");
        let way = Way {
            command,
            header,
            version,
        };
        bound.check(&way);
        let script = format!("{} -x socks5h://localhost:1080", way.script(header, ""));
        bound.run(&bound.policy(BEARER), &script).expect_code(0);
        bound.proves(&script, version);
    }
}

#[test]
fn python() {
    let bound = Bound::new();
    for (how, version) in [
        ("requests", "HTTP/1.1"),
        ("httpx", "HTTP/1.1"),
        ("httpx-h2", "HTTP/2.0"),
    ] {
        bound.check(&Way {
            command: &format!("/usr/bin/python3 ask.py {how} GET {{url}} {{header}}"),
            header: "'Authorization=Bearer $API_TOKEN'",
            version,
        });
    }
}

#[test]
fn node() {
    let bound = Bound::new();
    let trusted = bound.net().ca_file().display().to_string();
    for (how, version) in [("fetch", "HTTP/1.1"), ("http2", "HTTP/2.0")] {
        // Outside, it knows nothing of the system's store.
        let trust = format!("NODE_EXTRA_CA_CERTS=${{NODE_EXTRA_CA_CERTS:-{trusted}}}");
        bound.check(&Way {
            command: &format!("env {trust} node ask.js {how} GET {{url}} {{header}}"),
            header: "'Authorization=Bearer $API_TOKEN'",
            version,
        });
    }
}

#[test]
fn java() {
    let bound = Bound::new();
    bound.net().trust_in_java();
    bound
        .host
        .write("Ask.java", include_str!("scripts/Ask.java"));
    bound.outside("javac Ask.java").expect_code(0);
    for (asked, version) in [("HTTP_1_1", "HTTP/1.1"), ("HTTP_2", "HTTP/2.0")] {
        // By the options that name a store, and by the system's own store.
        for words in ["java", "env -u JAVA_TOOL_OPTIONS java"] {
            bound.check(&Way {
                command: &format!("{words} Ask {asked} GET {{url}} {{header}}"),
                header: "'Authorization=Bearer $API_TOKEN'",
                version,
            });
        }
    }
}

/// A bare repository at `$place` with one commit, which takes more.
const REPOSITORY: &str = "export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org
    export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
    git init -q -b main work && echo one > work/file && git -C work add file
    git -C work commit -qm first && git clone -q --bare work \"$place\"
    git -C \"$place\" config http.receivepack true && rm -rf work";

#[test]
fn git() {
    let bound = Bound::new();
    let basic = format!("Basic {}", super::basic("git"));
    bound
        .net()
        .web(HOST, ringfence_testkit::Web::new().wants(&basic));
    let place = bound.net().files().join("repository.git");
    let script = format!("place={}; {REPOSITORY}", place.display());
    bound.outside(&script).expect_code(0);
    let flags = bound.policy(
        "{service: my-service, env: API_TOKEN, hosts: [api.my-service.test], basic: {username: git}}",
    );
    for flag in ["", "-c http.proxy="] {
        let clone = format!("git {flag} clone -q https://{HOST}/git/repository.git /tmp/copy");
        let identity = "-c user.name=A -c user.email=a@example.org";
        let script = format!(
            "set -e; export GIT_TERMINAL_PROMPT=0; {clone}; cd /tmp/copy; cat file
             date +%N > file; git {identity} commit -qam more; git {flag} push -q"
        );
        let refused = bound.host.online.outside("GIT_TERMINAL_PROMPT=0; {clone}");
        assert_ne!(refused.code(), 0, "it needs no credential");
        let run = bound.run(&flags, &script).expect_code(0);
        assert!(!run.stdout().is_empty());
        assert!(bound.saw(HOST, &format!("authorization: {basic}")));
        assert!(bound.saw(HOST, "POST "), "nothing was pushed");
        bound.went_only_there();
    }
    let count = format!("git -C {} rev-list --count main", place.display());
    let count = bound.outside(&count).expect_code(0).stdout;
    assert_eq!(count.trim(), "3");
}

/// No part of such a body is read ahead for a secret, which would keep the
/// server from answering.
#[test]
fn g11_grpc_in_turns_where_bodies_get_secrets() {
    let bound = Bound::new();
    let server = bound.net().grpc("grpc.my-service.test");
    let to = format!("grpc.my-service.test:{}", port::GRPC);
    let flags = bound.policy_of(
        &[&to],
        "credentials:
  - service: my-service
    env: API_TOKEN
    hosts: [grpc.my-service.test]
    ports: [50051]
    substitute: {body: true}\n",
    );
    let call = format!("/usr/bin/python3 call.py Talk {to}");
    let told = "first\nsecond\nthird\nOK";
    let talk = format!("{call} first second third");
    let outside = bound.outside(&talk).expect_code(0).stdout;
    assert!(outside.starts_with(told), "{outside}");
    for before in ["", "no_grpc_proxy='*'"] {
        server.forget();
        let run = bound
            .run(&flags, &format!("{before} {talk}"))
            .expect_code(0);
        assert!(run.stdout().starts_with(told), "{}", run.stdout());
        // The secret has no place among them.
        let run = bound.run(&flags, &format!("{before} {call} first '$API_TOKEN'"));
        assert!(!run.stdout().contains("OK"), "{}", run.stdout());
        assert!(!server.saw(SECRET), "{before}");
    }
}

#[test]
fn grpc() {
    let bound = Bound::new();
    let server = bound.net().grpc("grpc.my-service.test");
    let to = format!("grpc.my-service.test:{}", port::GRPC);
    let flags = bound.policy_of(
        &[&to],
        "credentials:
  - service: my-service
    env: API_TOKEN
    hosts: [grpc.my-service.test]
    ports: [50051]
    bearer: true\n",
    );
    let call =
        |method: &str, messages: &str| format!("/usr/bin/python3 call.py {method} {to} {messages}");
    let header = format!("'authorization': 'Bearer {SECRET}'");
    bound.outside(&call("Say", "hello")).expect_code(0);
    assert!(server.saw(&header));
    for before in ["", "no_grpc_proxy='*'"] {
        for (method, messages, shown) in [
            ("Say", "once", "once\nOK"),
            ("Stream", "first second third", "first\nsecond\nthird\nOK"),
            ("Fail", "no", "FAILED_PRECONDITION not like this"),
        ] {
            server.forget();
            let script = format!("{before} {}; echo token=$API_TOKEN", call(method, messages));
            let run = bound.run(&flags, &script).expect_code(0);
            assert!(run.stdout().starts_with(shown), "{}", run.stdout());
            assert!(server.saw(&header) && server.saw(method), "{script}");
            let came = format!("'came': 'Bearer {}'", placeholder(&run));
            assert!(run.stdout().contains(&came), "{}", run.stdout());
        }
    }
}

/// It cannot be looked through, so it is not passed.
#[test]
fn g5_a_compressed_message_of_grpc() {
    let bound = Bound::new();
    let _server = bound.net().grpc("grpc.my-service.test");
    let to = format!("grpc.my-service.test:{}", port::GRPC);
    let call = format!("/usr/bin/python3 call.py Who {to} me");
    let outside = bound.outside(&call).expect_code(0);
    assert!(outside.stdout.contains(SECRET), "{}", outside.stdout);
    let credential = "credentials:\n  - {service: my-service, env: API_TOKEN, bearer: true, \
                      hosts: [grpc.my-service.test], ports: [50051]}\n";
    // Which fails the test if there is anything of the secret in it.
    let run = bound.run(&bound.policy_of(&[&to], credential), &call);
    let run = run.expect_code(0);
    assert!(run.stdout().contains("502"), "{}", run.stdout());
}

#[test]
fn websocket() {
    let bound = Bound::new();
    let talk = format!("/usr/bin/python3 socket_talk.py wss://{HOST}/socket/ hello 'second one'");
    let outside = bound.outside(&talk).expect_code(0);
    assert_eq!(
        outside.stdout,
        format!("Bearer {SECRET}\nhello\nsecond one\n")
    );
    let run = bound.run(&bound.policy(BEARER), &talk).expect_code(0);
    bound.proves(&talk, "HTTP/1.1");
    assert!(bound.saw(HOST, "second one"));
    assert!(
        run.stdout().ends_with("\nhello\nsecond one\n"),
        "{}",
        run.stdout()
    );
}
