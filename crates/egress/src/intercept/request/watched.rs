//! A body on its way out that is cut before it gives away a placeholder.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::finder::check_headers;
use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::intercept::body::{BodyError, LocalBody};
use crate::refusal::Refused;
use crate::secrets::{Found, Watch};

/// Raised when a placeholder is found where it does not belong.
pub(crate) struct Alarm {
    exit: Rc<Exit>,
    attempt: Attempt,
    refused: RefCell<Option<Refused>>,
}

impl Alarm {
    pub(crate) fn new(exit: Rc<Exit>, attempt: Attempt) -> Rc<Self> {
        Rc::new(Self {
            exit,
            attempt,
            refused: RefCell::default(),
        })
    }

    /// Writes it down.
    pub(crate) fn raise(&self, found: &Found) -> Refused {
        let refused = self.exit.refuse_placeholder(&self.attempt, found);
        *self.refused.borrow_mut() = Some(refused.clone());
        refused
    }

    /// What the client is to be told, if it was raised.
    pub(super) fn raised(&self) -> Option<Refused> {
        self.refused.borrow().clone()
    }
}

/// Passes a body on as it comes, up to the piece that completes a placeholder.
pub(super) struct Watched {
    body: LocalBody,
    watch: Watch,
    alarm: Rc<Alarm>,
}

impl Watched {
    pub(super) fn new(body: LocalBody, watch: Watch, alarm: Rc<Alarm>) -> Self {
        Self { body, watch, alarm }
    }

    fn check(&mut self, frame: &Frame<Bytes>) -> Result<(), Found> {
        match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) => self.watch.feed(data),
            (_, Some(trailers)) => check_headers(&mut self.watch, trailers),
            _ => Ok(()),
        }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        Poll::Ready(Some(match self.check(&frame) {
            Ok(()) => Ok(frame),
            Err(found) => {
                self.alarm.raise(&found);
                Err(BodyError::Placeholder)
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
