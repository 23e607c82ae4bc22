//! Names that disagree, in every pair, over HTTP/1 and HTTP/2.

use http::{HeaderValue, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::intercept::testing::{BOTH, H1, H2};
use crate::testing::run;

const BEARER: &str = "bearer: true";

#[test]
fn g5_another_host_in_the_request_gets_no_credential() {
    run(async {
        for alpn in [H1, H2] {
            for host in ["b.test", "a.test:1", "me@a.test", "a.test.b.test"] {
                let stage = Stage::new(BEARER).await.serving(alpn);
                let mut client = stage.client(alpn).await;
                let mut request = stage.request(&client, "/");
                if is_http2(&client) {
                    *request.uri_mut() = Uri::try_from(format!("https://{host}/")).unwrap();
                } else {
                    let host = HeaderValue::try_from(host).unwrap();
                    request.headers_mut().insert("host", host);
                }
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status(), 421, "{alpn:?} {host}");
                assert_eq!(
                    response.headers()["x-ringfence-reason"],
                    "authority-mismatch"
                );
                assert_eq!(stage.refused(), ["authority-mismatch"]);
                assert!(stage.is_untouched() && !stage.vault.was_asked());
            }
        }
    });
}

#[test]
fn g5_a_host_beside_the_authority_must_be_the_same() {
    run(async {
        for (header, status) in [("a.test", 200), ("b.test", 421)] {
            let stage = Stage::new(BEARER).await.serving(H2);
            let mut client = stage.client(H2).await;
            let mut request = stage.request(&client, "/");
            let value = HeaderValue::from_static(header);
            request.headers_mut().insert("host", value);
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), status, "{header}");
        }
    });
}

#[test]
fn g5_the_target_must_name_the_connections_host_and_scheme() {
    run(async {
        for (url, status) in [
            ("https://a.test/", 200),
            ("https://b.test/", 421),
            ("http://a.test/", 421),
        ] {
            let stage = Stage::new(BEARER).await.serving(H1);
            let mut client = stage.client(H1).await;
            let mut request = stage.request(&client, "/");
            *request.uri_mut() = Uri::from_static(url);
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), status, "{url}");
        }
        let stage = Stage::new(BEARER).await.serving(H2);
        let mut client = stage.client(H2).await;
        let mut request = stage.request(&client, "/");
        *request.uri_mut() = Uri::from_static("http://a.test/");
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 421);
    });
}

#[test]
fn g5_two_hosts_and_no_host_are_refused() {
    run(async {
        for (lines, status) in [
            (
                "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
                "421",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
                "421",
            ),
            ("GET / HTTP/1.1\r\n\r\n", "400"),
            (
                "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
                "4",
            ),
            ("TRACE / HTTP/1.1\r\nHost: a.test\r\n\r\n", "405"),
        ] {
            let stage = Stage::new(BEARER).await.serving(H1);
            let connector = stage.rig.connector(H1);
            let mut stream = stage.rig.shake(&connector, "a.test").await.unwrap();
            stream.write_all(lines.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer).into_owned();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{lines} {answer}"
            );
            assert!(stage.is_untouched() && !stage.vault.was_asked(), "{lines}");
        }
    });
}

#[test]
fn g5_a_server_with_another_certificate_gets_no_credential() {
    run(async {
        for alpn in [H1, BOTH] {
            for shown in [
                Shown::For("b.test"),
                Shown::SelfSigned("a.test"),
                Shown::Expired("a.test"),
            ] {
                let stage = Stage::new(BEARER).await;
                stage.rig.serve(shown, alpn);
                let mut client = stage.client(alpn).await;
                let (status, page) = client.get("a.test", stage.rig.yard.port, "/").await;
                assert_eq!(status, 502, "{shown:?} {page}");
                assert!(stage.is_untouched());
            }
        }
    });
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![high, middle, low, kind, flags, 0, 0, 0, stream];
    frame.extend_from_slice(payload);
    frame
}

/// A head with these fields, none of them compressed.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| {
        let length = u8::try_from(text.len()).unwrap();
        [&[length], text.as_bytes()].concat()
    };
    let each = fields
        .iter()
        .map(|(name, value)| [vec![0], text(name), text(value)].concat());
    each.collect::<Vec<_>>().concat()
}

#[test]
fn g5_pseudo_headers_that_conflict_are_refused() {
    run(async {
        let good = [(":method", "GET"), (":scheme", "https"), (":path", "/")];
        for (bad, asked) in [
            (&[(":authority", "a.test")][..], 1),
            (&[(":authority", "a.test"), (":authority", "b.test")], 0),
            (&[(":authority", "a.test"), (":path", "/other")], 0),
            (&[(":authority", "a.test"), (":scheme", "http")], 0),
            (&[(":authority", "a.test"), ("host", "b.test")], 0),
            (
                &[(":authority", "a.test"), ("x", "y"), (":method", "PUT")],
                0,
            ),
            (&[(":authority", "a.test"), ("connection", "x")], 0),
        ] {
            let stage = Stage::new(BEARER).await.serving(H2);
            let connector = stage.rig.connector(H2);
            let mut stream = stage.rig.shake(&connector, "a.test").await.unwrap();
            let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
            bytes.extend(frame(4, 0, 0, &[]));
            bytes.extend(frame(1, 0x5, 1, &fields(&[&good[..], bad].concat())));
            stream.write_all(&bytes).await.unwrap();
            // Up to an answer, a reset or the end, whichever comes.
            loop {
                let mut head = [0; 9];
                if stream.read_exact(&mut head).await.is_err() {
                    break;
                }
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                let mut payload = vec![0; length.try_into().unwrap()];
                stream.read_exact(&mut payload).await.unwrap();
                if matches!(head[3], 1 | 3 | 7) {
                    break;
                }
            }
            assert_eq!(stage.got.borrow().len(), asked, "{bad:?}");
            assert_eq!(stage.vault.was_asked(), asked == 1, "{bad:?}");
        }
    });
}
