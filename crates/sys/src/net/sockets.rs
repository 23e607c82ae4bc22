//! TCP listeners.
//!
//! None sets `SO_REUSEPORT` or `SO_REUSEADDR`, so as long as one lives nothing
//! else in its namespace can listen on its port, also not at a single address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::Family;
use crate::{Errno, Result, check};

const SO_NETNS_COOKIE: libc::c_int = 71;

/// Connections that wait to be accepted; the kernel cuts it to `somaxconn`.
const BACKLOG: i32 = 1024;

/// A listener, on a port of the kernel's choosing, that takes connections to
/// any address and port when [`super::intercept_tcp`] hands them to it. Needs
/// `CAP_NET_ADMIN` or `CAP_NET_RAW` in the network namespace.
///
/// A connection to the port itself has a loopback address as its destination.
pub fn transparent_listener(family: Family) -> Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM)?;
    set_transparent(socket.as_fd(), family)?;
    listen(socket, SocketAddr::new(family.any(), 0))
}

/// A listener on `port` of every address that is delivered locally.
pub fn anyip_listener(family: Family, port: u16) -> Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM)?;
    listen(socket, SocketAddr::new(family.any(), port))
}

/// A listener on `port` of 127.0.0.1 or `::1`; 0 lets the kernel choose.
pub fn loopback_listener(family: Family, port: u16) -> Result<OwnedFd> {
    let socket = socket(family, SocketType::STREAM)?;
    listen(socket, SocketAddr::new(family.loopback(), port))
}

/// The port that an internet socket is bound to.
pub fn local_port(socket: BorrowedFd<'_>) -> Result<u16> {
    let address = SocketAddr::try_from(rustix::net::getsockname(socket)?)?;
    Ok(address.port())
}

/// The network namespace that a socket belongs to, as a number of the kernel's
/// that is never used again (Linux 5.14).
pub fn namespace_of(socket: BorrowedFd<'_>) -> Result<u64> {
    let mut cookie = 0u64;
    let mut size = libc::socklen_t::try_from(size_of_val(&cookie)).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel writes at most `size` bytes to `cookie`; both outlive
    // the call.
    check(unsafe {
        libc::c_long::from(libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut size,
        ))
    })?;
    Ok(cookie)
}

/// A non-blocking internet socket that does not outlive `execve`.
pub(super) fn socket(family: Family, kind: SocketType) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family.address_family(), kind, flags, None)?;
    if family == Family::V6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

fn listen(socket: OwnedFd, address: SocketAddr) -> Result<OwnedFd> {
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn set_transparent(socket: BorrowedFd<'_>, family: Family) -> Result<()> {
    match family {
        Family::V4 => switch_on(socket, libc::SOL_IP, libc::IP_TRANSPARENT),
        Family::V6 => switch_on(socket, libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
    }
}

/// Sets an option that is off or on.
pub(super) fn switch_on(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> Result<()> {
    let on: libc::c_int = 1;
    let size = libc::socklen_t::try_from(size_of_val(&on)).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel reads `size` bytes of `on`, which outlives the call.
    check(unsafe {
        libc::c_long::from(libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size,
        ))
    })?;
    Ok(())
}

impl Family {
    fn address_family(self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::INET,
            Self::V6 => AddressFamily::INET6,
        }
    }

    /// The unspecified address.
    pub(super) fn any(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }
}
