//! Secrets that come back, in every form.

use data_encoding::BASE64;
use http::{HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;

use super::*;
use crate::intercept::body::BodyError;
use crate::intercept::testing::{H1, H2, text};
use crate::testing::run;

#[test]
fn g5_an_echo_returns_placeholders() {
    run(async {
        for alpn in [H1, H2] {
            for (how, want) in [
                (
                    "bearer: true",
                    format!("authorization: Bearer {PLACEHOLDER}\n"),
                ),
                ("query: key", format!("/x?key={PLACEHOLDER}")),
            ] {
                let stage = Stage::new(how).await.serving(alpn);
                let mut client = stage.client(alpn).await;
                let (_, page) = client.get("a.test", stage.rig.yard.port, "/x").await;
                assert!(page.contains(&want), "{page}");
                assert!(!page.contains(SECRET), "{page}");
            }
            let stage = Stage::new("basic: {username: me}").await.serving(alpn);
            let mut client = stage.client(alpn).await;
            let (_, page) = client.get("a.test", stage.rig.yard.port, "/x").await;
            let basic = BASE64.encode(format!("me:{SECRET}").as_bytes());
            assert!(!page.contains(&basic[8..]), "{page}");
        }
    });
}

/// Each may look back at 16 MiB, so that only so many are read at once.
#[test]
fn g9_answers_with_a_large_window_wait_for_each_other() {
    run(async {
        for coding in ["br", "zstd"] {
            let stage = Stage::answering("bearer: true", move |_| {
                let mut response = Response::new(LocalBody::new(Unending(Queue::new())));
                let coding = HeaderValue::from_static(coding);
                response.headers_mut().insert("content-encoding", coding);
                response
            });
            let stage = stage.await.serving(H2);
            let memory = stage.rig.yard.exit.memory();
            let mut answered = Vec::new();
            for _ in 0..2 {
                let mut client = stage.client(H2).await;
                let request = stage.request(&client, "/");
                answered.push((client.send(request).await.unwrap(), client));
            }
            let mut client = stage.client(H2).await;
            let request = stage.request(&client, "/");
            let last = tokio::task::spawn_local(async move { client.send(request).await });
            while !memory.is_waited_for() {
                tokio::task::yield_now().await;
            }
            assert!(!last.is_finished());
            answered.clear();
            last.await.unwrap().unwrap();
        }
    });
}

#[test]
fn g5_headers_trailers_and_reason_are_scrubbed() {
    run(async {
        for alpn in [H1, H2] {
            let stage = Stage::answering("bearer: true", |_| {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-end", HeaderValue::from_static(SECRET));
                let parts = [
                    Ok::<_, BodyError>(Frame::data(Bytes::from("text"))),
                    Ok(Frame::trailers(trailers)),
                ];
                let mut response = Response::new(LocalBody::new(Parts(parts.into())));
                let headers = response.headers_mut();
                headers.insert("x-echo", HeaderValue::from_static(SECRET));
                headers.insert("trailer", HeaderValue::from_static("x-end"));
                headers.insert("location", HeaderValue::from_static("https://b.test/"));
                let reason = hyper::ext::ReasonPhrase::from_static(SECRET.as_bytes());
                response.extensions_mut().insert(reason);
                response
            });
            let stage = stage.await.serving(alpn);
            let mut client = stage.client(alpn).await;
            let mut request = stage.request(&client, "/");
            request
                .headers_mut()
                .insert("te", HeaderValue::from_static("trailers"));
            let response = client.send(request).await.unwrap();
            assert_eq!(response.headers()["x-echo"], PLACEHOLDER);
            assert_eq!(response.headers()["location"], "https://b.test/");
            assert!(
                response
                    .extensions()
                    .get::<hyper::ext::ReasonPhrase>()
                    .is_none()
            );
            let body = response.into_body().collect().await.unwrap();
            assert_eq!(body.trailers().unwrap()["x-end"], PLACEHOLDER, "{alpn:?}");
            assert_eq!(body.to_bytes(), "text");
        }
    });
}

#[test]
fn g5_a_secret_split_over_pieces_and_codings_is_hidden() {
    run(async {
        let gzipped = {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            let page = format!("{}\n{SECRET}\n", "x".repeat(100_000));
            std::io::Write::write_all(&mut encoder, page.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let stage = Stage::answering("bearer: true", move |request| {
            let mut response = if request.uri().path() == "/gzip" {
                let parts = gzipped.chunks(7).map(Bytes::copy_from_slice);
                let parts: Vec<_> = parts.map(|part| Ok(Frame::data(part))).collect();
                let mut response = Response::new(LocalBody::new(Parts(parts.into())));
                let coding = HeaderValue::from_static("gzip");
                response.headers_mut().insert("content-encoding", coding);
                response
            } else {
                let parts = SECRET.as_bytes().chunks(3).map(Bytes::from_static);
                let parts: Vec<_> = parts.map(|part| Ok(Frame::data(part))).collect();
                Response::new(LocalBody::new(Parts(parts.into())))
            };
            let kind = HeaderValue::from_static("text/plain");
            response.headers_mut().insert("content-type", kind);
            response
        });
        let stage = stage.await.serving(H2);
        let mut client = stage.client(H2).await;
        let port = stage.rig.yard.port;
        let (_, page) = client.get("a.test", port, "/split").await;
        assert_eq!(page, PLACEHOLDER);
        let request = client.request("a.test", port, "/gzip");
        let response = client.send(request).await.unwrap();
        assert!(!response.headers().contains_key("content-encoding"));
        let page = text(response).await;
        assert_eq!(page.len(), 100_000 + 2 + PLACEHOLDER.len());
        assert!(page.ends_with(&format!("\n{PLACEHOLDER}\n")));
    });
}

#[test]
fn g5_other_contents_keep_their_length() {
    for (status, kind) in [
        (200, "application/octet-stream"),
        // Parts that nobody has asked for.
        (206, "application/octet-stream"),
        (206, "multipart/byteranges; boundary=x"),
    ] {
        run(async {
            let stage = Stage::answering("bearer: true", move |request| {
                assert!(!request.headers().contains_key("range"));
                let mut response = says(format!("\0\0{SECRET}\0"));
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                let kind = HeaderValue::from_static(kind);
                response.headers_mut().insert("content-type", kind);
                response
            });
            let stage = stage.await.serving(H1);
            let mut client = stage.client(H1).await;
            let mut request = stage.request(&client, "/");
            let range = HeaderValue::from_static("bytes=0-8,9-99");
            request.headers_mut().insert("range", range);
            let response = client.send(request).await.unwrap();
            let length = SECRET.len() + 3;
            assert_eq!(response.headers()["content-length"], length.to_string());
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body.len(), length);
            assert!(!body.windows(4).any(|part| part == &SECRET.as_bytes()[..4]));
        });
    }
}

#[test]
fn g5_an_answer_in_an_unknown_coding_is_not_let_in() {
    run(async {
        let stage = Stage::answering("bearer: true", |_| {
            let mut response = says("whatever");
            let coding = HeaderValue::from_static("x-secret-coding");
            response.headers_mut().insert("content-encoding", coding);
            response
        });
        let stage = stage.await.serving(H1);
        let mut client = stage.client(H1).await;
        let (status, page) = client.get("a.test", stage.rig.yard.port, "/").await;
        assert_eq!(status, 502, "{page}");
    });
}

#[test]
fn g5_messages_in_a_coding_of_their_own_are_not_let_in() {
    run(async {
        let stage = Stage::answering("bearer: true", |request| {
            let mut response = says("whatever");
            // As servers do: in what the request is in.
            let coding = request.headers()["grpc-encoding"].clone();
            response.headers_mut().insert("grpc-encoding", coding);
            response
        });
        let stage = stage.await.serving(H2);
        let mut client = stage.client(H2).await;
        for (coding, want) in [("gzip", 502), ("identity", 200)] {
            let mut request = stage.request(&client, "/");
            let coding = HeaderValue::from_static(coding);
            request.headers_mut().insert("grpc-encoding", coding);
            assert_eq!(client.send(request).await.unwrap().status(), want);
        }
    });
}

#[test]
fn g5_a_secret_that_has_begun_is_hidden_though_another_leaves_meanwhile() {
    run(async {
        for alpn in [H1, H2] {
            let (sender, parts) = tokio::sync::mpsc::unbounded_channel();
            let parts = RefCell::new(Some(parts));
            let stage = Stage::answering("bearer: true", move |request| {
                let mut response = match parts.borrow_mut().take() {
                    Some(parts) if request.uri().path() == "/" => {
                        Response::new(LocalBody::new(Fed(parts)))
                    }
                    _ => says("nothing"),
                };
                let kind = HeaderValue::from_static("text/plain");
                response.headers_mut().insert("content-type", kind);
                response
            });
            let stage = stage.await.serving(alpn);
            let (first, last) = SECRET.split_at(SECRET.len() - 1);
            sender.send(format!("begin {first}").into()).unwrap();
            let mut client = stage.client(alpn).await;
            let request = stage.request(&client, "/");
            let mut response = client.send(request).await.unwrap();
            let begun = response.body_mut().frame().await.unwrap().unwrap();
            assert_eq!(begun.into_data().unwrap(), "begin ");
            let rotated = "an0ther-Value/9876";
            stage.vault.holds("forge", rotated);
            let mut second = stage.client(alpn).await;
            second.get("a.test", stage.rig.yard.port, "/again").await;
            let rest = format!("{last} {rotated} {SECRET} end");
            sender.send(rest.into()).unwrap();
            drop(sender);
            let rest = text(response).await;
            let want = format!("{PLACEHOLDER} {PLACEHOLDER} {PLACEHOLDER} end");
            assert_eq!(rest, want, "{alpn:?}");
        }
    });
}

/// Gives what it is sent.
struct Fed(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let part = self.0.poll_recv(context);
        part.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[test]
fn g5_answers_to_requests_without_the_credential_are_scrubbed_too() {
    run(async {
        let stage = Stage::answering("bearer: true", |request| {
            let kind = HeaderValue::from_static("text/plain");
            let known = request.uri().path() == "/tell";
            let mut response = says(if known { SECRET } else { "" });
            response.headers_mut().insert("content-type", kind);
            response
        });
        let stage = stage.await.serving(H1);
        let mut client = stage.client(H1).await;
        let port = stage.rig.yard.port;
        client.get("a.test", port, "/").await;
        let mut own = stage.request(&client, "/tell");
        let value = HeaderValue::from_static("of-the-client");
        own.headers_mut().insert("authorization", value);
        let page = text(client.send(own).await.unwrap()).await;
        assert_eq!(page, PLACEHOLDER);
    });
}

/// A server may have kept what it got before.
#[test]
fn g5_what_another_run_sent_is_hidden_though_this_one_does_not_send_it() {
    run(async {
        for alpn in [H1, H2] {
            for how in ["bearer: true, methods: [POST]", "substitute: {body: true}"] {
                let stage = Stage::answering(how, |_| says(SECRET)).await.serving(alpn);
                let mut client = stage.client(alpn).await;
                let (status, page) = client.get("a.test", stage.rig.yard.port, "/").await;
                assert_eq!(status, 200, "{how}: {page}");
                assert!(!page.contains(&SECRET[..4]), "{how}: {page}");
                assert!(!stage.last().headers.contains_key("authorization"));
            }
        }
    });
}

#[test]
fn g5_where_it_is_not_known_what_to_hide_nothing_is_asked() {
    run(async {
        let broken = SecretError::Failed("no answer".to_owned());
        let missing = SecretError::Missing("nobody has it".to_owned());
        for (value, want) in [(broken, 502), (missing, 200)] {
            let how = "bearer: true, methods: [POST]";
            let stage = Stage::new(how).await.serving(H1);
            let values = &stage.vault.values;
            values.lock().unwrap().insert("forge", Err(value));
            let mut client = stage.client(H1).await;
            let (status, page) = client.get("a.test", stage.rig.yard.port, "/").await;
            assert_eq!(status, want, "{page}");
            assert_eq!(stage.is_untouched(), want == 502);
        }
    });
}

#[test]
fn events_pass_at_once() {
    run(async {
        for alpn in [H1, H2] {
            let stage = Stage::answering("bearer: true", |_| {
                let parts = [Ok(Frame::data(Bytes::from("data: s3\n\n")))];
                let mut response = Response::new(LocalBody::new(Unending(parts.into())));
                let kind = HeaderValue::from_static("text/event-stream");
                response.headers_mut().insert("content-type", kind);
                response
            });
            let stage = stage.await.serving(alpn);
            let mut client = stage.client(alpn).await;
            let request = stage.request(&client, "/");
            let mut response = client.send(request).await.unwrap();
            let mut found = Vec::new();
            while found.len() < 10 {
                let frame = response.body_mut().frame().await.unwrap().unwrap();
                found.extend_from_slice(&frame.into_data().unwrap());
            }
            assert_eq!(found, b"data: s3\n\n");
        }
    });
}

type Queue = std::collections::VecDeque<Result<Frame<Bytes>, BodyError>>;

/// These frames and the end.
struct Parts(Queue);

/// These frames and nothing more, for ever.
struct Unending(Queue);

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

impl http_body::Body for Unending {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.0.pop_front() {
            Some(frame) => std::task::Poll::Ready(Some(frame)),
            None => std::task::Poll::Pending,
        }
    }
}

#[test]
fn g5_a_value_that_left_is_never_forgotten() {
    run(async {
        let stage = Stage::answering("bearer: true", |request| match request.uri().path() {
            "/first" => says(SECRET),
            _ => says("noted"),
        });
        let stage = stage.await.serving(H1);
        let mut client = stage.client(H1).await;
        let port = stage.rig.yard.port;
        client.get("a.test", port, "/").await;
        for number in 1..24 {
            let value: &'static str = format!("rotated-{number:04}-0123456789").leak();
            stage.vault.holds("forge", value);
            let (status, _) = client.get("a.test", port, "/").await;
            assert_eq!(status, 200, "{number}");
        }
        let (_, page) = client.get("a.test", port, "/first").await;
        assert!(!page.contains(SECRET), "{page}");
    });
}

#[test]
fn g5_a_secret_that_comes_back_is_recorded_and_withdrawn_when_it_does_so_often() {
    run(async {
        let stage = Stage::new("bearer: true").await.serving(H1);
        let mut client = stage.client(H1).await;
        let port = stage.rig.yard.port;
        let mut answers = 0;
        let page = loop {
            let (status, page) = client.get("a.test", port, "/").await;
            if status != 200 {
                break page;
            }
            answers += 1;
            assert!(answers < 1000, "it is never withdrawn");
        };
        assert_eq!(answers, 65);
        assert!(page.contains("withdrawn for the rest of the run"), "{page}");
        assert_eq!(stage.refused(), ["credential-withdrawn"]);
        let told = stage.rig.yard.credentials().into_iter().flatten();
        let hidden = told.filter(|told| told == "forge (hidden in the answer)");
        assert!(hidden.count() > 0);
    });
}

/// Whoever knows most of a secret could ask for the rest, a character at a time.
#[test]
fn g5_parts_come_back_a_few_times_and_then_nothing_is_let_in() {
    run(async {
        for (alpn, is_header) in [(H1, false), (H1, true), (H2, false), (H2, true)] {
            let stage = Stage::answering("bearer: true", move |request| {
                let path = request.uri().path();
                let part = if path == "/part" { &SECRET[..14] } else { "" };
                let mut response = says(if is_header { "" } else { part });
                let value = HeaderValue::from_static(part);
                response.headers_mut().insert("x-echo", value);
                response
            });
            let stage = stage.await.serving(alpn);
            let mut let_in = 0;
            while reads(&stage, "a.test", "/part", alpn).await.is_some() {
                let_in += 1;
                assert!(let_in < 100, "it never ends");
            }
            // A page with the same part in its header and its body has two.
            assert_eq!(let_in, if is_header { 3 } else { 1 });
            for host in ["a.test", "b.test"] {
                stage.rig.serve(Shown::For(host), alpn);
                assert_eq!(reads(&stage, host, "/", alpn).await, None);
            }
            let refused = stage.refused();
            assert_eq!(refused[refused.len() - 2..], ["credential-withdrawn"; 2]);
            let told = stage.rig.yard.credentials().into_iter().flatten();
            let parts = told.filter(|told| told == "forge (a part hidden in the answer)");
            assert!(parts.count() > 0);
        }
    });
}

/// Wrong guesses are not hidden, and are seen all the same.
#[test]
fn g5_who_comes_near_a_secret_too_often_gets_nothing_more() {
    run(async {
        let stage = Stage::answering("bearer: true", |request| match request.uri().path() {
            "/guesses" => says(format!("{}? ", &SECRET[..8]).repeat(100_001)),
            _ => says("nothing"),
        });
        let stage = stage.await.serving(H1);
        assert!(reads(&stage, "a.test", "/", H1).await.is_some());
        assert_eq!(reads(&stage, "a.test", "/guesses", H1).await, None);
        assert_eq!(reads(&stage, "a.test", "/", H1).await, None);
        let refused = stage.refused();
        assert_eq!(refused.last().unwrap(), "credential-withdrawn");
    });
}

/// A page of `host`, if it is let in.
async fn reads(stage: &Stage, host: &str, path: &str, alpn: &[&str]) -> Option<String> {
    let mut client = stage.rig.client(host, alpn).await;
    let request = client.request(host, stage.rig.yard.port, path);
    let (head, body) = client.send(request).await.ok()?.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    let page = format!("{head:?} {}", String::from_utf8_lossy(&body));
    assert!(!page.contains(&SECRET[..12]), "{page}");
    (head.status == 200).then_some(page)
}

#[test]
fn g5_no_host_is_asked_for_parts_once_a_secret_has_left() {
    run(async {
        for name in ["range", "request-range", "if-range"] {
            let stage = Stage::new("bearer: true").await.serving(H1);
            stage.rig.serve(Shown::For("b.test"), H1);
            let port = stage.rig.yard.port;
            for sent in [false, true] {
                if sent {
                    let mut client = stage.client(H1).await;
                    client.get("a.test", port, "/").await;
                }
                let mut client = stage.rig.client("b.test", H1).await;
                let mut request = client.request("b.test", port, "/part");
                let value = HeaderValue::from_static("bytes=0-9");
                request.headers_mut().insert(name, value);
                client.send(request).await.unwrap();
                assert_eq!(stage.last().headers.contains_key(name), !sent, "{name}");
            }
        }
    });
}
