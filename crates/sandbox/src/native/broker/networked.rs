//! Sockets of the network, which the command gets when that is served.
//!
//! The kernel makes them: what a socket is to be is in registers, which nobody
//! can change after they were looked at. Whoever got one before would be in a
//! network in which nothing is.

use std::mem;

use ringfence_policy::AuditLevel;
use ringfence_sys::seccomp::{Answer, Listener, Notification};

use super::caller::Caller;
use super::{Broker, seen};

/// The sockets that the command wants to make.
pub(super) enum Sockets {
    /// They are made at once.
    Free,
    /// They wait for the network.
    Waiting {
        /// Those who want one.
        calls: Vec<Notification>,
        /// Whether it was asked for.
        is_asked_for: bool,
    },
}

impl Sockets {
    pub(super) fn new(await_network: bool) -> Self {
        if await_network {
            Self::Waiting {
                calls: Vec::new(),
                is_asked_for: false,
            }
        } else {
            Self::Free
        }
    }
}

/// So many may have gone away unseen, such as for a signal.
const MANY: usize = 64;

impl Broker<'_> {
    /// Whether the network is wanted; true once.
    pub(in crate::native) fn begins_to_want_network(&mut self) -> bool {
        match &mut self.wanted {
            Sockets::Waiting {
                calls,
                is_asked_for,
            } if !calls.is_empty() => !mem::replace(is_asked_for, true),
            _ => false,
        }
    }

    /// The network is served.
    pub(in crate::native) fn go_online(&mut self) {
        if let Sockets::Waiting { calls, .. } = mem::replace(&mut self.wanted, Sockets::Free) {
            for call in calls {
                self.let_be_made(&call);
            }
        }
    }

    pub(super) fn let_wait_for_network(&mut self, call: Notification) {
        match &mut self.wanted {
            Sockets::Free => self.let_be_made(&call),
            Sockets::Waiting { calls, .. } => keep(&self.listener, calls, call),
        }
    }

    fn let_be_made(&self, call: &Notification) {
        let is_recorded = self.observer.level() == AuditLevel::All;
        let recorded = || {
            let caller = Caller::new(&self.listener, call);
            self.record(call, seen::going_on(&caller, self.sensitive))
        };
        if !is_recorded || recorded() {
            let _ = self.listener.answer(call, Answer::Continue);
        }
    }
}

fn keep(listener: &Listener, calls: &mut Vec<Notification>, call: Notification) {
    if calls.len() >= MANY && calls.len().is_power_of_two() {
        calls.retain(|call| listener.still_waits(call));
    }
    calls.push(call);
}
