//! UDP sockets that are told which address was asked, and answer from it.

use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::addr::{SocketAddrArg, SocketAddrStorage};
use rustix::net::{SocketAddrAny, SocketType, sockopt};

use super::Family;
use super::sockets::{socket, switch_on};
use crate::{Errno, Result, check};

/// Where a datagram came from and which address it was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// The bytes of it that are in the buffer.
    pub length: usize,
    /// Whether it was longer than the buffer, and cut.
    pub truncated: bool,
    /// Its sender.
    pub source: SocketAddr,
    /// The address it was sent to.
    pub destination: IpAddr,
}

/// A non-blocking UDP socket on `port` of every address that is delivered
/// locally. Nothing else in the namespace can take the port from it, also not
/// at a single address: it does not set `SO_REUSEADDR` or `SO_REUSEPORT`.
pub fn datagram_socket(family: Family, port: u16) -> Result<OwnedFd> {
    let socket = socket(family, SocketType::DGRAM)?;
    match family {
        Family::V4 => switch_on(socket.as_fd(), libc::SOL_IP, libc::IP_PKTINFO)?,
        Family::V6 => {
            switch_on(socket.as_fd(), libc::SOL_IPV6, libc::IPV6_RECVPKTINFO)?;
            // A local route is enough for IPv4 to send from an address. IPv6
            // wants it on an interface, or to be told not to ask.
            sockopt::set_ipv6_freebind(&socket, true)?;
        }
    }
    rustix::net::bind(&socket, &SocketAddr::new(family.any(), port))?;
    Ok(socket)
}

/// Takes the next datagram from a [`datagram_socket`]; `EAGAIN` when there is
/// none.
pub fn receive_datagram(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Datagram> {
    let mut source = MaybeUninit::<SocketAddrStorage>::uninit();
    let mut slice = slice_of(buffer.as_mut_ptr(), buffer.len());
    let mut control = Control([0; 64]);
    let mut message = control.message(&mut slice);
    message.msg_name = source.as_mut_ptr().cast();
    message.msg_namelen = size_of::<SocketAddrStorage>()
        .try_into()
        .map_err(|_| Errno::INVAL)?;
    // SAFETY: all that `message` points at is writable for the length it
    // states and outlives the call.
    let returned =
        check(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) as libc::c_long })?;
    if message.msg_namelen == 0 {
        // Not a datagram: a connected stream tells no address.
        return Err(Errno::NOTSUP);
    }
    // SAFETY: the kernel wrote an address of `msg_namelen` bytes.
    let source = unsafe { SocketAddrAny::new(source, message.msg_namelen) };
    Ok(Datagram {
        length: usize::try_from(returned).map_err(|_| Errno::IO)?,
        truncated: message.msg_flags & libc::MSG_TRUNC != 0,
        source: source.try_into()?,
        destination: destination_of(&message).ok_or(Errno::PROTO)?,
    })
}

/// Sends a datagram from an address that need not be on any interface, as
/// long as it is delivered locally; `EAGAIN` when there is no room.
pub fn send_datagram(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    to: SocketAddr,
    from: IpAddr,
) -> Result<()> {
    // The kernel would send, from an address of its own choosing.
    if to.is_ipv4() != from.is_ipv4() {
        return Err(Errno::INVAL);
    }
    // The kernel does not write to it.
    let mut slice = slice_of(bytes.as_ptr().cast_mut(), bytes.len());
    let mut control = Control([0; 64]);
    let mut message = control.message(&mut slice);
    write_source(&mut message, from)?;
    // SAFETY: the address is used only within the closure; all else that
    // `message` points at is readable for the length it states.
    let returned = unsafe {
        to.with_sockaddr(|address, length| {
            message.msg_name = address.cast_mut().cast();
            message.msg_namelen = length;
            libc::sendmsg(socket.as_raw_fd(), &raw const message, 0)
        })
    };
    check(returned as libc::c_long)?;
    Ok(())
}

fn slice_of(start: *mut u8, length: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: length,
    }
}

/// Room for one control message with an address, aligned as its header.
#[repr(C, align(8))]
struct Control([u8; 64]);

impl Control {
    /// A message with this room and one piece of data; both must outlive it.
    fn message(&mut self, slice: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: `msghdr` is plain data; zero means "not there".
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = slice;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&self.0);
        message
    }
}

/// The address that the kernel says a received message was sent to.
fn destination_of(message: &libc::msghdr) -> Option<IpAddr> {
    // SAFETY: the kernel filled the control messages and their length in.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: a whole header within the control messages.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        match (level, kind) {
            (libc::SOL_IP, libc::IP_PKTINFO) => {
                // SAFETY: a control message of this type holds this structure.
                let info = unsafe { read_control::<libc::in_pktinfo>(header) };
                return Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
            }
            (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: a control message of this type holds this structure.
                let info = unsafe { read_control::<libc::in6_pktinfo>(header) };
                return Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            // SAFETY: `header` is one of the control messages.
            _ => header = unsafe { libc::CMSG_NXTHDR(message, header) },
        }
    }
    None
}

/// # Safety
/// `header` must be that of a control message that holds a `T`.
unsafe fn read_control<T: Copy>(header: *const libc::cmsghdr) -> T {
    // SAFETY: as the caller states.
    unsafe { libc::CMSG_DATA(header).cast::<T>().read_unaligned() }
}

/// Puts the address to send from into the room for control messages.
fn write_source(message: &mut libc::msghdr, from: IpAddr) -> Result<()> {
    match from {
        IpAddr::V4(from) => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr {
                    s_addr: u32::from_ne_bytes(from.octets()),
                },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            write_control(message, libc::SOL_IP, libc::IP_PKTINFO, info)
        }
        IpAddr::V6(from) => {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr {
                    s6_addr: from.octets(),
                },
                ipi6_ifindex: 0,
            };
            write_control(message, libc::SOL_IPV6, libc::IPV6_PKTINFO, info)
        }
    }
}

/// Makes `data` the only control message.
fn write_control<T: Copy>(
    message: &mut libc::msghdr,
    level: libc::c_int,
    kind: libc::c_int,
    data: T,
) -> Result<()> {
    let size = libc::c_uint::try_from(size_of::<T>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: only arithmetic.
    let (length, space) = unsafe { (libc::CMSG_LEN(size), libc::CMSG_SPACE(size)) };
    if space as usize > message.msg_controllen {
        return Err(Errno::INVAL);
    }
    // SAFETY: `message` was made by `Control::message`, so it points at room
    // of the length it states, which is enough for the header and `data`.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = length as usize;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(data);
    }
    message.msg_controllen = space as usize;
    Ok(())
}
