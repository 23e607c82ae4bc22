//! Following links on the way of a path, with one budget for the whole of it.
//!
//! The kernel follows forty in one resolution. A path that is resolved in steps,
//! because the links at its end are followed one by one, has no more: otherwise
//! a chain of links each of which leads through others keeps the init busy for
//! as long as it likes.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use ringfence_sys::Errno;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

/// How many links are followed, as in the kernel.
const MOST_LINKS: u32 = 40;
/// The most parts of a path and of all links on its way: no ordinary path has as
/// many, and each costs a call.
const MOST_PARTS: u32 = 8 * 1024;

/// What is left of the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Links {
    links: u32,
    parts: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            links: MOST_LINKS,
            parts: MOST_PARTS,
        }
    }
}

impl Links {
    /// Follows one link.
    pub(super) fn follow(&mut self) -> Result<(), Errno> {
        self.links = self.links.checked_sub(1).ok_or(Errno::LOOP)?;
        Ok(())
    }

    fn pass(&mut self) -> Result<(), Errno> {
        self.parts = self.parts.checked_sub(1).ok_or(Errno::LOOP)?;
        Ok(())
    }

    /// The folder at `path` from `base`. Links in `/proc` mean something else to
    /// the caller than to the init, and are not followed.
    pub(super) fn folder(&mut self, base: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
        match open(&base, path) {
            Err(Errno::LOOP) => self.walk(base, path),
            other => other,
        }
    }

    /// Part by part.
    fn walk(&mut self, base: OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
        let mut folder = base;
        let mut ahead = Vec::new();
        begin(&mut folder, &mut ahead, path)?;
        while let Some(part) = ahead.pop() {
            self.pass()?;
            match open(&folder, &part) {
                Ok(next) => folder = next,
                Err(Errno::LOOP) => {
                    let target = self.target(&folder, &part)?;
                    begin(&mut folder, &mut ahead, &target)?;
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok(folder)
    }

    fn target(&mut self, folder: &OwnedFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
        if rustix::fs::fstatfs(folder)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
            return Err(Errno::ACCESS);
        }
        self.follow()?;
        let target = rustix::fs::readlinkat(folder, OsStr::from_bytes(name), Vec::new())?;
        Ok(target.into_bytes())
    }
}

/// Puts the parts of a path before those that are ahead, the next one last.
fn begin(folder: &mut OwnedFd, ahead: &mut Vec<Vec<u8>>, path: &[u8]) -> Result<(), Errno> {
    if path.starts_with(b"/") {
        *folder = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    }
    let parts = path.split(|byte| *byte == b'/').rev();
    ahead.extend(parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec));
    Ok(())
}

/// Without any link.
fn open(base: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = OsStr::from_bytes(path);
    let how = ResolveFlags::NO_SYMLINKS;
    if path.as_bytes().starts_with(b"/") {
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), how)
    } else {
        rustix::fs::openat2(base, path, flags, Mode::empty(), how)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn at(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap()
    }

    /// A chain `0` → `1` → … of so many links to the folder itself.
    fn chain(length: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..length {
            let next = (number + 1).to_string();
            let target = if number + 1 < length { &next } else { "." };
            symlink(target, folder.path().join(number.to_string())).unwrap();
        }
        folder
    }

    #[test]
    fn g11_as_many_links_are_followed_as_by_the_kernel() {
        for (length, path) in [
            (40, "0"),
            (20, "0/0"),
            (41, "0"),
            (21, "0/0"),
            (39, "0/38/."),
        ] {
            let folder = chain(length);
            let kernel = std::fs::metadata(folder.path().join(path).join(".")).is_ok();
            let found = Links::default().folder(at(folder.path()), path.as_bytes());
            assert_eq!(found.is_ok(), kernel, "{length} {path}");
            assert!(found.is_ok() || found.is_err_and(|errno| errno == Errno::LOOP));
        }
    }

    #[test]
    fn g9_a_budget_is_for_all_steps_together() {
        let folder = chain(15);
        let mut links = Links::default();
        for left in [25, 10] {
            links.folder(at(folder.path()), b"0").unwrap();
            assert_eq!(links.links, left);
        }
        let found = links.folder(at(folder.path()), b"0");
        assert_eq!(found.unwrap_err(), Errno::LOOP);
        // However long the way between links is.
        symlink("./".repeat(2000), folder.path().join("long")).unwrap();
        let found = Links::default().folder(at(folder.path()), &b"long/".repeat(10));
        assert_eq!(found.unwrap_err(), Errno::LOOP);
    }

    #[test]
    fn links_lead_where_the_kernel_says_and_not_through_proc() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        symlink(folder.path().join("a"), folder.path().join("whole")).unwrap();
        symlink("../a/b", folder.path().join("a/up")).unwrap();
        for path in [
            "a/b",
            "whole/b",
            "whole/up",
            "a/up/../../a/b/.",
            "whole//up/",
        ] {
            let found = Links::default().folder(at(folder.path()), path.as_bytes());
            let found = rustix::fs::fstat(found.unwrap()).unwrap();
            let expected = rustix::fs::stat(folder.path().join("a/b")).unwrap();
            assert_eq!(found.st_ino, expected.st_ino, "{path}");
        }
        for (path, errno) in [
            (&b"none/x"[..], Errno::NOENT),
            (b"/proc/self/cwd", Errno::ACCESS),
            (b"/proc/self/root/etc", Errno::ACCESS),
        ] {
            let found = Links::default().folder(at(folder.path()), path);
            assert_eq!(found.unwrap_err(), errno);
        }
    }
}
