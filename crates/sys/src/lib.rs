//! Raw Linux system calls behind safe functions: processes and namespaces,
//! mounts, Landlock, seccomp (filter and notification), capabilities,
//! terminals, the network of a namespace, and probes of what this kernel
//! offers.
//!
//! All `unsafe` code of ringfence is in this crate. Nothing here knows about
//! policies; each function does one thing and returns the kernel's errno.
#![allow(unsafe_code)]

mod address;
mod beside;
mod caps;
mod cradle;
mod entry;
mod environ;
mod helper;
mod idmap;
mod image;
mod keyring;
mod landlock;
mod lease;
mod link;
mod memory;
mod message;
mod mount;
mod namespace;
mod net;
mod probe;
mod process;
mod processors;
mod ring;
pub mod seccomp;
mod secrecy;
mod signal;
mod stack;
mod terminal;
mod unix_diag;
mod usage;
mod wipe;

pub use crate::address::{PeerCredentials, bind_raw, connect_raw, peer_credentials};
pub use crate::beside::Beside;
pub use crate::caps::{
    drop_all as drop_capabilities, keep_only_ptrace,
    raise_permitted as raise_permitted_capabilities,
};
pub use crate::cradle::Cradle;
pub use crate::entry::run_program;
pub use crate::environ::{environment_where, scrub_environment};
pub use crate::helper::end_with_parent;
pub use crate::idmap::{IdMap, IdMapping, write_maps_of, write_own_maps};
pub use crate::image::release_code;
pub use crate::keyring::join_fresh_session_keyring;
pub use crate::landlock::{FsAccess, Ruleset, landlock_abi};
pub use crate::lease::{OpenFor, is_open_elsewhere};
pub use crate::memory::{read_bytes, read_c_string, read_c_string_into, read_some, write_bytes};
pub use crate::message::{Channel, Received};
pub use crate::mount::{
    MountFlags, attach, attach_to_entry, clone_entry, clone_tree, devpts, limit_tmpfs,
    make_view_read_only, overlay, pivot_into, procfs, set_attributes_of_one, set_id_mapping,
    set_mount_attributes, tmpfs,
};
pub use crate::namespace::{MountNamespace, NetworkNamespace};
pub use crate::net::{
    Datagram, Families, Family, anyip_listener, bring_anyip_up, datagram_socket, intercept_tcp,
    local_port, loopback_listener, namespace_of, own_addresses, receive_datagram, send_datagram,
    transparent_listener,
};
pub use crate::probe::{Probe, in_child, probe_nf_tables, probe_seccomp_listener};
pub use crate::process::{
    Child, Namespaces, Reaped, children_peak_rss, close_all_but, close_all_on_exec, exec, exit_now,
    fork, fork_beside, is_single_threaded, own_cgroup_view, own_process_group, own_working_folder,
    reap, reap_soon, reap_zombies, set_umask, signal_all_others, spawn_in, spawn_to_exec,
};
pub use crate::processors::{give_way, let_end_elsewhere};
pub use crate::ring::{
    COUNTERS, Counter, LARGEST_RECORD, Ring, RingReader, RingWriter, sealable_memory,
};
pub use crate::secrecy::keep_secrets;
pub use crate::signal::{SignalQueue, heed_children, is_first_thread, is_ignored, reset_signals};
pub use crate::terminal::{Pty, RawMode, controlling_terminal_of, make_controlling};
pub use crate::unix_diag::UnixDiag;
pub use crate::usage::{children_cpu_time, ticks_per_second};
pub use crate::wipe::{WipeOnFree, WipedOnFork};

/// The error of a failed system call.
pub type Errno = rustix::io::Errno;
/// The result of a system call.
pub type Result<T> = core::result::Result<T, Errno>;

/// Turns the C convention of -1 and `errno` into a result.
fn check(returned: libc::c_long) -> Result<libc::c_long> {
    if returned < 0 {
        Err(last_errno())
    } else {
        Ok(returned)
    }
}

fn last_errno() -> Errno {
    let raw = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(raw.unwrap_or(libc::EIO))
}
