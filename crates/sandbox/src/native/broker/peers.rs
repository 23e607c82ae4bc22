//! Who is at the other end of a Unix socket (`SO_PEERCRED`).
//!
//! The kernel remembers who connected, and that is the init, for everybody. So
//! it is asked of the init as well, which knows for whom it did. User and group
//! are the same inside. Nothing is decided by the answer: whatever a caller
//! makes of it, it could have made of another.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::os::fd::{AsFd, OwnedFd};

use ringfence_sys::seccomp::Answer;
use ringfence_sys::{self as sys, Errno, PeerCredentials};
use rustix::process::Pid;

use super::caller::{Caller, as_descriptor};
use super::{Broker, Done, Outcome, value};

/// The most connections that are remembered.
const MOST: usize = 16_384;

/// For whom the init connected.
#[derive(Default)]
pub(super) struct Peers {
    /// By the number of the client's socket. It is set anew whenever a socket
    /// is connected, so that of an earlier one does not matter.
    clients: Latest<u32, Pid>,
    /// By the server's socket once it was asked for: the client may be gone the
    /// next time, and its socket with it.
    answered: Latest<u64, Pid>,
}

impl Peers {
    /// A process is about to be connected with `socket`.
    pub(super) fn connects(&mut self, socket: &OwnedFd, process: Pid) -> Result<(), Errno> {
        self.clients.insert(number_of(socket)?, process);
        Ok(())
    }
}

/// A map that forgets the oldest.
struct Latest<K, V> {
    known: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Latest<K, V> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Latest<K, V> {
    fn insert(&mut self, key: K, value: V) {
        if self.known.insert(key, value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn get(&self, key: K) -> Option<V> {
        self.known.get(&key).copied()
    }
}

impl Broker<'_> {
    /// `getsockopt` of `SO_PEERCRED`.
    pub(super) fn tell_peer(
        &mut self,
        caller: &Caller<'_>,
        number: u64,
        (address, length_at): (u64, u64),
    ) -> Outcome {
        let socket = caller.open_file(as_descriptor(number))?;
        let told = sys::peer_credentials(socket.as_fd())?;
        if told.pid != rustix::process::getpid().as_raw_pid() {
            return Ok(Done::Now(Answer::Continue));
        }
        // Zero is what the kernel says of a process that it has no number for.
        let process = self.client_of(&socket)?;
        let told = PeerCredentials {
            pid: process.map_or(0, Pid::as_raw_pid),
            ..told
        };
        let length = caller.bytes(length_at, 4)?.try_into();
        let length = i32::from_ne_bytes(length.map_err(|_| Errno::FAULT)?);
        let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
        let bytes = told.to_bytes();
        let length = length.min(bytes.len());
        let written = u32::try_from(length).map_err(|_| Errno::INVAL)?;
        // This thread alone makes others of the init, so what has the number
        // of the caller in the next moment is not one of them.
        caller.confirm()?;
        sys::write_bytes(caller.thread(), address, &bytes[..length])?;
        sys::write_bytes(caller.thread(), length_at, &written.to_ne_bytes())?;
        value(0)
    }

    /// The process that connected to the server's `socket`, if its end of it is
    /// open or it was asked for before.
    fn client_of(&mut self, socket: &OwnedFd) -> Result<Option<Pid>, Errno> {
        let cookie = rustix::net::sockopt::socket_cookie(socket)?;
        if let Some(process) = self.peers.answered.get(cookie) {
            return Ok(Some(process));
        }
        let peer = self.sockets.peer_of(number_of(socket)?)?;
        let process = peer.and_then(|peer| self.peers.clients.get(peer));
        if let Some(process) = process {
            self.peers.answered.insert(cookie, process);
        }
        Ok(process)
    }
}

/// The number that socket diagnostics have for a socket.
fn number_of(socket: &OwnedFd) -> Result<u32, Errno> {
    let number = rustix::fs::fstat(socket)?.st_ino;
    u32::try_from(number).map_err(|_| Errno::OVERFLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut latest = Latest::default();
        for key in 0..=MOST {
            latest.insert(key, 'a');
        }
        latest.insert(1, 'b');
        assert_eq!((latest.get(0), latest.get(1)), (None, Some('b')));
        assert_eq!((latest.known.len(), latest.order.len()), (MOST, MOST));
    }
}
