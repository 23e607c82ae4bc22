//! Making, replacing, ending and reaping processes.
//!
//! `spawn_in` and `fork` copy the calling process, so they are only sound to
//! use from a process with a single thread; both check it.

use std::convert::Infallible;
use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::thread::CpuSet;

use crate::{Errno, Result, check, last_errno, processors};

/// The constant in `libc` does not fit its type there.
pub(crate) const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// The kinds of namespace a new process gets of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces(u64);

impl Namespaces {
    /// User, mount, pid, network, IPC, UTS and cgroup: everything there is
    /// but time, which nothing here needs to be virtual.
    pub const ALL: Self = Self(
        (libc::CLONE_NEWUSER
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWCGROUP) as u64,
    );
}

/// A child made by [`spawn_in`] or [`fork`].
#[derive(Debug)]
pub struct Child {
    /// Its id in the caller's pid namespace.
    pub pid: Pid,
    /// A descriptor that names this very process, whatever its id becomes.
    pub pidfd: OwnedFd,
}

/// Whether the calling process has exactly one thread.
pub fn is_single_threaded() -> Result<bool> {
    // This changes nothing, and fails for a process with several threads
    // (unshare(2)).
    // SAFETY: takes flags only.
    match check(libc::c_long::from(unsafe {
        libc::unshare(libc::CLONE_THREAD)
    })) {
        Ok(_) => Ok(true),
        Err(Errno::INVAL) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns when the calling process has one thread. Others that were joined may
/// be on their way out still; with any else this fails.
pub(crate) fn await_single_thread() -> Result<()> {
    const LONGEST: Duration = Duration::from_secs(2);
    const FEW: usize = 200;
    let start = Instant::now();
    let mut looks = 0;
    while !is_single_threaded()? {
        if start.elapsed() > LONGEST {
            return Err(Errno::DEADLK);
        }
        looks += 1;
        if looks < FEW {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}

/// Copies the calling process into a child in new namespaces and runs `body`
/// there. The child ends when `body` returns, with that exit status.
pub fn spawn_in(namespaces: Namespaces, body: impl FnOnce() -> i32) -> Result<Child> {
    if !is_single_threaded()? {
        return Err(Errno::DEADLK);
    }
    clone3(namespaces.0, body)
}

/// Makes the control groups that the calling process is in the topmost that it
/// sees.
pub fn own_cgroup_view() -> Result<()> {
    // SAFETY: takes flags only, and concerns the calling process alone.
    check(libc::c_long::from(unsafe {
        libc::unshare(libc::CLONE_NEWCGROUP)
    }))?;
    Ok(())
}

/// As [`fork`], for a child that works beside us, on another processor if there
/// is one.
pub fn fork_beside(body: impl FnOnce() -> i32) -> Result<Child> {
    let Some(processors) = processors::allowed().filter(|all| all.count() > 1) else {
        return fork(body);
    };
    let moved = eventfd(0, EventfdFlags::CLOEXEC)?;
    let child = fork(|| {
        // Whatever it says about its processors must come after what we say.
        if await_event(&moved).is_err() {
            return 1;
        }
        processors::return_to(&processors);
        body()
    })?;
    processors::move_process_away(child.pid, &processors);
    rustix::io::write(&moved, &1u64.to_ne_bytes())?;
    Ok(child)
}

/// Looks for an event for about as long as it takes to be woken up, and then
/// waits for it.
fn await_event(event: &OwnedFd) -> Result<()> {
    const LOOKS: usize = 100;
    let now = rustix::time::Timespec::default();
    for turn in 0..=LOOKS {
        let mut fds = [PollFd::new(event, PollFlags::IN)];
        let timeout = (turn < LOOKS).then_some(&now);
        match rustix::event::poll(&mut fds, timeout) {
            Ok(0) | Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
    Err(Errno::INTR)
}

/// Copies the calling process and runs `body` in the child, which ends with
/// the status that `body` returns. Works under a filter that refuses `clone3`.
pub fn fork(body: impl FnOnce() -> i32) -> Result<Child> {
    let mut pidfd: RawFd = -1;
    // SAFETY: without CLONE_VM this is a fork; the kernel stores the
    // descriptor in `pidfd`, which lives through the call. On every
    // architecture built for, the flags come first and that place third.
    let returned = check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(libc::CLONE_PIDFD | libc::SIGCHLD),
            0usize,
            &raw mut pidfd,
            0usize,
            0usize,
        )
    })?;
    if returned == 0 {
        exit_now(body());
    }
    child_of(returned, pidfd)
}

/// As [`fork`], for a `body` that ends in [`exec`] or soon returns. It runs in
/// our memory while we wait, which spares copying it; what it does to
/// descriptors, folder, mask, signals and rights is its own.
pub fn spawn_to_exec<F: FnOnce() -> i32>(body: F) -> Result<Child> {
    const STACK: usize = 256 * 1024;
    struct Start<F> {
        body: Option<F>,
        processors: Option<CpuSet>,
    }
    extern "C" fn enter<F: FnOnce() -> i32>(start: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the caller below passes its `start`, and stands still until
        // this process execs or ends; it does not touch it before.
        let start = unsafe { &mut *start.cast::<Start<F>>() };
        // Or it would go on on our processor, in the middle of our `execve`.
        if let (Some(allowed), Some(parent)) = (&start.processors, rustix::process::getppid()) {
            processors::move_process_away(parent, allowed);
        }
        exit_now(start.body.take().map_or(1, |body| body()))
    }
    let mut start = Start {
        body: Some(body),
        processors: processors::allowed(),
    };
    let mut stack = vec![0u8; STACK];
    let top = stack
        .as_mut_ptr_range()
        .end
        .map_addr(|address| address & !0xf);
    let mut pidfd: RawFd = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: `top` is the aligned end of a stack that is ours until the call
    // returns, which CLONE_VFORK delays until the child has left this memory.
    // There is one thread, so nobody else sees what the child does meanwhile.
    let returned = check(unsafe {
        libc::c_long::from(libc::clone(
            enter::<F>,
            top.cast(),
            flags,
            (&raw mut start).cast(),
            &raw mut pidfd,
        ))
    });
    if let Some(allowed) = &start.processors {
        processors::return_to(allowed);
    }
    child_of(returned?, pidfd)
}

fn clone3(flags: u64, body: impl FnOnce() -> i32) -> Result<Child> {
    let mut pidfd: RawFd = -1;
    // SAFETY: all fields of `clone_args` are integers; zero means "not used".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | libc::CLONE_PIDFD as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: no memory is shared with the child (no CLONE_VM), so this is a
    // fork; `args` and `pidfd` live through the call. The caller has a single
    // thread, hence no lock of the allocator is held by a thread that is gone.
    let returned = check(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const args,
            size_of::<libc::clone_args>(),
        )
    })?;
    if returned == 0 {
        exit_now(body());
    }
    child_of(returned, pidfd)
}

pub(crate) fn child_of(returned: libc::c_long, pidfd: RawFd) -> Result<Child> {
    let pid = i32::try_from(returned)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(Errno::SRCH)?;
    // SAFETY: CLONE_PIDFD stored a new descriptor that nothing else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Child { pid, pidfd })
}

/// As [`reap`], for a process that ends elsewhere just now: waking up would take
/// as long as is left of that.
pub fn reap_soon(pid: Pid) -> Result<WaitStatus> {
    const LOOKS: usize = 500;
    let others_can_work = processors::allowed().is_some_and(|all| all.count() > 1);
    for _ in 0..if others_can_work { LOOKS } else { 0 } {
        match rustix::process::waitpid(Some(pid), WaitOptions::NOHANG)? {
            Some((_, status)) => return Ok(status),
            // What it waits for may have to be done on our processor.
            None => rustix::thread::sched_yield(),
        }
    }
    reap(pid)
}

/// Ends the process at once: no destructors, no buffers flushed.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(status) }
}

