//! The network of a namespace in which every TCP connection ends at a
//! listener of ours, whatever its destination.
//!
//! Called in a fresh network namespace by a process with capabilities there.
//! The descriptors are meant to be passed out: a socket stays in the namespace
//! it was made in, whoever uses it.

mod datagram;
mod interfaces;
mod netlink;
mod nftables;
mod routes;
mod sockets;

pub use datagram::{Datagram, datagram_socket, receive_datagram, send_datagram};
pub use interfaces::own_addresses;
pub use nftables::intercept_tcp;
pub use routes::bring_anyip_up;
pub use sockets::{
    anyip_listener, local_port, loopback_listener, namespace_of, transparent_listener,
};

/// A version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6; its sockets take no IPv4 in disguise.
    V6,
}

/// The versions of the internet protocol that a namespace speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// IPv4 and IPv6.
    Both,
    /// IPv4; IPv6 is missing from this kernel or switched off.
    V4Only,
}

impl Families {
    /// Each of them.
    pub fn each(self) -> &'static [Family] {
        match self {
            Self::Both => &[Family::V4, Family::V6],
            Self::V4Only => &[Family::V4],
        }
    }
}
