//! Namespaces that are made ahead of the process that is to live in them.
//!
//! Making them takes the kernel as long as deciding what is to happen in them
//! takes us. So a holder makes them, on another processor, while we decide, and
//! then bears the process.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{CpuSet, UnshareFlags, sched_setaffinity};
use rustix::time::Timespec;

use crate::caps::drop_bounding_set;
use crate::link::bring_loopback_up;
use crate::namespace::NetworkNamespace;
use crate::process::{CLONE_INTO_CGROUP, Child, await_single_thread, child_of, exit_now, reap};
use crate::signal::{block_all_signals, blocked_signals, set_mask};
use crate::stack::Stack;
use crate::{Errno, Result, check, processors};

/// What the holder makes, when it is running, in its user namespace: all this
/// would take us as long.
const AHEAD: UnshareFlags = UnshareFlags::NEWIPC
    .union(UnshareFlags::NEWUTS)
    .union(UnshareFlags::NEWNET);

/// What it makes when it is woken up: the mounts are those of that moment.
const AT_WAKING: UnshareFlags = UnshareFlags::NEWNS;

/// What is made with the process itself.
const AT_BIRTH: c_int = libc::CLONE_NEWPID | libc::CLONE_NEWCGROUP;

/// What is set in an answer that is an error.
const FAILED: u64 = 1 << 32;

/// A name that every resolver knows, and nothing about this machine.
const HOST_NAME: &[u8] = b"localhost";

/// Looks for an event, one after the other, before it is waited for.
const LOOKS: usize = 500;

/// Many times what a birth takes.
const LONG: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A user, an IPC, a UTS and a network namespace, the last with its loopback
/// up, and in the end a mount namespace. A process that waits there holds them;
/// it shares our memory and our descriptors, ends with the thread that made it,
/// and runs nothing but the code in this file. Its bounding set is empty, and so
/// is that of whoever it bears.
#[derive(Debug)]
pub struct Cradle {
    holder: Child,
    /// It was told that it will be asked soon.
    is_awake: bool,
    /// It was waited for.
    is_over: bool,
    shared: Arc<Shared>,
    _stack: Stack,
}

/// What the holder and we see of each other.
#[derive(Debug)]
struct Shared {
    parent: Pid,
    /// Where we may run, as far as it can be told, and where we ran.
    processors: Option<CpuSet>,
    processor: usize,
    /// Says that there will be a request soon, and then that there is.
    asked: OwnedFd,
    /// Says what came of the request, in numbers that [`in_words`] reads: memory
    /// would have to be copied first, as a birth leaves it.
    answered: OwnedFd,
    /// Why there are no namespaces; 0 if there are.
    failed: AtomicI32,
    /// A socket of the network namespace, in the table of descriptors that is
    /// ours as well; -1 if there is none.
    socket: AtomicI32,
    /// Ours until the holder is asked, then its until it answers.
    request: UnsafeCell<Request>,
}

// SAFETY: of all that is shared, only the request is not safe to share by
// itself, and it belongs to one side at a time.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A process to be born.
#[derive(Debug)]
struct Request {
    /// The control group of version 2 that it begins in.
    group: Option<RawFd>,
    /// The signals that it blocks.
    mask: libc::sigset_t,
    enter: extern "C" fn(*mut c_void) -> !,
    body: *mut c_void,
}

impl Cradle {
    /// Has the namespaces made. Why that failed, if it does, is told by
    /// [`Self::bear`].
    pub fn new() -> Result<Self> {
        let stack = Stack::new()?;
        let mask = blocked_signals()?;
        let shared = Arc::new(Shared {
            parent: rustix::process::getpid(),
            processors: processors::allowed(),
            processor: processors::current(),
            asked: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?,
            answered: eventfd(0, EventfdFlags::CLOEXEC)?,
            failed: AtomicI32::new(0),
            socket: AtomicI32::new(-1),
            request: UnsafeCell::new(Request {
                group: None,
                mask,
                enter: nobody,
                body: null_mut(),
            }),
        });
        let mut pidfd: RawFd = -1;
        // The answer of what it bears is that of its own end: for a sibling
        // the kernel takes it from there.
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_PIDFD | libc::SIGCHLD;
        // No signal is for the holder, which nobody knows.
        block_all_signals()?;
        // SAFETY: the end of the stack is aligned, and the stack lives, as
        // `shared` does, until the process was reaped. `hold` neither allocates
        // nor writes `errno`, which it shares with us, while we run.
        let returned = unsafe {
            libc::clone(
                hold,
                stack.top(),
                flags,
                Arc::as_ptr(&shared).cast_mut().cast(),
                &raw mut pidfd,
            )
        };
        let returned = check(libc::c_long::from(returned));
        let restored = set_mask(&mask);
        let cradle = Self {
            holder: child_of(returned?, pidfd)?,
            is_awake: false,
            is_over: false,
            shared,
            _stack: stack,
        };
        // From here on, whatever fails, the holder is waited for.
        restored?;
        cradle.move_away();
        Ok(cradle)
    }

