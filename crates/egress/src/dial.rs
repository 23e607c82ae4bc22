//! Connecting to addresses that were judged, the best one first (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// How long the next address waits for the one before it.
const HEAD_START: Duration = Duration::from_millis(250);

/// The first of `addresses` that answers; nothing else is ever dialled.
pub(crate) async fn dial(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    if let [only] = addresses {
        return connect(*only).await;
    }
    let mut waiting = addresses.iter().copied();
    let mut racing = JoinSet::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match waiting.next() {
            Some(address) => {
                racing.spawn(connect(address));
            }
            None if racing.is_empty() => return Err(failure),
            None => {}
        }
        match next_end(&mut racing, waiting.len() > 0).await {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => failure = error,
            None => {}
        }
    }
}

/// The next attempt that ends; `None` when it is the next address's turn.
async fn next_end(
    racing: &mut JoinSet<io::Result<TcpStream>>,
    others_wait: bool,
) -> Option<io::Result<TcpStream>> {
    let ended = async {
        match racing.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(lost)) => Err(io::Error::other(lost)),
            None => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    };
    if others_wait {
        tokio::time::timeout(HEAD_START, ended).await.ok()
    } else {
        Some(ended.await)
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_dead_address_does_not_keep_from_a_live_one() {
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let live = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (gone, there) = (dead.local_addr().unwrap(), live.local_addr().unwrap());
        drop(dead);
        let stream = dial(&[gone, there]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
    }

    #[tokio::test]
    async fn without_a_live_address_the_reason_is_told() {
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = dead.local_addr().unwrap();
        drop(dead);
        for addresses in [&[gone][..], &[gone, gone][..]] {
            let error = dial(addresses).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        assert!(dial(&[]).await.is_err());
    }
}
