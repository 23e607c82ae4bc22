//! The pages of this program's own file.

use std::ffi::c_int;

/// Lets go of the program's code and constants, which are read from its file
/// again when they are needed. Most of what sets a sandbox up is never needed
/// again, and counts as memory of this process until then.
pub fn release_code() {
    // SAFETY: the callback has the type that is asked for, takes no data, and
    // does not outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(release), std::ptr::null_mut()) };
}

/// Of the first object, which is the program itself.
unsafe extern "C" fn release(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> c_int {
    const STOP: c_int = 1;
    // SAFETY: the caller passes a valid description for the time of this call.
    let info = unsafe { &*info };
    if info.dlpi_phdr.is_null() {
        return STOP;
    }
    // SAFETY: the loader tells where the headers of a loaded object are, and
    // how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let Some(page) = page_size() else {
        return STOP;
    };
    for header in headers.iter().filter(|header| is_constant(header)) {
        let start = info.dlpi_addr + header.p_vaddr;
        let aligned = start - start % page;
        let length = start + header.p_memsz - aligned;
        // SAFETY: this part of the file is mapped without the right to write,
        // so that memory and file agree, and a page that is dropped comes back
        // as it was. A kernel that refuses leaves all as it is.
        unsafe {
            libc::madvise(
                aligned as *mut libc::c_void,
                usize::try_from(length).unwrap_or(0),
                libc::MADV_DONTNEED,
            );
        }
    }
    STOP
}

/// As the C library was told when the program started: the init may not read
/// it from `/proc`, which is where others look on older kernels.
fn page_size() -> Option<u64> {
    // SAFETY: takes a number and returns one.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).ok().filter(|size| *size > 0)
}

/// Whether nobody ever wrote there, the linker included.
fn is_constant(header: &libc::Elf64_Phdr) -> bool {
    header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Errno, Probe, check, in_child};

    /// Where this program's code is mapped, and how much of it is in memory.
    fn code() -> (usize, usize, u64) {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = text.lines();
        let here = lines
            .find(|line| line.contains(" r-xp ") && line.contains("ringfence_sys"))
            .unwrap();
        let (range, _) = here.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let address = |text| usize::from_str_radix(text, 16).unwrap();
        let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        let kilobytes = resident.split_whitespace().next().unwrap();
        (
            address(start),
            address(end) - address(start),
            kilobytes.parse().unwrap(),
        )
    }

    #[test]
    fn code_that_is_let_go_comes_back_when_it_is_needed() {
        let outcome = in_child(Probe::Plain, || {
            let (start, length, _) = code();
            // SAFETY: this only reads what is mapped there.
            check(libc::c_long::from(unsafe {
                libc::madvise(start as *mut libc::c_void, length, libc::MADV_POPULATE_READ)
            }))?;
            let (_, _, before) = code();
            release_code();
            let (_, _, after) = code();
            (before > after && after > 0)
                .then_some(())
                .ok_or(Errno::INVAL)
        });
        assert_eq!(outcome, Ok(()));
    }
}
