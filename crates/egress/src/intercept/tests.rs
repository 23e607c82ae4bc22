//! Clients inside, looked into, and servers outside.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::Collect;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, HandshakeKind};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::body::{BodyError, LocalBody};
use super::testing::{BOTH, Client, H1, H2, Rig, Shown, connector, inspected, says, shake, text};
use crate::exit::Settings;
use crate::limits::Limits;
use crate::secret::{Credentials, Secret, SecretError, Vault};
use crate::testing::{Yard, expect, head, here, is_over, policy, policy_of, run, send};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const A: Shown = Shown::For("a.test");

#[test]
fn what_the_server_would_have_chosen_is_spoken_on_both_sides() {
    run(async {
        for (server, client, want) in [
            (BOTH, BOTH, Version::HTTP_2),
            (H2, H2, Version::HTTP_2),
            (BOTH, H1, Version::HTTP_11),
            (H1, BOTH, Version::HTTP_11),
            (&[][..], BOTH, Version::HTTP_11),
            (BOTH, &[][..], Version::HTTP_11),
        ] {
            let rig = Rig::new().await;
            rig.serve(A, server);
            let mut client = rig.client("a.test", client).await;
            let got = client.get("a.test", rig.yard.port, "/x").await;
            assert_eq!(got, (200, format!("{want:?} /x")), "{server:?}");
            assert_eq!(rig.seen.borrow()[0].version, want);
            assert_eq!(rig.accepted.get(), 1);
        }
    });
}

#[test]
fn a_client_of_http2_alone_fails_at_a_server_without_it() {
    run(async {
        for server in [H1, &[]] {
            let rig = Rig::new().await;
            rig.serve(A, server);
            let failed = rig.shake(&rig.connector(H2), "a.test").await;
            let error = failed.unwrap_err().to_string();
            assert!(error.contains("NoApplicationProtocol"), "{error}");
            // The record is written when our side of the handshake has ended.
            while rig.refused().is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(rig.refused(), ["protocol-mismatch"]);
        }
    });
}

#[test]
fn connections_are_kept_for_later_clients_and_never_for_another_host() {
    run(async {
        for alpn in [H1, BOTH] {
            let rig = Rig::new().await;
            // One certificate cannot be for both; the second host is refused.
            rig.serve(A, alpn);
            for _ in 0..5 {
                let mut client = rig.client("a.test", BOTH).await;
                for _ in 0..3 {
                    client.get("a.test", rig.yard.port, "/").await;
                }
            }
            assert_eq!(rig.accepted.get(), 1, "{alpn:?}");
            let mut other = rig.client("b.test", BOTH).await;
            let (status, body) = other.get("b.test", rig.yard.port, "/").await;
            assert_eq!((status, rig.accepted.get()), (502, 2), "{body}");
            assert_eq!(rig.seen.borrow().len(), 15);
        }
    });
}

#[test]
fn g5_a_certificate_that_does_not_hold_gets_no_request() {
    run(async {
        for shown in [
            Shown::Expired("a.test"),
            Shown::SelfSigned("a.test"),
            Shown::For("b.test"),
        ] {
            for alpn in [H1, BOTH] {
                let rig = Rig::new().await;
                rig.serve(shown, alpn);
                let mut client = rig.client("a.test", alpn).await;
                let (status, body) = client.get("a.test", rig.yard.port, "/").await;
                assert_eq!(status, 502, "{shown:?}");
                assert!(body.contains("certificate"), "{body}");
                assert_eq!(rig.refused(), ["upstream-certificate"], "{shown:?}");
                assert!(rig.seen.borrow().is_empty());
                assert_eq!(rig.accepted.get(), 1);
            }
        }
    });
}

#[test]
fn a_client_that_trusts_others_is_recorded() {
    run(async {
        let rig = Rig::new().await;
        rig.serve(A, BOTH);
        let failed = rig.shake(&connector([], H1), "a.test").await;
        assert!(failed.unwrap_err().to_string().contains("UnknownIssuer"));
        while rig.refused().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(rig.refused(), ["client-distrusts"]);
        assert_eq!(rig.accepted.get(), 0);
    });
}

