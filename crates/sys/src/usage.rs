//! What processes have used of the processors.

use std::time::Duration;

/// The CPU time of every child reaped so far, and of those that they reaped.
pub fn children_cpu_time() -> Duration {
    // SAFETY: `rusage` is plain integers; the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place to write.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// How many ticks of `/proc/PID/stat` make a second.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes and returns an integer.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks)
        .ok()
        .filter(|ticks| *ticks > 0)
        .unwrap_or(100)
}
