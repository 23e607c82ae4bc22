//! Descriptors that we were started with, by number.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{PidfdFlags, PidfdGetfdFlags};

/// Another descriptor for the same, closed when something else is executed.
pub(crate) fn duplicate(number: i32) -> Result<OwnedFd, Errno> {
    let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    rustix::process::pidfd_getfd(&own, number, PidfdGetfdFlags::empty())
}

/// A number from 3 on, written plainly.
pub(crate) fn number(text: &str) -> Result<i32, &'static str> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_plain && *number >= 3);
    number.ok_or("a descriptor from 3 on; 0 to 2 are the standard streams")
}