#[test]
fn a_client_that_hangs_up_before_it_asks_is_recorded() {
    run(async {
        for alpn in [H1, BOTH] {
            let rig = Rig::new().await;
            rig.serve(A, BOTH);
            drop(rig.shake(&rig.connector(alpn), "a.test").await.unwrap());
            while rig.refused().is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(rig.refused(), ["client-hung-up"]);
            assert!(rig.seen.borrow().is_empty());
        }
    });
}

#[test]
fn an_address_is_looked_into_without_a_name() {
    run(async {
        let looked_into = |port: u16| {
            vec![format!(
                "{{cidr: 127.0.0.1/32, ports: [{port}], inspect: true}}"
            )]
        };
        let rig = Rig::with(looked_into, Limits::default(), Box::new(|_| says("here"))).await;
        rig.serve(Shown::For("127.0.0.1"), BOTH);
        let mut client = rig.client("127.0.0.1", BOTH).await;
        let got = client.get("127.0.0.1", rig.yard.port, "/").await;
        assert_eq!(got, (200, "here".to_owned()));
    });
}

#[test]
fn g3_a_client_that_asks_for_another_name_is_refused() {
    run(async {
        let rig = Rig::new().await;
        rig.serve(A, BOTH);
        let stream = rig.yard.dialled("b.test").await;
        let failed = shake(&rig.connector(BOTH), "a.test", stream).await;
        assert!(failed.unwrap_err().to_string().contains("AccessDenied"));
        assert_eq!(
            rig.yard.refused(),
            [("a.test".to_owned(), "tls-name-mismatch".to_owned())]
        );
        assert_eq!(rig.accepted.get(), 0);
    });
}

#[test]
fn a_tunnel_is_answered_before_its_only_connection_is_opened() {
    run(async {
        let rig = Rig::new().await;
        let mut stream = rig.yard.proxied().await;
        let port = rig.yard.port;
        send(
            &mut stream,
            format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n"),
        )
        .await;
        let answer = head(&mut stream).await;
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
        assert!(!rig.yard.is_waited_for());
        rig.serve(A, BOTH);
        let stream = shake(&rig.connector(BOTH), "a.test", stream).await.unwrap();
        let mut client = Client::over(stream).await;
        assert_eq!(client.get("a.test", port, "/").await.0, 200);
        assert_eq!(rig.accepted.get(), 1);
    });
}

#[test]
fn a_socks_client_is_looked_into() {
    run(async {
        let rig = Rig::new().await;
        rig.serve(A, BOTH);
        let mut stream = rig.yard.proxied().await;
        let port = rig.yard.port;
        stream.write_all(&[5, 1, 0]).await.unwrap();
        stream.read_exact(&mut [0; 2]).await.unwrap();
        let asked = [&[5, 1, 0, 3, 6][..], b"a.test", &port.to_be_bytes()].concat();
        stream.write_all(&asked).await.unwrap();
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..2], [5, 0]);
        let stream = shake(&rig.connector(BOTH), "a.test", stream).await.unwrap();
        let mut client = Client::over(stream).await;
        assert_eq!(client.get("a.test", port, "/").await.0, 200);
        assert_eq!(rig.accepted.get(), 1);
    });
}

#[test]
fn bodies_of_any_size_pass_both_ways() {
    run(async {
        for alpn in [H1, H2] {
            let rig =
                Rig::answering(|request| Response::new(LocalBody::incoming(request.into_body())))
                    .await;
            rig.serve(A, BOTH);
            let mut client = rig.client("a.test", alpn).await;
            let sent: Bytes = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
            let mut request = client.request("a.test", rig.yard.port, "/");
            *request.method_mut() = http::Method::POST;
            *request.body_mut() = LocalBody::full(sent.clone());
            let response = client.send(request).await.unwrap();
            let got = response.into_body().collect().await.unwrap().to_bytes();
            assert!(got == sent, "{alpn:?}");
        }
    });
}

#[test]
fn trailers_pass() {
    run(async {
        let rig = Rig::answering(|_| {
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
            let left = [Frame::data(Bytes::from("x")), Frame::trailers(trailers)].into();
            Response::new(LocalBody::new(Frames { left, ends: true }))
        })
        .await;
        rig.serve(A, H2);
        let mut client = rig.client("a.test", H2).await;
        let request = client.request("a.test", rig.yard.port, "/");
        let response = client.send(request).await.unwrap();
        let got = response.into_body().collect().await.unwrap();
        assert_eq!(got.trailers().unwrap()["grpc-status"], "0");
    });
}

