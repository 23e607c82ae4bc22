//! Receiving and answering notified system calls.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;

use crate::{Errno, Result, check};

const NOTIF_RECV: libc::c_ulong = 0xc050_2100;
const NOTIF_SEND: libc::c_ulong = 0xc018_2101;
const NOTIF_ID_VALID: libc::c_ulong = 0x4008_2102;
const NOTIF_ADDFD: libc::c_ulong = 0x4018_2103;
const NOTIF_SET_FLAGS: libc::c_ulong = 0x4008_2104;
const ADDFD_FLAG_SEND: u32 = 2;
const FLAG_CONTINUE: u32 = 1;

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Notification {
    id: u64,
    /// The calling thread, in the pid namespace of the listener's owner.
    pub thread: Pid,
    /// The number of the call.
    pub number: i64,
    /// Its arguments as given; pointers are into the caller's memory.
    pub arguments: [u64; 6],
}

impl Notification {
    /// What tells this wait from every other of the same listener.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// What the caller gets.
#[derive(Debug)]
pub enum Answer {
    /// The call returns this value.
    Value(i64),
    /// The call fails.
    Fail(Errno),
    /// The call returns a new descriptor of this file, close-on-exec if said.
    Descriptor(OwnedFd, bool),
    /// The kernel carries the call out. Its arguments may change until then:
    /// never an answer to a question of permission.
    Continue,
}

/// The receiving end of a filter's notifications.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl Listener {
    /// Takes a descriptor that `seccomp(2)` made.
    pub fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Has the kernel run caller and listener in turns on one processor, which
    /// spares waking another up. For a kernel before 6.6 this is an error.
    pub fn take_turns(&self) -> Result<()> {
        const SYNC_WAKE_UP: u64 = 1;
        // SAFETY: this request takes its flags by value.
        let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        check(libc::c_long::from(returned)).map(drop)
    }

    /// The next waiting call. `ENOENT` when it went away meanwhile.
    pub fn receive(&self) -> Result<Notification> {
        // SAFETY: plain integers; the kernel demands zeros.
        let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        self.control(NOTIF_RECV, (&raw mut raw).cast())?;
        let thread = i32::try_from(raw.pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(Errno::SRCH)?;
        Ok(Notification {
            id: raw.id,
            thread,
            number: i64::from(raw.data.nr),
            arguments: raw.data.args,
        })
    }

    /// Whether the caller still waits. What was read about a thread id is
    /// only about the caller if this holds afterwards.
    pub fn still_waits(&self, call: &Notification) -> bool {
        let mut id = call.id;
        self.control(NOTIF_ID_VALID, (&raw mut id).cast()).is_ok()
    }

    /// Ends the wait. A caller that is gone is not an error.
    pub fn answer(&self, call: &Notification, answer: Answer) -> Result<()> {
        let sent = match answer {
            Answer::Value(value) => self.reply(call, value, 0, 0),
            Answer::Fail(errno) => self.fail(call, errno),
            Answer::Continue => self.reply(call, 0, 0, FLAG_CONTINUE),
            Answer::Descriptor(fd, close_on_exec) => {
                match self.hand_over(call, fd.as_fd(), close_on_exec) {
                    Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                        self.fail(call, errno)
                    }
                    other => other,
                }
            }
        };
        match sent {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    fn fail(&self, call: &Notification, errno: Errno) -> Result<()> {
        // Zero would be success.
        let errno = errno.raw_os_error().max(1);
        self.reply(call, 0, -errno, 0)
    }

    fn reply(&self, call: &Notification, value: i64, error: i32, flags: u32) -> Result<()> {
        let mut response = libc::seccomp_notif_resp {
            id: call.id,
            val: value,
            error,
            flags,
        };
        self.control(NOTIF_SEND, (&raw mut response).cast())
    }

    fn hand_over(
        &self,
        call: &Notification,
        fd: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> Result<()> {
        let mut request = libc::seccomp_notif_addfd {
            id: call.id,
            flags: ADDFD_FLAG_SEND,
            srcfd: fd.as_raw_fd().cast_unsigned(),
            newfd: 0,
            newfd_flags: if close_on_exec {
                libc::O_CLOEXEC.cast_unsigned()
            } else {
                0
            },
        };
        self.control(NOTIF_ADDFD, (&raw mut request).cast())
    }

    fn control(&self, request: libc::c_ulong, argument: *mut libc::c_void) -> Result<()> {
        loop {
            // SAFETY: each request is passed a pointer to the structure it
            // reads and writes, alive for the call.
            let returned = unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) };
            match check(libc::c_long::from(returned)) {
                Err(Errno::INTR) => {}
                other => return other.map(drop),
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
