//! The body of a server's answer, for as long as the policy allows the request
//! that it answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::body::BodyError;
use super::host::Lease;
use crate::exit::Tracked;

/// What a server sends back.
pub(crate) struct ServerBody {
    body: Incoming,
    /// Ends when the policy no longer allows the request.
    revoked: Pin<Box<dyn Future<Output = ()>>>,
    _lease: Lease,
}

impl ServerBody {
    pub(super) fn new(body: Incoming, tracked: Tracked, lease: Lease) -> Self {
        Self {
            body,
            revoked: Box::pin(async move { tracked.revoked().await }),
            _lease: lease,
        }
    }

    /// Ends when the policy no longer allows the request.
    pub(super) async fn revoked(&mut self) {
        self.revoked.as_mut().await;
    }
}

impl Body for ServerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.revoked.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(BodyError::Revoked)));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_err(BodyError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
