//! The proxies as clients and servers see them.

use data_encoding::BASE64;
use tokio::io::AsyncWriteExt;

use crate::exit::{ProxyToken, Settings};
use crate::testing::{Yard, expect, head, here, is_over, policy, rest, run, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn get(yard: &Yard, host: &str, path: &str) -> String {
    let port = yard.port;
    format!("GET http://{host}:{port}{path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
}

#[test]
fn requests_of_one_client_share_a_connection() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        let mut server = None;
        for path in ["/1", "/2", "/3"] {
            send(&mut client, get(&yard, "a.test", path)).await;
            let server = match &mut server {
                Some(server) => server,
                none => none.insert(yard.accept().await),
            };
            let want = format!("GET {path} HTTP/1.1\r\nHost: a.test:{}\r\n\r\n", yard.port);
            assert_eq!(head(server).await, want);
            send(server, OK).await;
            expect(&mut client, OK).await;
        }
        let seen: Vec<String> = yard.allowed().into_iter().map(|(_, path)| path).collect();
        assert_eq!(seen, ["/1", "/2", "/3"]);
    });
}

#[test]
fn g1_every_request_is_judged_wherever_the_one_before_went() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        for host in ["a.test", "b.test"] {
            send(&mut client, get(&yard, host, "/")).await;
            let mut server = yard.accept().await;
            head(&mut server).await;
            send(&mut server, OK).await;
            expect(&mut client, OK).await;
            drop(server);
        }
        send(&mut client, get(&yard, "evil.test", "/")).await;
        let answer = rest(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        assert!(
            answer.contains("X-Ringfence-Reason: not-in-allowlist"),
            "{answer}"
        );
        assert!(!yard.is_waited_for());
        assert_eq!(
            yard.refused(),
            [("evil.test".into(), "not-in-allowlist".into())]
        );
    });
}

#[test]
fn pipelined_requests_are_served_in_turn() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        let both = get(&yard, "a.test", "/1") + &get(&yard, "a.test", "/2");
        send(&mut client, both).await;
        let mut server = yard.accept().await;
        for path in ["/1", "/2"] {
            assert!(head(&mut server).await.contains(path));
            send(&mut server, OK).await;
        }
        expect(&mut client, OK).await;
        expect(&mut client, OK).await;
    });
}

#[test]
fn bodies_pass_both_ways_at_once() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        let body = "x".repeat(3 << 20);
        let port = yard.port;
        let request = format!(
            "POST http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        // By its beginning the body is no request, so that the connection stays.
        let (first, later) = body.split_at(64);
        send(&mut client, request + first).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        // The server answers with what it reads while it reads.
        let echo = async {
            let length = body.len();
            send(
                &mut server,
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"),
            )
            .await;
            let (mut from, mut to) = server.split();
            tokio::io::copy(&mut from, &mut to).await.unwrap();
        };
        let exchange = async {
            let (mut from, mut to) = client.split();
            let sending = to.write_all(later.as_bytes());
            let receiving = async {
                let mut found = vec![
                    0;
                    "HTTP/1.1 200 OK\r\nContent-Length: 3145728\r\n\r\n".len()
                        + body.len()
                ];
                tokio::io::AsyncReadExt::read_exact(&mut from, &mut found)
                    .await
                    .unwrap();
                found
            };
            let (sent, found) = tokio::join!(sending, receiving);
            sent.unwrap();
            assert!(found.ends_with(body.as_bytes()));
        };
        tokio::select! {
            () = echo => panic!("the connection ended"),
            () = exchange => {}
        }
    });
}

#[test]
fn chunked_bodies_pass_as_they_are_and_the_connection_stays() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        let port = yard.port;
        let chunks = "5;x=y\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
        let request = format!(
            "PUT http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        send(&mut client, &request).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        for byte in chunks.as_bytes() {
            send(&mut client, [*byte]).await;
        }
        expect(&mut server, chunks).await;
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        send(&mut server, &answer).await;
        expect(&mut client, &answer).await;
        send(&mut client, format!("{request}{chunks}")).await;
        head(&mut server).await;
        expect(&mut server, chunks).await;
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
    });
}

#[test]
fn a_client_that_waits_for_the_word_gets_it() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        let port = yard.port;
        let request = format!(
            "POST http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\n\
             Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        );
        send(&mut client, request).await;
        let mut server = yard.accept().await;
        assert!(head(&mut server).await.contains("Expect: 100-continue\r\n"));
        let go = "HTTP/1.1 100 Continue\r\n\r\n";
        send(&mut server, go).await;
        expect(&mut client, go).await;
        send(&mut client, "body").await;
        expect(&mut server, "body").await;
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
    });
}

