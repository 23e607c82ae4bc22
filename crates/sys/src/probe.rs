//! Trying a thing in a child to see whether this machine allows it.

use crate::net::intercept_tcp;
use crate::process::{Namespaces, fork, reap, spawn_in};
use crate::seccomp::{Action, Filter, Rule, install_with_listener};
use crate::{Errno, Result};

/// What a trial needs around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// A plain child.
    Plain,
    /// A child in namespaces of its own, all kinds.
    InNamespaces,
}

/// Runs `trial` in a child and reports its errno, or that of making the child.
pub fn in_child(probe: Probe, trial: impl FnOnce() -> Result<()>) -> Result<()> {
    let body = || match trial() {
        Ok(()) => 0,
        Err(errno) => errno.raw_os_error().clamp(1, 250),
    };
    let child = match probe {
        Probe::Plain => fork(body)?,
        Probe::InNamespaces => spawn_in(Namespaces::ALL, body)?,
    };
    match reap(child.pid)?.exit_status() {
        Some(0) => Ok(()),
        Some(errno) => Err(Errno::from_raw_os_error(errno)),
        None => Err(Errno::FAULT),
    }
}

/// Whether system calls can be handed to a listener, in a child.
pub fn probe_seccomp_listener() -> Result<()> {
    in_child(Probe::Plain, || {
        rustix::thread::set_no_new_privs(true)?;
        let rule = Rule::always(libc::SYS_nfsservctl, Action::Notify);
        install_with_listener(&Filter::new(vec![rule]).assemble()?).map(drop)
    })
}

/// Whether every TCP connection of a network namespace of our own can be
/// intercepted with `nf_tables`, in a child.
pub fn probe_nf_tables() -> Result<()> {
    in_child(Probe::InNamespaces, || intercept_tcp(9, Some(9)))
}
