//! System-call filters: a small assembler, installation, and the listener
//! that answers notifications.

mod assembler;
mod listener;

pub use assembler::{Action, Filter, Program, Rule, Test};
pub use listener::{Answer, Listener, Notification};

use std::os::fd::{FromRawFd, OwnedFd};

use crate::{Errno, Result, check};

const SET_MODE_FILTER: libc::c_ulong = 1;
const FILTER_FLAG_NEW_LISTENER: libc::c_ulong = 1 << 3;
const FILTER_FLAG_WAIT_KILLABLE_RECV: libc::c_ulong = 1 << 5;

/// Puts a filter on the calling thread and everything it starts.
/// Needs `no_new_privs`.
pub fn install(program: &Program) -> Result<()> {
    load(program, 0).map(drop)
}

/// As [`install`], and returns the listener that receives the calls for which
/// the filter says [`Action::Notify`].
///
/// A call that waits for an answer can only be interrupted by a fatal signal,
/// so that no call is carried out twice (Linux 5.19 and later).
pub fn install_with_listener(program: &Program) -> Result<Listener> {
    let fd = load(
        program,
        FILTER_FLAG_NEW_LISTENER | FILTER_FLAG_WAIT_KILLABLE_RECV,
    )?;
    let fd = i32::try_from(fd).map_err(|_| Errno::BADF)?;
    // SAFETY: NEW_LISTENER returned a new descriptor that nothing else owns.
    Ok(Listener::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn load(program: &Program, flags: libc::c_ulong) -> Result<libc::c_long> {
    let instructions = program.instructions();
    let program = libc::sock_fprog {
        len: u16::try_from(instructions.len()).map_err(|_| Errno::TOOBIG)?,
        filter: instructions.as_ptr().cast_mut(),
    };
    // SAFETY: `program` points at `len` instructions that outlive the call,
    // which only reads them.
    check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    })
}
