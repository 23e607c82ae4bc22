//! Connections as clients that know of no proxy, and those in a tunnel, see them.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::exit::Settings;
use crate::limits::Limits;
use crate::testing::{Yard, expect, head, here, is_over, policy, rest, run, send};
use crate::tls::ACCESS_DENIED;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A hello that asks for `name`.
fn hello(name: Option<&str>) -> Vec<u8> {
    hello_with(name, &[])
}

/// One that may ask for a name where only the server can read it.
fn hidden_hello() -> Vec<u8> {
    hello_with(None, &[0xfe, 0x0d, 0, 4, 0, 0, 1, 0])
}

fn hello_with(name: Option<&str>, extensions: &[u8]) -> Vec<u8> {
    let sized = |content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap();
        [&length.to_be_bytes()[..], content].concat()
    };
    let extension = name.map(|name| {
        let entry = [&[0][..], &sized(name.as_bytes())].concat();
        [&[0, 0][..], &sized(&sized(&entry))].concat()
    });
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    let own = extension.unwrap_or_default();
    body.extend(sized(&[&own, extensions].concat()));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[1][..], &length[1..], &body].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

fn request(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhOsT: {host}\r\nX:  odd \r\n\r\n")
}

#[test]
fn requests_pass_byte_for_byte_to_the_host_that_was_dialled() {
    run(async {
        let yard = Yard::open().await;
        let port = yard.port;
        let mut client = yard.dialled("a.test").await;
        let mut server = None;
        for host in [
            "a.test".to_owned(),
            format!("A.TEST:{port}"),
            "a.test.".to_owned(),
        ] {
            send(&mut client, request(&host, "/x?y")).await;
            let server = match &mut server {
                Some(server) => server,
                none => none.insert(yard.accept().await),
            };
            assert_eq!(head(server).await, request(&host, "/x?y"));
            send(server, OK).await;
            expect(&mut client, OK).await;
        }
        let (_, paths): (Vec<_>, Vec<_>) = yard.allowed().into_iter().unzip();
        // The first has a path if the request was there before the server was.
        assert_eq!(
            (paths.len(), &paths[1..]),
            (3, &["/x", "/x"].map(str::to_owned)[..])
        );
    });
}

#[test]
fn g3_a_connection_never_carries_a_request_for_another_host() {
    run(async {
        let yard = Yard::open().await;
        let port = yard.port;
        for bent in [
            request("evil.test", "/"),
            request("b.test", "/"),
            request("a.test:1", "/"),
            request("127.0.0.1", "/"),
            format!("GET http://evil.test:{port}/ HTTP/1.1\r\nHost: a.test\r\n\r\n"),
            format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
            "CONNECT evil.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        ] {
            let (mut client, mut server) = yard.tunnelled("a.test").await;
            // A good one first: the second on the same connection is held, too.
            send(&mut client, request("a.test", "/")).await;
            head(&mut server).await;
            send(&mut server, OK).await;
            expect(&mut client, OK).await;
            send(&mut client, &bent).await;
            let found = rest(&mut client).await;
            assert!(
                found.starts_with("HTTP/1.1 403 Forbidden\r\n"),
                "{bent}: {found}"
            );
            assert!(is_over(&mut server).await, "{bent}");
        }
        let refused = yard.refused();
        assert_eq!(refused[0], ("evil.test".into(), "host-mismatch".into()));
        assert_eq!(refused.len(), 7);
    });
}

#[test]
fn g1_bent_requests_inside_a_tunnel_reach_nobody() {
    run(async {
        let yard = Yard::open().await;
        for bent in [
            "\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\nHost: evil.test\n\n",
            "get / http/1.1\r\nHost: evil.test\r\n\r\n",
            "GET\t/\tHTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\n Host: evil.test\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        ] {
            let (mut client, mut server) = yard.tunnelled("a.test").await;
            send(&mut client, bent).await;
            let found = rest(&mut client).await;
            assert!(
                found.starts_with("HTTP/1.1 400 ") || found.starts_with("HTTP/1.1 505 "),
                "{bent:?}: {found}"
            );
            assert!(is_over(&mut server).await, "{bent:?}");
        }
    });
}

