//! The proxies on a sandbox's own loopback: HTTP and SOCKS on one port.

use std::rc::Rc;

use ringfence_audit::{ConnectionId, Process, Protocol, Via};
use ringfence_policy::Target;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::attempt::Attempt;
use crate::carry::{carry, tunnel};
use crate::closing::close_with;
use crate::exit::Exit;
use crate::http::fields::Persistence;
use crate::http::forward::{self, Served, open_failed};
use crate::http::peer::Peer;
use crate::inbox::Inbox;
use crate::intercept::serve_plain;
use crate::refusal::{self, Form};
use crate::socks;

const SOCKS4: u8 = 4;
const SOCKS5: u8 = 5;
/// SOCKS4 has no names that could be judged and no password.
const SOCKS4_REJECTED: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];
const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) connection: ConnectionId,
    pub(crate) process: Option<Process>,
}

impl Caller {
    /// This caller's attempt to reach something.
    pub(crate) fn attempt(&self, via: Via, target: Target, port: u16) -> Attempt {
        Attempt {
            connection: self.connection,
            via,
            process: self.process.clone(),
            target,
            port,
            spoken: Protocol::Tcp,
            http: None,
        }
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(
    client: TcpStream,
    connection: ConnectionId,
    process: Option<Process>,
    exit: Rc<Exit>,
) {
    let caller = Caller {
        connection,
        process,
    };
    let mut client = Peer::client(client, Inbox::default(), exit.memory());
    let first = tokio::time::timeout(exit.limits().head_time, client.fill()).await;
    if !matches!(first, Ok(Ok(1..))) {
        return;
    }
    match client.inbox.first() {
        Some(&SOCKS5) => socks::serve(client, caller, exit).await,
        Some(&SOCKS4) => close_with(client.stream, &SOCKS4_REJECTED).await,
        Some(first) if first.is_ascii_graphic() => serve_http(client, caller, exit).await,
        _ => {
            let answer = refusal::http_error(400, "neither HTTP nor SOCKS");
            close_with(client.stream, &answer).await;
        }
    }
}

async fn serve_http(client: Peer, caller: Caller, exit: Rc<Exit>) {
    let served = forward::serve(client.stream, client.inbox, caller, Rc::clone(&exit)).await;
    match served {
        Served::Finished => {}
        Served::Tunnel {
            client,
            early,
            attempt,
        } => connect(client, early, *attempt, exit).await,
        // The next request of this client may be for anybody.
        Served::Inspected { client, attempt } => {
            serve_plain(client, *attempt, exit, Persistence::Close).await;
        }
    }
}

async fn connect(mut client: TcpStream, early: Inbox, attempt: Attempt, exit: Rc<Exit>) {
    if exit.intercepts(&attempt) {
        // Where its requests go is opened when the first one was read.
        if client.write_all(CONNECTED).await.is_ok() {
            carry(client, early, attempt, exit).await;
        }
        return;
    }
    match exit.open(&attempt).await {
        Ok(upstream) => {
            if client.write_all(CONNECTED).await.is_ok() {
                tunnel(client, early, attempt, upstream, exit).await;
            }
        }
        Err(error) => close_with(client, &open_failed(&error, Form::Connect)).await,
    }
}

#[cfg(test)]
mod tests;
