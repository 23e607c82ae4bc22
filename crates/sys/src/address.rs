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
