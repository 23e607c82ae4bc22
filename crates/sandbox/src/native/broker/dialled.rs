//! Telling the supervisor who made a connection.
//!
//! For the record only: nothing is decided by it, and what cannot be told is
//! left out.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ringfence_sys::{Channel, Errno};
use rustix::net::SocketType;

use super::Broker;
use super::caller::Caller;
use crate::network::{Dialled, HTTP_PROXY_PORT, SOCKS_PROXY_PORT};

/// The longest argument vector that is told of, in bytes.
const MOST_ARGUMENTS: usize = 8 * 1024;
/// The longest path of a program.
const LONGEST_PATH: usize = 1024;

/// What is known of a caller before its connection has an address.
pub(super) struct Word {
    channel: Arc<Channel>,
    dialled: Dialled,
}

impl Broker<'_> {
    /// Word of a connection to `destination`, if anybody wants it.
    pub(super) fn word_of(
        &self,
        caller: &Caller<'_>,
        socket: &OwnedFd,
        destination: SocketAddr,
    ) -> Result<Option<Word>, Errno> {
        // A datagram socket makes no connection that somebody would ask about.
        if rustix::net::sockopt::socket_type(socket)? != SocketType::STREAM {
            return Ok(None);
        }
        let is_proxy = [HTTP_PROXY_PORT, SOCKS_PROXY_PORT].contains(&destination.port());
        match &self.callers {
            Some(channel) if is_proxy || !destination.ip().is_loopback() => Ok(Some(Word {
                channel: Arc::clone(channel),
                dialled: caller.introduce()?,
            })),
            _ => Ok(None),
        }
    }
}

impl Word {
    /// Sends it, with the address that the connection has by now.
    pub(super) fn send(mut self, socket: &OwnedFd) {
        let Some(local) = rustix::net::getsockname(socket)
            .ok()
            .and_then(|address| SocketAddr::try_from(address).ok())
        else {
            return;
        };
        self.dialled.local = local;
        if let Some(message) = self.dialled.to_message() {
            // A supervisor that is behind does without.
            let _ = self.channel.try_send(&message);
        }
    }
}

impl Caller<'_> {
    /// Who it is.
    fn introduce(&self) -> Result<Dialled, Errno> {
        let pid = self.process()?;
        let folder = format!("/proc/{}", pid.as_raw_pid());
        let executable = rustix::fs::readlink(format!("{folder}/exe"), Vec::new())
            .ok()
            .map(|path| path.to_string_lossy().chars().take(LONGEST_PATH).collect());
        let arguments = std::fs::read(format!("{folder}/cmdline"))
            .ok()
            .filter(|bytes| bytes.len() <= MOST_ARGUMENTS);
        self.confirm()?;
        Ok(Dialled {
            local: SocketAddr::from(([0; 4], 0)),
            pid: pid.as_raw_pid().unsigned_abs(),
            executable,
            arguments,
        })
    }
}