#[test]
fn g3_a_request_in_pieces_is_still_held_to_its_host() {
    run(async {
        let yard = Yard::open().await;
        for (host, passes) in [("a.test", true), ("evil.test", false)] {
            let (mut client, mut server) = yard.tunnelled("a.test").await;
            let whole = request(host, "/long/path");
            // The first word passes at once, as the start of any other text would.
            for (piece, at) in [("GE", 0), ("T /long", 2)] {
                send(&mut client, piece).await;
                expect(&mut server, &whole[at..at + piece.len()]).await;
            }
            send(&mut client, &whole[9..]).await;
            if passes {
                expect(&mut server, &whole[9..]).await;
                send(&mut server, OK).await;
                expect(&mut client, OK).await;
            } else {
                assert!(rest(&mut client).await.starts_with("HTTP/1.1 403 "));
                assert!(is_over(&mut server).await);
            }
        }
    });
}

#[test]
fn tls_passes_when_it_asks_for_the_admitted_name() {
    run(async {
        let yard = Yard::open().await;
        for (host, name) in [
            ("a.test", Some("A.test")),
            ("a.test", None),
            ("127.0.0.1", None),
            ("127.0.0.1", Some("127.0.0.1")),
        ] {
            let (mut client, mut server) = yard.tunnelled(host).await;
            let bytes = hello(name);
            for byte in &bytes {
                send(&mut client, [*byte]).await;
            }
            expect(&mut server, &bytes).await;
            send(&mut server, "sealed").await;
            expect(&mut client, "sealed").await;
        }
    });
}

#[test]
fn g3_tls_for_another_name_or_a_hidden_one_is_refused() {
    run(async {
        let yard = Yard::open().await;
        for (host, bytes, recorded) in [
            (
                "a.test",
                hello(Some("evil.test")),
                ("evil.test", "tls-name-mismatch"),
            ),
            (
                "a.test",
                hello(Some("b.test")),
                ("b.test", "tls-name-mismatch"),
            ),
            ("a.test", hidden_hello(), ("a.test", "tls-without-name")),
            (
                "a.test",
                hello(Some("a.test\0x")),
                ("a.test", "malformed-tls"),
            ),
            (
                "127.0.0.1",
                hello(Some("evil.test")),
                ("evil.test", "tls-name-mismatch"),
            ),
        ] {
            let (mut client, mut server) = yard.tunnelled(host).await;
            send(&mut client, &bytes).await;
            expect(&mut client, ACCESS_DENIED).await;
            assert!(is_over(&mut client).await);
            assert!(is_over(&mut server).await);
            let last = yard.refused().pop().unwrap();
            assert_eq!((last.0.as_str(), last.1.as_str()), recorded);
        }
    });
}

#[test]
fn a_server_may_speak_first() {
    run(async {
        let yard = Yard::open().await;
        for transparent in [true, false] {
            let (mut client, mut server) = if transparent {
                let client = yard.dialled("a.test").await;
                (client, yard.accept().await)
            } else {
                yard.tunnelled("a.test").await
            };
            send(&mut server, "220 ready\r\n").await;
            expect(&mut client, "220 ready\r\n").await;
            for (client_says, server_says) in [("EHLO me", "-"), (" x\r\n", "250 ok\r\n")] {
                send(&mut client, client_says).await;
                expect(&mut server, client_says).await;
                send(&mut server, server_says).await;
                expect(&mut client, server_says).await;
            }
            // What is spoken from here on is not known.
            send(&mut client, hello(Some("other.test"))).await;
            expect(&mut server, hello(Some("other.test"))).await;
        }
    });
}

