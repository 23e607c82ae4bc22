//! `Expect: 100-continue` from end to end: the body waits for the server.
//!
//! hyper tells a client to go on once its body is asked for, so the body is
//! not asked for before the server wants it, answers, or has had its time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{EXPECT, HeaderMap};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

use crate::intercept::body::{BodyError, LocalBody};

/// A server that does not know of expectations says nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a request expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expectation {
    Nothing,
    Continue,
    Unknown,
}

/// What `Expect` says.
pub(super) fn expectation(headers: &HeaderMap) -> Expectation {
    let mut values = headers.get_all(EXPECT).iter().peekable();
    if values.peek().is_none() {
        return Expectation::Nothing;
    }
    if values.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        Expectation::Continue
    } else {
        Expectation::Unknown
    }
}

/// Says when the body may go.
#[derive(Clone, Default)]
pub(super) struct Signal(Arc<Notify>);

impl Signal {
    /// The server has answered, one way or the other.
    pub(super) fn give(&self) {
        self.0.notify_one();
    }

    /// Gives the signal when the server says `100 Continue` to `request`.
    pub(super) fn listen<B>(&self, request: &mut http::Request<B>) {
        let signal = self.clone();
        hyper::ext::on_informational(request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                signal.give();
            }
        });
    }
}

/// A body that waits for its signal.
pub(super) struct Awaited {
    body: LocalBody,
    waiting: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Awaited {
    pub(super) fn new(body: LocalBody, signal: &Signal) -> Self {
        let signal = signal.clone();
        let waiting = async move {
            // Whoever stays silent gets the body as well.
            let _ = tokio::time::timeout(PATIENCE, signal.0.notified()).await;
        };
        Self {
            body,
            waiting: Some(Box::pin(waiting)),
        }
    }
}

impl Body for Awaited {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(context));
            self.waiting = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
