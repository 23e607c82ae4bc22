//! Socket calls with an address that nothing here understands, so that the
//! kernel says what is wrong with it.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Errno, Result, check};

/// `connect(2)` with the address as raw bytes.
pub fn connect_raw(socket: BorrowedFd<'_>, address: &[u8]) -> Result<()> {
    let length = length_of(address)?;
    // SAFETY: the kernel reads at most `length` bytes of `address`.
    check(unsafe {
        libc::c_long::from(libc::connect(
            socket.as_raw_fd(),
            address.as_ptr().cast(),
            length,
        ))
    })?;
    Ok(())
}

/// Who is at the other end of a Unix socket, as `SO_PEERCRED` has it: a process
/// that has no number here is 0, and so is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The process.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl PeerCredentials {
    /// As `struct ucred` lies in memory.
    pub fn to_bytes(self) -> [u8; 12] {
        let words = [self.pid.cast_unsigned(), self.uid, self.gid].map(u32::to_ne_bytes);
        let mut bytes = [0; 12];
        bytes.copy_from_slice(words.as_flattened());
        bytes
    }
}

/// `getsockopt(2)` of `SO_PEERCRED`.
pub fn peer_credentials(socket: BorrowedFd<'_>) -> Result<PeerCredentials> {
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length =
        libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel writes at most `length` bytes to `found`, which is that
    // long and may hold any bytes.
    check(unsafe {
        libc::c_long::from(libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        ))
    })?;
    Ok(PeerCredentials {
        pid: found.pid,
        uid: found.uid,
        gid: found.gid,
    })
}

/// `bind(2)` with the address as raw bytes.
pub fn bind_raw(socket: BorrowedFd<'_>, address: &[u8]) -> Result<()> {
    let length = length_of(address)?;
    // SAFETY: the kernel reads at most `length` bytes of `address`.
    check(unsafe {
        libc::c_long::from(libc::bind(
            socket.as_raw_fd(),
            address.as_ptr().cast(),
            length,
        ))
    })?;
    Ok(())
}

fn length_of(address: &[u8]) -> Result<libc::socklen_t> {
    libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)
}
