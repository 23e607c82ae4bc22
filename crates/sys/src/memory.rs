//! Reading and writing the memory of another process, bounded.
//!
//! What a process may only write, or execute, the kernel reads all the same
//! when it is passed to a call, as far as the processor tells no difference. So
//! it is read here too, by another way.

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::{Errno, Result, check};

const PAGE: usize = 4096;

/// Copies exactly `length` bytes from `address` of process `pid`.
pub fn read_bytes(pid: Pid, address: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    if read_some(pid, address, &mut bytes)? == length {
        Ok(bytes)
    } else {
        Err(Errno::FAULT)
    }
}

/// Copies what there is from `address` of process `pid`, up to the end of its
/// mapped memory; nothing mapped there is `EFAULT`.
pub fn read_some(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        let at = address.checked_add(length as u64).ok_or(Errno::FAULT)?;
        let wanted = to_page_end(at).min(buffer.len() - length);
        match read_into(pid, at, &mut buffer[length..length + wanted]) {
            Ok(0) | Err(Errno::FAULT) if length > 0 => break,
            Ok(0) => return Err(Errno::FAULT),
            other => length += other?,
        }
    }
    Ok(length)
}

/// As [`read_c_string`], into `buffer`, which is also the limit. Most strings
/// are short: a little is read first.
pub fn read_c_string_into(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<&[u8]> {
    const LITTLE: usize = 256;
    let mut length = 0;
    while length < buffer.len() {
        let at = address.checked_add(length as u64).ok_or(Errno::FAULT)?;
        let most = if length == 0 { LITTLE } else { PAGE };
        let wanted = to_page_end(at).min(buffer.len() - length).min(most);
        let copied = read_into(pid, at, &mut buffer[length..length + wanted])?;
        if copied == 0 {
            return Err(Errno::FAULT);
        }
        let found = buffer[length..length + copied]
            .iter()
            .position(|byte| *byte == 0);
        if let Some(end) = found {
            return Ok(&buffer[..length + end]);
        }
        length += copied;
    }
    Err(Errno::NAMETOOLONG)
}

fn to_page_end(address: u64) -> usize {
    PAGE - usize::try_from(address % PAGE as u64).unwrap_or(0)
}

/// Copies a C string of at most `limit` bytes, without its NUL.
///
/// Reads stop at page ends, so a string that ends just before unmapped memory
/// is still read. `ENAMETOOLONG` when there is no NUL within the limit.
pub fn read_c_string(pid: Pid, address: u64, limit: usize) -> Result<Vec<u8>> {
    let mut string = Vec::new();
    let mut buffer = [0u8; PAGE];
    while string.len() < limit {
        let at = address
            .checked_add(string.len() as u64)
            .ok_or(Errno::FAULT)?;
        let wanted = to_page_end(at).min(limit - string.len());
        let copied = read_into(pid, at, &mut buffer[..wanted])?;
        if copied == 0 {
            return Err(Errno::FAULT);
        }
        let chunk = &buffer[..copied];
        if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
            string.extend_from_slice(&chunk[..end]);
            return Ok(string);
        }
        string.extend_from_slice(chunk);
    }
    Err(Errno::NAMETOOLONG)
}

/// Copies all of `bytes` to `address` of process `pid`, where that may write.
pub fn write_bytes(pid: Pid, address: u64, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let local = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: `local` describes `bytes`, which the kernel only reads; it
    // validates the remote side.
    let copied = check(unsafe {
        libc::process_vm_writev(
            pid.as_raw_pid(),
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        ) as libc::c_long
    })?;
    if usize::try_from(copied) == Ok(bytes.len()) {
        Ok(())
    } else {
        Err(Errno::FAULT)
    }
}

