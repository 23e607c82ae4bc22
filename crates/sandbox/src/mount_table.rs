//! What is mounted where.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

/// As much as tables of mounts usually take, and at least that much at once:
/// the kernel goes through all mounts again for each piece.
const USUAL: usize = 16 * 1024;
/// Too little room to ask for another piece.
const LITTLE: usize = 4096;

/// The table of this process, as it was when it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct MountTable(Arc<Vec<u8>>);

impl MountTable {
    /// Empty if it cannot be read.
    pub(crate) fn read() -> Self {
        Self(Arc::new(bytes().unwrap_or_default()))
    }

    /// As a text, where nothing but names can be unreadable.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// What is mounted below `directory`, but for file systems of these types.
    pub(crate) fn points_below(&self, directory: &Path, without: &[&str]) -> Vec<PathBuf> {
        let points = self.mounts().filter(|(_, kind)| !is_one_of(kind, without));
        let points = points.map(|(point, _)| PathBuf::from(OsString::from_vec(unescaped(point))));
        points
            .filter(|point| point != directory && point.starts_with(directory))
            .collect()
    }

    /// Every mount by its point, as it is written, and its type.
    fn mounts(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.split(|byte| *byte == b'\n').filter_map(mount)
    }

    /// Where file systems of these types are mounted.
    pub(crate) fn points_of(&self, types: &[&str]) -> Vec<PathBuf> {
        let wanted = self.mounts().filter(|(_, kind)| is_one_of(kind, types));
        wanted
            .map(|(point, _)| OsString::from_vec(unescaped(point)).into())
            .collect()
    }
}

fn bytes() -> rustix::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("/proc/self/mountinfo", flags, Mode::empty())?;
    let mut bytes = Vec::with_capacity(USUAL);
    loop {
        // In most cases there is enough left to see that there is no more.
        if bytes.capacity() - bytes.len() < LITTLE {
            bytes.reserve(USUAL);
        }
        let before = bytes.len();
        rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes))?;
        if bytes.len() == before {
            return Ok(bytes);
        }
    }
}

fn is_one_of(kind: &[u8], types: &[&str]) -> bool {
    types.iter().any(|own| own.as_bytes() == kind)
}

/// One line (proc(5)): its point and its type.
fn mount(line: &[u8]) -> Option<(&[u8], &[u8])> {
    const BETWEEN: &[u8] = b" - ";
    let at = line
        .windows(BETWEEN.len())
        .position(|part| part == BETWEEN)?;
    let (left, right) = (&line[..at], &line[at + BETWEEN.len()..]);
    let kind = right.split(|byte| *byte == b' ').next()?;
    let point = left.split(|byte| *byte == b' ').nth(4)?;
    Some((point, kind))
}

/// White space and backslashes in names are written as three octal digits.
fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [first, after @ ..] = rest {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(table: &[u8], types: &[&str]) -> Vec<PathBuf> {
        MountTable(Arc::new(table.to_vec())).points_of(types)
    }

    #[test]
    fn points_are_found_by_type() {
        let table = b"50 20 0:5 / /mnt/a\\040b rw,relatime shared:1 - proc proc rw\n\
            51 20 8:1 / / rw - ext4 /dev/sda rw\n\
            nonsense\n\
            52 20 0:6 / /mnt/c rw - fuse.portal portal rw\n";
        assert_eq!(points(table, &["proc"]), [PathBuf::from("/mnt/a b")]);
        assert_eq!(points(table, &["fuse.portal"]), [PathBuf::from("/mnt/c")]);
        assert!(points(table, &["fuse", "pro"]).is_empty());
    }

    #[test]
    fn names_may_be_of_any_bytes() {
        let table = b"50 20 0:5 / /a\\134040\\012\xff\\9 rw - proc proc rw\n";
        let expected = OsString::from_vec(b"/a\\040\n\xff\\9".to_vec());
        assert_eq!(points(table, &["proc"]), [PathBuf::from(expected)]);
    }

    #[test]
    fn our_own_is_read_whole() {
        let read = MountTable::read();
        let expected = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert_eq!(read.text().lines().count(), expected.lines().count());
        assert!(read.points_of(&["proc"]).contains(&PathBuf::from("/proc")));
    }
}
