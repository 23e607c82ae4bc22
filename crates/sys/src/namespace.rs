//! Working in namespaces of others without living there.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::{child_of, exit_now, reap};
use crate::signal::{block_all_signals, blocked_signals, set_mask};
use crate::stack::Stack;
use crate::{Errno, Result, check};

/// Asks a socket for its network namespace.
const SIOCGSKNS: libc::Ioctl = 0x894c;
/// Asks a namespace for the user namespace that it belongs to.
const NS_GET_USERNS: libc::Ioctl = 0xb701;

/// A network namespace in a user namespace that the calling process made.
#[derive(Debug)]
pub struct NetworkNamespace(Namespace);

impl NetworkNamespace {
    /// The one that a socket belongs to.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Self> {
        let network = related(socket, SIOCGSKNS)?;
        Namespace::new(network, LinkNameSpaceType::Network).map(Self)
    }

    /// Runs `body` there, as [`MountNamespace::visit`] does.
    pub fn visit<T, F: FnOnce() -> T>(&self, body: F) -> Result<T> {
        self.0.visit(body)
    }
}

/// A mount namespace in a user namespace that the calling process made.
#[derive(Debug)]
pub struct MountNamespace(Namespace);

impl MountNamespace {
    /// The calling process's own, for somebody else to visit.
    pub fn own() -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, "/proc/self/ns/mnt", flags, Mode::empty())
    }

    /// The one behind such a descriptor.
    pub fn of(namespace: OwnedFd) -> Result<Self> {
        Namespace::new(namespace, LinkNameSpaceType::Mount).map(Self)
    }

    /// Runs `body` there, with every right that there is in its user namespace
    /// and in no other. A process does so in our memory and with our descriptors
    /// while we wait, so what `body` opens is ours. It is not in the pid
    /// namespace of those who live there, and so nobody of theirs can see it.
    ///
    /// `Err` means that `body` was not run to its end; if there was no process
    /// to be had for it, it was not begun.
    pub fn visit<T, F: FnOnce() -> T>(&self, body: F) -> Result<T> {
        self.0.visit(body)
    }
}

/// A namespace of some kind, and the user namespace that it belongs to.
#[derive(Debug)]
struct Namespace {
    itself: OwnedFd,
    kind: LinkNameSpaceType,
    user: OwnedFd,
}

impl Namespace {
    fn new(itself: OwnedFd, kind: LinkNameSpaceType) -> Result<Self> {
        let user = related(itself.as_fd(), NS_GET_USERNS)?;
        Ok(Self { itself, kind, user })
    }

    fn visit<T, F: FnOnce() -> T>(&self, body: F) -> Result<T> {
        let mut visit = Visit {
            to: self,
            body: Some(body),
            outcome: Err(Errno::CHILD),
        };
        let stack = Stack::new()?;
        let mut pidfd = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::CLONE_PIDFD;
        let mask = blocked_signals()?;
        // Ended in the middle, it would leave our memory as it is there.
        block_all_signals()?;
        // SAFETY: the end of the stack is aligned, and the stack is ours until
        // the child has ended, for which CLONE_VFORK has us wait. For all that it
        // does to memory it is this thread, which stands still.
        let returned = check(unsafe {
            libc::c_long::from(libc::clone(
                enter::<T, F>,
                stack.top(),
                flags | libc::SIGCHLD,
                (&raw mut visit).cast(),
                &raw mut pidfd,
            ))
        });
        let restored = set_mask(&mask);
        let child = child_of(returned?, pidfd)?;
        // Who ignores its children does not find it any more.
        let _ = reap(child.pid);
        restored?;
        visit.outcome
    }
}

/// What the visiting process sees of us.
struct Visit<'a, T, F> {
    to: &'a Namespace,
    body: Option<F>,
    outcome: Result<T>,
}

extern "C" fn enter<T, F: FnOnce() -> T>(visit: *mut c_void) -> c_int {
    // SAFETY: the caller above passes its `visit`, and stands still until this
    // process ends.
    let visit = unsafe { &mut *visit.cast::<Visit<'_, T, F>>() };
    let Namespace { itself, kind, user } = visit.to;
    let moved = move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))
        .and_then(|()| move_into_link_name_space(itself.as_fd(), Some(*kind)));
    if let Some(body) = visit.body.take() {
        visit.outcome = moved.map(|()| body());
    }
    exit_now(0)
}

/// Another namespace, as a request of this kind tells of it.
fn related(of: BorrowedFd<'_>, request: libc::Ioctl) -> Result<OwnedFd> {
    // SAFETY: both requests take no argument and return a new descriptor.
    let number = check(libc::c_long::from(unsafe {
        libc::ioctl(of.as_raw_fd(), request)
    }))?;
    let number = c_int::try_from(number).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel made it for us. It is close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