    /// The process that holds the namespaces.
    pub fn holder(&self) -> Pid {
        self.holder.pid
    }

    /// Has the holder copy the mounts, and wait for a request that comes soon
    /// without going to sleep: waking it up would take as long as what is left to
    /// be done until then.
    pub fn wake(&mut self) -> Result<()> {
        if !self.is_awake {
            // We may be on another processor now.
            self.move_away();
            self.shared.ask()?;
            self.is_awake = true;
        }
        Ok(())
    }

    /// Copies the calling process into a child that lives in these namespaces,
    /// and in a pid and a cgroup namespace that are made for it; in the control
    /// group of version 2 with the folder `group` from its first instruction on.
    /// It runs `body` and ends with the status that it returns.
    pub fn bear<F: FnOnce() -> i32>(
        &mut self,
        group: Option<BorrowedFd<'_>>,
        body: F,
    ) -> Result<Child> {
        extern "C" fn enter<F: FnOnce() -> i32>(body: *mut c_void) -> ! {
            // SAFETY: this is the `body` below, in a copy of its memory.
            let body = unsafe { (*body.cast::<Option<F>>()).take() };
            exit_now(body.map_or(1, |body| body()))
        }
        await_single_thread()?;
        let mut body = Some(body);
        // SAFETY: the holder was not asked yet.
        let request = unsafe { &mut *self.shared.request.get() };
        request.group = group.map(|group| group.as_raw_fd());
        request.mask = blocked_signals()?;
        request.enter = enter::<F>;
        request.body = (&raw mut body).cast();
        self.wake()?;
        self.shared.ask()?;
        let pid = in_words(self.await_answer()?)?;
        // It is ours to wait for, so the id is its until then.
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = reap(pid);
        })?;
        Ok(Child { pid, pidfd })
    }

    /// The network namespace, for whoever asks first once there is one.
    pub fn take_network(&mut self) -> Result<NetworkNamespace> {
        let socket = self.take_socket().ok_or(Errno::BADF)?;
        NetworkNamespace::of(socket.as_fd())
    }

    fn take_socket(&mut self) -> Option<OwnedFd> {
        let number = self.shared.socket.swap(-1, Ordering::AcqRel);
        // SAFETY: the holder made it, left it to us, and it was not taken before.
        (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) })
    }

    /// Ends the holder, if it has not ended, and waits for it. Its memory is
    /// let go of later, with this.
    pub fn end(&mut self) {
        if !self.is_over {
            self.is_over = true;
            let _ = self.holder.signal(Signal::KILL);
            let _ = reap(self.holder.pid);
        }
    }

    /// Keeps the holder and whoever it bears from the processor that we are on.
    fn move_away(&self) {
        if let Some(processors) = &self.shared.processors {
            processors::move_process_away(self.holder.pid, processors);
        }
    }

    /// Until the holder has answered, or is no more. If it takes long, it may
    /// have our processor as well.
    fn await_answer(&self) -> Result<u64> {
        let answered = &self.shared.answered;
        self.shared.look_for(answered);
        let mut timeout = Some(&LONG);
        loop {
            let mut fds = [
                PollFd::new(answered, PollFlags::IN),
                PollFd::new(&self.holder.pidfd, PollFlags::IN),
            ];
            match rustix::event::poll(&mut fds, timeout) {
                Ok(0) => {
                    timeout = None;
                    if let Some(processors) = &self.shared.processors {
                        let _ = sched_setaffinity(Some(self.holder.pid), processors);
                    }
                }
                Ok(_) => return self.shared.answer(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl Drop for Cradle {
    fn drop(&mut self) {
        self.end();
        drop(self.take_socket());
    }
}

/// The whole life of the holder.
///
/// Nothing here may allocate or panic, and no call may leave an error in
/// `errno` while the other process runs: it is shared.
extern "C" fn hold(shared: *mut c_void) -> c_int {
    // SAFETY: the process that made us keeps it until we are reaped.
    let shared = unsafe { &*shared.cast::<Shared>() };
    if let Some(processors) = &shared.processors {
        processors::leave(shared.processor, processors);
    }
    shared.note(make_user_namespace().and_then(|()| prepare(&shared.socket)));
    // After the change of ids, which would clear it.
    if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err()
        || rustix::process::getppid() != Some(shared.parent)
    {
        return 1;
    }
    shared.await_word();
    if shared.check().is_ok() {
        shared.note(copy_mounts());
    }
    shared.look_for(&shared.asked);
    shared.await_word();
    // SAFETY: we were asked, so it is ours until we answer.
    let request = unsafe { &*shared.request.get() };
    let born = shared
        .check()
        .and_then(|()| request.carry_out(shared.processors.as_ref()));
    shared.give_answer(in_numbers(born));
    0
}

/// What came of a request, as a number other than 0.
fn in_numbers(born: Result<libc::c_long>) -> u64 {
    match born {
        Ok(pid) => pid.cast_unsigned(),
        Err(errno) => FAILED | u64::from(errno.raw_os_error().cast_unsigned()),
    }
}

/// The process that was born, or why none was.
fn in_words(answer: u64) -> Result<Pid> {
    let number = i32::try_from(answer & !FAILED).map_err(|_| Errno::SRCH)?;
    if answer & FAILED != 0 {
        return Err(Errno::from_raw_os_error(number));
    }
    Pid::from_raw(number).ok_or(Errno::SRCH)
}

fn make_user_namespace() -> Result<()> {
    // SAFETY: nobody else is in the new namespace, and neither memory nor
    // descriptors are concerned.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }
}

fn copy_mounts() -> Result<()> {
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(AT_WAKING) }
}

/// What no policy changes.
fn prepare(socket: &AtomicI32) -> Result<()> {
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(AHEAD) }?;
    socket.store(bring_loopback_up()?.into_raw_fd(), Ordering::Release);
    rustix::system::sethostname(HOST_NAME)?;
    drop_bounding_set()
}

impl Shared {
    fn note(&self, outcome: Result<()>) {
        if let Err(errno) = outcome {
            self.failed.store(errno.raw_os_error(), Ordering::Release);
        }
    }

    /// Whether all went well with the namespaces, so far.
    fn check(&self) -> Result<()> {
        match self.failed.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => Err(Errno::from_raw_os_error(errno)),
        }
    }

    fn ask(&self) -> Result<()> {
        rustix::io::write(&self.asked, &1u64.to_ne_bytes()).map(drop)
    }

    fn await_word(&self) {
        while rustix::io::read(&self.asked, &mut [0; 8]) == Err(Errno::INTR) {}
    }

    /// Looks for an event for about as long as a birth takes, where others can
    /// work meanwhile: waking up takes a good part of that.
    fn look_for(&self, event: &OwnedFd) {
        if self.processors.as_ref().is_none_or(|all| all.count() < 2) {
            return;
        }
        let now = Timespec::default();
        for _ in 0..LOOKS {
            let mut fds = [PollFd::new(event, PollFlags::IN)];
            if rustix::event::poll(&mut fds, Some(&now)) != Ok(0) {
                break;
            }
            // Who is looked for may wait for somebody on this processor.
            rustix::thread::sched_yield();
        }
    }

    fn give_answer(&self, number: u64) {
        // An event counter takes any number when it is empty.
        let _ = rustix::io::write(&self.answered, &number.to_ne_bytes());
    }

    /// The answer of a holder that has answered, or is no more: it may have done
    /// so before its end.
    fn answer(&self) -> Result<u64> {
        let now = Timespec::default();
        let mut fds = [PollFd::new(&self.answered, PollFlags::IN)];
        if rustix::event::poll(&mut fds, Some(&now)) != Ok(1) {
            return Err(Errno::CHILD);
        }
        let mut answer = [0; 8];
        rustix::io::read(&self.answered, &mut answer)?;
        Ok(u64::from_ne_bytes(answer))
    }
}

impl Request {
    fn carry_out(&self, processors: Option<&CpuSet>) -> Result<libc::c_long> {
        // SAFETY: all fields of `clone_args` are integers; zero means "not used".
        let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
        // Whoever is born is a child of our parent's.
        args.flags = (AT_BIRTH | libc::CLONE_PARENT) as u64;
        if let Some(group) = self.group {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = u64::from(group.cast_unsigned());
        }
        set_mask(&self.mask)?;
        // SAFETY: no memory is shared with the child (no CLONE_VM), so this is
        // a fork; `args` lives through the call. What is copied is the memory of
        // a process with a single thread that stands still, so no lock of the
        // allocator is held by anyone.
        let returned = unsafe {
            libc::syscall(
                libc::SYS_clone3,
                &raw const args,
                size_of::<libc::clone_args>(),
            )
        };
        if returned == 0 {
            if let Some(processors) = processors {
                processors::return_to(processors);
            }
            (self.enter)(self.body);
        }
        check(returned)
    }
}

extern "C" fn nobody(_: *mut c_void) -> ! {
    exit_now(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_process_or_an_error() {
        for pid in [1, 4711, i32::MAX] {
            let answer = in_numbers(Ok(pid.into()));
            assert_eq!(in_words(answer).map(Pid::as_raw_pid), Ok(pid));
        }
        for errno in [Errno::PERM, Errno::AGAIN, Errno::NOSPC] {
            let answer = in_numbers(Err(errno));
            assert!(answer != 0);
            assert_eq!(in_words(answer), Err(errno));
        }
        assert_eq!(in_words(0), Err(Errno::SRCH));
    }
}