fn read_into(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<usize> {
    match read_readable(pid, address, buffer) {
        Err(Errno::FAULT) => read_mapped(pid, address, buffer),
        other => other,
    }
}

/// What is mapped, with whatever rights.
fn read_mapped(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let path = format!("/proc/{}/mem", pid.as_raw_pid());
    let memory = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    memory
        .and_then(|memory| rustix::io::pread(memory, buffer, address))
        .map_err(|_| Errno::FAULT)
}

/// What the process may read.
fn read_readable(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<usize> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: buffer.len(),
    };
    // SAFETY: `local` describes `buffer`, which is writable for its length;
    // the kernel validates the remote side.
    let copied = check(unsafe {
        libc::process_vm_readv(
            pid.as_raw_pid(),
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        ) as libc::c_long
    })?;
    usize::try_from(copied).map_err(|_| Errno::FAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Pid {
        rustix::process::getpid()
    }

    #[test]
    fn writes_only_where_the_process_may() {
        // A child, whose memory is another's, is not needed: the kernel goes by
        // the number. Through a cell, since it is not us who writes.
        let target = std::cell::UnsafeCell::new([0u8; 4]);
        write_bytes(me(), target.get() as u64, b"word").unwrap();
        // SAFETY: nobody else has it.
        assert_eq!(unsafe { *target.get() }, *b"word");
        let constant: &'static [u8] = b"constant";
        let refused = write_bytes(me(), constant.as_ptr() as u64, b"x");
        assert_eq!(refused, Err(Errno::FAULT));
        assert_eq!(write_bytes(me(), 8, b"x"), Err(Errno::FAULT));
        assert_eq!(write_bytes(me(), 8, b""), Ok(()));
    }

    #[test]
    fn reads_a_string_that_crosses_a_page() {
        let mut data = vec![b'a'; 3 * PAGE];
        data.push(0);
        let read = read_c_string(me(), data.as_ptr() as u64, 4 * PAGE).unwrap();
        assert_eq!(read.len(), 3 * PAGE);
    }

    #[test]
    fn a_string_over_the_limit_is_an_error() {
        let data = [b'a'; 64];
        assert_eq!(
            read_c_string(me(), data.as_ptr() as u64, 32),
            Err(Errno::NAMETOOLONG)
        );
    }

    /// Two pages of which the second is not mapped.
    fn page_before_nothing() -> *mut u8 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, of which a part is unmapped again.
        unsafe {
            let pages = libc::mmap(std::ptr::null_mut(), 2 * PAGE, rights, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            libc::munmap(pages.add(PAGE), PAGE);
            pages.cast()
        }
    }

    #[test]
    fn reading_stops_where_memory_does() {
        let page = page_before_nothing();
        let end = page as u64 + PAGE as u64;
        // SAFETY: the last bytes of the mapped page.
        unsafe { page.add(PAGE - 4).copy_from(c"abc".as_ptr().cast(), 4) };
        let mut buffer = [0; 64];
        assert_eq!(
            read_c_string_into(me(), end - 4, &mut buffer),
            Ok(&b"abc"[..])
        );
        assert_eq!(read_some(me(), end - 4, &mut buffer), Ok(4));
        assert_eq!(read_some(me(), end, &mut buffer), Err(Errno::FAULT));
        assert_eq!(
            read_some(me(), u64::MAX - 1, &mut buffer),
            Err(Errno::FAULT)
        );
        // SAFETY: as above.
        unsafe { page.add(PAGE - 1).write(b'd') };
        assert_eq!(
            read_c_string_into(me(), end - 4, &mut buffer),
            Err(Errno::FAULT)
        );
    }

    #[test]
    fn g7_memory_that_may_only_be_written_is_read_as_by_the_kernel() {
        let page = page_before_nothing();
        // SAFETY: the beginning of the mapped page.
        unsafe { page.copy_from(c"path".as_ptr().cast(), 5) };
        // SAFETY: the page is this test's own, and nobody reads it meanwhile.
        let changed = unsafe { libc::mprotect(page.cast(), PAGE, libc::PROT_WRITE) };
        assert_eq!(changed, 0);
        let mut buffer = [0; 64];
        let address = page as u64;
        assert_eq!(read_readable(me(), address, &mut buffer), Err(Errno::FAULT));
        assert_eq!(read_c_string(me(), address, 64).unwrap(), b"path");
        assert_eq!(
            read_c_string_into(me(), address, &mut buffer),
            Ok(&b"path"[..])
        );
        assert_eq!(read_bytes(me(), address, 4).unwrap(), b"path");
    }

    #[test]
    fn long_strings_are_read_in_parts() {
        let mut data = vec![b'a'; 3000];
        data.push(0);
        let mut buffer = [0; 4096];
        let read = read_c_string_into(me(), data.as_ptr() as u64, &mut buffer);
        assert_eq!(read.map(<[u8]>::len), Ok(3000));
        let read = read_c_string_into(me(), data.as_ptr() as u64, &mut buffer[..2000]);
        assert_eq!(read, Err(Errno::NAMETOOLONG));
    }

    #[test]
    fn an_unmapped_address_is_a_fault() {
        assert_eq!(read_c_string(me(), 8, 32), Err(Errno::FAULT));
        assert_eq!(read_bytes(me(), u64::MAX - 2, 8), Err(Errno::FAULT));
    }
}
