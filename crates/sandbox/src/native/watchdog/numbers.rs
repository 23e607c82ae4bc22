//! The numbers that the entries of a folder of `/proc` are called by: processes,
//! tasks, or descriptors.
//!
//! The kernel makes up each entry when it is listed, so only a few are listed
//! at a time: a thousand would keep the init busy for longer than a slice.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_sys::Errno;
use rustix::fs::{OFlags, RawDir};

use super::reserve::{Reserve, is_gone};

/// The init itself, which is no part of what is counted.
const INIT: u32 = 1;
/// Room for about forty entries.
const ROOM: usize = 1024;

/// The numbers in a folder.
pub(super) struct Numbers {
    folder: OwnedFd,
    listed: VecDeque<u32>,
    left_out: Option<u32>,
    /// Whether there may be more than could be listed.
    is_cut: bool,
}

impl Numbers {
    pub(super) fn in_folder(reserve: &Reserve, path: &Path) -> Result<Self, Errno> {
        Ok(Self {
            folder: reserve.open(path, OFlags::DIRECTORY)?,
            listed: VecDeque::new(),
            left_out: None,
            is_cut: false,
        })
    }

    /// Every process but the init.
    pub(super) fn of_processes(reserve: &Reserve) -> Result<Self, Errno> {
        let mut numbers = Self::in_folder(reserve, Path::new("/proc"))?;
        numbers.left_out = Some(INIT);
        Ok(numbers)
    }

    /// Whether there may be more than could be listed.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Lists some more; whether there were any.
    fn list(&mut self) -> bool {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut entries = RawDir::new(&self.folder, &mut room);
        let mut is_any = false;
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry.inspect_err(|errno| self.is_cut |= !is_gone(*errno)) else {
                return false;
            };
            is_any = true;
            let name = entry.file_name().to_str().ok();
            let number = name.and_then(|name| name.parse().ok());
            self.listed
                .extend(number.filter(|number| Some(*number) != self.left_out));
            if entries.is_buffer_empty() {
                break;
            }
        }
        is_any
    }
}

impl Iterator for Numbers {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.listed.is_empty() && self.list() {}
        self.listed.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_there_once_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..500 {
            std::fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        for other in ["self", "-1", "99999999999"] {
            std::fs::write(folder.path().join(other), "").unwrap();
        }
        let numbers = Numbers::in_folder(&Reserve::new().unwrap(), folder.path()).unwrap();
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn this_process_is_one_of_all() {
        let own = std::process::id();
        assert!(
            Numbers::of_processes(&Reserve::new().unwrap())
                .unwrap()
                .any(|process| process == own)
        );
        assert!(Numbers::in_folder(&Reserve::new().unwrap(), Path::new("/proc/0")).is_err());
    }
}
