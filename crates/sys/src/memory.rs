//! Reading the memory of another process, bounded.

use rustix::process::Pid;

use crate::{Errno, Result, check};

const PAGE: usize = 4096;

/// Copies exactly `length` bytes from `address` of process `pid`.
pub fn read_bytes(pid: Pid, address: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let copied = read_into(pid, address, &mut bytes)?;
    if copied == length {
        Ok(bytes)
    } else {
        Err(Errno::FAULT)
    }
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
        let to_page_end = PAGE - usize::try_from(at % PAGE as u64).unwrap_or(0);
        let wanted = to_page_end.min(limit - string.len());
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

fn read_into(pid: Pid, address: u64, buffer: &mut [u8]) -> Result<usize> {
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

    #[test]
    fn an_unmapped_address_is_a_fault() {
        assert_eq!(read_c_string(me(), 8, 32), Err(Errno::FAULT));
        assert_eq!(read_bytes(me(), u64::MAX - 2, 8), Err(Errno::FAULT));
    }
}
