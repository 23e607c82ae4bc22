//! What may follow a request's body: nothing that would say something else of
//! the request than what was judged.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http::header::HeaderName;
use http_body::{Body, Frame, SizeHint};

use crate::intercept::body::{BodyError, LocalBody};

/// What a server must not take from there (RFC 9110, 6.5.1), and some do.
const FORBIDDEN: [&str; 16] = [
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "host",
    "max-forwards",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A body without such trailers.
pub(super) struct Ended(LocalBody);

impl Ended {
    pub(super) fn new(body: LocalBody) -> Self {
        Self(body)
    }
}

fn drop_forbidden(trailers: &mut HeaderMap) {
    let is_forbidden = |name: &&HeaderName| {
        let name = name.as_str().replace('_', "-");
        FORBIDDEN.contains(&name.as_str()) || name.starts_with("proxy-")
    };
    let names: Vec<HeaderName> = trailers.keys().filter(is_forbidden).cloned().collect();
    for name in names {
        trailers.remove(name);
    }
}

impl Body for Ended {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.0).poll_frame(context);
        frame.map_ok(|mut frame| {
            if let Some(trailers) = frame.trailers_mut() {
                drop_forbidden(trailers);
            }
            frame
        })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
