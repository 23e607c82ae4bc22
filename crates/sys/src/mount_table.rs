//! The mounts that a process sees, asked for one by one (Linux 6.8), which is
//! much faster than having the kernel write a table of them.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::{Errno, Result, check};

const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;
/// The root of the caller's mount namespace.
const ROOT: u64 = u64::MAX;
const MOUNT_POINT: u64 = 0x10;
const TYPE: u64 = 0x20;
/// The most mounts that are listed in one call.
const AT_ONCE: usize = 256;
/// The longest texts of one mount.
const TEXTS: usize = 8192;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountedAt {
    /// The type of its file system.
    pub kind: String,
    /// Where it is.
    pub path: PathBuf,
}

/// `struct mnt_id_req` as of Linux 6.8.
#[repr(C)]
struct Request {
    size: u32,
    spare: u32,
    mount: u64,
    parameter: u64,
}

/// `struct statmount`: the fields that matter, and room for all others.
#[repr(C, align(8))]
struct Answer {
    size: u32,
    options: u32,
    mask: u64,
    device: [u32; 2],
    magic: u64,
    flags: u32,
    kind: u32,
    ids: [u64; 2],
    old_ids: [u32; 2],
    attributes: [u64; 5],
    root: u32,
    point: u32,
    rest: [u8; 512 - 112],
    texts: [u8; TEXTS],
}

/// Every mount below the caller's root. Fails with `ENOSYS` on older kernels.
pub fn mounts() -> Result<Vec<MountedAt>> {
    let mut found = Vec::new();
    let mut last = 0;
    loop {
        let some = list_after(last)?;
        for mount in &some {
            match look_at(*mount) {
                Ok(mount) => found.push(mount),
                // Unmounted meanwhile.
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        match some.last() {
            Some(mount) if some.len() == AT_ONCE => last = *mount,
            _ => return Ok(found),
        }
    }
}

fn list_after(last: u64) -> Result<Vec<u64>> {
    let mut mounts = vec![0u64; AT_ONCE];
    let request = Request::about(ROOT, last);
    // SAFETY: the kernel reads one `Request` and writes at most `AT_ONCE`
    // numbers to `mounts`; both outlive the call.
    let count = check(unsafe {
        libc::syscall(
            SYS_LISTMOUNT,
            &raw const request,
            mounts.as_mut_ptr(),
            AT_ONCE,
            0usize,
        )
    })?;
    mounts.truncate(usize::try_from(count).map_err(|_| Errno::PROTO)?);
    Ok(mounts)
}

fn look_at(mount: u64) -> Result<MountedAt> {
    // SAFETY: all fields are integers; zero is a valid value.
    let mut answer: Answer = unsafe { std::mem::zeroed() };
    let request = Request::about(mount, MOUNT_POINT | TYPE);
    // SAFETY: the kernel reads one `Request` and writes at most the size of
    // one `Answer`; both outlive the call.
    check(unsafe {
        libc::syscall(
            SYS_STATMOUNT,
            &raw const request,
            &raw mut answer,
            size_of::<Answer>(),
            0usize,
        )
    })?;
    if answer.mask & (MOUNT_POINT | TYPE) != MOUNT_POINT | TYPE {
        return Err(Errno::PROTO);
    }
    let path = OsStr::from_bytes(answer.text(answer.point)?);
    Ok(MountedAt {
        kind: String::from_utf8_lossy(answer.text(answer.kind)?).into_owned(),
        path: path.into(),
    })
}

impl Request {
    fn about(mount: u64, parameter: u64) -> Self {
        const SIZE: u32 = 24;
        Self {
            size: SIZE,
            spare: 0,
            mount,
            parameter,
        }
    }
}

impl Answer {
    fn text(&self, at: u32) -> Result<&[u8]> {
        let at = usize::try_from(at).map_err(|_| Errno::PROTO)?;
        let rest = self.texts.get(at..).ok_or(Errno::PROTO)?;
        let text = CStr::from_bytes_until_nul(rest).map_err(|_| Errno::PROTO)?;
        Ok(text.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_kernels_table() {
        let mounts = match mounts() {
            Err(Errno::NOSYS) => return,
            other => other.unwrap(),
        };
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut want: Vec<(String, String)> = table
            .lines()
            .map(|line| {
                let (left, right) = line.split_once(" - ").unwrap();
                let point = left.split(' ').nth(4).unwrap().replace("\\040", " ");
                let kind = right.split(' ').next().unwrap();
                (kind.split('.').next().unwrap().to_owned(), point)
            })
            .collect();
        let mut got: Vec<(String, String)> = mounts
            .into_iter()
            .map(|mount| (mount.kind, mount.path.display().to_string()))
            .collect();
        want.sort();
        got.sort();
        // The root itself is not below the root.
        want.retain(|(_, point)| point != "/");
        got.retain(|(_, point)| point != "/");
        assert_eq!(got, want);
    }
}
