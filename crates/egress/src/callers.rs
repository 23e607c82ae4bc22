//! Who made a connection, as far as the sandbox tells.
//!
//! For the record only. Word of a connection is sent right after it was made,
//! so it may come a moment later than the connection itself.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use ringfence_audit::Process;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

/// For word of a connection to arrive.
const PATIENCE: Duration = Duration::from_millis(20);
/// Words that nobody asked for yet.
const MOST_KEPT: usize = 4096;

/// Where word comes from.
pub trait Callers {
    /// Readable when [`Self::next`] has something.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The client's end of a connection and the process that made it; `None`
    /// when there is nothing more yet.
    fn next(&self) -> io::Result<Option<(SocketAddr, Process)>>;
}

/// [`Callers`] as something to wait for.
struct Source {
    callers: Box<dyn Callers>,
    /// Its descriptor again, only to be waited for.
    awaited: UnixDatagram,
}

impl Source {
    fn new(callers: Box<dyn Callers>) -> io::Result<Self> {
        let descriptor = callers.descriptor().try_clone_to_owned()?;
        let awaited = std::os::unix::net::UnixDatagram::from(descriptor);
        awaited.set_nonblocking(true)?;
        let awaited = UnixDatagram::from_std(awaited)?;
        Ok(Self { callers, awaited })
    }

    /// Everything that came, for as long as somebody takes it.
    fn drain(&self, mut take: impl FnMut(SocketAddr, Process)) -> io::Result<()> {
        // Tells the runtime to wait for more once nothing is left.
        self.awaited.try_io(Interest::READABLE, || {
            while let Some((address, process)) = self.callers.next()? {
                take(address, process);
            }
            Err(io::ErrorKind::WouldBlock.into())
        })
    }
}

/// The words that came and were not asked for yet.
#[derive(Default)]
struct Kept {
    by_address: HashMap<SocketAddr, Process>,
    order: VecDeque<SocketAddr>,
}

/// Tells who made which connection.
pub(crate) struct Register {
    source: Option<Source>,
    kept: RefCell<Kept>,
}

impl Register {
    /// Must be called inside a runtime.
    pub(crate) fn new(callers: Option<Box<dyn Callers>>) -> io::Result<Self> {
        Ok(Self {
            source: callers.map(Source::new).transpose()?,
            kept: RefCell::default(),
        })
    }

    /// The process at the other end of a connection from `peer`.
    pub(crate) async fn process_at(&self, peer: SocketAddr) -> Option<Process> {
        let source = self.source.as_ref()?;
        let peer = canonical(peer);
        let arriving = async {
            loop {
                if let Some(process) = self.kept.borrow_mut().take(peer) {
                    return Some(process);
                }
                source.awaited.readable().await.ok()?;
                let drained = source.drain(|address, process| {
                    self.kept.borrow_mut().keep(canonical(address), process);
                });
                let more = drained.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
                if !more {
                    return self.kept.borrow_mut().take(peer);
                }
            }
        };
        tokio::time::timeout(PATIENCE, arriving)
            .await
            .ok()
            .flatten()
    }
}

impl Kept {
    fn take(&mut self, peer: SocketAddr) -> Option<Process> {
        let process = self.by_address.remove(&peer)?;
        // Mostly the last ones.
        if let Some(at) = self.order.iter().rposition(|address| *address == peer) {
            self.order.remove(at);
        }
        Some(process)
    }

    fn keep(&mut self, address: SocketAddr, process: Process) {
        while self.order.len() >= MOST_KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.by_address.remove(&oldest);
            }
        }
        if self.by_address.insert(address, process).is_none() {
            self.order.push_back(address);
        }
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram as Socket;

    /// Words that are already there, behind a socket that is always readable.
    struct Told {
        socket: Socket,
        left: Cell<u16>,
    }

    impl Callers for Told {
        fn descriptor(&self) -> BorrowedFd<'_> {
            self.socket.as_fd()
        }

        fn next(&self) -> io::Result<Option<(SocketAddr, Process)>> {
            let port = self.left.get();
            self.left.set(port.saturating_sub(1));
            let process = Process {
                pid: u32::from(port),
                executable: None,
                argv_sha256: None,
            };
            let address = format!("[::ffff:127.0.0.1]:{port}").parse().unwrap();
            Ok((port > 0).then_some((address, process)))
        }
    }

    fn told(count: u16) -> Register {
        let (socket, other) = Socket::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        other.send(b"!").unwrap();
        let left = Cell::new(count);
        Register::new(Some(Box::new(Told { socket, left }))).unwrap()
    }

    #[tokio::test]
    async fn each_connection_has_its_process() {
        let register = told(3);
        for port in [2, 3, 1] {
            let found = register
                .process_at(SocketAddr::from(([127, 0, 0, 1], port)))
                .await;
            assert_eq!(found.map(|process| process.pid), Some(u32::from(port)));
        }
        let again = register
            .process_at(SocketAddr::from(([127, 0, 0, 1], 2)))
            .await;
        assert!(again.is_none());
    }

    #[tokio::test]
    async fn words_that_nobody_asks_for_are_forgotten() {
        let register = told(u16::try_from(MOST_KEPT).unwrap() + 10);
        register
            .process_at(SocketAddr::from(([127, 0, 0, 1], 1)))
            .await
            .unwrap();
        let kept = register.kept.borrow();
        assert!(kept.order.len() <= MOST_KEPT && kept.by_address.len() < MOST_KEPT);
    }
}
