//! A TCP connection below TLS: it reads far ahead, counts what passes, and can
//! be cut by whoever holds its [`Leash`], also after it was handed on.
//!
//! The TLS library reads in small pieces, each of which would be a system call,
//! and so would be what is written, which goes out when it is flushed or is
//! much. HTTP/2 flushes after every frame: see [`Wire::gather`]. A connection
//! that is quiet holds no buffer.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::relay::reset_on_close;
use crate::traffic::Traffic;
use spare::Spare;

/// Read and written at once: a few records.
const ROOM: usize = 64 * 1024;
/// What is kept at most: a record is not torn for what is over.
const MOST: usize = ROOM + 32 * 1024;
/// The same where many connections hold much: one record.
const SMALL: usize = 18 * 1024;
/// Less than this is no part of something large, and goes out at once.
const LITTLE: usize = 4 * 1024;

/// A connection with what was read of it and not used yet, and what is to be
/// written.
pub(crate) struct Wire {
    stream: TcpStream,
    /// What was read before it was a wire.
    early: BytesMut,
    inbox: Spare,
    outbox: Spare,
    /// Whether more is waited for before anything large goes out.
    gathers: bool,
    /// Whether something was written since it was flushed.
    is_fresh: bool,
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
    /// A connection of which `early` was already read.
    pub(crate) fn new(stream: TcpStream, early: BytesMut, traffic: Arc<Traffic>) -> (Self, Leash) {
        let (cut, when_cut) = oneshot::channel();
        let (alive, gone) = oneshot::channel();
        let wire = Self {
            stream,
            early,
            inbox: Spare::default(),
            outbox: Spare::default(),
            gathers: false,
            is_fresh: false,
            traffic,
            cut: when_cut,
            _alive: alive,
        };
        let cut = Some(cut);
        (wire, Leash { cut, gone })
    }

