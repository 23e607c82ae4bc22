//! Netlink requests: several messages in one buffer, one system call to send
//! them, one acknowledgement for all.
//!
//! Hand-written: the messages are fixed, known when this is compiled, and
//! sent while a sandbox starts.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink,
};

use crate::{Errno, Result};

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
/// Make the object.
pub(super) const CREATE: u16 = 0x400;
/// Fail if the object is there.
pub(super) const EXCLUSIVE: u16 = 0x200;
/// Put the object last.
pub(super) const APPEND: u16 = 0x800;
/// Tell of every object.
pub(super) const DUMP: u16 = 0x300;

/// Links, addresses and routes: the protocol that goes without saying.
pub(super) const ROUTE: Option<Protocol> = None;
/// `nf_tables` among others.
pub(super) const NETFILTER: Option<Protocol> = Some(netlink::NETFILTER);

pub(super) const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;
pub(super) const HEADER: usize = 16;

/// The place of a message in its [`Batch`], from zero.
pub(super) type Place = u32;

/// A message that the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) place: Place,
    pub(super) errno: Errno,
}

/// Messages that are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    length: Place,
    acknowledged: Place,
}

impl Batch {
    /// An empty one with room for `capacity` bytes.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
            ..Self::default()
        }
    }

    /// Adds a message whose body `fill` writes.
    pub(super) fn push(&mut self, kind: u16, flags: u16, fill: impl FnOnce(&mut Body<'_>)) {
        let start = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        self.bytes.extend(self.length.to_ne_bytes());
        self.bytes.extend([0; 4]);
        fill(&mut Body(&mut self.bytes));
        let length = u32::try_from(self.bytes.len() - start).unwrap_or(u32::MAX);
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        self.length += 1;
    }

    /// What is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As [`Batch::push`], for the message that the kernel confirms: the last
    /// that can be refused. A refusal is told in any case.
    pub(super) fn push_acknowledged(
        &mut self,
        kind: u16,
        flags: u16,
        fill: impl FnOnce(&mut Body<'_>),
    ) {
        self.acknowledged = self.length;
        self.push(kind, flags | NLM_F_ACK, fill);
    }
}

/// The body of a message or of an attribute, being written.
#[derive(Debug)]
pub(super) struct Body<'a>(&'a mut Vec<u8>);

impl Body<'_> {
    /// Writes the fixed part that comes before the attributes.
    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Writes an attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.framed(kind, |body| body.fixed(value));
    }

    /// Writes an attribute that holds attributes.
    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        self.framed(kind | NLA_F_NESTED, fill);
    }

    fn framed(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// Sends the messages to the kernel's `protocol` and returns those refused.
pub(super) fn exchange(protocol: Option<Protocol>, batch: &Batch) -> Result<Vec<Refusal>> {
    let socket = open(protocol)?;
    rustix::net::send(&socket, &batch.bytes, SendFlags::empty())?;
    read_answers(socket.as_fd(), batch.acknowledged)
}

/// A socket to the kernel's `protocol`.
pub(super) fn open(protocol: Option<Protocol>) -> Result<OwnedFd> {
    rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )
}

/// Reads answers up to the one for the message at `last`.
///
/// The kernel works on a request within `sendmsg`, so every answer is already
/// there. The last can be missing: without `nf_tables`, the refusal of the
/// first message is the only answer.
fn read_answers(socket: BorrowedFd<'_>, last: Place) -> Result<Vec<Refusal>> {
    let mut refusals = Vec::new();
    loop {
        // The original message follows in an answer; it is cut off.
        let mut answer = [0u8; HEADER + 4];
        match rustix::net::recv(socket, &mut answer[..], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) if !refusals.is_empty() => return Ok(refusals),
            Err(Errno::AGAIN) => return Err(Errno::IO),
            other => other?,
        };
        let (place, outcome) = outcome_of(&answer).ok_or(Errno::PROTO)?;
        if let Err(errno) = outcome {
            refusals.push(Refusal { place, errno });
        }
        if place == last {
            return Ok(refusals);
        }
    }
}

fn outcome_of(answer: &[u8; HEADER + 4]) -> Option<(Place, Result<()>)> {
    let kind = u16::from_ne_bytes(answer[4..6].try_into().ok()?);
    let place = u32::from_ne_bytes(answer[8..12].try_into().ok()?);
    let error = i32::from_ne_bytes(answer[HEADER..].try_into().ok()?);
    let outcome = match error {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(error.checked_neg()?)),
    };
    (kind == NLMSG_ERROR).then_some((place, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_the_padding_of_all_but_the_attribute_itself() {
        let mut batch = Batch::default();
        batch.push(7, CREATE, |body| {
            body.fixed(&[9; 4]);
            body.nest(1, |body| body.attribute(2, b"abcde"));
        });
        let mut expected = Vec::new();
        expected.extend(36u32.to_ne_bytes());
        expected.extend(7u16.to_ne_bytes());
        expected.extend(0x401u16.to_ne_bytes());
        expected.extend([0; 8]);
        expected.extend([9; 4]);
        expected.extend(16u16.to_ne_bytes());
        expected.extend(0x8001u16.to_ne_bytes());
        expected.extend(9u16.to_ne_bytes());
        expected.extend(2u16.to_ne_bytes());
        expected.extend(b"abcde\0\0\0");
        assert_eq!(batch.bytes, expected);
    }

    #[test]
    fn a_refusal_names_its_message() {
        const RTM_GETLINK: u16 = 18;
        // An interface that no machine has.
        let mut link = [0; 16];
        link[4..8].copy_from_slice(&i32::MAX.to_ne_bytes());
        let mut batch = Batch::default();
        batch.push(RTM_GETLINK, 0, |body| body.fixed(&link));
        batch.push_acknowledged(RTM_GETLINK, 0, |body| body.fixed(&link));
        let refusal = |place| Refusal {
            place,
            errno: Errno::NODEV,
        };
        assert_eq!(exchange(ROUTE, &batch), Ok(vec![refusal(0), refusal(1)]));
    }

    #[test]
    fn what_is_no_acknowledgement_is_not_taken_for_one() {
        let mut answer = [0; HEADER + 4];
        assert!(outcome_of(&answer).is_none());
        answer[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        assert_eq!(outcome_of(&answer), Some((0, Ok(()))));
        answer[HEADER..].copy_from_slice(&i32::MIN.to_ne_bytes());
        assert!(outcome_of(&answer).is_none());
    }
}
