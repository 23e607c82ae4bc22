//! Secrets that go into bodies.

use super::*;
use crate::intercept::testing::{H1, H2, text};
use crate::testing::run;

const IN_BODIES: &str = "substitute: {body: true}";
const LIMIT: usize = 1024 * 1024;

#[test]
fn g5_a_placeholder_in_a_body_becomes_the_secret_where_that_is_declared() {
    run(async {
        for (alpn, kind) in [(H1, "text/plain"), (H2, "application/json")] {
            let got: Rc<RefCell<Vec<Incoming>>> = Rc::default();
            let keep = Rc::clone(&got);
            let stage = Stage::answering(IN_BODIES, move |request| {
                keep.borrow_mut().push(request.into_body());
                says("kept")
            });
            let stage = stage.await.serving(alpn);
            let mut client = stage.client(alpn).await;
            let parts = ["{\"token\":\"rf-0123456789abcdef", "ghijklmnopqrstuv\"}"];
            let request = post(&client, stage.rig.yard.port, "/", frames(&parts));
            let request = of_type(kind, request);
            let response = client.send(request).await.unwrap();
            assert_eq!(response.status(), 200);
            let body = got.borrow_mut().pop().unwrap();
            let body = http_body_util::BodyExt::collect(body).await.unwrap();
            let body = body.to_bytes();
            let want = if kind == "text/plain" {
                SECRET.to_owned()
            } else {
                let escaped = SECRET.bytes().map(|byte| format!("\\u{byte:04x}"));
                escaped.collect::<Vec<_>>().concat()
            };
            assert_eq!(body, format!("{{\"token\":\"{want}\"}}"));
            assert!(stage.rig.yard.credentials()[0].is_some());
        }
    });
}

fn of_type(kind: &'static str, mut request: Request<LocalBody>) -> Request<LocalBody> {
    let kind = http::HeaderValue::from_static(kind);
    request.headers_mut().insert("content-type", kind);
    request
}

#[test]
fn g5_a_body_that_may_be_read_otherwise_gets_no_secret() {
    run(async {
        for (kind, before) in [
            ("application/json", "\"\\u004"),
            ("application/x-www-form-urlencoded", "a=%4"),
            ("application/x-www-form-urlencoded", "a=%81"),
            ("text/plain; charset=gbk", ""),
            ("text/plain; charset=utf-16le", ""),
            ("text/plain; charset=cp037", ""),
            (
                "message/rfc822",
                "Content-Transfer-Encoding: quoted-printable\r\n\r\n=",
            ),
            ("application/x-protobuf", "\n#"),
            ("text/plain", "\x0b"),
        ] {
            let stage = Stage::new(IN_BODIES).await.serving(H1);
            let mut client = stage.client(H1).await;
            let body = frames(&[before, PLACEHOLDER]);
            let request = of_type(kind, post(&client, stage.rig.yard.port, "/", body));
            let response = client.send(request).await;
            let status = response.map(|response| response.status().as_u16());
            let is_refused = status.is_ok_and(|status| matches!(status, 403 | 502));
            assert!(is_refused, "{kind} {before:?}");
            assert!(!stage.refused().is_empty(), "{kind} {before:?}");
        }
    });
}

#[test]
fn g5_calls_stream_both_ways_where_bodies_get_secrets() {
    run(async {
        let stage = Stage::new(IN_BODIES).await.serving(H2);
        let mut client = stage.client(H2).await;
        let (send, receive) = tokio::sync::mpsc::unbounded_channel();
        let body = LocalBody::new(Streamed(receive));
        let request = of_type(
            "application/grpc",
            post(&client, stage.rig.yard.port, "/", body),
        );
        send.send(Bytes::from("ping")).unwrap();
        let response = client.send(request).await.unwrap();
        let mut answer = response.into_body();
        for said in ["ping", "pong"] {
            // The next is said only after the last was answered.
            let frame = http_body_util::BodyExt::frame(&mut answer).await;
            assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), said);
            let _ = send.send(Bytes::from("pong"));
        }
        send.send(Bytes::from(PLACEHOLDER)).unwrap();
        drop(send);
        let rest = http_body_util::BodyExt::collect(answer).await;
        assert!(rest.is_err(), "a placeholder in a message is cut");
        assert_eq!(stage.refused(), ["placeholder-elsewhere"]);
        assert_eq!(stage.rig.yard.credentials(), [None]);
    });
}

/// What is sent when it is sent.
struct Streamed(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = crate::intercept::body::BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        let next = self.0.poll_recv(context);
        next.map(|next| next.map(|data| Ok(http_body::Frame::data(data))))
    }
}

#[test]
fn a_body_without_the_placeholder_gets_no_secret() {
    run(async {
        let stage = Stage::new(IN_BODIES).await.serving(H1);
        let mut client = stage.client(H1).await;
        let request = post(
            &client,
            stage.rig.yard.port,
            "/",
            frames(&["plain", " text"]),
        );
        let page = text(client.send(request).await.unwrap()).await;
        assert_eq!(page, "plain text");
        assert_eq!(stage.rig.yard.credentials(), [None]);
    });
}

#[test]
fn g5_a_body_over_the_limit_is_refused_and_not_passed() {
    run(async {
        for alpn in [H1, H2] {
            for (size, status) in [(LIMIT, 200), (LIMIT + 1, 413)] {
                for announced in [true, false] {
                    let stage = Stage::new(IN_BODIES).await.serving(alpn);
                    let mut client = stage.client(alpn).await;
                    let text: &'static str = "x".repeat(size).leak();
                    let body = if announced {
                        LocalBody::full(text)
                    } else {
                        frames(&[text])
                    };
                    let request = post(&client, stage.rig.yard.port, "/", body);
                    let response = client.send(request).await.unwrap();
                    assert_eq!(response.status(), status, "{alpn:?} {size} {announced}");
                    assert_eq!(stage.is_untouched(), status == 413);
                }
            }
        }
    });
}

#[test]
fn g5_another_placeholder_in_a_body_that_is_read_is_refused() {
    run(async {
        let stage = Stage::new(IN_BODIES).await.serving(H1);
        let mut client = stage.client(H1).await;
        let body = frames(&["rf-zyxwvutsrqponml", "kjihgfedcba987654"]);
        let request = post(&client, stage.rig.yard.port, "/", body);
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(stage.refused(), ["placeholder-elsewhere"]);
        assert!(stage.is_untouched());
    });
}
