//! Trying a thing in a child to see whether this machine allows it.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

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
        install_with_listener(&Filter::new(vec![rule])).map(drop)
    })
}

/// Whether `nf_tables` answers in a network namespace of our own, in a child.
pub fn probe_nf_tables() -> Result<()> {
    in_child(Probe::InNamespaces, ask_nf_tables)
}

/// Asks for the generation of the (empty) rule set.
fn ask_nf_tables() -> Result<()> {
    const NFT_MSG_GETGEN: u16 = (10 << 8) | 16;
    const NLM_F_REQUEST: u16 = 1;
    const NLMSG_ERROR: u16 = 2;
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )?;
    let mut request = Vec::with_capacity(20);
    request.extend(20u32.to_ne_bytes());
    request.extend(NFT_MSG_GETGEN.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 12]);
    rustix::net::send(&socket, &request, SendFlags::empty())?;
    let mut answer = [0u8; 512];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let kind = answer
        .get(4..6)
        .map_or(0, |bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
    if length < 20 || kind == NLMSG_ERROR {
        Err(Errno::OPNOTSUPP)
    } else {
        Ok(())
    }
}
