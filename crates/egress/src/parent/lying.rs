//! A proxy of the host that answers something else than it should. It can read
//! and forge what is said in clear, as anybody on the way can; it gets no
//! destination dialled, no judgement passed over and no secret.

use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::ParentProxies;
use crate::exit::Settings;
use crate::intercept::testing::{H1, Rig, Shown, inspected};
use crate::limits::Limits;
use crate::testing::{Yard, expect, head, is_over, policy, rest, run, send};

const REQUEST: &str = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
const LOGIN: &str = "Basic bWU6c2VjcmV0LXdvcmQ=";

/// A proxy that does what a test does, and an exit that goes through it.
async fn behind_it(limits: Limits) -> (TcpListener, Settings) {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://me:secret-word@{}", proxy.local_addr().unwrap());
    let parents = ParentProxies::new(
        Some(("http_proxy", &place)),
        Some(("https_proxy", &place)),
        None,
    );
    let settings = Settings {
        parents: parents.unwrap(),
        limits,
        ..Settings::default()
    };
    (proxy, settings)
}

fn rules(port: u16) -> Vec<String> {
    vec![format!("a.test:{port}"), "a.test:80".to_owned()]
}

/// What the proxy is asked for a tunnel with.
async fn asked(proxy: &TcpListener) -> TcpStream {
    let (mut stream, _) = proxy.accept().await.unwrap();
    let asked = head(&mut stream).await;
    assert!(asked.starts_with("CONNECT a.test:"), "{asked}");
    stream
}

#[test]
fn g1_a_proxy_that_grants_no_tunnel_is_a_bad_gateway() {
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(20_000));
    for answer in [
        "HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\nContent-Length: 3\r\n\r\nwho",
        "HTTP/1.1 302 Found\r\nLocation: http://evil.test/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "SSH-2.0-proxy\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        // No end of a head.
        "HTTP/1.1 200 OK\n\n",
        "HTTP/1.1 200 OK\r\n",
        &endless,
        "",
    ] {
        run(async {
            let limits = Limits {
                connect_time: Duration::from_millis(500),
                ..Limits::default()
            };
            let (proxy, settings) = behind_it(limits).await;
            let yard = Yard::with(rules, settings).await;
            let mut client = yard.dialled_saying("a.test", REQUEST.as_bytes()).await;
            let mut server = asked(&proxy).await;
            send(&mut server, answer).await;
            let shown = rest(&mut client).await;
            let is_told = shown.starts_with("HTTP/1.1 502 ") || shown.starts_with("HTTP/1.1 504 ");
            assert!(is_told, "{answer}: {shown}");
            // Nothing that it said gets in, and the request stays here.
            let tells = ["Proxy-Authenticate", "evil.test", "who", LOGIN];
            assert!(!tells.iter().any(|one| shown.contains(one)), "{shown}");
            assert!(is_over(&mut server).await, "{answer}");
            assert!(!yard.is_waited_for());
        });
    }
}

/// What follows the head is within the tunnel, as if the server had said it.
#[test]
fn g1_a_proxy_that_answers_for_the_server_is_read_as_strictly() {
    const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    for (after, shown, is_kept) in [
        // The body that a tunnel has not.
        ("hello\r\n\r\n", "HTTP/1.1 502 ", false),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged",
            "HTTP/1.1 200 ",
            true,
        ),
        // One answer more than there are requests.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 ",
            false,
        ),
        (
            "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n",
            "HTTP/1.1 502 ",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 502 ",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nok",
            "HTTP/1.1 502 ",
            false,
        ),
    ] {
        run(async {
            let (proxy, settings) = behind_it(Limits::default()).await;
            let yard = Yard::with(rules, settings).await;
            let mut client = yard.dialled_saying("a.test", REQUEST.as_bytes()).await;
            let mut server = asked(&proxy).await;
            // As some do for CONNECT.
            let length = after.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{after}");
            send(&mut server, head).await;
            expect(&mut client, shown).await;
            expect(&mut server, REQUEST).await;
            if is_kept {
                expect(&mut client, "OK\r\nContent-Length: 6\r\n\r\nforged").await;
                send(&mut client, REQUEST).await;
                expect(&mut server, REQUEST).await;
                send(&mut server, [GOOD, "ok"].concat()).await;
                expect(&mut client, [GOOD, "ok"].concat()).await;
            } else {
                rest(&mut client).await;
                assert!(is_over(&mut server).await, "{after}");
            }
        });
    }
}

/// Requests in clear are given to it whole.
#[test]
fn g1_a_proxy_that_forwards_badly_is_a_bad_gateway() {
    let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(40);
    for (answer, shown) in [
        (
            "HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n",
            "407",
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://b.test/\r\nContent-Length: 0\r\n\r\n",
            "302",
        ),
        (
            "HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
            "502",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nok", "502"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\nContent-Length: 2\r\n\r\nok",
            "502",
        ),
        ("HTTP/1.1 200 OK\r\nX : y\r\n\r\n", "502"),
        ("HTTP/0.9 200 OK\r\n\r\n", "502"),
        (&many, "102"),
        // An answer to a request that nobody made.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "200",
        ),
    ] {
        run(async {
            let (proxy, settings) = behind_it(Limits::default()).await;
            let yard = Yard::with(rules, settings).await;
            let mut client = yard.proxied().await;
            let request = "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n";
            send(&mut client, request).await;
            let (mut server, _) = proxy.accept().await.unwrap();
            let asked = head(&mut server).await;
            assert!(asked.starts_with("GET http://a.test:80/x "), "{asked}");
            assert!(asked.contains(LOGIN), "{asked}");
            send(&mut server, answer).await;
            expect(&mut client, format!("HTTP/1.1 {shown} ")).await;
            // The next request gets none of what is left.
            send(&mut client, request).await;
            if ["407", "302", "200"].contains(&shown) {
                let server = &mut match shown {
                    "200" => proxy.accept().await.unwrap().0,
                    _ => server,
                };
                head(server).await;
                send(server, "HTTP/1.1 204 Next\r\nConnection: close\r\n\r\n").await;
                let shown = rest(&mut client).await;
                assert_eq!(shown.matches("HTTP/1.1 ").count(), 1, "{shown}");
                assert!(shown.contains("204 Next"), "{shown}");
            } else {
                assert!(is_over(&mut server).await, "{answer}");
            }
            assert_eq!(yard.refused(), []);
        });
    }
}

/// Where TLS is looked into, it has to come from the host that was named.
#[test]
fn g5_a_proxy_that_answers_with_another_server_gets_no_request() {
    for shown in [
        Shown::For("evil.test"),
        Shown::SelfSigned("a.test"),
        Shown::Expired("a.test"),
    ] {
        run(async {
            let (proxy, settings) = behind_it(Limits::default()).await;
            let rig = Rig::under(
                |port| policy(&inspected(port)),
                settings,
                Box::new(|_| unreachable!()),
            )
            .await;
            rig.serve(shown, H1);
            let port = rig.yard.port;
            tokio::task::spawn_local(async move {
                let mut client = asked(&proxy).await;
                send(&mut client, "HTTP/1.1 200 OK\r\n\r\n").await;
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
            let mut client = rig.client("a.test", H1).await;
            let (status, text) = client.get("a.test", port, "/").await;
            assert_eq!(status, 502, "{text}");
            assert!(rig.seen.borrow().is_empty());
            assert_eq!(rig.refused(), ["upstream-certificate"]);
        });
    }
}
