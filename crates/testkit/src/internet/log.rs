//! What the servers of a small internet saw.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::server::Service;

/// One TCP connection to a server.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Which server.
    pub service: Service,
    /// Who connected.
    pub from: SocketAddr,
    /// The address that was dialled.
    pub to: SocketAddr,
    /// What the server saw, in order: heads of requests, bodies, names of
    /// TLS, raw bytes. Long ones are cut.
    pub saw: Vec<String>,
}

/// Every connection so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

/// One connection while it lasts.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    log: Log,
    id: u64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

impl Log {
    pub(super) fn open(&self, service: Service, from: SocketAddr, to: SocketAddr) -> Visit {
        let mut entries = self.entries();
        let id = entries.next;
        entries.next += 1;
        let connection = Connection {
            service,
            from,
            to,
            saw: Vec::new(),
        };
        entries.connections.insert(id, connection);
        Visit {
            log: self.clone(),
            id,
            from,
            to,
        }
    }

    pub(super) fn connections(&self) -> Vec<Connection> {
        self.entries().connections.values().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.entries().connections.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visit {
    pub(super) fn saw(&self, what: impl Display) {
        // Gone if the log was cleared in between.
        if let Some(connection) = self.log.entries().connections.get_mut(&self.id) {
            connection.saw.push(what.to_string());
        }
    }

    /// For bytes that arrive in pieces, and are one thing that was seen.
    pub(super) fn hear(&self) -> Heard<'_> {
        Heard {
            visit: self,
            place: None,
            bytes: Vec::new(),
        }
    }
}

/// The first bytes of a stream, however many reads they take.
#[derive(Debug)]
pub(super) struct Heard<'a> {
    visit: &'a Visit,
    /// Where they are among what the connection saw.
    place: Option<usize>,
    bytes: Vec<u8>,
}

impl Heard<'_> {
    const LONGEST: usize = 16 * 1024;

    pub(super) fn add(&mut self, more: &[u8]) {
        let room = Self::LONGEST.saturating_sub(self.bytes.len());
        if room == 0 {
            return;
        }
        self.bytes.extend(more.iter().take(room));
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        let mut entries = self.visit.log.entries();
        // Gone if the log was cleared in between.
        let Some(connection) = entries.connections.get_mut(&self.visit.id) else {
            return;
        };
        if let Some(seen) = self.place.and_then(|place| connection.saw.get_mut(place)) {
            *seen = text;
        } else {
            self.place = Some(connection.saw.len());
            connection.saw.push(text);
        }
    }
}
