//! Memory that shows nothing to a copy of this process: what was given back,
//! and what only this process is to have.
//!
//! A sandbox's first process begins as a copy of its supervisor. By then that
//! has seen variables and files that nobody inside may have, not even in memory
//! which nobody inside can read.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Result, last_errno};

/// Whether what is given back is wiped.
static IS_WIPING: AtomicBool = AtomicBool::new(true);

/// The system's allocator, which wipes what is given back until it is told that
/// no copy of this process will be made any more.
pub struct WipeOnFree;

impl WipeOnFree {
    /// From now on memory is given back as it is.
    pub fn stop() {
        IS_WIPING.store(false, Ordering::Relaxed);
    }
}

fn is_wiping() -> bool {
    IS_WIPING.load(Ordering::Relaxed)
}

// SAFETY: every call goes to the system's allocator with the layout it came
// with; before that only bytes of the block that is given back are written.
unsafe impl GlobalAlloc for WipeOnFree {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_wiping() {
            // SAFETY: the block is the caller's and has this size. A plain loop
            // could be left out before a call that frees.
            unsafe { libc::explicit_bzero(block.cast(), layout.size()) };
        }
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_wiping() {
            // SAFETY: as the caller promises.
            return unsafe { System.realloc(block, layout, size) };
        }
        // The system's would leave the old block as it is.
        // SAFETY: the caller promises a size that is not zero and fits; both
        // blocks have room for what is copied, and do not overlap.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

/// Bytes that a copy of this process has zeros for (`MADV_WIPEONFORK`,
/// Linux 4.14).
pub struct WipedOnFork {
    bytes: NonNull<[u8]>,
}

// SAFETY: it owns its memory alone.
unsafe impl Send for WipedOnFork {}
// SAFETY: the bytes do not change.
unsafe impl Sync for WipedOnFork {}

impl WipedOnFork {
    /// Copies `bytes`, which are the caller's to wipe.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let length = bytes.len().max(1);
        // SAFETY: a new mapping, which nobody else knows of.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let Some(start) = NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED)
        else {
            return Err(last_errno());
        };
        let kept = Self {
            bytes: NonNull::slice_from_raw_parts(start.cast(), bytes.len()),
        };
        // SAFETY: the whole mapping is ours, and has room for the bytes.
        unsafe {
            if libc::madvise(start.as_ptr(), length, libc::MADV_WIPEONFORK) != 0 {
                return Err(last_errno());
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr().cast(), bytes.len());
        }
        Ok(kept)
    }

    /// The bytes; in a copy of the process that made this, zeros.
    pub fn expose(&self) -> &[u8] {
        // SAFETY: mapped as long as this is there.
        unsafe { self.bytes.as_ref() }
    }
}

impl Drop for WipedOnFork {
    fn drop(&mut self) {
        let (start, length) = (self.bytes.cast::<libc::c_void>().as_ptr(), self.bytes.len());
        // SAFETY: the mapping is ours, and nothing of it is borrowed any more.
        unsafe {
            libc::explicit_bzero(start, length);
            libc::munmap(start, length.max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Errno, Probe, in_child};

    #[test]
    fn g5_a_copy_of_this_process_has_zeros_for_it() {
        for text in ["", "of-this-process-alone"] {
            let kept = WipedOnFork::new(text.as_bytes()).unwrap();
            let in_copy = in_child(Probe::Plain, || {
                let is_wiped = kept.expose().iter().all(|byte| *byte == 0);
                if is_wiped { Ok(()) } else { Err(Errno::EXIST) }
            });
            assert_eq!(in_copy, Ok(()), "{text}");
            assert_eq!(kept.expose(), text.as_bytes());
        }
    }

    #[test]
    fn g5_what_grows_keeps_its_bytes() {
        let layout = Layout::from_size_align(64, 8).unwrap();
        // SAFETY: each block is used with its own layout, and within it.
        unsafe {
            let block = WipeOnFree.alloc(layout);
            std::ptr::write_bytes(block, 7, 64);
            let grown = WipeOnFree.realloc(block, layout, 4096);
            let bytes = std::slice::from_raw_parts(grown, 64);
            assert!(bytes.iter().all(|byte| *byte == 7));
            WipeOnFree.dealloc(grown, Layout::from_size_align(4096, 8).unwrap());
        }
    }
}