/// What says something else of the request than what was judged ends here.
#[test]
fn g1_trailers_of_requests_are_no_headers() {
    const NAMES: [&str; 6] = [
        "x-sum",
        "authorization",
        "content-length",
        "host",
        "cookie",
        "proxy-authorization",
    ];
    for alpn in [H1, H2] {
        run(async {
            let rig = Rig::answering(|request| {
                let collecting = Box::pin(request.into_body().collect());
                Response::new(LocalBody::new(Trailing(Some(collecting))))
            })
            .await;
            rig.serve(A, alpn);
            let mut client = rig.client("a.test", alpn).await;
            let mut request = client.request("a.test", rig.yard.port, "/");
            *request.method_mut() = http::Method::POST;
            let value = http::HeaderValue::from_static("1");
            let mut trailers = http::HeaderMap::new();
            for name in NAMES {
                trailers.insert(name, value.clone());
            }
            let names = http::HeaderValue::from_static("x-sum, cookie, proxy-authorization");
            request.headers_mut().insert("trailer", names);
            let left = [Frame::data(Bytes::from("x")), Frame::trailers(trailers)].into();
            *request.body_mut() = LocalBody::new(Frames { left, ends: true });
            let response = client.send(request).await.unwrap();
            assert_eq!(text(response).await, "x-sum", "{alpn:?}");
        });
    }
}

#[test]
fn a_thousand_requests_at_once_share_a_few_connections() {
    run(async {
        let rig = Rig::new().await;
        rig.serve(A, H2);
        let mut client = rig.client("a.test", H2).await;
        let Client::Http2(sender) = &mut client else {
            panic!("HTTP/2 was not agreed on");
        };
        let mut asking = tokio::task::JoinSet::new();
        for number in 0..1000 {
            let mut sender = sender.clone();
            let uri = format!("https://a.test:{}/{number}", rig.yard.port);
            asking.spawn_local(async move {
                let request = Request::get(uri).version(Version::HTTP_2);
                let request = request.body(LocalBody::empty()).unwrap();
                let response = sender.send_request(request).await.unwrap();
                assert_eq!(text(response).await, format!("HTTP/2.0 /{number}"));
            });
        }
        while let Some(done) = asking.join_next().await {
            done.unwrap();
        }
        assert!(rig.accepted.get() <= 4, "{}", rig.accepted.get());
    });
}

#[test]
fn sessions_are_resumed_on_both_sides() {
    run(async {
        let rig = Rig::answering(|_| {
            let mut answer = says("bye");
            let close = http::HeaderValue::from_static("close");
            answer.headers_mut().insert("connection", close);
            answer
        })
        .await;
        rig.serve(A, H1);
        let connector = rig.connector(H1);
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let stream = rig.shake(&connector, "a.test").await.unwrap();
            kinds.push(stream.get_ref().1.handshake_kind().unwrap());
            let mut client = Client::over(stream).await;
            assert_eq!(client.get("a.test", rig.yard.port, "/").await.1, "bye");
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed]);
        assert_eq!((rig.accepted.get(), rig.resumed.get()), (2, 1));
    });
}

/// What is said before a handshake is done can be said again by anybody who
/// heard it. A client and a server that would both do it find nobody to.
#[test]
fn g5_nothing_is_said_before_a_handshake_is_done() {
    run(async {
        let rig = Rig::new().await;
        let mut eager = rig.server_config(A, H1);
        eager.max_early_data_size = u32::MAX;
        let acceptor = TlsAcceptor::from(Arc::new(eager));
        let mut eager = ClientConfig::clone(rig.connector(H1).config());
        eager.enable_early_data = true;
        let eager = Arc::new(eager);
        let connector = TlsConnector::from(Arc::clone(&eager));
        for want in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut client = rig.shake(&connector, "a.test").await.unwrap();
            assert_eq!(client.get_ref().1.handshake_kind(), Some(want), "inside");
            let asked = format!(
                "GET / HTTP/1.1\r\nHost: a.test:{}\r\nConnection: close\r\n\r\n",
                rig.yard.port
            );
            client.write_all(asked.as_bytes()).await.unwrap();
            let stream = rig.yard.accept().await;
            let mut server = acceptor.accept(stream).await.unwrap();
            assert_eq!(server.get_ref().1.handshake_kind(), Some(want));
            assert!(server.get_mut().1.early_data().is_none());
            let answer = b"HTTP/1.1 204 Done\r\nConnection: close\r\n\r\n";
            server.write_all(answer).await.unwrap();
            server.shutdown().await.unwrap();
            client.read_to_end(&mut Vec::new()).await.unwrap();
        }
        // The session that it has by now lets it say nothing early.
        let name = ServerName::try_from("a.test").unwrap();
        let mut next = ClientConnection::new(Arc::clone(&eager), name).unwrap();
        assert!(next.early_data().is_none());
    });
}

