//! Forgetting the environment that this process was started with.

/// Overwrites every string of this process's environment with zeros and
/// empties the table, so that a copy of the process cannot show it through
/// its memory or `/proc/PID/environ`.
///
/// Only for a process with one thread that does not read its environment
/// afterwards.
pub fn scrub_environment() {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: `environ` is null or a null-terminated array of C strings that
    // this process owns; no other thread exists that could read or grow it.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let length = libc::strlen(*entry);
            std::ptr::write_bytes(*entry, 0, length);
            entry = entry.add(1);
        }
        libc::clearenv();
    }
}
