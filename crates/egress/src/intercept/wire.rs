//! A TCP connection below TLS: it reads far ahead, counts what passes, and can
//! be cut by whoever holds its [`Leash`], also after it was handed on.
//!
//! The TLS library reads in small pieces, each of which would be a system call.
//! A connection that is quiet holds no buffer.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::relay::reset_on_close;
use crate::traffic::Traffic;

/// Read at once: a few records.
const ROOM: usize = 64 * 1024;

/// A connection with what was read of it and not used yet.
pub(crate) struct Wire {
    stream: TcpStream,
    inbox: BytesMut,
    traffic: Arc<Traffic>,
    cut: oneshot::Receiver<()>,
    /// Its other end learns that this one is gone.
    _alive: oneshot::Sender<Infallible>,
}

/// What cuts a [`Wire`], and sees it go.
pub(crate) struct Leash {
    cut: Option<oneshot::Sender<()>>,
    gone: oneshot::Receiver<Infallible>,
}

impl Wire {
    /// A connection of which `inbox` was already read.
    pub(crate) fn new(stream: TcpStream, inbox: BytesMut, traffic: Arc<Traffic>) -> (Self, Leash) {
        let (cut, when_cut) = oneshot::channel();
        let (alive, gone) = oneshot::channel();
        let wire = Self {
            stream,
            inbox,
            traffic,
            cut: when_cut,
            _alive: alive,
        };
        let cut = Some(cut);
        (wire, Leash { cut, gone })
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        // Let go of unused, a leash holds nothing back.
        if let Poll::Ready(Ok(())) = Pin::new(&mut self.cut).poll(context) {
            reset_on_close(&self.stream);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.inbox.capacity() == 0 {
            self.inbox = spare::take();
        }
        self.inbox.reserve(ROOM);
        let read = pin!(self.stream.read_buf(&mut self.inbox)).poll(context);
        match &read {
            Poll::Ready(Ok(count)) => self.traffic.received(*count as u64),
            _ => spare::give(std::mem::take(&mut self.inbox)),
        }
        read
    }

    fn count(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &written {
            self.traffic.sent(*count as u64);
        }
        written
    }
}

impl Leash {
    /// Ends once the wire is let go of.
    pub(crate) async fn gone(&mut self) {
        // Nothing is ever sent over it.
        let _ = (&mut self.gone).await;
    }

    /// Ends whatever still goes on over the wire, by a reset.
    pub(crate) fn cut(&mut self) {
        if let Some(cut) = self.cut.take() {
            // Who is gone need not be cut.
            let _ = cut.send(());
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        if self.inbox.is_empty() {
            match self.poll_fill(context) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        let count = self.inbox.len().min(buffer.remaining());
        buffer.put_slice(&self.inbox[..count]);
        self.inbox.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Buffers that nobody reads into at the moment.
mod spare {
    use std::cell::RefCell;

    use bytes::BytesMut;

    /// More than this many are not read into at once for long.
    const KEPT: usize = 8;

    thread_local! {
        static SPARE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn take() -> BytesMut {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Takes back an empty one.
    pub(super) fn give(buffer: BytesMut) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT {
                spare.push(buffer);
            }
        });
    }
}
