//! A body in which secrets are hidden while it streams.
//!
//! Nothing waits longer than it must: what cannot be the beginning of a secret
//! passes at once.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame};

use super::{Hiding, Looking, scrub_headers};
use crate::intercept::body::BodyError;
use crate::intercept::server_body::ServerBody;
use crate::secrets::{Decoder, Forms, Progress, Scrubber};

/// What comes of a server's body.
pub(super) struct Scrubbed<B = ServerBody> {
    body: B,
    decoder: Option<Decoder>,
    hider: Hider,
    /// Read and not decoded yet.
    encoded: Bytes,
    /// The decoder has more to give.
    unfinished: bool,
    /// Ready to pass.
    out: BytesMut,
    end: End,
}

/// How far the end is.
enum End {
    NotYet,
    /// Only these are left.
    Trailers(HeaderMap),
    Reached,
}

impl<B> Scrubbed<B>
where
    B: Body<Data = Bytes, Error = BodyError> + Unpin,
{
    pub(super) fn new(body: B, decoder: Option<Decoder>, hiding: Hiding, looking: Looking) -> Self {
        Self {
            body,
            decoder,
            hider: Hider::new(hiding, looking),
            encoded: Bytes::new(),
            unfinished: false,
            out: BytesMut::new(),
            end: End::NotYet,
        }
    }

    /// Takes what was read a step further.
    fn digest(&mut self) -> Result<(), BodyError> {
        let Some(decoder) = &mut self.decoder else {
            let bytes = std::mem::take(&mut self.encoded);
            return self.hide(&bytes);
        };
        let mut plain = BytesMut::new();
        let mut rest = &self.encoded[..];
        let progress = decoder
            .decode(&mut rest, &mut plain)
            .map_err(|_| BodyError::Coding)?;
        let used = self.encoded.len() - rest.len();
        bytes::Buf::advance(&mut self.encoded, used);
        self.unfinished = progress == Progress::More;
        if progress != Progress::More {
            // What follows the end of the content is left out.
            self.encoded.clear();
        }
        self.hide(&plain)
    }

    fn hide(&mut self, bytes: &[u8]) -> Result<(), BodyError> {
        self.hider.feed(bytes, &mut self.out);
        self.check()
    }

    /// Nothing of an answer is let in by which secrets are guessed.
    fn check(&mut self) -> Result<(), BodyError> {
        if self.hider.is_cut() {
            self.out.clear();
            return Err(BodyError::Guessed);
        }
        Ok(())
    }

    fn finish(&mut self, trailers: Option<HeaderMap>) -> Result<(), BodyError> {
        if let Some(decoder) = &mut self.decoder {
            decoder.finish().map_err(|_| BodyError::Coding)?;
        }
        self.hider.finish(&mut self.out);
        self.check()?;
        self.end = match trailers {
            Some(mut trailers) => {
                scrub_headers(&mut trailers, &self.hider.looking);
                End::Trailers(trailers)
            }
            None => End::Reached,
        };
        Ok(())
    }

    /// The next frame that is ready.
    fn ready(&mut self) -> Option<Frame<Bytes>> {
        if !self.out.is_empty() {
            return Some(Frame::data(self.out.split().freeze()));
        }
        match std::mem::replace(&mut self.end, End::Reached) {
            End::Trailers(trailers) => Some(Frame::trailers(trailers)),
            end => {
                self.end = end;
                None
            }
        }
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), BodyError> {
        match frame.into_data() {
            Ok(data) => {
                self.encoded = data;
                Ok(())
            }
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => self.finish(Some(trailers)),
                Err(_) => Ok(()),
            },
        }
    }

    fn step(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        if self.unfinished || !self.encoded.is_empty() {
            return Poll::Ready(self.digest());
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(self.take(frame)),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Err(error)),
            Poll::Ready(None) => Poll::Ready(self.finish(None)),
            Poll::Pending => {
                self.hider.release(&mut self.out);
                if let Err(error) = self.check() {
                    return Poll::Ready(Err(error));
                }
                if self.out.is_empty() {
                    Poll::Pending
                } else {
                    Poll::Ready(Ok(()))
                }
            }
        }
    }
}

