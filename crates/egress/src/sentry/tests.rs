//! Placeholders on their way out in clear.

use std::sync::Arc;

use data_encoding::{BASE64, HEXLOWER};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::exit::Settings;
use crate::secret::{Credentials, Placeholder, Secret, SecretError, Vault};
use crate::testing::{Yard, expect, head, here, is_over, rest, run, send};

const HELD: &str = "rf-0123456789abcdef0123456789abcdef";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct Empty;

impl Vault for Empty {
    fn secret(&self, service: &str) -> Result<Secret, SecretError> {
        Err(SecretError::Missing(service.to_owned()))
    }
}

/// A sandbox that has a placeholder.
async fn yard() -> Yard {
    let placeholder = Placeholder {
        service: "api".to_owned(),
        text: HELD.to_owned(),
    };
    let credentials = Credentials {
        vault: Arc::new(Empty),
        placeholders: vec![placeholder],
    };
    let settings = Settings {
        credentials: Some(credentials),
        ..Settings::default()
    };
    let rules = |port| {
        vec![
            format!("a.test:{port}"),
            format!("'*.a.test:{port}'"),
            here(port),
        ]
    };
    Yard::with(rules, settings).await
}

fn elsewhere(host: &str) -> Vec<(String, String)> {
    vec![(host.to_owned(), "placeholder-elsewhere".to_owned())]
}

/// Heads and bodies that give the placeholder away; the last part of each
/// completes it.
fn requests(target: &str) -> Vec<[String; 2]> {
    let encoded = BASE64.encode(format!("user:{HELD}").as_bytes());
    let hex = HEXLOWER.encode(HELD.as_bytes());
    let escaped = HELD.replace('-', "%2D").replace('0', "\\u0030");
    let (first, second) = HELD.split_at(12);
    let line = format!("POST {target}/ HTTP/1.1\r\nHost: a.test");
    // A body that could begin with a method is waited for.
    let quoted = format!("\"{HELD}");
    let whole = |text: String| [String::new(), text];
    let length = |text: &str| format!("{line}\r\nContent-Length: {}\r\n\r\n", text.len());
    let chunked = format!("{line}\r\nTransfer-Encoding: chunked\r\n\r\n");
    vec![
        whole(format!(
            "GET {target}/x?key={HELD} HTTP/1.1\r\nHost: a.test\r\n\r\n"
        )),
        whole(format!("{line}\r\nAuthorization: Basic {encoded}\r\n\r\n")),
        whole(format!("{line}\r\nX-Key: {escaped}\r\n\r\n")),
        whole(format!("{}{hex}", length(&hex))),
        [format!("{}\"{first}", length(&quoted)), second.to_owned()],
        [
            format!("{chunked}c\r\n{first}\r\n"),
            format!("17\r\n{second}\r\n0\r\n\r\n"),
        ],
        [
            format!("{chunked}1;x={first}"),
            format!("{second}\r\na\r\n0\r\n\r\n"),
        ],
        [
            format!("{chunked}0\r\nX-Key: {first}"),
            format!("{second}\r\n\r\n"),
        ],
    ]
}

async fn is_refused(client: &mut TcpStream) {
    let answer = rest(client).await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert!(
        answer.contains("X-Ringfence-Reason: placeholder-elsewhere\r\n"),
        "{answer}"
    );
}

#[test]
fn g5_a_request_in_clear_gives_no_placeholder_away() {
    run(async {
        for [first, last] in requests("") {
            let yard = yard().await;
            let mut client = yard.dialled("a.test").await;
            let mut server = yard.accept().await;
            send(&mut client, &first).await;
            expect(&mut server, &first).await;
            send(&mut client, &last).await;
            is_refused(&mut client).await;
            assert!(is_over(&mut server).await, "{last}");
            assert_eq!(yard.refused(), elsewhere("a.test"), "{last}");
        }
    });
}

#[test]
fn g5_neither_does_one_through_the_proxy() {
    run(async {
        for [first, last] in requests("http://a.test:PORT") {
            let yard = yard().await;
            let port = yard.port.to_string();
            let text = |text: &str| {
                let host = format!("Host: a.test:{port}");
                text.replace("PORT", &port).replace("Host: a.test", &host)
            };
            let mut client = yard.proxied().await;
            send(&mut client, text(&first)).await;
            if first.is_empty() {
                send(&mut client, text(&last)).await;
                is_refused(&mut client).await;
            } else {
                let mut server = yard.accept().await;
                head(&mut server).await;
                send(&mut client, &last).await;
                is_refused(&mut client).await;
                let got = rest_of(&mut server).await;
                assert!(first.ends_with(&got), "{got}");
            }
            assert_eq!(yard.refused(), elsewhere("a.test"), "{last}");
        }
    });
}

