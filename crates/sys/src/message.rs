//! A private channel between two processes that carries whole messages and
//! descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::time::Timespec;

use crate::{Errno, Result};

/// The largest message, in bytes; a longer one is refused by both ends.
const LARGEST: usize = 16 * 1024;
/// The most descriptors in one message; the kernel would take 253.
const MOST_DESCRIPTORS: usize = 128;

/// One end of a connected pair of sequenced-packet sockets.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// What a read of a [`Channel`] gave.
#[derive(Debug)]
pub enum Received {
    /// One whole message and the descriptors that came with it.
    Message(Vec<u8>, Vec<OwnedFd>),
    /// Nothing there yet.
    Nothing,
    /// The other end is gone.
    Closed,
}

impl Channel {
    /// Two connected ends.
    pub fn pair() -> Result<(Self, Self)> {
        let (one, other) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    /// Sends one message; waits while the other end is behind.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        self.give(bytes, descriptors, SendFlags::NOSIGNAL)
    }

    /// Sends one message, or fails with `EAGAIN` while the other end is behind.
    pub fn try_send(&self, bytes: &[u8]) -> Result<()> {
        self.give(bytes, &[], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn give(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>], flags: SendFlags) -> Result<()> {
        if bytes.len() > LARGEST || descriptors.len() > MOST_DESCRIPTORS {
            return Err(Errno::MSGSIZE);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(Errno::MSGSIZE);
        }
        let slices = [IoSlice::new(bytes)];
        loop {
            match rustix::net::sendmsg(&self.0, &slices, &mut ancillary, flags) {
                Err(Errno::INTR) => {}
                other => return other.map(drop),
            }
        }
    }

    /// Takes the next message, waiting for it.
    pub fn receive(&self) -> Result<Received> {
        self.take(RecvFlags::CMSG_CLOEXEC)
    }

    /// As [`Self::receive`], for a message that is on its way: looks for it for
    /// about as long as it takes to be woken up, which spares that in most cases.
    pub fn receive_soon(&self) -> Result<Received> {
        const MOST_LOOKS: usize = 200;
        let now = Timespec::default();
        for _ in 0..MOST_LOOKS {
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            if rustix::event::poll(&mut fds, Some(&now))? > 0 {
                break;
            }
            rustix::thread::sched_yield();
        }
        self.receive()
    }

    /// Takes the next message if there is one.
    pub fn try_receive(&self) -> Result<Received> {
        self.take(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)
    }

    fn take(&self, flags: RecvFlags) -> Result<Received> {
        let mut bytes = vec![0; LARGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(&self.0, &mut slices, &mut ancillary, flags) {
                // The other end closed with something of ours unread. This is
                // told once, before what it sent last.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Ok(Received::Nothing),
                other => break other?,
            }
        };
        if received.bytes == 0 {
            return Ok(Received::Closed);
        }
        bytes.truncate(received.bytes);
        Ok(Received::Message(bytes, descriptors_of(&mut ancillary)))
    }
}

fn descriptors_of(ancillary: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect()
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_bytes_and_descriptors() {
        let (one, other) = Channel::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        one.send(b"hello", &[null.as_fd()]).unwrap();
        let Received::Message(bytes, descriptors) = other.receive().unwrap() else {
            panic!("no message");
        };
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"hello"[..], 1));
    }

    #[test]
    fn tells_empty_from_closed() {
        let (one, other) = Channel::pair().unwrap();
        assert!(matches!(other.try_receive().unwrap(), Received::Nothing));
        drop(one);
        assert!(matches!(other.try_receive().unwrap(), Received::Closed));
    }

    #[test]
    fn last_words_are_heard_although_the_other_end_left_ours_unread() {
        let (one, other) = Channel::pair().unwrap();
        one.send(b"unread", &[]).unwrap();
        other.send(b"last words", &[]).unwrap();
        drop(other);
        assert!(
            matches!(one.try_receive().unwrap(), Received::Message(bytes, _) if bytes == b"last words")
        );
        assert!(matches!(one.try_receive().unwrap(), Received::Closed));
    }

    #[test]
    fn refuses_a_message_over_the_limit() {
        let (one, _other) = Channel::pair().unwrap();
        assert_eq!(one.send(&vec![1; LARGEST + 1], &[]), Err(Errno::MSGSIZE));
    }
}
