//! The end of an answer that comes before its request has ended.
//!
//! To end the answer is to reset the stream or the connection, and clients that
//! are told both at once lose the answer. So what they still send is read and
//! dropped first.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use super::body::{BodyError, Kept, LocalBody};
use crate::closing::{MOST_DRAINED, PATIENCE};

/// An answer that ends when the request has, or after a while. Its length is
/// not told: whoever knows it does not wait for the end.
pub(super) struct Lingering {
    answer: LocalBody,
    request: Kept,
    dropped: usize,
    /// Runs once the answer has been said.
    patience: Option<Pin<Box<Sleep>>>,
}

impl Lingering {
    pub(super) fn new(answer: LocalBody, request: Kept) -> Self {
        Self {
            answer,
            request,
            dropped: 0,
            patience: None,
        }
    }

    /// Ready when the client has stopped sending, or was given long enough.
    fn poll_drained(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let patience = self
            .patience
            .get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        if patience.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        while self.dropped < MOST_DRAINED {
            match ready!(Pin::new(&mut self.request).poll_frame(context)) {
                Some(Ok(frame)) => self.dropped += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) | None => break,
            }
        }
        Poll::Ready(())
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.patience.is_none()
            && let Some(frame) = ready!(Pin::new(&mut self.answer).poll_frame(context))
        {
            return Poll::Ready(Some(frame));
        }
        ready!(self.poll_drained(context));
        Poll::Ready(None)
    }
}
