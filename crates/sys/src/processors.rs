//! Which processor runs what.
//!
//! Kernels start a process or thread on the processor of whoever makes it even
//! if another is idle, and it waits there for as long as its maker goes on.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Where we may run, as far as it can be told.
pub(crate) fn allowed() -> Option<CpuSet> {
    sched_getaffinity(None).ok()
}

/// Those of `allowed` but the one that we are on, if there are any.
fn others(mut allowed: CpuSet) -> Option<CpuSet> {
    allowed.unset(sched_getcpu());
    (allowed.count() > 0).then_some(allowed)
}

/// Moves a process that was just made to another processor. Where that cannot
/// be done it begins later, that is all.
pub(crate) fn move_process_away(process: Pid, allowed: &CpuSet) {
    if let Some(others) = others(*allowed) {
        let _ = sched_setaffinity(Some(process), &others);
    }
}

/// Moves a process that is about to end to another processor, if there is one:
/// who wakes another is often made to wait for it on its own.
pub fn let_end_elsewhere(process: Pid) {
    if let Some(allowed) = allowed() {
        move_process_away(process, &allowed);
    }
}

/// Lets others have our processor for a moment. The kernel's own threads do not
/// take it from us, and whoever ends elsewhere may wait for one of them.
pub fn give_way() {
    rustix::thread::sched_yield();
}

/// The processor that we are on.
pub(crate) fn current() -> usize {
    sched_getcpu()
}

/// Takes the calling process, which was just made, off its maker's processor,
/// where it began before that could move it away. Leaves `errno` alone.
pub(crate) fn leave(makers: usize, allowed: &CpuSet) {
    if let Some(others) = others(*allowed).filter(|_| sched_getcpu() == makers) {
        let _ = sched_setaffinity(None, &others);
    }
}

/// As [`move_process_away`], for a thread that has not ended: of one that has,
/// the C library would mean us.
pub(crate) fn move_thread_away(thread: libc::pthread_t, allowed: &CpuSet) {
    let Some(others) = others(*allowed) else {
        return;
    };
    // SAFETY: `cpu_set_t` is plain data; zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let most = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    for number in (0..most.min(CpuSet::MAX_CPU)).filter(|number| others.is_set(*number)) {
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(number, &mut set) };
    }
    // SAFETY: whoever holds the handle has not joined the thread; the set
    // outlives the call.
    unsafe { libc::pthread_setaffinity_np(thread, size_of::<libc::cpu_set_t>(), &raw const set) };
}

/// Lets the calling process run wherever `allowed` says, and does not keep it
/// from processors that may be added later. Leaves `errno` alone.
pub(crate) fn return_to(allowed: &CpuSet) {
    let mut everywhere = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|number| everywhere.set(number));
    let _ = sched_setaffinity(None, &everywhere);
    // Then somebody chose among those that there are.
    if sched_getaffinity(None).as_ref() != Ok(allowed) {
        let _ = sched_setaffinity(None, allowed);
    }
}