#[test]
fn an_early_answer_is_passed_on_and_ends_the_connection() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        let port = yard.port;
        let request = format!(
            "POST http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\nContent-Length: 99999\r\n\r\npart"
        );
        send(&mut client, request).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        let answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
        send(&mut server, answer).await;
        assert_eq!(rest(&mut client).await, answer);
    });
}

#[test]
fn a_client_may_close_its_half_after_the_request() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, get(&yard, "a.test", "/")).await;
        client.shutdown().await.unwrap();
        let mut server = yard.accept().await;
        head(&mut server).await;
        send(&mut server, OK).await;
        assert_eq!(rest(&mut client).await, OK);
    });
}

#[test]
fn old_servers_end_their_answer_with_the_connection() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, get(&yard, "a.test", "/")).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        let answer = "HTTP/1.0 200 OK\r\nX: y\r\n\r\nto the end";
        send(&mut server, answer).await;
        drop(server);
        assert_eq!(rest(&mut client).await, answer);
    });
}

#[test]
fn a_kept_connection_that_the_server_closed_is_replaced() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        for _ in 0..3 {
            send(&mut client, get(&yard, "a.test", "/")).await;
            let mut server = yard.accept().await;
            head(&mut server).await;
            send(&mut server, OK).await;
            expect(&mut client, OK).await;
        }
    });
}

#[test]
fn a_request_that_does_no_harm_is_sent_again_when_the_server_closes_on_it() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, get(&yard, "a.test", "/1")).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
        send(&mut client, get(&yard, "a.test", "/2")).await;
        head(&mut server).await;
        drop(server);
        let mut server = yard.accept().await;
        assert!(head(&mut server).await.starts_with("GET /2 "));
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
    });
}

#[test]
fn a_server_that_gives_no_proper_answer_is_a_bad_gateway() {
    run(async {
        let yard = Yard::open().await;
        for answer in [
            "",
            "HTTP/1.1 200",
            "nonsense\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            let mut client = yard.proxied().await;
            send(&mut client, get(&yard, "a.test", "/")).await;
            let mut server = yard.accept().await;
            head(&mut server).await;
            send(&mut server, answer).await;
            drop(server);
            let found = rest(&mut client).await;
            assert!(
                found.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
                "{answer:?}: {found}"
            );
        }
    });
}

