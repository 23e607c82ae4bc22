//! Bodies as they pass through: streamed, on one thread, perhaps looked into.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use thiserror::Error;

/// A body of any make. It stays on its thread, so it may share what is there.
pub(crate) struct LocalBody(Pin<Box<dyn Body<Data = Bytes, Error = BodyError>>>);

/// A body on its way to a server.
pub(crate) type RequestBody = LocalBody;
/// A body on its way into the sandbox.
pub(crate) type ResponseBody = LocalBody;

/// Why a body breaks off.
#[derive(Debug, Error)]
pub(crate) enum BodyError {
    /// Its connection did.
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    /// It holds what must not leave.
    #[error("the body holds the placeholder of a secret that does not belong there")]
    Placeholder,
    /// It is not what its `Content-Encoding` says.
    #[error("the body cannot be decoded")]
    Coding,
    /// Secrets are being guessed at.
    #[error("parts of secrets came back")]
    Guessed,
    /// The policy no longer allows the request.
    #[error("the policy no longer allows it")]
    Revoked,
}

/// A client's body that several hold. Letting go of it before the answer is
/// sent would have HTTP/2 reset the stream, and nobody would see the answer.
#[derive(Clone)]
pub(crate) struct Kept {
    body: Rc<RefCell<Incoming>>,
    /// What was read to look at it, and was not passed on yet.
    ahead: Rc<RefCell<Option<Ahead>>>,
    was_asked_for: Rc<Cell<bool>>,
}

/// The next piece of a body, or its end.
type Ahead = Option<Result<Frame<Bytes>, hyper::Error>>;

impl Kept {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body: Rc::new(RefCell::new(body)),
            ahead: Rc::default(),
            was_asked_for: Rc::default(),
        }
    }

    /// Its first data as soon as that has come, which stays where it is.
    pub(crate) async fn beginning(&self) -> Bytes {
        let mut body = self.clone();
        let first = body.frame().await;
        let data = match &first {
            Some(Ok(frame)) => frame.data_ref().cloned(),
            _ => None,
        };
        self.ahead.replace(Some(first));
        data.unwrap_or_default()
    }

    /// Whether all of it was passed on.
    pub(crate) fn is_done(&self) -> bool {
        self.is_end_stream()
    }

    /// Whether the client was told to send it, if it waited for that.
    pub(crate) fn was_asked_for(&self) -> bool {
        self.was_asked_for.get()
    }
}

impl Body for Kept {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.was_asked_for.set(true);
        if let Some(ahead) = self.ahead.take() {
            return Poll::Ready(ahead);
        }
        Pin::new(&mut *self.body.borrow_mut()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.borrow().is_none() && self.body.borrow().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.borrow().size_hint();
        let ahead = self.ahead.borrow();
        let data = ahead.as_ref().and_then(Option::as_ref);
        let data = data.and_then(|read| read.as_ref().ok()?.data_ref());
        let read = data.map_or(0, |data| data.len() as u64);
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + read);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + read);
        }
        whole
    }
}

/// A body, and something to let go of with it.
struct Holding<T> {
    body: LocalBody,
    _held: T,
}

impl<T: Unpin> Body for Holding<T> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl LocalBody {
    /// The same, holding something as long as it lasts.
    pub(crate) fn holding(self, held: impl Unpin + 'static) -> Self {
        Self::new(Holding {
            body: self,
            _held: held,
        })
    }

    pub(crate) fn new(body: impl Body<Data = Bytes, Error = BodyError> + 'static) -> Self {
        Self(Box::pin(body))
    }

    /// As it comes from a connection.
    pub(crate) fn incoming(body: impl Body<Data = Bytes, Error = hyper::Error> + 'static) -> Self {
        Self::new(body.map_err(BodyError::from))
    }

    /// With nothing in it.
    pub(crate) fn empty() -> Self {
        Self::new(Empty::new().map_err(|never| match never {}))
    }

    /// With all of it at hand, and something to let go of once it is sent.
    pub(crate) fn full_holding(bytes: Bytes, held: impl Sized + 'static) -> Self {
        Self::new(Full::new(bytes).map_err(move |never| {
            let _held = &held;
            match never {}
        }))
    }

    /// With all of it at hand.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::new(Full::new(bytes.into()).map_err(|never| match never {}))
    }
}

impl Body for LocalBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