#[test]
fn g6_a_reload_cuts_kept_connections_and_asks_again_for_each_request() {
    run(async {
        for alpn in [H1, H2] {
            let rig = Rig::new().await;
            rig.serve(A, BOTH);
            let port = rig.yard.port;
            let mut client = rig.client("a.test", alpn).await;
            assert_eq!(client.get("a.test", port, "/").await.0, 200);
            rig.yard.exit.replace_policy(policy(&inspected(port)));
            assert_eq!(client.get("a.test", port, "/").await.0, 200);
            assert_eq!(rig.accepted.get(), 2, "kept over a reload");
            rig.yard
                .exit
                .replace_policy(policy(&[format!("b.test:{port}"), here(port)]));
            assert_eq!(client.get("a.test", port, "/").await.0, 403);
            assert_eq!(rig.seen.borrow().len(), 2);
        }
    });
}

#[test]
fn g6_a_reload_cuts_an_answer_that_is_under_way() {
    run(async {
        for alpn in [H1, H2] {
            let paths = |paths: &'static str| {
                move |port: u16| {
                    vec![
                        format!("{{host: a.test, ports: [{port}], paths: [{paths}]}}"),
                        here(port),
                    ]
                }
            };
            let endless = |_| {
                let left = [Frame::data(Bytes::from("x"))].into();
                Response::new(LocalBody::new(Frames { left, ends: false }))
            };
            let rules = paths("/stream, /other");
            let rig = Rig::with(rules, Limits::default(), Box::new(endless)).await;
            rig.serve(A, BOTH);
            let mut client = rig.client("a.test", alpn).await;
            let request = client.request("a.test", rig.yard.port, "/stream");
            let mut body = client.send(request).await.unwrap().into_body();
            body.frame().await.unwrap().unwrap();
            // The host is still allowed, but not what is under way.
            let other = paths("/other")(rig.yard.port);
            rig.yard.exit.replace_policy(policy(&other));
            assert!(body.frame().await.unwrap().is_err(), "{alpn:?}");
        }
    });
}

#[test]
fn a_harmless_request_is_sent_again_when_its_kept_connection_closes() {
    run(async {
        for (method, repeated) in [("GET", true), ("POST", false)] {
            let rig = Rig::new().await;
            let port = rig.yard.port;
            let mut client = rig.client("a.test", H1).await;
            let request = |client: &Client| {
                let mut request = client.request("a.test", port, "/");
                *request.method_mut() = method.parse().unwrap();
                request
            };
            let first = request(&client);
            let (answered, mut server) = tokio::join!(client.send(first), async {
                let mut server = rig.accept(A).await;
                read_head(&mut server).await;
                server.write_all(OK).await.unwrap();
                server
            });
            assert_eq!(text(answered.unwrap()).await, "ok");
            let second = request(&client);
            let (answered, ()) = tokio::join!(client.send(second), async {
                read_head(&mut server).await;
                drop(server);
                if repeated {
                    let mut server = rig.accept(A).await;
                    read_head(&mut server).await;
                    server.write_all(OK).await.unwrap();
                }
            });
            let want = if repeated { 200 } else { 502 };
            assert_eq!(answered.unwrap().status(), want, "{method}");
        }
    });
}

