//! The addresses of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{RecvFlags, SendFlags};

use super::netlink::{Batch, DUMP, HEADER, NLMSG_ERROR, ROUTE, open};
use crate::{Errno, Result};

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const NLMSG_DONE: u16 = 3;
/// Something changed while the list was written.
const INTERRUPTED: u16 = 0x10;

/// The peer's at a link between two, else the interface's own.
const IFA_ADDRESS: u16 = 1;
/// The interface's own.
const IFA_LOCAL: u16 = 2;
/// The length of a `struct ifaddrmsg`: family, prefix length, flags, scope,
/// index.
const FIXED: usize = 8;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// How often the list is asked for when it changes meanwhile.
const MOST_TRIES: usize = 16;

/// Every address of every interface in the caller's network namespace. As
/// `getifaddrs`, which asks for the interfaces as well.
pub fn own_addresses() -> Result<Vec<IpAddr>> {
    for _ in 0..MOST_TRIES {
        let socket = open(ROUTE)?;
        let mut batch = Batch::with_capacity(HEADER + FIXED);
        batch.push(RTM_GETADDR, DUMP, |body| body.fixed(&[0; FIXED]));
        rustix::net::send(&socket, batch.bytes(), SendFlags::empty())?;
        if let Some(addresses) = read_all(socket.as_fd())? {
            return Ok(addresses);
        }
    }
    Err(Errno::AGAIN)
}

/// `None` if the list is not of one moment.
fn read_all(socket: BorrowedFd<'_>) -> Result<Option<Vec<IpAddr>>> {
    // The kernel writes no more at once.
    let mut buffer = vec![0; 32 << 10];
    let mut addresses = Vec::new();
    let mut is_whole = true;
    loop {
        let (length, _) = rustix::net::recv(socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut left = buffer.get(..length).ok_or(Errno::MSGSIZE)?;
        while !left.is_empty() {
            let (message, rest) = first_message(left).ok_or(Errno::PROTO)?;
            is_whole &= message.flags & INTERRUPTED == 0;
            match message.kind {
                // It says so when the list was broken off.
                NLMSG_DONE => {
                    let end = error_in(message.body).map_or(Ok(()), Err);
                    return end.map(|()| is_whole.then_some(addresses));
                }
                NLMSG_ERROR => return Err(error_in(message.body).unwrap_or(Errno::PROTO)),
                RTM_NEWADDR => addresses.extend(address_in(message.body)),
                _ => {}
            }
            left = rest;
        }
    }
}

struct Message<'a> {
    kind: u16,
    flags: u16,
    body: &'a [u8],
}

/// The first of some messages, and the others.
fn first_message(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    let message = Message {
        kind: u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?),
        flags: u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?),
        body: bytes.get(HEADER..length)?,
    };
    Some((message, after(bytes, length)))
}

fn error_in(body: &[u8]) -> Option<Errno> {
    let error = i32::from_ne_bytes(body.get(..4)?.try_into().ok()?);
    let error = error.checked_neg().filter(|error| *error > 0)?;
    Some(Errno::from_raw_os_error(error))
}

/// The address that a `RTM_NEWADDR` is about.
fn address_in(body: &[u8]) -> Option<IpAddr> {
    let family = *body.first()?;
    let mut left = body.get(FIXED..)?;
    let mut found = None;
    while let Some((kind, value, rest)) = first_attribute(left) {
        match kind {
            IFA_LOCAL => return address(family, value),
            IFA_ADDRESS => found = address(family, value),
            _ => {}
        }
        left = rest;
    }
    found
}

/// The type and value of the first of some attributes, and the others.
fn first_attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
    Some((kind, bytes.get(4..length)?, after(bytes, length)))
}

/// What follows after `length` bytes and padding.
fn after(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(length.next_multiple_of(4)..).unwrap_or_default()
}

fn address(family: u8, value: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into()),
        AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_that_the_c_library_finds() {
        let sorted = |mut addresses: Vec<IpAddr>| {
            addresses.sort_unstable();
            addresses
        };
        let found = sorted(own_addresses().unwrap());
        assert_eq!(found, sorted(of_c_library()));
        assert!(found.contains(&Ipv4Addr::LOCALHOST.into()), "{found:?}");
    }

    fn of_c_library() -> Vec<IpAddr> {
        let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
        // SAFETY: `getifaddrs` writes the head of a list that is freed below.
        assert_eq!(unsafe { libc::getifaddrs(&raw mut list) }, 0);
        let mut addresses = Vec::new();
        let mut next = list;
        // SAFETY: each element and its address belong to the list, which lives
        // until it is freed; an address may be missing.
        while let Some(interface) = unsafe { next.as_ref() } {
            // SAFETY: as above.
            addresses.extend(unsafe { of_socket_address(interface.ifa_addr) });
            next = interface.ifa_next;
        }
        // SAFETY: the list came from `getifaddrs` and is not used any more.
        unsafe { libc::freeifaddrs(list) };
        addresses
    }

    /// # Safety
    /// `place` is null or points to a socket address as long as its family's.
    unsafe fn of_socket_address(place: *const libc::sockaddr) -> Option<IpAddr> {
        // SAFETY: by this function's own condition.
        let family = unsafe { place.as_ref() }?.sa_family;
        match libc::c_int::from(family) {
            libc::AF_INET => {
                // SAFETY: the family says that it is a `sockaddr_in`.
                let address = unsafe { place.cast::<libc::sockaddr_in>().read_unaligned() };
                let bytes = address.sin_addr.s_addr.to_ne_bytes();
                Some(Ipv4Addr::from(bytes).into())
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that it is a `sockaddr_in6`.
                let address = unsafe { place.cast::<libc::sockaddr_in6>().read_unaligned() };
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }

    #[test]
    fn the_own_end_of_a_link_between_two_is_told() {
        let mut batch = Batch::with_capacity(64);
        batch.push(RTM_NEWADDR, 0, |body| {
            body.fixed(&[AF_INET, 32, 0, 0, 1, 0, 0, 0]);
            body.attribute(IFA_ADDRESS, &[192, 0, 2, 2]);
            body.attribute(IFA_LOCAL, &[192, 0, 2, 1]);
        });
        let (message, rest) = first_message(batch.bytes()).unwrap();
        assert!(rest.is_empty());
        assert_eq!(
            address_in(message.body),
            Some(Ipv4Addr::new(192, 0, 2, 1).into())
        );
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        let mut batch = Batch::with_capacity(64);
        batch.push(RTM_NEWADDR, 0, |body| body.fixed(&[AF_INET; FIXED]));
        for length in 0..batch.bytes().len() {
            assert!(
                first_message(&batch.bytes()[..length]).is_none(),
                "{length}"
            );
        }
        assert!(first_attribute(&[8, 0, 1, 0, 9]).is_none());
        assert_eq!(error_in(&[0; 4]), None);
        assert_eq!(error_in(&(-4i32).to_ne_bytes()), Some(Errno::INTR));
        assert_eq!(error_in(&i32::MIN.to_ne_bytes()), None);
        assert_eq!(address(AF_INET6, &[1; 4]), None);
    }
}