#[test]
fn after_a_greeting_a_line_may_be_long() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.dialled("a.test").await;
        let mut server = yard.accept().await;
        send(&mut server, "\x0agreeting").await;
        expect(&mut client, "\x0agreeting").await;
        let long = "T".repeat(40_000);
        send(&mut client, &long).await;
        expect(&mut server, &long).await;
        send(&mut server, "ok").await;
        expect(&mut client, "ok").await;
    });
}

#[test]
fn g1_a_client_is_held_to_its_host_whoever_speaks_first() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for (says, why) in [
        (preface, "http-version"),
        (request("a.test", "/").into_bytes(), "late-request"),
        (request("evil.test", "/").into_bytes(), "late-request"),
        (hello(Some("evil.test")), "tls-name-mismatch"),
        (hidden_hello(), "tls-without-name"),
    ] {
        run(async {
            let yard = Yard::open().await;
            for transparent in [true, false] {
                let (mut client, mut server) = if transparent {
                    let client = yard.dialled("a.test").await;
                    (client, yard.accept().await)
                } else {
                    yard.tunnelled("a.test").await
                };
                send(&mut server, SETTINGS).await;
                expect(&mut client, SETTINGS).await;
                send(&mut client, &says).await;
                assert!(is_over(&mut server).await, "{why}");
            }
            let refused = yard.refused();
            assert!(
                refused.iter().all(|(_, code)| code == why),
                "{why}: {refused:?}"
            );
            assert_eq!(refused.len(), 2, "{why}");
        });
    }
}

#[test]
fn other_protocols_pass_as_they_are() {
    run(async {
        let yard = Yard::open().await;
        for first in [&b"PING\r\n"[..], b"hello", b"\0\x01binary", b"get key\r\n"] {
            let mut client = yard.dialled("a.test").await;
            let mut server = yard.accept().await;
            send(&mut client, first).await;
            expect(&mut server, first).await;
            send(&mut server, "+PONG").await;
            expect(&mut client, "+PONG").await;
            send(&mut client, " and more\r\n").await;
            expect(&mut server, " and more\r\n").await;
            client.shutdown().await.unwrap();
            assert!(is_over(&mut server).await);
            send(&mut server, "bye").await;
            drop(server);
            assert_eq!(rest(&mut client).await, "bye");
        }
    });
}

#[test]
fn a_request_that_comes_late_is_refused() {
    run(async {
        let yard = Yard::open().await;
        let (mut client, mut server) = yard.tunnelled("a.test").await;
        send(&mut client, "hello").await;
        expect(&mut server, "hello").await;
        send(&mut server, "what?").await;
        expect(&mut client, "what?").await;
        send(&mut client, " / HTTP/1.1\r\nHost: evil.test\r\n\r\n").await;
        assert!(is_over(&mut client).await);
        assert!(is_over(&mut server).await);
        assert_eq!(yard.refused(), [("a.test".into(), "late-request".into())]);
    });
}

#[test]
fn g1_a_refused_client_is_told_in_its_own_language() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.dialled("evil.test").await;
        send(&mut client, request("evil.test", "/")).await;
        let found = rest(&mut client).await;
        assert!(found.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{found}");

        let mut client = yard.dialled("evil.test").await;
        send(&mut client, hello(Some("evil.test"))).await;
        expect(&mut client, ACCESS_DENIED).await;
        assert_eq!(rest(&mut client).await, "");

        let mut client = yard.dialled("evil.test").await;
        send(&mut client, b"\0\x01binary").await;
        let error = tokio::io::AsyncReadExt::read(&mut client, &mut [0])
            .await
            .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);

        // Whoever waits for the server to speak is not kept waiting.
        let mut client = yard.dialled("evil.test").await;
        let error = tokio::io::AsyncReadExt::read(&mut client, &mut [0])
            .await
            .unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(!yard.is_waited_for());
    });
}

