//! The name server of a sandbox: every name has a virtual address, and nothing
//! is ever asked of the world.
//!
//! Questions are read by hand, not with a DNS library: of a message from
//! inside only the header, one question and the EDNS record matter, so nothing
//! else is looked into, nothing is followed and nothing is allocated for it.

mod answer;
mod datagrams;
mod query;
mod record_type;
mod reply;
mod stream;

pub(crate) use answer::{Lookup, Lookups, NameServer};
pub(crate) use datagrams::serve_datagrams;
pub use datagrams::{Datagram, Datagrams};
pub(crate) use stream::serve_stream;