impl<B> Body for Scrubbed<B>
where
    B: Body<Data = Bytes, Error = BodyError> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            if let Some(frame) = self.ready() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if matches!(self.end, End::Reached) {
                return Poll::Ready(None);
            }
            match self.step(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    self.end = End::Reached;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.out.is_empty() && matches!(self.end, End::Reached)
    }
}

/// Hides the secrets that have left by now, also those that leave while the
/// stream goes on.
pub(crate) struct Hider {
    looking: Looking,
    hiding: Hiding,
    /// What is read goes through all of them. The last knows every secret; one
    /// before it is in the middle of what may be a secret that it knows.
    scrubbers: Vec<(Arc<Forms>, Scrubber)>,
}

impl Hider {
    pub(crate) fn new(hiding: Hiding, looking: Looking) -> Self {
        Self {
            looking,
            hiding,
            scrubbers: Vec::new(),
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut BytesMut) {
        self.renew();
        self.pass(bytes, out, |_, _| {});
        self.forget_older();
    }

    /// Lets go of what is not likely to become a secret, because nothing
    /// follows at the moment.
    pub(crate) fn release(&mut self, out: &mut BytesMut) {
        self.pass(&[], out, Scrubber::release);
    }

    /// Lets go of all that is held back, for whoever may have to speak before
    /// more comes.
    pub(crate) fn let_go(&mut self, out: &mut BytesMut) {
        self.pass(&[], out, Scrubber::let_go);
    }

    /// Lets go of what is left.
    pub(crate) fn finish(&mut self, out: &mut BytesMut) {
        self.pass(&[], out, Scrubber::finish);
        self.scrubbers.clear();
    }

    /// Whether nothing more may be let in, because secrets are guessed at.
    pub(crate) fn is_cut(&self) -> bool {
        self.looking.is_cut()
    }

    /// Whether something waits for what follows it.
    pub(crate) fn is_holding(&self) -> bool {
        self.scrubbers.iter().any(|(_, own)| own.is_holding())
    }

    /// Feeds one scrubber after the other, and does `then` with each.
    fn pass(&mut self, bytes: &[u8], out: &mut BytesMut, then: fn(&mut Scrubber, &mut BytesMut)) {
        let Some(((_, newest), older)) = self.scrubbers.split_last_mut() else {
            out.extend_from_slice(bytes);
            return;
        };
        let mut left = Cow::Borrowed(bytes);
        for (_, scrubber) in older {
            let mut passed = BytesMut::new();
            scrubber.feed(&left, &mut passed);
            then(scrubber, &mut passed);
            left = Cow::Owned(passed.into());
        }
        newest.feed(&left, out);
        then(newest, out);
        for (_, scrubber) in &mut self.scrubbers {
            self.looking.note(scrubber.take_found());
        }
    }

    /// Knows the secrets that left since, from here on: none of them can have
    /// begun to come back before. Those that have begun are hidden to the end.
    fn renew(&mut self) {
        let Some(forms) = self.looking.forms() else {
            return;
        };
        let newest = self.scrubbers.last();
        if newest.is_some_and(|(own, _)| Arc::ptr_eq(own, &forms)) {
            return;
        }
        let scrubber = Scrubber::new(Arc::clone(&forms));
        let scrubber = match self.hiding {
            Hiding::Placeholder => scrubber,
            Hiding::Covering => scrubber.keeping_lengths(),
        };
        self.scrubbers.push((forms, scrubber));
    }

    /// Only the last is needed, once the others are not in the middle of
    /// anything.
    fn forget_older(&mut self) {
        if let Some(newest) = self.scrubbers.pop() {
            self.scrubbers.retain(|(_, scrubber)| !scrubber.is_idle());
            self.scrubbers.push(newest);
        }
    }
}