/// A rule for some requests only.
async fn inspected() -> Yard {
    let rule = |port| {
        format!("{{host: a.test, ports: [{port}], methods: [GET, POST], paths: [\"/v1/**\"]}}")
    };
    Yard::new(|port| vec![rule(port), here(port)]).await
}

#[test]
fn g1_a_rule_for_single_requests_is_not_got_round() {
    run(async {
        let yard = inspected().await;
        for (bytes, reason) in [
            (hello(Some("a.test")), "needs-inspection"),
            (b"\0binary".to_vec(), "needs-inspection"),
            (b"PING\r\n".to_vec(), "needs-inspection"),
            (request("a.test", "/admin").into_bytes(), "path-not-allowed"),
            (request("a.test", "/v1/../admin").into_bytes(), "path-not-allowed"),
            (b"DELETE /v1/x HTTP/1.1\r\nHost: a.test\r\n\r\n".to_vec(), "method-not-allowed"),
            (
                b"POST /v1/x HTTP/1.1\r\nHost: a.test\r\nX-HTTP-Method-Override: DELETE\r\n\r\n".to_vec(),
                "method-override",
            ),
            (
                b"GET /v1/x HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n".to_vec(),
                "needs-inspection",
            ),
        ] {
            let mut client = yard.dialled("a.test").await;
            send(&mut client, &bytes).await;
            while !is_over(&mut client).await {}
            assert_eq!(yard.refused().pop().unwrap().1, reason);
            // Only for what has to be looked into closely is anybody dialled,
            // and even then nothing is said.
            let is_close = bytes.windows(7).any(|part| part == b"upgrade" || part == b"X-HTTP-");
            if is_close {
                assert!(is_over(&mut yard.accept().await).await, "{reason}");
            } else {
                assert!(!yard.is_waited_for(), "{reason}");
            }
        }
        let mut client = yard.dialled("a.test").await;
        send(&mut client, "GE").await;
        send(&mut client, &request("a.test", "/v1/x")[2..]).await;
        let mut server = yard.accept().await;
        assert_eq!(head(&mut server).await, request("a.test", "/v1/x"));
    });
}

#[test]
fn g3_a_second_hello_is_held_to_the_same_name() {
    let mut again = vec![22, 3, 3, 0, 40, 2, 0, 0, 36, 3, 3];
    again.extend([
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8,
        0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8,
        0x33, 0x9c, 0, 0,
    ]);
    // What a client may send in between: another cipher, and data that came
    // too early, both of which a server skips.
    let between = [&[20, 3, 3, 0, 1, 1][..], &[23, 3, 3, 0, 2, 7, 7]].concat();
    run(async {
        let yard = Yard::open().await;
        for (second, is_same) in [("a.test", true), ("b.test", false)] {
            let mut client = yard.dialled("a.test").await;
            let mut server = yard.accept().await;
            send(&mut client, hello(Some("a.test"))).await;
            expect(&mut server, hello(Some("a.test"))).await;
            send(&mut client, &between).await;
            expect(&mut server, &between).await;
            send(&mut server, &again).await;
            expect(&mut client, &again).await;
            send(&mut client, hello(Some(second))).await;
            if is_same {
                expect(&mut server, hello(Some(second))).await;
                send(&mut client, [23, 3, 3, 0, 1, 9]).await;
                expect(&mut server, [23, 3, 3, 0, 1, 9]).await;
            } else {
                assert!(is_over(&mut server).await);
                assert_eq!(yard.refused().pop().unwrap().1, "tls-name-mismatch");
            }
        }
    });
}

#[test]
fn a_server_that_closes_between_requests_closes_the_client() {
    run(async {
        let yard = Yard::open().await;
        let (mut client, mut server) = yard.tunnelled("a.test").await;
        send(&mut client, request("a.test", "/")).await;
        head(&mut server).await;
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
        drop(server);
        assert!(is_over(&mut client).await);
    });
}

