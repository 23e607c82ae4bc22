//! Capabilities: what the in-sandbox processes give up.

use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::{Errno, Result};

/// Empties the bounding set, so that no `execve` can bring a capability back.
/// Leaves `errno` alone.
pub(crate) fn drop_bounding_set() -> Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The first number this kernel does not know.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Keeps `CAP_SYS_PTRACE` alone, so that the init can read the arguments of
/// processes that made themselves unreadable. It counts only within the
/// sandbox's own user namespace.
pub fn keep_only_ptrace() -> Result<()> {
    set(CapabilitySet::SYS_PTRACE)
}

/// Gives up every capability.
pub fn drop_all() -> Result<()> {
    set(CapabilitySet::empty())
}

fn set(kept: CapabilitySet) -> Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets)
}

/// Makes every permitted capability effective again, after a change of user id.
pub fn raise_permitted() -> Result<()> {
    let mut sets = rustix::thread::capabilities(None)?;
    sets.effective = sets.permitted;
    rustix::thread::set_capabilities(None, sets)
}
