//! Questions in datagrams.
//!
//! The thread that answers relays connections too, so that only so many
//! questions are answered before everybody else has had a turn.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;

use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::answer::NameServer;

/// Longer questions are dropped: EDNS with cookies and padding fits easily.
const LONGEST: usize = 4096;
/// Questions that are answered in one go.
const IN_ONE_GO: usize = 32;
/// Failures to receive in a row after which the socket counts as broken.
const FAILURES: usize = 64;

/// One datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// How many bytes of the buffer it fills.
    pub length: usize,
    /// It was longer than the buffer.
    pub truncated: bool,
    /// Who sent it.
    pub source: SocketAddr,
    /// The address it was sent to, wherever it really arrived; an answer has to
    /// come from there.
    pub destination: IpAddr,
}

/// A socket for datagrams to any address, none of whose calls blocks.
pub trait Datagrams {
    /// The descriptor that becomes readable, always the same one.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Takes the next datagram; fails with `WouldBlock` when there is none.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Datagram>;

    /// Sends an answer as if it came from port 53 of `from`.
    fn send(&self, bytes: &[u8], to: SocketAddr, from: IpAddr) -> io::Result<()>;
}

/// Answers every question on `socket`, until it breaks.
pub(crate) async fn serve_datagrams(
    socket: Box<dyn Datagrams>,
    server: NameServer,
) -> io::Result<Infallible> {
    let readiness = readiness_of(&*socket)?;
    let mut failures = 0;
    loop {
        readiness.readable().await?;
        for _ in 0..IN_ONE_GO {
            let answered = || answer_one(&*socket, &server);
            match readiness.try_io(Interest::READABLE, answered) {
                Ok(()) => failures = 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if failures == FAILURES => return Err(error),
                // Some other datagram's fate, such as a port that was closed.
                Err(_) => failures += 1,
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Tells when there is a datagram: a duplicate that nothing is read from, so
/// that no descriptor can be closed under tokio's eyes.
fn readiness_of(socket: &dyn Datagrams) -> io::Result<UdpSocket> {
    let duplicate = socket.descriptor().try_clone_to_owned()?;
    let duplicate = std::net::UdpSocket::from(duplicate);
    duplicate.set_nonblocking(true)?;
    UdpSocket::from_std(duplicate)
}

fn answer_one(socket: &dyn Datagrams, server: &NameServer) -> io::Result<()> {
    let mut buffer = [0; LONGEST];
    let datagram = socket.receive(&mut buffer)?;
    let message = buffer
        .get(..datagram.length)
        .filter(|_| !datagram.truncated);
    if let Some(answer) = message.and_then(|message| server.answer(message)) {
        // A datagram may get lost; who asked asks again.
        let _ = socket.send(&answer, datagram.source, datagram.destination);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::rc::Rc;

    use super::*;
    use crate::dns::answer::testing::{Notes, ask, name_server, question};

    struct Loopback(UdpSocket);

    impl Datagrams for Loopback {
        fn descriptor(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        fn receive(&self, buffer: &mut [u8]) -> io::Result<Datagram> {
            let (length, source) = self.0.recv_from(buffer)?;
            Ok(Datagram {
                length,
                truncated: length == buffer.len(),
                source,
                destination: self.0.local_addr()?.ip(),
            })
        }

        fn send(&self, bytes: &[u8], to: SocketAddr, _: IpAddr) -> io::Result<()> {
            self.0.send_to(bytes, to).map(drop)
        }
    }

    fn served() -> (SocketAddr, Rc<Notes>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let (server, notes) = name_server();
        tokio::task::spawn_local(serve_datagrams(Box::new(Loopback(socket)), server));
        (address, notes)
    }

    #[tokio::test(flavor = "local")]
    async fn questions_are_answered_and_nonsense_is_not() {
        let (server, notes) = served();
        let client = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(server).await.unwrap();
        let mut answer = vec![0; 512];
        let mut long = question("long.example.org", 1);
        long.resize(5000, 0);
        for dropped in [&b"x"[..], &[0xff; 12], &long] {
            client.send(dropped).await.unwrap();
        }
        client.send(&question("a.example.org", 1)).await.unwrap();
        let length = client.recv(&mut answer).await.unwrap();
        assert_eq!(answer[..length], ask("a.example.org", 1));
        assert_eq!(notes.names(), ["a.example.org"]);
    }

    #[tokio::test(flavor = "local")]
    async fn a_flood_leaves_others_their_turn() {
        let (server, notes) = served();
        let flood = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 * IN_ONE_GO {
            flood
                .send_to(&question("a.example.org", 1), server)
                .unwrap();
        }
        while notes.names().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(notes.names().len() <= IN_ONE_GO);
    }

    struct Broken(UdpSocket);

    impl Datagrams for Broken {
        fn descriptor(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        fn receive(&self, _: &mut [u8]) -> io::Result<Datagram> {
            Err(io::ErrorKind::InvalidInput.into())
        }

        fn send(&self, _: &[u8], _: SocketAddr, _: IpAddr) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(flavor = "local")]
    async fn a_broken_socket_is_given_up() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .send_to(b"x", address)
            .unwrap();
        let (server, _) = name_server();
        let Err(error) = serve_datagrams(Box::new(Broken(socket)), server).await;
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
