//! Random bytes of the kernel.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Fills all of `bytes`, or fails.
pub(super) fn fill(bytes: &mut [u8]) -> Result<(), Errno> {
    let mut filled = 0;
    while filled < bytes.len() {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// So many random bytes.
pub(super) fn bytes<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}
