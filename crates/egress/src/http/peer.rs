//! One end of an exchange: a connection, and what came over it and was not
//! used yet.
//!
//! A connection that never sent anything holds no buffer.

use std::io;
use std::rc::Rc;

use bytes::Buf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::body::{BadChunk, Body};
use crate::buffers::Buffer;
use crate::cover::Cover;
use crate::inbox::{Inbox, ROOM};
use crate::memory::{Memory, Use};
use crate::refusal::Refused;
use crate::relay::Clock;
use crate::sentry::Sentry;

/// A connection and its unread bytes.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    pub(crate) inbox: Inbox,
    side: Side,
    memory: Rc<Memory>,
    /// What covers secrets in what comes over it, before anything reads it.
    cover: Option<Cover>,
}

/// Which end of an exchange it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

impl Side {
    /// What room for a large head is taken for.
    fn room(self) -> Use {
        match self {
            Self::Client => Use::Head,
            Self::Server => Use::Answer,
        }
    }
}

/// The reading half of a [`Peer`].
pub(crate) struct Incoming<'a> {
    half: ReadHalf<'a>,
    pub(crate) inbox: &'a mut Inbox,
    side: Side,
    memory: &'a Rc<Memory>,
    cover: &'a mut Option<Cover>,
}

/// Where passing a body on failed.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Reading failed, or ended too early.
    Source,
    /// Writing failed.
    Sink,
    /// What was read is no valid body.
    Bad(BadChunk),
    /// It may not leave.
    Refused(Refused),
}

impl Peer {
    /// A client of which `inbox` was read.
    pub(crate) fn client(stream: TcpStream, inbox: Inbox, memory: &Rc<Memory>) -> Self {
        Self {
            stream,
            inbox,
            side: Side::Client,
            memory: Rc::clone(memory),
            cover: None,
        }
    }

    /// A server that has said nothing yet.
    pub(crate) fn server(stream: TcpStream, memory: &Rc<Memory>) -> Self {
        Self {
            side: Side::Server,
            ..Self::client(stream, Inbox::default(), memory)
        }
    }

    /// One that may say what `cover` knows.
    pub(crate) fn covered(self, cover: Option<Cover>) -> Self {
        Self { cover, ..self }
    }

    pub(crate) fn split(&mut self) -> (Incoming<'_>, WriteHalf<'_>) {
        let (half, to) = self.stream.split();
        let incoming = Incoming {
            half,
            inbox: &mut self.inbox,
            side: self.side,
            memory: &self.memory,
            cover: &mut self.cover,
        };
        (incoming, to)
    }

    /// Reads more into the inbox; 0 at the end of the connection.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.split().0.fill().await
    }

    /// Reads what has already come, without waiting for more.
    pub(crate) fn take_what_is_there(&mut self) {
        let mut bytes = [0; 4096];
        // Asked of the kernel itself: the runtime has not looked yet. An end or
        // a failure shows again when more is read.
        let flags = rustix::net::RecvFlags::DONTWAIT;
        if let Ok((read, _)) = rustix::net::recv(&self.stream, &mut bytes[..], flags) {
            self.inbox.extend_from_slice(&bytes[..read]);
        }
    }

    /// Ends when the other side closes or sends something.
    pub(crate) async fn stirs(&self) {
        loop {
            if self.stream.readable().await.is_err() {
                return;
            }
            // Being readable may be a thing of the past.
            match self.stream.try_read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }

    /// Whether the other side has closed or sent something.
    pub(crate) fn has_stirred(&self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Incoming<'_> {
    /// Reads more into the inbox; 0 at the end of the connection.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        if self.inbox.is_empty() && self.cover.is_none() {
            self.half.readable().await?;
        }
        self.inbox.make_room(self.memory, self.side.room()).await;
        match self.cover {
            Some(cover) => cover.read(&mut self.half, self.inbox).await,
            None => self.half.read_buf(&mut **self.inbox).await,
        }
    }

    /// Passes `body` on to its end. What was read beyond it stays in the inbox.
    pub(crate) async fn pass(
        &mut self,
        body: &mut Watched,
        to: &mut WriteHalf<'_>,
        passed: impl Fn(usize),
        clock: &Clock,
    ) -> Result<(), Broken> {
        if !self.inbox.is_empty() && !body.is_done() {
            self.pass_inbox(body, to, &passed).await?;
        }
        while self.cover.is_some() && !body.is_done() {
            match self.fill().await {
                Ok(0) if body.body.may_end_here() => return Ok(()),
                Ok(0) | Err(_) => return Err(Broken::Source),
                Ok(_) => clock.touch(),
            }
            self.pass_inbox(body, to, &passed).await?;
        }
        while !body.is_done() {
            self.half.readable().await.map_err(|_| Broken::Source)?;
            let mut buffer = Buffer::take();
            let most = self.most_to_read(&body.body).min(buffer.len());
            let read = match self.half.try_read(&mut buffer[..most]) {
                Ok(0) if body.body.may_end_here() => return Ok(()),
                Ok(0) => return Err(Broken::Source),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return Err(Broken::Source),
            };
            clock.touch();
            let taken = body.take(&buffer[..read])?;
            send(to, &buffer[..taken], &passed).await?;
            self.keep(&buffer[taken..read]);
        }
        Ok(())
    }

    /// What a client sends after a body is its next request, for which there
    /// is room. What a server says after one is only counted as a surplus.
    fn most_to_read(&self, body: &Body) -> usize {
        match (self.side, body) {
            (Side::Client, Body::Chunked(_)) => ROOM,
            _ => body.most_to_read(),
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        let most = match self.side {
            Side::Client => rest.len(),
            Side::Server => rest.len().min(1),
        };
        self.inbox.extend_from_slice(&rest[..most]);
    }

    async fn pass_inbox(
        &mut self,
        body: &mut Watched,
        to: &mut WriteHalf<'_>,
        passed: impl Fn(usize),
    ) -> Result<(), Broken> {
        let taken = body.take(self.inbox)?;
        send(to, &self.inbox[..taken], passed).await?;
        self.inbox.advance(taken);
        Ok(())
    }
}

/// A body, and who watches it if somebody does.
pub(crate) struct Watched {
    body: Body,
    sentry: Option<Sentry>,
}

impl Watched {
    pub(crate) fn new(body: Body, sentry: Option<Sentry>) -> Self {
        Self { body, sentry }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.body.is_done()
    }

    /// How many of `bytes` belong to the body, if they may leave.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let Self { body, sentry } = self;
        let Some(sentry) = sentry else {
            return body.take(bytes).map_err(Broken::Bad);
        };
        let mut looked = Ok(());
        let show = |content: &[u8]| {
            if looked.is_ok() {
                looked = sentry.check_content(content);
            }
        };
        let taken = body.take_showing(bytes, show).map_err(Broken::Bad)?;
        looked
            .and_then(|()| sentry.check(&bytes[..taken]))
            .map_err(Broken::Refused)?;
        Ok(taken)
    }
}

/// Writes all of `bytes`.
pub(crate) async fn send(
    to: &mut WriteHalf<'_>,
    bytes: &[u8],
    passed: impl Fn(usize),
) -> Result<(), Broken> {
    to.write_all(bytes).await.map_err(|_| Broken::Sink)?;
    passed(bytes.len());
    Ok(())
}