/// What else came before the connection was cut.
async fn rest_of(server: &mut TcpStream) -> String {
    let mut found = Vec::new();
    // A reset is the end, too.
    let _ = server.read_to_end(&mut found).await;
    String::from_utf8(found).unwrap()
}

#[test]
fn g5_bytes_that_are_no_request_are_watched_too() {
    run(async {
        for before in ["\0\x01binary ", "HELO me\r\n", "a line that never ends "] {
            let yard = yard().await;
            let mut client = yard.dialled("a.test").await;
            let mut server = yard.accept().await;
            let (first, second) = HELD.split_at(20);
            for text in [before, first, &second[..second.len() - 1]] {
                send(&mut client, text).await;
                expect(&mut server, text).await;
            }
            send(&mut client, &second[second.len() - 1..]).await;
            assert!(is_over(&mut server).await, "{before:?}");
            assert!(is_over(&mut client).await, "{before:?}");
            assert_eq!(yard.refused(), elsewhere("a.test"), "{before:?}");
        }
    });
}

/// A frame as clients of WebSocket send it.
fn frame(payload: &str) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let length = u8::try_from(payload.len()).unwrap();
    let masked = payload.bytes().zip(mask.into_iter().cycle());
    let header = [&[0x82, 0x80 | length][..], &mask].concat();
    header
        .into_iter()
        .chain(masked.map(|(byte, key)| byte ^ key))
        .collect()
}

#[test]
fn g5_a_connection_that_has_switched_is_watched_too() {
    run(async {
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        let frames = [HELD.split_at(9).0, HELD.split_at(9).1].map(frame);
        let speech = [&b"free speech"[..], HELD.as_bytes()];
        let frames = [&frames[0][..], &frames[1]];
        for (line, proxied, said) in [
            ("GET / ", false, speech),
            ("GET / ", false, frames),
            ("GET http://a.test:PORT/ ", true, speech),
            ("GET http://a.test:PORT/ ", true, frames),
        ] {
            let yard = yard().await;
            let mut client = if proxied {
                yard.proxied().await
            } else {
                yard.dialled("a.test").await
            };
            let line = line.replace("PORT", &yard.port.to_string());
            let request = format!(
                "{line}HTTP/1.1\r\nHost: a.test:{}\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
                yard.port
            );
            send(&mut client, request).await;
            let mut server = yard.accept().await;
            head(&mut server).await;
            send(&mut server, switch).await;
            expect(&mut client, switch).await;
            send(&mut client, said[0]).await;
            expect(&mut server, said[0]).await;
            send(&mut client, said[1]).await;
            assert!(is_over(&mut server).await);
            assert_eq!(yard.refused(), elsewhere("a.test"));
        }
    });
}

#[test]
fn g5_within_an_answer_the_connection_is_cut() {
    run(async {
        let yard = yard().await;
        let mut client = yard.dialled("a.test").await;
        send(
            &mut client,
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 99\r\n\r\n",
        )
        .await;
        let mut server = yard.accept().await;
        head(&mut server).await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
        send(&mut server, answer).await;
        expect(&mut client, answer).await;
        send(&mut client, HELD).await;
        assert!(is_over(&mut client).await);
        assert!(is_over(&mut server).await);
        assert_eq!(yard.refused(), elsewhere("a.test"));
    });
}

#[test]
fn g5_no_name_with_a_placeholder_in_it_is_asked_for() {
    run(async {
        let yard = yard().await;
        let host = format!("{HELD}.a.test");
        let mut client = yard.dialled(&host).await;
        send(
            &mut client,
            format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
        .await;
        is_refused(&mut client).await;
        assert_eq!(yard.refused(), elsewhere(&host));
        assert!(!yard.is_waited_for());
    });
}

#[test]
fn other_requests_pass_and_without_placeholders_nothing_is_watched() {
    run(async {
        let (watching, careless) = (yard().await, Yard::open().await);
        let near = &HELD[..HELD.len() - 1];
        for (yard, text) in [(watching, near), (careless, HELD)] {
            let mut client = yard.dialled("a.test").await;
            let request = format!(
                "POST /{text} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            send(&mut client, &request).await;
            let mut server = yard.accept().await;
            expect(&mut server, &request).await;
            send(&mut server, OK).await;
            expect(&mut client, OK).await;
            assert_eq!(yard.refused(), []);
        }
    });
}