#[test]
fn slow_heads_and_silent_clients_are_cut() {
    run(async {
        let limits = Limits {
            head_time: Duration::from_millis(100),
            ..Limits::default()
        };
        for (alpn, sent) in [
            (H1, &b""[..]),
            (H1, b"GET / HTTP/1.1\r\nHost: a"),
            (H2, b"PRI * HTTP/2.0\r\n\r\nSM"),
        ] {
            let rig = Rig::with(inspected, limits.clone(), Box::new(|_| says(""))).await;
            rig.serve(A, BOTH);
            let mut stream = rig.shake(&rig.connector(alpn), "a.test").await.unwrap();
            stream.write_all(sent).await.unwrap();
            let mut found = Vec::new();
            // Cut, with a last word or without.
            let _ = stream.read_to_end(&mut found).await;
            assert!(rig.seen.borrow().is_empty());
        }
    });
}

#[test]
fn quiet_clients_are_cut() {
    run(async {
        let limits = Limits {
            idle_time: Some(Duration::from_millis(500)),
            ..Limits::default()
        };
        let rig = Rig::with(inspected, limits, Box::new(|_| says("x"))).await;
        rig.serve(A, BOTH);
        let mut stream = rig.shake(&rig.connector(H1), "a.test").await.unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: a.test:{}\r\n\r\n", rig.yard.port);
        stream.write_all(request.as_bytes()).await.unwrap();
        // It would be kept for minutes otherwise.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
}

/// A body that never comes.
struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Pending
    }
}

#[test]
fn g9_nothing_is_held_for_a_client_that_is_gone() {
    run(async {
        for alpn in [H1, H2] {
            let silent = |_| Response::new(LocalBody::new(Silent));
            let rig = Rig::answering(silent).await;
            rig.serve(A, BOTH);
            let mut client = rig.client("a.test", alpn).await;
            let request = client.request("a.test", rig.yard.port, "/");
            let response = client.send(request).await.unwrap();
            let memory = rig.yard.exit.memory();
            assert!(memory.is_in_use(), "{alpn:?}");
            drop((response, client));
            // It would be held for minutes otherwise.
            while memory.is_in_use() {
                tokio::task::yield_now().await;
            }
        }
    });
}

#[test]
fn heads_that_are_too_large_are_refused() {
    run(async {
        let rig = Rig::new().await;
        rig.serve(A, BOTH);
        for (alpn, name) in [(H1, "x"), (H2, "x")] {
            let mut client = rig.client("a.test", alpn).await;
            let mut request = client.request("a.test", rig.yard.port, "/");
            let large = http::HeaderValue::from_str(&"v".repeat(70_000)).unwrap();
            request.headers_mut().insert(name, large);
            match client.send(request).await {
                Ok(response) => assert_eq!(response.status(), 431, "{alpn:?}"),
                Err(error) => assert!(alpn == H2, "{error}"),
            }
        }
        assert!(rig.seen.borrow().is_empty());
    });
}

#[test]
fn what_is_no_http_is_refused_and_recorded() {
    run(async {
        let rig = Rig::new().await;
        rig.serve(A, BOTH);
        let mut stream = rig.shake(&rig.connector(&[]), "a.test").await.unwrap();
        stream.write_all(b"\x01\x02\x03\r\n\r\n").await.unwrap();
        let mut found = Vec::new();
        let _ = stream.read_to_end(&mut found).await;
        assert!(found.starts_with(b"HTTP/1.1 400 "), "{found:?}");
        assert_eq!(rig.refused(), ["malformed-request"]);
        let failed = rig.shake(&rig.connector(&["imap"]), "a.test").await;
        assert!(failed.is_err());
        while rig.refused().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(rig.refused()[1], "needs-inspection");
        assert_eq!(rig.accepted.get(), 0);
    });
}

#[test]
fn a_host_that_needs_no_looking_into_keeps_its_own_certificate() {
    run(async {
        let open = |port: u16| vec![format!("a.test:{port}"), here(port)];
        let rig = Rig::with(open, Limits::default(), Box::new(|_| says(""))).await;
        rig.serve(A, BOTH);
        let failed = rig.shake(&rig.connector(BOTH), "a.test").await;
        assert!(failed.unwrap_err().to_string().contains("UnknownIssuer"));
        assert_eq!((rig.accepted.get(), rig.refused().len()), (1, 0));
    });
}

/// A vault with one secret for everybody.
struct OneSecret;

impl Vault for OneSecret {
    fn secret(&self, _: &str) -> Result<Secret, SecretError> {
        Ok(Secret::new("s3cret-value".to_owned()))
    }
}

