//! Who judges the calls of a command.

use ringfence_sys::{self as sys, Errno};

use crate::plan::Weaker;

/// Who judges calls that make or change names, open files for writing or
/// connect, and records what is seen of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The sandbox's init, which a listener tells of them.
    Init,
    /// Nobody, because somebody else has the only listener that a process can
    /// have. Whatever would have to be judged is impossible then.
    Nobody,
}

impl Judge {
    /// Who judges here. Whether somebody else has the listener is tried in a
    /// child, and only where doing without one was accepted by name: otherwise
    /// the start fails. For a process with one thread.
    pub fn choose(weaker: Weaker) -> Self {
        let is_taken = || sys::probe_seccomp_listener() == Err(Errno::BUSY);
        if weaker.no_listener && is_taken() {
            Self::Nobody
        } else {
            Self::Init
        }
    }
}