#[test]
fn a_server_that_cannot_be_reached_is_a_bad_gateway() {
    run(async {
        let yard = Yard::open().await;
        let (request, connect) = (
            get(&yard, "a.test", "/"),
            format!("CONNECT a.test:{} HTTP/1.1\r\n\r\n", yard.port),
        );
        let mut first = yard.proxied().await;
        let mut second = yard.proxied().await;
        drop(yard.server);
        send(&mut first, request).await;
        send(&mut second, connect).await;
        for client in [&mut first, &mut second] {
            let found = rest(client).await;
            assert!(found.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{found}");
        }
    });
}

#[test]
fn an_upgrade_becomes_opaque_only_after_the_server_agrees() {
    run(async {
        let yard = Yard::open().await;
        let port = yard.port;
        let request = format!(
            "GET http://a.test:{port}/ws HTTP/1.1\r\nHost: a.test:{port}\r\n\
             Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        );
        let mut client = yard.proxied().await;
        send(&mut client, &request).await;
        let mut server = yard.accept().await;
        let seen = head(&mut server).await;
        assert!(
            seen.contains("Upgrade: websocket\r\nConnection: Upgrade\r\n"),
            "{seen}"
        );
        let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nfirst";
        send(&mut server, agreed).await;
        expect(&mut client, agreed).await;
        send(&mut client, "\0frame\n").await;
        expect(&mut server, "\0frame\n").await;

        // A server that does not agree gets no second request unjudged.
        let mut client = yard.proxied().await;
        let second = get(&yard, "evil.test", "/");
        send(&mut client, format!("{request}{second}")).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        send(&mut server, OK).await;
        let found = rest(&mut client).await;
        assert!(
            found.starts_with(OK) && found.contains("403 Forbidden"),
            "{found}"
        );
        assert!(is_over(&mut server).await);
    });
}

#[test]
fn g1_requests_that_could_be_read_twice_reach_nobody() {
    run(async {
        let yard = Yard::open().await;
        let port = yard.port;
        for lines in [
            "Content-Length: 4\r\nTransfer-Encoding: chunked",
            "Content-Length: 4\r\nContent-Length: 4",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding:\r\n chunked",
            "Connection: content-length",
            "X: y\nZ: w",
            "Connection: Upgrade\r\nUpgrade: websocket, h2c",
        ] {
            for host in ["a.test", "evil.test"] {
                let mut client = yard.proxied().await;
                let request = format!(
                    "POST http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n{lines}\r\n\r\n0\r\n\r\n"
                );
                send(&mut client, request).await;
                let found = rest(&mut client).await;
                let status = &found[.."HTTP/1.1 400".len()];
                assert!(
                    ["HTTP/1.1 400", "HTTP/1.1 501"].contains(&status),
                    "{lines}: {found}"
                );
            }
        }
        assert!(!yard.is_waited_for());
    });
}

#[test]
fn g3_two_names_in_one_request_are_refused() {
    run(async {
        let yard = Yard::open().await;
        let port = yard.port;
        for (url, host) in [
            (format!("a.test:{port}"), format!("evil.test:{port}")),
            (format!("a.test:{port}"), "a.test:1".to_owned()),
            (format!("a.test:{port}"), "a.test".to_owned()),
        ] {
            let mut client = yard.proxied().await;
            send(
                &mut client,
                format!("GET http://{url}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            )
            .await;
            let found = rest(&mut client).await;
            assert!(found.starts_with("HTTP/1.1 400 "), "{host}: {found}");
        }
        let mut client = yard.proxied().await;
        let connect = format!("CONNECT a.test:{port} HTTP/1.1\r\nHost: evil.test:{port}\r\n\r\n");
        send(&mut client, connect).await;
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 400 "));
        assert!(!yard.is_waited_for());
        let all = vec![("a.test".to_owned(), "host-mismatch".to_owned()); 4];
        assert_eq!(yard.refused(), all);
    });
}

#[test]
fn g3_destinations_that_are_none_are_refused_and_recorded() {
    run(async {
        let yard = Yard::open().await;
        for request in [
            "CONNECT a.test%00.evil.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT me@a.test:443 HTTP/1.1\r\n\r\n",
            "GET http://a_test..x/ HTTP/1.1\r\nHost: a_test..x\r\n\r\n",
        ] {
            let mut client = yard.proxied().await;
            send(&mut client, request).await;
            let found = rest(&mut client).await;
            assert!(found.starts_with("HTTP/1.1 403 "), "{request}: {found}");
            assert!(
                found.contains("X-Ringfence-Reason: malformed-host\r\n"),
                "{found}"
            );
        }
        let reasons: Vec<String> = yard
            .refused()
            .into_iter()
            .map(|(_, reason)| reason)
            .collect();
        assert_eq!(reasons, ["malformed-host"; 3]);
        for request in [
            "CONNECT a.test HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ] {
            let mut client = yard.proxied().await;
            send(&mut client, request).await;
            assert!(
                rest(&mut client).await.starts_with("HTTP/1.1 400 "),
                "{request}"
            );
        }
    });
}

#[test]
fn g1_a_refused_tunnel_says_why_in_its_status_line() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(
            &mut client,
            format!("CONNECT evil.test:{} HTTP/1.1\r\n\r\n", yard.port),
        )
        .await;
        let found = rest(&mut client).await;
        assert!(
            found.starts_with("HTTP/1.1 403 host is not on the allow list\r\n"),
            "{found}"
        );
        assert!(!yard.is_waited_for());
    });
}

async fn guarded() -> Yard {
    let token = ProxyToken {
        realm: "ringfence",
        password: "s3cret".to_owned(),
    };
    let settings = Settings {
        token: Some(token),
        ..Settings::default()
    };
    Yard::with(|port| vec![format!("a.test:{port}"), here(port)], settings).await
}

#[test]
fn credentials_are_asked_for_where_they_are_wanted() {
    run(async {
        let yard = guarded().await;
        let port = yard.port;
        let wrong = BASE64.encode(b"me:wrong");
        for line in [
            String::new(),
            format!("Proxy-Authorization: Basic {wrong}\r\n"),
        ] {
            for request in [
                format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\n{line}\r\n"),
                format!("CONNECT a.test:{port} HTTP/1.1\r\n{line}\r\n"),
            ] {
                let mut client = yard.proxied().await;
                send(&mut client, &request).await;
                let found = rest(&mut client).await;
                assert!(found.starts_with("HTTP/1.1 407 "), "{request}: {found}");
                assert!(
                    found.contains("Proxy-Authenticate: Basic realm=\"ringfence\"\r\n"),
                    "{found}"
                );
            }
        }
        assert!(!yard.is_waited_for());
        let right = BASE64.encode(b"me:s3cret");
        let mut client = yard.proxied().await;
        let request = format!(
            "GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\nProxy-Authorization: Basic {right}\r\n\r\n"
        );
        send(&mut client, request).await;
        let mut server = yard.accept().await;
        assert!(!head(&mut server).await.contains("Authorization"));
    });
}

/// What a SOCKS client sends to reach `host`.
fn socks(host: &[u8], port: u16) -> Vec<u8> {
    let length = [u8::try_from(host.len()).unwrap()];
    [&[5, 1, 0, 3][..], &length, host, &port.to_be_bytes()].concat()
}

#[test]
fn socks_clients_are_served() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, [5, 1, 0]).await;
        expect(&mut client, [5, 0]).await;
        send(&mut client, socks(b"A.test", yard.port)).await;
        let mut server = yard.accept().await;
        expect(&mut client, [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        send(&mut server, "220 hello\r\n").await;
        expect(&mut client, "220 hello\r\n").await;
        send(&mut client, "EHLO x\r\n").await;
        expect(&mut server, "EHLO x\r\n").await;
    });
}

