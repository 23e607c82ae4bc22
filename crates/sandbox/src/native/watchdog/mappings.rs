//! The shared memory that a process has mapped, mapping by mapping
//! (`/proc/PID/smaps`).
//!
//! It tells which of it is counted elsewhere already, since it lies in a file
//! or a segment that was found by itself. Read in pieces: a process can have
//! many mappings.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ringfence_sys::Errno;
use rustix::fs::OFlags;

use super::reserve::Reserve;

/// No line that is of interest is longer; of longer ones the end is not.
const LONGEST_LINE: usize = 256;
const KIB: u64 = 1024;
/// How System V segments are called.
const SEGMENT: &str = "/SYSV";

/// What is counted elsewhere.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The device of shared memory without a name.
    pub(super) device: u64,
    /// The files on it that were found.
    pub(super) inodes: HashSet<u64>,
}

/// The mappings of one process, as far as they were read.
pub(super) struct Mappings {
    text: BufReader<File>,
    line: Vec<u8>,
    /// Whether the mapping whose numbers come next counts.
    counts: bool,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// A mapping begins that counts, or one that does not.
    Mapping {
        counts: bool,
    },
    /// The process's share of it, in bytes.
    Share(u64),
    Other,
}

impl Mappings {
    pub(super) fn open(reserve: &Reserve, process: u32) -> Result<Self, Errno> {
        let path = format!("/proc/{process}/smaps");
        let text = reserve.open(Path::new(&path), OFlags::empty())?;
        Ok(Self {
            text: BufReader::with_capacity(16 * 1024, File::from(text)),
            line: Vec::with_capacity(LONGEST_LINE),
            counts: false,
        })
    }

    /// The share of the process in the next mapping that counts, or zero where
    /// many lines were read without one; nothing at the end.
    pub(super) fn next(&mut self, known: &Known) -> Option<u64> {
        const MOST_LINES: usize = 1024;
        for _ in 0..MOST_LINES {
            match Line::parse(self.read_line()?, known) {
                Line::Mapping { counts } => self.counts = counts,
                Line::Share(bytes) if self.counts => return Some(bytes),
                Line::Share(_) | Line::Other => {}
            }
        }
        Some(0)
    }

    fn read_line(&mut self) -> Option<&str> {
        self.line.clear();
        loop {
            let piece = self
                .text
                .fill_buf()
                .ok()
                .filter(|piece| !piece.is_empty())?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(piece.len());
            let kept = length.min(LONGEST_LINE - self.line.len());
            self.line.extend_from_slice(&piece[..kept]);
            self.text.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                break;
            }
        }
        let valid = self.line.utf8_chunks().next();
        Some(valid.map_or("", |chunk| chunk.valid()))
    }
}

impl Line {
    fn parse(line: &str, known: &Known) -> Self {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Self::Other;
        };
        match first.strip_suffix(':') {
            Some("Pss") => words
                .next()
                .and_then(|number| number.parse::<u64>().ok())
                .map_or(Self::Other, |number| {
                    Self::Share(number.saturating_mul(KIB))
                }),
            Some(_) => Self::Other,
            // Addresses, permissions, offset, device, inode, name.
            None => Self::Mapping {
                counts: counts(words.skip(2), known).unwrap_or(false),
            },
        }
    }
}

fn counts<'a>(mut words: impl Iterator<Item = &'a str>, known: &Known) -> Option<bool> {
    let (major, minor) = words.next()?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = rustix::fs::makedev(number(major)?, number(minor)?);
    let inode = words.next()?.parse().ok()?;
    let is_segment = words.next().is_some_and(|name| name.starts_with(SEGMENT));
    Some(device == known.device && !is_segment && !known.inodes.contains(&inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(inodes: &[u64]) -> Known {
        Known {
            device: rustix::fs::makedev(0, 0x1a),
            inodes: inodes.iter().copied().collect(),
        }
    }

    #[test]
    fn only_shared_memory_that_is_not_counted_elsewhere_counts() {
        for (line, counts) in [
            ("7f00-7f01 rw-s 00000000 00:1a 7 /memfd:x (deleted)", false),
            ("7f00-7f01 rw-s 00000000 00:1a 8 /memfd:x (deleted)", true),
            ("7f00-7f01 rw-s 00000000 00:1a 9 /dev/zero (deleted)", true),
            (
                "7f00-7f01 rw-s 00000000 00:1a 3 /SYSV00000000 (deleted)",
                false,
            ),
            ("7f00-7f01 rw-s 00000000 00:1b 8 /dev/shm/f", false),
            ("7f00-7f01 rw-p 00000000 00:00 0 [heap]", false),
            ("7f00-7f01 rw-p 00000000 00:00 0", false),
            ("7f00-7f01", false),
        ] {
            let parsed = Line::parse(line, &known(&[7]));
            assert_eq!(parsed, Line::Mapping { counts }, "{line}");
        }
        assert_eq!(Line::parse("Pss:   12 kB", &known(&[])), Line::Share(12288));
        assert_eq!(Line::parse("Pss_Dirty:   12 kB", &known(&[])), Line::Other);
        assert_eq!(Line::parse("", &known(&[])), Line::Other);
    }

    #[test]
    fn the_mappings_of_this_process_are_read_to_their_end() {
        let mut mappings = Mappings::open(&Reserve::new().unwrap(), std::process::id()).unwrap();
        let mut sum = 0;
        while let Some(share) = mappings.next(&known(&[])) {
            sum += share;
        }
        assert_eq!(sum, 0);
    }
}
