//! A client of D-Bus that asks one thing and waits for the answer: no threads,
//! no descriptors passed, little endian only, every step within one time.
//!
//! Written here because the crates for it bring an asynchronous runtime, a C
//! library or second versions of what is there, for four messages.

mod address;
mod connection;
mod message;
#[cfg(test)]
pub(super) mod rig;
mod wire;

pub(super) use self::address::addresses;
pub(super) use self::connection::{BusError, Connection, Deadline};
pub(super) use self::message::{Call, Message};
pub(super) use self::wire::Writer;
