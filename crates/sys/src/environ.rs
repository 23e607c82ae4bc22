//! The environment that this process was started with: taking what is wanted
//! of it, and forgetting the rest.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

/// The variables whose name `wanted` accepts. Nothing else of the environment
/// is copied. Only for a process with one thread.
pub fn environment_where(wanted: impl Fn(&[u8]) -> bool) -> Vec<(OsString, OsString)> {
    let mut found = Vec::new();
    // SAFETY: `environ` is null or a null-terminated array of C strings; no
    // other thread exists that could change it.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            if let Some(at) = text.iter().position(|byte| *byte == b'=')
                && wanted(&text[..at])
            {
                let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
                found.push((part(&text[..at]), part(&text[at + 1..])));
            }
            entry = entry.add(1);
        }
    }
    found
}

/// Overwrites every string of this process's environment with zeros and
/// empties the table, so that a copy of the process cannot show it through
/// its memory or `/proc/PID/environ`.
///
/// Only for a process with one thread that does not read its environment
/// afterwards.
pub fn scrub_environment() {
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
