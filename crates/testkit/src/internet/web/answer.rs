//! What web servers send: bodies in one piece, in pieces, with trailers.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

pub(super) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A body of known length.
pub(super) fn whole(status: StatusCode, kind: &str, bytes: impl Into<Bytes>) -> Answer {
    with_body(status, kind, Full::new(bytes.into()).boxed_unsync())
}

/// Text with its end of line.
pub(super) fn text(status: StatusCode, text: &str) -> Answer {
    whole(status, "text/plain", format!("{text}\n"))
}

/// A body that is sent by a task, piece by piece.
pub(super) fn streamed<F, T>(kind: &str, send: F) -> Answer
where
    F: FnOnce(Pieces) -> T,
    T: Future<Output = Option<()>> + Send + 'static,
{
    let (sender, body) = Channel::new(1);
    tokio::spawn(send(Pieces(sender)));
    with_body(StatusCode::OK, kind, body.boxed_unsync())
}

/// Sends the pieces of a body; `None` when nobody wants more.
pub(super) struct Pieces(Sender<Bytes, Infallible>);

impl Pieces {
    pub(super) async fn send(&mut self, piece: impl Into<Bytes>) -> Option<()> {
        self.0.send_data(piece.into()).await.ok()?;
        // Or the next piece would be written together with this one.
        tokio::task::yield_now().await;
        Some(())
    }

    pub(super) async fn end_with(&mut self, trailers: HeaderMap) -> Option<()> {
        self.0.send_trailers(trailers).await.ok()
    }
}

/// Adds a header whose value came from a client.
pub(super) fn add_header(answer: &mut Answer, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        let name = HeaderName::from_static(name);
        answer.headers_mut().append(name, value);
    }
}

fn with_body(status: StatusCode, kind: &str, body: UnsyncBoxBody<Bytes, Infallible>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let kind = HeaderValue::from_str(kind).expect("a type of content");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}
