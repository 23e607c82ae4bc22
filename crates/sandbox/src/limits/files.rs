//! The small files of a control group.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;

/// More than the kernel writes into any file that is read here.
const LONGEST: u64 = 8 * 1024 * 1024;

/// Enough for nearly all of them, so that they are read in one go.
const FEW: usize = 1024;

/// What the kernel writes into a file, expected to be no more than `usual`.
pub(crate) fn read(path: &Path, usual: usize) -> Option<String> {
    let mut text = String::with_capacity(usual);
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The folder of one control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        rustix::fs::access(self.0.join(file), rustix::fs::Access::EXISTS).is_ok()
    }

    /// Whether we may change this: the folder itself for an empty name.
    pub(crate) fn may_write(&self, file: &str) -> bool {
        rustix::fs::access(self.0.join(file), rustix::fs::Access::WRITE_OK).is_ok()
    }

    /// Whether we may change it only because we are root.
    pub(crate) fn is_anothers(&self, file: &str) -> bool {
        let owner = rustix::fs::stat(self.0.join(file)).map(|found| found.st_uid);
        rustix::process::geteuid().is_root() && owner != Ok(0)
    }

    pub(crate) fn read(&self, file: &str) -> Option<String> {
        read(&self.0.join(file), FEW)
    }

    /// Writes one value, in one call, as the kernel wants it.
    pub(crate) fn write(&self, file: &str, value: impl Display) -> Result<(), Errno> {
        let file = OpenOptions::new().write(true).open(self.0.join(file));
        file.and_then(|mut file| file.write_all(value.to_string().as_bytes()))
            .map_err(|error| errno_of(&error))
    }

    /// A file that holds one number; `None` also for `max`.
    pub(crate) fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }

    /// One number of a file of lines with a name and a number each.
    pub(crate) fn field(&self, file: &str, name: &str) -> Option<u64> {
        field_of(&self.read(file)?, name)
    }
}

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}

fn field_of(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, number) = line.split_once(' ')?;
        (found == name).then(|| number.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(field_of(text, "oom_kill"), Some(3));
        assert_eq!(field_of(text, "oom"), None);
        assert_eq!(field_of("max x\n", "max"), None);
    }

    #[test]
    fn a_file_without_a_bound_has_no_number() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("memory.max"), "max\n").unwrap();
        std::fs::write(folder.path().join("pids.peak"), "17\n").unwrap();
        let group = Folder::new(folder.path());
        assert_eq!(group.number("memory.max"), None);
        assert_eq!(group.number("pids.peak"), Some(17));
        assert_eq!(group.number("nothing"), None);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let group = Folder::new(folder.path());
        assert_eq!(group.write("pids.max", 5), Err(Errno::NOENT));
        assert!(!group.has("pids.max"));
    }
}
