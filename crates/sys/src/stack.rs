//! A stack for a process that shares our memory.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::{Result, check, last_errno};

/// As much as a thread has.
const STACK: usize = 2 << 20;
/// Below the stack, not to be touched.
const GUARD: usize = 64 << 10;

/// Memory with a gap below it that cannot be touched.
#[derive(Debug)]
pub(crate) struct Stack(*mut c_void);

// SAFETY: the memory belongs to whoever has this.
unsafe impl Send for Stack {}

impl Stack {
    pub(crate) fn new() -> Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for new memory anywhere.
        let start = unsafe { libc::mmap(null_mut(), GUARD + STACK, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(last_errno());
        }
        let stack = Self(start);
        // SAFETY: this part of the new memory is used by nobody.
        check(libc::c_long::from(unsafe {
            libc::mprotect(start, GUARD, libc::PROT_NONE)
        }))?;
        Ok(stack)
    }

    /// Its end, where it begins to grow from.
    pub(crate) fn top(&self) -> *mut c_void {
        self.0.wrapping_byte_add(GUARD + STACK)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: whoever ran there has been reaped.
        unsafe { libc::munmap(self.0, GUARD + STACK) };
    }
}
