//! Bytes both ways between two connections, until both directions have ended.
//!
//! A direction that ends is passed on as such (half-close). Nothing is read
//! that cannot be written: a slow reader slows its writer down. A connection
//! that is quiet holds no buffer.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use ringfence_audit::CloseReason;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::Notify;

use crate::buffers::Buffer;
use crate::cover::Cover;
use crate::exit::{Tracked, Upstream};
use crate::inbox::Inbox;
use crate::limits::Limits;
use crate::sentry::Sentry;

/// Who sees what passes before it does, if anybody has to.
#[derive(Default)]
pub(crate) struct Watchers {
    pub(crate) up: Option<Sentry>,
    pub(crate) down: Option<Cover>,
}

/// Relays until both sides have ended, a limit is reached, or the policy no
/// longer allows it. `early` was already read from the client.
pub(crate) async fn relay(
    mut client: TcpStream,
    early: Inbox,
    upstream: Upstream,
    mut watch: Watchers,
    limits: &Limits,
) {
    let Upstream {
        mut stream,
        tracked,
        ..
    } = upstream;
    let clock = Clock::new();
    let refused = Notify::new();
    let ending = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = stream.split();
        let up = Pump {
            from: from_client,
            to: to_server,
            sentry: watch.up.as_mut(),
            cover: None,
            clock: &clock,
        };
        let up = up.run(early, |count| tracked.sent_up(count));
        let down = Pump {
            from: from_server,
            to: to_client,
            sentry: None,
            cover: watch.down.take(),
            clock: &clock,
        };
        let down = down.run(Inbox::default(), |count| tracked.came_down(count));
        let up = async {
            let ended = up.await;
            if matches!(ended, Err(Failed::Refused)) {
                refused.notify_one();
            }
            ended.map_err(|failed| failed.side(Broken::Client, Broken::Server))
        };
        let down = async {
            down.await
                .map_err(|failed| failed.side(Broken::Server, Broken::Client))
        };
        tokio::select! {
            biased;
            () = tracked.revoked() => CloseReason::PolicyChanged,
            () = refused.notified() => CloseReason::Refused,
            ends = async { tokio::join!(up, down) } => ending_of(ends),
            ending = clock.run_out(limits) => ending,
        }
    };
    finish(&client, &stream, &tracked, ending);
}

fn ending_of(ends: (Result<(), Broken>, Result<(), Broken>)) -> CloseReason {
    match ends {
        (Ok(()), Ok(())) => CloseReason::Finished,
        (Err(Broken::Client), _) | (_, Err(Broken::Client)) => CloseReason::ClientReset,
        _ => CloseReason::ServerReset,
    }
}

/// Anything but an orderly end is told to both sides as a reset.
fn finish(client: &TcpStream, server: &TcpStream, tracked: &Tracked, ending: CloseReason) {
    tracked.because(ending);
    if ending != CloseReason::Finished {
        reset_on_close(client);
        reset_on_close(server);
    }
}

/// Makes the coming close a reset instead of an orderly end.
pub(crate) fn reset_on_close(stream: &TcpStream) {
    // A connection that is already gone needs no reset.
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Which side broke off.
#[derive(Clone, Copy)]
enum Broken {
    Client,
    Server,
}

/// Where a copy failed.
enum Failed {
    Reading,
    Writing,
    /// What was read may not leave.
    Refused,
}

impl Failed {
    fn side(&self, reader: Broken, writer: Broken) -> Broken {
        match self {
            Self::Reading | Self::Refused => reader,
            Self::Writing => writer,
        }
    }
}

/// One direction.
struct Pump<'a> {
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    sentry: Option<&'a mut Sentry>,
    cover: Option<Cover>,
    clock: &'a Clock,
}

impl Pump<'_> {
    async fn run(mut self, early: Inbox, mut count: impl FnMut(u64)) -> Result<(), Failed> {
        if !early.is_empty() {
            self.send(&early).await?;
            count(length(early.len()));
        }
        drop(early);
        if let Some(cover) = self.cover.take() {
            return Box::pin(self.run_covered(cover, count)).await;
        }
        loop {
            self.from.readable().await.map_err(|_| Failed::Reading)?;
            let mut buffer = Buffer::take();
            let read = match self.from.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return Err(Failed::Reading),
            };
            self.clock.touch();
            self.send(&buffer[..read]).await?;
            count(length(read));
        }
        // A peer that has already gone away needs no telling.
        let _ = self.to.shutdown().await;
        Ok(())
    }

    async fn run_covered(
        mut self,
        mut cover: Cover,
        mut count: impl FnMut(u64),
    ) -> Result<(), Failed> {
        let mut out = BytesMut::new();
        loop {
            let read = cover.read(&mut self.from, &mut out).await;
            if read.map_err(|_| Failed::Reading)? == 0 {
                break;
            }
            self.clock.touch();
            let passed = out.split();
            self.send(&passed).await?;
            count(length(passed.len()));
        }
        let _ = self.to.shutdown().await;
        Ok(())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        if let Some(sentry) = &mut self.sentry {
            sentry.check(bytes).map_err(|_| Failed::Refused)?;
        }
        let sent = self.to.write_all(bytes).await;
        sent.map_err(|_| Failed::Writing)
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// When the last byte passed, and when the first could have.
pub(crate) struct Clock {
    started: Instant,
    last: Cell<Instant>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            last: Cell::new(now),
        }
    }

    pub(crate) fn touch(&self) {
        self.last.set(Instant::now());
    }

    /// Ends when the connection has been quiet or alive for too long.
    pub(crate) async fn run_out(&self, limits: &Limits) -> CloseReason {
        loop {
            let total = limits
                .total_time
                .map(|time| (self.started + time, CloseReason::Limit));
            let idle = limits
                .idle_time
                .map(|time| (self.last.get() + time, CloseReason::Idle));
            let Some((at, ending)) = [total, idle]
                .into_iter()
                .flatten()
                .min_by_key(|(at, _)| *at)
            else {
                return std::future::pending().await;
            };
            if at <= Instant::now() {
                return ending;
            }
            tokio::time::sleep_until(at.into()).await;
        }
    }
}
