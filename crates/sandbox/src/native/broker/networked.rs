//! Connections of the internet, which wait until the network is served.
//!
//! Nothing is decided about one before: when the network is there, it is looked
//! at as if it had just come.

use std::mem;

use ringfence_sys::Errno;
use ringfence_sys::seccomp::{Answer, Listener, Notification};

use super::Broker;

/// Connections that the command wants to make, and names that it wants to give
/// to sockets of the internet.
pub(super) enum Connections {
    /// They are made at once.
    Online,
    /// They wait for the network.
    Offline {
        /// Those who want one.
        calls: Vec<Notification>,
        /// Whether it was asked for.
        is_asked_for: bool,
    },
}

impl Connections {
    pub(super) fn new(await_network: bool) -> Self {
        if await_network {
            Self::offline()
        } else {
            Self::Online
        }
    }

    fn offline() -> Self {
        Self::Offline {
            calls: Vec::new(),
            is_asked_for: false,
        }
    }
}

/// So many may have gone away unseen.
const MANY: usize = 64;

impl Broker<'_> {
    /// Whether the network is wanted; true once for each time that it is.
    pub(in crate::native) fn begins_to_want_network(&mut self) -> bool {
        match &mut self.wanted {
            Connections::Offline {
                calls,
                is_asked_for,
            } if !calls.is_empty() => !mem::replace(is_asked_for, true),
            _ => false,
        }
    }

    /// The network is served.
    pub(in crate::native) fn go_online(&mut self) {
        for call in self.end_waiting(Connections::Online) {
            self.carry_out(&call);
        }
    }

    /// The network cannot be served now; it may be wanted again.
    pub(in crate::native) fn stay_offline(&mut self) {
        if self.is_offline() {
            for call in self.end_waiting(Connections::offline()) {
                self.observer.count(call.number);
                let _ = self.listener.answer(&call, Answer::Fail(Errno::AGAIN));
            }
        }
    }

    fn end_waiting(&mut self, next: Connections) -> Vec<Notification> {
        match mem::replace(&mut self.wanted, next) {
            Connections::Online => Vec::new(),
            Connections::Offline { calls, .. } => calls,
        }
    }

    pub(super) fn is_offline(&self) -> bool {
        matches!(self.wanted, Connections::Offline { .. })
    }

    pub(super) fn let_wait_for_network(&mut self, call: Notification) {
        if let Connections::Offline { calls, .. } = &mut self.wanted {
            keep(&self.listener, calls, call);
        }
    }
}

fn keep(listener: &Listener, calls: &mut Vec<Notification>, call: Notification) {
    if calls.len() >= MANY && calls.len().is_power_of_two() {
        calls.retain(|call| listener.still_waits(call));
    }
    calls.push(call);
}
