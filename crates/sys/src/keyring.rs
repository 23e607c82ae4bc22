//! Session keyrings, which no namespace covers.

use crate::{Result, check};

/// Leaves the inherited session keyring for a new, empty, anonymous one.
pub fn join_fresh_session_keyring() -> Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name asks for an anonymous keyring; nothing is read.
    check(unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_JOIN_SESSION_KEYRING,
            std::ptr::null::<u8>(),
        )
    })?;
    Ok(())
}
