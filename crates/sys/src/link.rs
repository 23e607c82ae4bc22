//! Network interfaces of the sandbox's own network namespace.

use std::os::fd::OwnedFd;

use rustix::ioctl::{Opcode, Setter};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::Result;

/// `SIOCSIFFLAGS`, as the type that requests have here.
const SET_FLAGS: Opcode = 0x8914;

/// Brings `lo` up in the caller's network namespace; the kernel then gives it
/// 127.0.0.1 and `::1` by itself. Leaves `errno` alone. Returns a socket of that
/// namespace.
pub(crate) fn bring_loopback_up() -> Result<OwnedFd> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: `ifreq` is plain data; zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = libc::c_char::try_from(*byte).unwrap_or(0);
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or(libc::c_short::MAX);
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`.
    let request = unsafe { Setter::<SET_FLAGS, _>::new(request) };
    // SAFETY: as above; the socket is one that takes this request.
    unsafe { rustix::ioctl::ioctl(&socket, request) }?;
    Ok(socket)
}
