//! What passes as it is, and what ends here.

use http::header::{HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::intercept::testing::{H1, H2};
use crate::testing::run;

#[test]
fn headers_of_the_connection_end_here_and_others_pass() {
    run(async {
        let stage = Stage::new("bearer: true").await.serving(H1);
        let mut client = stage.client(H1).await;
        let mut request = stage.request(&client, "/");
        for (name, value) in [
            ("connection", "x-own, authorization"),
            ("x-own", "1"),
            ("proxy-authorization", "Basic eDp5"),
            ("x-kept", "1"),
            ("x-kept", "2"),
            ("accept-encoding", "gzip, compress"),
            ("range", "bytes=0-3"),
            ("if-range", "\"x\""),
        ] {
            let name = HeaderName::from_static(name);
            request
                .headers_mut()
                .append(name, HeaderValue::from_static(value));
        }
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let got = stage.last().headers;
        for gone in [
            "connection",
            "x-own",
            "proxy-authorization",
            "range",
            "if-range",
        ] {
            assert!(!got.contains_key(gone), "{gone}");
        }
        let kept: Vec<&HeaderValue> = got.get_all("x-kept").iter().collect();
        assert_eq!(kept, ["1", "2"]);
        assert_eq!(got["accept-encoding"], "gzip");
        assert_eq!(got["authorization"], format!("Bearer {SECRET}"));
    });
}

#[test]
fn rules_by_method_and_path_hold_and_the_normal_path_is_sent() {
    run(async {
        let rules = |port: u16| {
            let rule = "methods: [GET], paths: [\"/v1/**\"]";
            let here = crate::testing::here(port);
            vec![format!("{{host: a.test, ports: [{port}], {rule}}}"), here]
        };
        for alpn in [H1, H2] {
            let limits = crate::limits::Limits::default();
            let rig = Rig::with(rules, limits, Box::new(echo)).await;
            rig.serve(A, alpn);
            let mut client = rig.client("a.test", alpn).await;
            for (path, status, sent) in [
                ("/v1/x?y", 200, "/v1/x"),
                ("/v1/%2e/%78//z;a=b", 200, "/v1/x/z"),
                ("/v1/../admin", 403, ""),
                ("/v1/%2e%2e/admin", 403, ""),
                ("/v1/a%2fb", 403, ""),
                ("/", 403, ""),
            ] {
                let seen = rig.seen.borrow().len();
                let (found, _) = client.get("a.test", rig.yard.port, path).await;
                assert_eq!(found, status, "{path}");
                if status == 200 {
                    assert_eq!(rig.seen.borrow().last().unwrap().path, sent);
                } else {
                    assert_eq!(rig.seen.borrow().len(), seen, "{path}");
                }
            }
            let mut request = client.request("a.test", rig.yard.port, "/v1/x");
            *request.method_mut() = http::Method::DELETE;
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), 403);
            let reason = &response.headers()["x-ringfence-reason"];
            assert_eq!(reason, "method-not-allowed");
            assert_eq!(response.headers()["x-proxy-error"], "blocked-by-allowlist");
        }
    });
}

#[test]
fn answers_without_a_body_stay_that() {
    run(async {
        for alpn in [H1, H2] {
            let stage = Stage::answering("bearer: true", |request| {
                let mut response = match request.uri().path() {
                    "/head" => says("four"),
                    path => {
                        let status: u16 = path[1..].parse().unwrap();
                        let mut response = Response::new(LocalBody::empty());
                        *response.status_mut() = status.try_into().unwrap();
                        response
                    }
                };
                let tag = HeaderValue::from_static("\"tag\"");
                response.headers_mut().insert("etag", tag);
                response
            });
            let stage = stage.await.serving(alpn);
            let mut client = stage.client(alpn).await;
            for (method, path, status) in [
                ("HEAD", "/head", 200),
                ("GET", "/204", 204),
                ("GET", "/304", 304),
            ] {
                let mut request = stage.request(&client, path);
                *request.method_mut() = method.parse().unwrap();
                let response = client.send(request).await.unwrap();
                assert_eq!(response.status(), status, "{alpn:?} {path}");
                assert_eq!(response.headers()["etag"], "\"tag\"");
                let body = http_body_util::BodyExt::collect(response.into_body()).await;
                assert!(body.unwrap().to_bytes().is_empty());
            }
        }
    });
}

#[test]
fn a_client_that_waits_is_told_to_go_on_by_the_server() {
    run(async {
        let stage = Stage::new("bearer: true").await;
        let acceptor = TlsAcceptor::from(Arc::new(stage.rig.server_config(A, H1)));
        let server = async {
            let stream = stage.rig.yard.accept().await;
            let mut stream = acceptor.accept(stream).await.unwrap();
            let head = read_head(&mut stream).await;
            let head = head.to_lowercase();
            assert!(head.contains("expect: 100-continue"), "{head}");
            stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await
                .unwrap();
            let mut body = [0; 4];
            stream.read_exact(&mut body).await.unwrap();
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
                .await
                .unwrap();
            stream.write_all(&body).await.unwrap();
            stream
        };
        let client = async {
            let connector = stage.rig.connector(H1);
            let mut stream = stage.rig.shake(&connector, "a.test").await.unwrap();
            let head = "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            let answer = read_head(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 100"), "{answer}");
            stream.write_all(b"body").await.unwrap();
            let answer = read_head(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            let mut body = [0; 4];
            stream.read_exact(&mut body).await.unwrap();
            assert_eq!(&body, b"body");
        };
        tokio::join!(server, client);
    });
}

#[test]
fn a_server_that_does_not_want_the_body_is_heard() {
    run(async {
        let stage = Stage::new("bearer: true").await;
        let acceptor = TlsAcceptor::from(Arc::new(stage.rig.server_config(A, H1)));
        let server = async {
            let stream = stage.rig.yard.accept().await;
            let mut stream = acceptor.accept(stream).await.unwrap();
            read_head(&mut stream).await;
            let answer = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            stream
        };
        let client = async {
            let connector = stage.rig.connector(H1);
            let mut stream = stage.rig.shake(&connector, "a.test").await.unwrap();
            let head = "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            let answer = read_head(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        };
        tokio::join!(server, client);
    });
}

/// Reads up to an empty line.
pub(super) async fn read_head(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut found = Vec::new();
    while !found.ends_with(b"\r\n\r\n") {
        found.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(found).unwrap()
}