#[test]
fn g3_socks_clients_are_refused_by_code() {
    run(async {
        let yard = Yard::open().await;
        let udp = [&[5, 3][..], &socks(b"a.test", yard.port)[2..]].concat();
        for (request, code) in [
            (socks(b"evil.test", yard.port), 2),
            (socks(b"a.test\0.evil.test", yard.port), 2),
            (socks(b"a.test", 1), 2),
            (udp, 7),
        ] {
            let mut client = yard.proxied().await;
            send(&mut client, [&[5, 1, 0][..], &request].concat()).await;
            expect(&mut client, [5, 0, 5, code]).await;
        }
        let reasons: Vec<String> = yard
            .refused()
            .into_iter()
            .map(|(_, reason)| reason)
            .collect();
        assert_eq!(
            reasons,
            ["not-in-allowlist", "malformed-host", "port-not-allowed"]
        );
        let mut client = yard.proxied().await;
        send(&mut client, [4, 1, 0, 80, 127, 0, 0, 1, 0]).await;
        expect(&mut client, [0, 0x5b]).await;
        assert!(!yard.is_waited_for());
        let port = yard.port;
        drop(yard.server);
        let mut client = {
            let (client, inside) = crate::testing::pair().await;
            let exit = std::rc::Rc::clone(&yard.exit);
            tokio::task::spawn_local(super::serve(
                inside,
                ringfence_audit::ConnectionId(2),
                None,
                exit,
            ));
            client
        };
        send(
            &mut client,
            [&[5, 1, 0][..], &socks(b"a.test", port)].concat(),
        )
        .await;
        expect(&mut client, [5, 0, 5, 5]).await;
    });
}

#[test]
fn socks_clients_show_the_password() {
    run(async {
        let yard = guarded().await;
        let mut client = yard.proxied().await;
        send(&mut client, [5, 2, 0, 2]).await;
        expect(&mut client, [5, 2]).await;
        send(&mut client, b"\x01\x02me\x06s3cret").await;
        expect(&mut client, [1, 0]).await;
        send(&mut client, socks(b"a.test", yard.port)).await;
        let _server = yard.accept().await;
        expect(&mut client, [5, 0]).await;

        let mut client = yard.proxied().await;
        send(&mut client, b"\x05\x01\x02\x01\x02me\x05wrong").await;
        expect(&mut client, [5, 2, 1, 1]).await;

        let mut client = yard.proxied().await;
        send(
            &mut client,
            [&[5, 1, 0][..], &socks(b"a.test", yard.port)].concat(),
        )
        .await;
        expect(&mut client, [5, 0, 5, 2]).await;
        assert!(!yard.is_waited_for());
    });
}

#[test]
fn g6_a_narrower_policy_cuts_what_it_does_not_allow() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, get(&yard, "a.test", "/")).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        send(
            &mut server,
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\npart",
        )
        .await;
        expect(
            &mut client,
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\npart",
        )
        .await;
        yard.exit
            .replace_policy(policy(&[format!("b.test:{}", yard.port)]));
        assert!(is_over(&mut client).await);
        assert!(is_over(&mut server).await);
    });
}

#[test]
fn g6_a_kept_connection_is_not_used_under_another_policy() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, get(&yard, "a.test", "/")).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
        let port = yard.port;
        yard.exit
            .replace_policy(policy(&[format!("a.test:{port}"), here(port)]));
        send(&mut client, get(&yard, "a.test", "/")).await;
        let mut other = yard.accept().await;
        head(&mut other).await;
        assert!(is_over(&mut server).await);
    });
}

#[test]
fn g9_half_open_clients_do_not_disturb_a_neighbour() {
    run(async {
        let yard = Yard::open().await;
        let mut slow = Vec::new();
        for _ in 0..300 {
            let mut client = yard.proxied().await;
            send(&mut client, "GET http://a.te").await;
            slow.push(client);
        }
        let mut client = yard.proxied().await;
        send(&mut client, get(&yard, "a.test", "/")).await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        send(&mut server, OK).await;
        expect(&mut client, OK).await;
        assert!(!yard.is_waited_for());
    });
}

#[test]
fn what_is_neither_http_nor_socks_is_told_so() {
    run(async {
        let yard = Yard::open().await;
        let mut client = yard.proxied().await;
        send(&mut client, [22, 3, 1, 0, 5]).await;
        assert!(rest(&mut client).await.starts_with("HTTP/1.1 400 "));
    });
}