#[test]
fn bytes_that_nobody_asked_for_end_the_connection() {
    run(async {
        let yard = Yard::open().await;
        let (mut client, mut server) = yard.tunnelled("a.test").await;
        send(&mut client, request("a.test", "/")).await;
        head(&mut server).await;
        send(&mut server, format!("{OK}HTTP/1.1 200 OK\r\n\r\n")).await;
        assert_eq!(rest(&mut client).await, OK);
    });
}

#[test]
fn slow_heads_have_an_end() {
    run(async {
        let limits = Limits {
            head_time: Duration::from_millis(30),
            ..Limits::default()
        };
        let settings = Settings {
            limits,
            ..Settings::default()
        };
        let yard = Yard::with(|port| vec![format!("a.test:{port}"), here(port)], settings).await;
        let (mut client, mut server) = yard.tunnelled("a.test").await;
        send(&mut client, "GET / HTTP/1.1\r\nHost: a").await;
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 408 "));
        assert!(is_over(&mut server).await);
        let (mut client, _server) = yard.tunnelled("a.test").await;
        send(&mut client, &hello(Some("a.test"))[..20]).await;
        assert!(is_over(&mut client).await);
        let mut client = yard.proxied().await;
        assert!(is_over(&mut client).await);
        let mut client = yard.proxied().await;
        send(&mut client, [5, 1]).await;
        assert!(is_over(&mut client).await);
    });
}

#[test]
fn g6_a_narrower_policy_cuts_an_idle_connection() {
    run(async {
        let yard = Yard::open().await;
        let (mut quiet, mut server) = yard.tunnelled("a.test").await;
        let (mut client, mut other) = yard.tunnelled("a.test").await;
        send(&mut client, request("a.test", "/")).await;
        head(&mut other).await;
        send(&mut other, OK).await;
        expect(&mut client, OK).await;
        yard.exit
            .replace_policy(policy(&[format!("b.test:{}", yard.port)]));
        for end in [&mut quiet, &mut server, &mut client, &mut other] {
            assert!(is_over(end).await);
        }
    });
}

#[test]
fn g6_a_policy_that_wants_every_request_judged_cuts_what_is_not() {
    run(async {
        let yard = Yard::open().await;
        let (mut client, mut server) = yard.tunnelled("a.test").await;
        send(&mut client, b"\0binary").await;
        expect(&mut server, b"\0binary").await;
        let rule = format!("{{host: a.test, ports: [{}], methods: [GET]}}", yard.port);
        let narrower = policy(&[rule, here(yard.port)]);
        yard.exit.replace_policy(narrower);
        assert!(is_over(&mut client).await && is_over(&mut server).await);
    });
}

#[test]
fn what_is_malformed_is_told_at_once() {
    let settings = || Settings {
        limits: Limits {
            head_time: Duration::from_hours(1),
            ..Limits::default()
        },
        ..Settings::default()
    };
    let by_name = |port: u16| vec![format!("a.test:{port}"), here(port)];
    let by_path = |port: u16| {
        vec![
            format!("{{host: a.test, ports: [{port}], paths: [\"/x/**\"]}}"),
            here(port),
        ]
    };
    for (says, status) in [
        ("GET /x/y\r\n", "400"),
        ("GET /x/y HTTP/1.1\nHost: a.test\n", "400"),
        ("GET /x/y HTTP/9.9\r\nHost", "505"),
        ("GET /x/y HTTP/2.0\r\nHost", "505"),
        ("GET x HTTP/1.1\r\nHost", "400"),
        (
            "GET /x/y HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
            "400",
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
    ] {
        run(async {
            for yard in [
                Yard::with(by_name, settings()).await,
                Yard::with(by_path, settings()).await,
            ] {
                let mut client = yard.dialled_saying("a.test", says.as_bytes()).await;
                let want = format!("HTTP/1.1 {status} ");
                expect(&mut client, &want).await;
                assert_eq!(yard.refused().len(), 1, "{says}");
            }
        });
    }
}
