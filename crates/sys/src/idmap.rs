//! User namespaces as id mappings.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use crate::process::reap;
use crate::{Errno, Result, check};

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

/// Maps the process `pid`, which is in a new user namespace; for a caller with
/// the right to map any id.
pub fn write_maps_of(pid: Pid, map: &IdMap) -> Result<()> {
    let folder = format!("/proc/{}", pid.as_raw_pid());
    write(&format!("{folder}/uid_map"), &map.uid_line())?;
    write(&format!("{folder}/gid_map"), &map.gid_line())
}

/// A user namespace that exists only to describe a mapping, for
/// [`crate::set_id_mapping`].
#[derive(Debug)]
pub struct IdMapping {
    namespace: OwnedFd,
    _holder: Holder,
}

impl IdMapping {
    /// Makes the namespace, which takes a process that ends at once. It is
    /// waited for only when this is dropped, so that its end costs no time.
    pub fn new(map: &IdMap) -> Result<Self> {
        // It lives until our end of the pipe closes, also by our death.
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let holder = Holder::start(&reader, &writer)?;
        // Dropped before the holder, which waits for it, whatever happens.
        let _writer = writer;
        write_maps_of(holder.pid, map)?;
        let link = format!("/proc/{}/ns/user", holder.pid.as_raw_pid());
        let namespace = rustix::fs::open(link, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self {
            namespace,
            _holder: holder,
        })
    }
}

/// A process in a user namespace of its own that waits for a pipe to close.
/// It shares our memory, because copying it would be most of its cost, and
/// uses nothing of it but its stack.
#[derive(Debug)]
struct Holder {
    pid: Pid,
    _stack: Vec<u8>,
    _ends: Box<[libc::c_int; 2]>,
}

impl Holder {
    fn start(reader: &OwnedFd, writer: &OwnedFd) -> Result<Self> {
        const STACK: usize = 16 * 1024;
        let mut stack = vec![0u8; STACK];
        let mut ends = Box::new([reader.as_raw_fd(), writer.as_raw_fd()]);
        let top = stack
            .as_mut_ptr_range()
            .end
            .map_addr(|address| address & !0xf);
        let flags = libc::CLONE_NEWUSER | libc::CLONE_VM | libc::SIGCHLD;
        // SAFETY: `top` is the aligned end of a stack that lives, as `ends`
        // does, until the process was reaped. `hold` makes system calls that
        // succeed, so it does not even write `errno`, which it shares with us.
        let returned = check(unsafe {
            libc::c_long::from(libc::clone(
                hold,
                top.cast(),
                flags,
                (&raw mut *ends).cast(),
            ))
        })?;
        let pid = i32::try_from(returned)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(Errno::SRCH)?;
        Ok(Self {
            pid,
            _stack: stack,
            _ends: ends,
        })
    }
}

/// What the holder does: closes its copy of the writing end and waits until
/// the other one is closed too.
extern "C" fn hold(ends: *mut libc::c_void) -> libc::c_int {
    let mut byte = 0u8;
    // SAFETY: `ends` points at two descriptors, copies of which are ours.
    unsafe {
        let [reader, writer] = ends.cast::<[libc::c_int; 2]>().read();
        libc::close(writer);
        libc::read(reader, (&raw mut byte).cast(), 1);
    }
    0
}

impl AsFd for IdMapping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = reap(self.pid);
    }
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