#[test]
fn g5_a_request_to_a_port_of_this_host_is_looked_into_on_its_way_through_the_proxy() {
    run(async {
        let bound = |port| {
            policy_of(&format!(
                "version: 1\nnetwork:\n  hostPorts: [{port}]\n  allow:\n    - a.test:{port}\n    \
                 - {}\ncredentials:\n  - {{service: forge, env: TOKEN, \
                 hosts: [host.ringfence.internal], ports: [{port}], scheme: http, bearer: true}}\n",
                here(port)
            ))
        };
        let settings = Settings {
            credentials: Some(Credentials {
                vault: Arc::new(OneSecret),
                placeholders: Vec::new(),
            }),
            ..Settings::default()
        };
        let yard = Yard::under(bound, settings).await;
        let port = yard.port;
        let mut client = yard.proxied().await;
        // The first is for somebody else, on the same connection.
        for (host, attached) in [("a.test", false), ("host.ringfence.internal", true)] {
            let line = format!("GET http://{host}:{port}/x HTTP/1.1\r\n");
            send(&mut client, format!("{line}Host: {host}:{port}\r\n\r\n")).await;
            let mut server = yard.accept().await;
            let found = head(&mut server).await;
            assert!(found.starts_with("GET /x HTTP/1.1\r\n"), "{found}");
            assert_eq!(found.contains("Bearer s3cret-value"), attached, "{found}");
            send(&mut server, OK).await;
            let answer = head(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            expect(&mut client, "ok").await;
        }
        // The next one could be for anybody again.
        assert!(is_over(&mut client).await);
    });
}

/// Reads a request without a body.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) {
    let mut found = Vec::new();
    while !found.ends_with(b"\r\n\r\n") {
        found.push(stream.read_u8().await.unwrap());
    }
}

/// Names the trailers of another body, once that has ended.
struct Trailing(Option<Pin<Box<Collect<Incoming>>>>);

impl Body for Trailing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(collecting) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let collected = ready!(collecting.as_mut().poll(context)).unwrap();
        self.0 = None;
        let trailers = collected.trailers().into_iter().flat_map(|all| all.keys());
        let names: Vec<&str> = trailers.map(http::HeaderName::as_str).collect();
        Poll::Ready(Some(Ok(Frame::data(names.join(" ").into()))))
    }
}

/// A body of some frames, which ends after them or does not.
struct Frames {
    left: VecDeque<Frame<Bytes>>,
    ends: bool,
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.left.pop_front() {
            Some(frame) => Poll::Ready(Some(Ok(frame))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

#[test]
fn bodies_of_unknown_length_and_their_trailers_pass_with_any_method() {
    run(async {
        for method in ["GET", "DELETE", "POST"] {
            let rig = Rig::new().await;
            let mut client = rig.shake(&rig.connector(H1), "a.test").await.unwrap();
            let asked = format!(
                "{method} /x HTTP/1.1\r\nHost: a.test:{}\r\nTrailer: x-sum\r\n\
                 Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
                rig.yard.port
            );
            client.write_all(asked.as_bytes()).await.unwrap();
            let mut server = rig.accept(Shown::For("a.test")).await;
            let mut got = Vec::new();
            while !got.ends_with(b"1\r\n\r\n") {
                assert!(server.read_buf(&mut got).await.unwrap() > 0, "{got:?}");
            }
            let got = String::from_utf8(got).unwrap().to_ascii_lowercase();
            assert!(
                got.contains("\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n"),
                "{got}"
            );
        }
    });
}

/// Ours has none to show, and the client's own is not shown to us.
#[test]
fn a_server_that_wants_to_know_its_clients_is_told_of() {
    use tokio_rustls::rustls::version::{TLS12, TLS13};
    for version in [&TLS12, &TLS13] {
        for alpn in [H1, H2, BOTH] {
            run(async {
                let rig = Rig::new().await;
                rig.serve(Shown::ToKnown("a.test", version), alpn);
                let mut client = rig.client("a.test", alpn).await;
                for _ in 0..2 {
                    let (status, text) = client.get("a.test", rig.yard.port, "/").await;
                    assert_eq!(status, 502, "{version:?} {alpn:?}");
                    assert!(text.contains("wants a certificate of its client"), "{text}");
                }
                assert!(rig.seen.borrow().is_empty());
                assert_eq!(rig.refused(), ["upstream-wants-certificate"; 2]);
            });
        }
    }
}
