//! Signals as a descriptor to poll, and back to their defaults for a child.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Pid, Signal};

use crate::{Errno, Result, check};

/// Signals that are blocked in this process and read from a descriptor.
#[derive(Debug)]
pub struct SignalQueue(OwnedFd);

impl SignalQueue {
    /// Blocks `signals` in the calling thread and queues them on a descriptor.
    pub fn new(signals: &[Signal]) -> Result<Self> {
        let set = signal_set(signals);
        change_mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: `set` is initialised; -1 asks for a new descriptor.
        let fd = check(unsafe {
            libc::c_long::from(libc::signalfd(
                -1,
                &raw const set,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            ))
        })?;
        let fd = i32::try_from(fd).map_err(|_| Errno::BADF)?;
        // SAFETY: signalfd made this descriptor; nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next queued signal number, or `None` when the queue is empty.
    pub fn next(&self) -> Option<i32> {
        // SAFETY: plain integers; zero is valid.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is writable for `size` bytes.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size) };
        (usize::try_from(read) == Ok(size)).then_some(info.ssi_signo.cast_signed())
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether the signal was ignored when this process was started, as `nohup`
/// does with `SIGHUP`. (Not for `SIGPIPE`, which Rust ignores by itself.)
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: plain data; zero is a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only the present action is asked for.
    let asked = unsafe { libc::sigaction(signal.as_raw(), std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Has this process told how its children end, also where it was started by one
/// that ignored that: what is ignored stays so, and nobody could wait for them.
pub fn heed_children() {
    // SAFETY: no handler is replaced, as this program has none for it.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Whether `thread` is the first thread of a process, whose id it then is.
pub fn is_first_thread(thread: Pid) -> bool {
    let number = thread.as_raw_pid();
    // SAFETY: plain integers; signal 0 only asks whether there is somebody.
    unsafe { libc::syscall(libc::SYS_tgkill, number, number, 0) == 0 }
}

/// Makes signals be what a program that is about to be started expects: none
/// blocked or pending, and `SIGPIPE`, which Rust ignores, at its default.
/// Handlers end with `execve`, and what the starter ignores stays ignored.
pub fn reset_signals() -> Result<()> {
    forget_pending();
    // SAFETY: SIG_DFL is always a valid action.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: `sigemptyset` initialises the set it is given.
    let empty = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    };
    set_mask(&empty)
}

/// Takes the blocked signals that have come.
fn forget_pending() {
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let Ok(blocked) = blocked_signals() else {
        return;
    };
    // As many as there are kinds of them, and no more.
    for _ in 0..libc::SIGRTMAX() {
        // SAFETY: the set and the time are initialised, and nothing is asked
        // for about the signal.
        let taken =
            unsafe { libc::sigtimedwait(&raw const blocked, std::ptr::null_mut(), &raw const now) };
        if taken < 0 {
            break;
        }
    }
}

/// The signals that the calling thread blocks.
pub(crate) fn blocked_signals() -> Result<libc::sigset_t> {
    // SAFETY: `sigset_t` is plain data, and filled below.
    let mut blocked = unsafe { std::mem::zeroed() };
    // SAFETY: without a new mask, the present one is written to `blocked`.
    let error =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut blocked) };
    as_result(error).map(|()| blocked)
}

/// Blocks every signal in the calling thread.
pub(crate) fn block_all_signals() -> Result<()> {
    // SAFETY: `sigfillset` initialises the set it is given.
    let all = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        set
    };
    set_mask(&all)
}

/// Makes these the signals that the calling thread blocks. Leaves `errno` alone.
pub(crate) fn set_mask(blocked: &libc::sigset_t) -> Result<()> {
    change_mask(libc::SIG_SETMASK, blocked)
}

fn signal_set(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: `sigemptyset` initialises the set; `sigaddset` gets valid numbers.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, signal.as_raw());
        }
        set
    }
}

fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> Result<()> {
    // SAFETY: `set` is initialised; no old mask is asked for.
    let error = unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) };
    as_result(error)
}

/// Of a function that returns its error.
fn as_result(error: libc::c_int) -> Result<()> {
    if error == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(error))
    }
}
