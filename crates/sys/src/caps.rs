//! Capabilities: what the in-sandbox processes give up.

use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::{Errno, Result};

/// Empties the bounding set, so that no `execve` can bring a capability back.
pub fn drop_bounding_set() -> Result<()> {
    for capability in 0..64u32 {
        // SAFETY: PR_CAPBSET_DROP takes integers only.
        let returned = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if returned < 0 {
            return match crate::last_errno() {
                // The first number this kernel does not know.
                Errno::INVAL => Ok(()),
                errno => Err(errno),
            };
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
