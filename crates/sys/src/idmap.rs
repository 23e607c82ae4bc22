//! User namespaces as id mappings.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use crate::process::{Namespaces, reap, spawn_in};
use crate::{Errno, Result};

/// One user id and one group id, inside and outside of a user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdMap {
    /// The user id seen inside.
    pub inside_uid: u32,
    /// The group id seen inside.
    pub inside_gid: u32,
    /// The user id it stands for outside.
    pub outside_uid: u32,
    /// The group id it stands for outside.
    pub outside_gid: u32,
}

impl IdMap {
    fn uid_line(&self) -> String {
        format!("{} {} 1\n", self.inside_uid, self.outside_uid)
    }

    fn gid_line(&self) -> String {
        format!("{} {} 1\n", self.inside_gid, self.outside_gid)
    }
}

/// Maps the caller, alone in a new user namespace, to one id of each kind.
/// Needs no privilege as long as the outside ids are the caller's own.
pub fn write_own_maps(map: &IdMap) -> Result<()> {
    // Without this the kernel lets no unprivileged process map a group
    // (user_namespaces(7)): dropping a group could give rights.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &map.uid_line())?;
    write("/proc/self/gid_map", &map.gid_line())
}

/// Maps the process `pid`; for a caller with the right to map any id.
pub fn write_maps_of(pid: Pid, map: &IdMap) -> Result<()> {
    let folder = format!("/proc/{}", pid.as_raw_pid());
    write(&format!("{folder}/uid_map"), &map.uid_line())?;
    write(&format!("{folder}/gid_map"), &map.gid_line())
}

/// A user namespace that exists only to describe a mapping, for
/// [`crate::set_id_mapping`].
pub fn id_mapping_namespace(map: &IdMap) -> Result<OwnedFd> {
    // It lives until our end of the pipe closes, also by our death.
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let mut writer = Some(writer);
    let holder = spawn_in(Namespaces::USER, || {
        writer.take();
        i32::from(rustix::io::read(&reader, &mut [0; 1]).is_err())
    })?;
    let made = write_maps_of(holder.pid, map).and_then(|()| {
        let link = format!("/proc/{}/ns/user", holder.pid.as_raw_pid());
        rustix::fs::open(link, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    });
    drop(writer);
    reap(holder.pid)?;
    made
}

fn write(path: &str, text: &str) -> Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(file, text.as_bytes())?;
    if written == text.len() {
        Ok(())
    } else {
        Err(Errno::IO)
    }
}