/// Replaces the program. Returns only on failure.
///
/// `shown` is in registers that the kernel does not look at, and a filter may.
pub fn exec(
    program: &CString,
    arguments: &[CString],
    environment: &[CString],
    shown: [u32; 3],
) -> Result<Infallible> {
    let argv = null_terminated(arguments);
    let envp = null_terminated(environment);
    let [one, two, three] = shown.map(libc::c_ulong::from);
    // SAFETY: both arrays end with a null pointer, their strings outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execve,
            program.as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            one,
            two,
            three,
        )
    };
    Err(last_errno())
}

fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain(std::iter::once(std::ptr::null()))
        .collect()
}

/// Closes every descriptor but the standard streams and `kept`.
///
/// For a process that was just forked, before anything else is opened: other
/// owners of descriptors in it must not be used afterwards.
pub fn close_all_but(kept: &[BorrowedFd<'_>]) -> Result<()> {
    let mut kept: Vec<u32> = kept
        .iter()
        .map(|fd| fd.as_raw_fd().cast_unsigned())
        .collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1, 0)?;
        }
        first = first.max(fd.saturating_add(1));
    }
    close_range(first, u32::MAX, 0)
}

/// Lets no descriptor but the standard streams survive the next `execve`.
pub fn close_all_on_exec() -> Result<()> {
    close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> Result<()> {
    // SAFETY: the callers of the functions above give these descriptors up.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) })?;
    Ok(())
}

/// Sets the file mode creation mask of the whole process.
pub fn set_umask(mask: u32) {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
}

/// The process group of the caller; `None` where its leader is outside of the
/// caller's pid namespace.
pub fn own_process_group() -> Option<Pid> {
    // SAFETY: has no preconditions.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Waits for the child to end.
pub fn reap(pid: Pid) -> Result<WaitStatus> {
    loop {
        match rustix::process::waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// What became of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaped {
    /// It ended by itself with this status.
    Exited(i32),
    /// A signal ended it.
    Killed(i32),
    /// A signal stopped it.
    Stopped(i32),
}

/// Collects every child that has changed state, without waiting.
pub fn reap_zombies() -> Vec<(Pid, Reaped)> {
    let mut changed = Vec::new();
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
    while let Ok(Some((pid, status))) = rustix::process::wait(options) {
        if let Some(state) = classify(status) {
            changed.push((pid, state));
        }
    }
    changed
}

fn classify(status: WaitStatus) -> Option<Reaped> {
    status
        .exit_status()
        .map(Reaped::Exited)
        .or_else(|| status.terminating_signal().map(Reaped::Killed))
        .or_else(|| status.stopping_signal().map(Reaped::Stopped))
}

/// The largest resident size, in bytes, of any child reaped so far.
pub fn children_peak_rss() -> u64 {
    // SAFETY: `rusage` is plain integers; the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place to write.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    u64::try_from(usage.ru_maxrss)
        .unwrap_or(0)
        .saturating_mul(1024)
}

impl Child {
    /// Sends `signal` to exactly this process.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::pidfd_send_signal(&self.pidfd, signal)
    }
}

/// Signals everything else in the pid namespace whose first process calls this;
/// any other caller is refused.
pub fn signal_all_others(signal: Signal) -> Result<()> {
    if rustix::process::getpid() != Pid::INIT {
        return Err(Errno::PERM);
    }
    // SAFETY: plain integers; -1 addresses all but the caller and pid 1.
    check(unsafe { libc::c_long::from(libc::kill(-1, signal.as_raw())) })?;
    Ok(())
}

/// Gives the calling thread a working folder and a file mode creation mask of
/// its own.
pub fn own_working_folder() -> Result<()> {
    // SAFETY: CLONE_FS takes nothing away that other code relies on.
    check(unsafe { libc::c_long::from(libc::unshare(libc::CLONE_FS)) })?;
    Ok(())
}
