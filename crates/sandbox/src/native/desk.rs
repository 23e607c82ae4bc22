//! What the init does for the command's calls: it serves them, or, where it is
//! not told of them, only keeps the account of private storage.

use ringfence_sys::seccomp::Listener;

use super::broker::Broker;
use super::disk::Account;
use super::observe::Observer;
use super::refusals::Refusals;
use crate::wire::Refusal;

/// Where calls come in, or do not.
pub(super) enum Desk<'a> {
    /// They are carried out and recorded.
    Open(Box<Broker<'a>>),
    /// Nobody judges them.
    Closed(Account),
}

impl Desk<'_> {
    /// Readable when a call waits.
    pub(super) fn listener(&self) -> Option<&Listener> {
        self.broker().map(Broker::listener)
    }

    pub(super) fn serve_waiting(&mut self) {
        if let Self::Open(broker) = self {
            broker.serve_waiting();
        }
    }

    /// Whether the network is wanted; true once.
    pub(super) fn begins_to_want_network(&mut self) -> bool {
        match self {
            Self::Open(broker) => broker.begins_to_want_network(),
            Self::Closed(_) => false,
        }
    }

    /// The network is served.
    pub(super) fn go_online(&mut self) {
        if let Self::Open(broker) = self {
            broker.go_online();
        }
    }

    /// The network cannot be served now.
    pub(super) fn stay_offline(&mut self) {
        if let Self::Open(broker) = self {
            broker.stay_offline();
        }
    }

    pub(super) fn take_new_refusals(&mut self) -> Vec<Refusal> {
        match self {
            Self::Open(broker) => broker.take_new_refusals(),
            Self::Closed(_) => Vec::new(),
        }
    }

    pub(super) fn refusals(&self) -> Option<&Refusals> {
        self.broker().map(Broker::refusals)
    }

    pub(super) fn observer(&self) -> Option<&Observer> {
        self.broker().map(Broker::observer)
    }

    pub(super) fn disk(&self) -> &Account {
        match self {
            Self::Open(broker) => broker.disk(),
            Self::Closed(account) => account,
        }
    }

    pub(super) fn disk_mut(&mut self) -> &mut Account {
        match self {
            Self::Open(broker) => broker.disk_mut(),
            Self::Closed(account) => account,
        }
    }
}

impl<'a> Desk<'a> {
    fn broker(&self) -> Option<&Broker<'a>> {
        match self {
            Self::Open(broker) => Some(broker),
            Self::Closed(_) => None,
        }
    }
}