    /// From now on, a large write that is flushed goes out only when its task
    /// is next run and flushes with nothing new: what is ready by then goes
    /// with it. For tasks that flush whenever they are run, and for answers:
    /// servers take requests that come together with their cancelling for an
    /// attack, and close the connection that others share.
    pub(crate) fn gather(&mut self) {
        self.gathers = true;
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        // Let go of unused, a leash holds nothing back.
        if let Poll::Ready(Ok(())) = Pin::new(&mut self.cut).poll(context) {
            reset_on_close(&self.stream);
            self.outbox.clear();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Poll::Ready(most) = self.traffic.sips.poll_most(context) else {
            self.inbox = Spare::default();
            return Poll::Pending;
        };
        let most = most?;
        match most {
            Some(most) => self.inbox = Spare::little(most),
            None => self.inbox.prepare(),
        }
        let mut room = (&mut *self.inbox).limit(most.unwrap_or(usize::MAX));
        let read = pin!(self.stream.read_buf(&mut room)).poll(context);
        match &read {
            Poll::Ready(Ok(count @ 1..)) => self.traffic.received(*count as u64),
            _ => self.inbox = Spare::default(),
        }
        read
    }

    /// Takes what there is room for.
    fn poll_put(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        if self.outbox.is_full() {
            ready!(self.poll_drain(context))?;
        }
        self.outbox.prepare();
        self.is_fresh = true;
        self.traffic.written();
        let before = self.outbox.len();
        for part in parts {
            let room = self.outbox.room();
            self.outbox.extend_from_slice(&part[..part.len().min(room)]);
        }
        Poll::Ready(Ok(self.outbox.len() - before))
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outbox.is_empty() {
            let stream = Pin::new(&mut self.stream);
            let count = ready!(stream.poll_write(context, &self.outbox))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.traffic.sent(count as u64);
            self.outbox.advance(count);
        }
        self.outbox = Spare::default();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Wire {
    /// An alert may be the last word, which nobody flushes.
    fn drop(&mut self) {
        if self.cut.try_recv().is_ok() {
            reset_on_close(&self.stream);
        } else if !self.outbox.is_empty()
            && let Ok(count) = self.stream.try_write(&self.outbox)
        {
            self.traffic.sent(count as u64);
        }
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
        if !self.early.is_empty() {
            let count = self.early.len().min(buffer.remaining());
            buffer.put_slice(&self.early[..count]);
            self.early.advance(count);
            return Poll::Ready(Ok(()));
        }
        self.early = BytesMut::new();
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
        self.poll_put(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_put(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        let is_fresh = std::mem::take(&mut self.is_fresh);
        if self.gathers && is_fresh && (LITTLE..ROOM).contains(&self.outbox.len()) {
            context.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(context))?;
        self.traffic.flushed();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Buffers, of which only so many are large at once.
mod spare {
    use std::cell::{Cell, RefCell};
    use std::ops::{Deref, DerefMut};

    use bytes::BytesMut;

    use super::{MOST, ROOM, SMALL};

    /// More than this many are not used at once for long.
    const KEPT: usize = 8;
    /// Large ones in use at once, by connections whose other side is slow.
    const MOST_LARGE: usize = 32;

    thread_local! {
        static SPARE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
        static LENT: Cell<usize> = const { Cell::new(0) };
    }

    /// A buffer on loan, or none.
    #[derive(Default)]
    pub(super) struct Spare {
        bytes: BytesMut,
        is_large: bool,
    }

    impl Spare {
        /// Has one where there was none.
        pub(super) fn prepare(&mut self) {
            if self.bytes.is_empty() && !self.is_large {
                *self = Self::take();
            }
        }

        /// One for so much.
        pub(super) fn little(most: usize) -> Self {
            Self {
                bytes: BytesMut::with_capacity(most),
                is_large: false,
            }
        }

        fn take() -> Self {
            if LENT.get() >= MOST_LARGE {
                let bytes = BytesMut::with_capacity(SMALL);
                let is_large = false;
                return Self { bytes, is_large };
            }
            LENT.set(LENT.get() + 1);
            let spare = SPARE.with_borrow_mut(Vec::pop);
            let mut bytes = spare.unwrap_or_default();
            // Of one that was read from, the front is free again.
            bytes.reserve(MOST);
            Self {
                bytes,
                is_large: true,
            }
        }

        /// Whether it is to be written before anything more is put in.
        pub(super) fn is_full(&self) -> bool {
            self.bytes.len() >= if self.is_large { ROOM } else { SMALL }
        }

        /// How much may be put in.
        pub(super) fn room(&self) -> usize {
            let most = if self.is_large { MOST } else { SMALL };
            most.saturating_sub(self.bytes.len())
        }
    }

    impl Deref for Spare {
        type Target = BytesMut;

        fn deref(&self) -> &BytesMut {
            &self.bytes
        }
    }

    impl DerefMut for Spare {
        fn deref_mut(&mut self) -> &mut BytesMut {
            &mut self.bytes
        }
    }

    impl Drop for Spare {
        fn drop(&mut self) {
            if !self.is_large {
                return;
            }
            LENT.set(LENT.get().saturating_sub(1));
            SPARE.with_borrow_mut(|spare| {
                if spare.len() < KEPT {
                    self.bytes.clear();
                    spare.push(std::mem::take(&mut self.bytes));
                }
            });
        }
    }

    #[cfg(test)]
    pub(super) fn lent() -> usize {
        LENT.get()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;
    use crate::testing::run;

    async fn pair() -> (Wire, Leash, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap());
        let ours = ours.await.unwrap();
        let (theirs, _) = listener.accept().await.unwrap();
        let (wire, leash) = Wire::new(ours, BytesMut::new(), Arc::new(Traffic::new()));
        (wire, leash, theirs)
    }

    /// Flushes as a task does that goes on with something else.
    async fn flush(wire: &mut Wire) {
        poll_fn(|context| Pin::new(&mut *wire).poll_flush(context))
            .await
            .unwrap();
    }

    fn sent(wire: &Wire) -> u64 {
        wire.traffic.total_sent()
    }

    #[test]
    fn what_is_written_goes_out_when_it_is_flushed_or_is_much() {
        run(async {
            let (mut wire, _leash, mut theirs) = pair().await;
            wire.write_all(b"little").await.unwrap();
            assert_eq!(sent(&wire), 0);
            flush(&mut wire).await;
            assert_eq!(sent(&wire), 6);
            let much = vec![7; 3 * ROOM];
            wire.write_all(&much).await.unwrap();
            assert!(sent(&wire) >= ROOM as u64);
            flush(&mut wire).await;
            assert_eq!(wire.outbox.capacity(), 0);
            assert_eq!(spare::lent(), 0);
            drop(wire);
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).await.unwrap();
            assert_eq!(got.len(), 6 + 3 * ROOM);
            assert!(got.starts_with(b"little") && got[6..].iter().all(|byte| *byte == 7));
        });
    }

    #[test]
    fn large_writes_are_gathered_until_nothing_new_comes() {
        run(async {
            let (mut wire, _leash, _theirs) = pair().await;
            wire.gather();
            wire.write_all(b"little").await.unwrap();
            flush(&mut wire).await;
            assert_eq!(sent(&wire), 6);
            for _ in 0..2 {
                wire.write_all(&[7; 2 * LITTLE]).await.unwrap();
                flush(&mut wire).await;
                assert_eq!(sent(&wire), 6);
            }
            flush(&mut wire).await;
            assert_eq!(sent(&wire), 6 + 4 * LITTLE as u64);
        });
    }

    #[test]
    fn a_last_word_goes_out_without_being_flushed() {
        run(async {
            let (mut wire, _leash, mut theirs) = pair().await;
            wire.write_all(b"alert").await.unwrap();
            drop(wire);
            let mut got = Vec::new();
            theirs.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, b"alert");
        });
    }

    #[test]
    fn g6_nothing_goes_out_over_a_wire_that_was_cut() {
        run(async {
            for is_seen in [false, true] {
                let (mut wire, mut leash, mut theirs) = pair().await;
                wire.write_all(b"too late").await.unwrap();
                leash.cut();
                if is_seen {
                    wire.flush().await.unwrap_err();
                }
                drop(wire);
                let mut got = Vec::new();
                let _ = theirs.read_to_end(&mut got).await;
                assert_eq!(got, b"", "{is_seen}");
            }
        });
    }
}
