//! [`Found`]: how a writer finds the log, and where it goes on.
//!
//! What a writer that was killed left behind is put right. Anything else that
//! does not fit is left as it is, and said in the next record.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::LONGEST_LINE;
use super::error::LogError;
use super::folder::Folder;
use super::head_file::HeadState;
use super::held::{HeldFile, Slot, size_of};
use super::names::segment_name;
use super::rotation::{oldest_seq, open_segment};
use crate::chain::{End, Head, Header, sum};
use crate::event::{BreakReason, ChainBroken, Digest};

/// Where a writer goes on.
pub(super) struct Found {
    /// The number of the oldest record that must be there.
    pub(super) first: u64,
    /// Where the next record goes and what it names as the one before.
    pub(super) end: End,
    /// What is wrong, to be said in the next record.
    pub(super) broken: Option<ChainBroken>,
    /// The file ends within a line.
    pub(super) is_torn: bool,
}

impl Found {
    fn whole(first: u64, end: End) -> Self {
        Self {
            first,
            end,
            broken: None,
            is_torn: false,
        }
    }

    /// A log that nobody has written to.
    pub(super) fn nothing() -> Self {
        Self::whole(1, End::NOTHING)
    }
}

/// The file that is appended to.
pub(super) struct Tail<'a> {
    folder: &'a Folder,
    file: Option<(&'a HeldFile, u64)>,
}

impl<'a> Tail<'a> {
    pub(super) fn look(folder: &'a Folder, slot: &'a mut Slot) -> Result<Self, LogError> {
        let file = slot.look(folder)?;
        Ok(Self { folder, file })
    }

    fn size(&self) -> u64 {
        self.file.map_or(0, |(_, size)| size)
    }

    /// Whether there is no record at all.
    pub(super) fn is_nothing(&self) -> bool {
        self.file.is_none() && open_segment(self.folder, 1).is_none()
    }

    /// Where to go on, by what the head says.
    pub(super) fn find(&self, head: HeadState) -> Result<Found, LogError> {
        match head {
            HeadState::Good(head) => self.find_by(&head),
            HeadState::Missing => self.without_head(BreakReason::HeadMissing),
            HeadState::Altered => self.without_head(BreakReason::HeadAltered),
        }
    }

    fn find_by(&self, head: &Head) -> Result<Found, LogError> {
        if let Some(end) = head.end_at(self.size()) {
            return Ok(Found::whole(head.first, end));
        }
        let last = head.last();
        if self.size() == 0 && self.was_moved_on(last) {
            return Ok(Found::whole(head.first, End { length: 0, ..last }));
        }
        if let Some(end) = self.cut_unfinished(head)? {
            return Ok(Found::whole(head.first, end));
        }
        let why = match self.file {
            None => BreakReason::LogMissing,
            Some((_, size)) if size < head.end.length => BreakReason::Truncated,
            Some(_) => BreakReason::Appended,
        };
        self.broken(head.first, last, why)
    }

    /// Whether a writer was killed after it moved the files on.
    fn was_moved_on(&self, end: End) -> bool {
        let Some(file) = open_segment(self.folder, 1) else {
            return false;
        };
        let size = rustix::fs::fstat(&file).map_or(0, |stat| size_of(&stat));
        size == end.length && last_line(&file, size).is_ok_and(|line| sum(&line) == end.hash)
    }

    /// A writer was killed while it appended: keeps the whole lines and cuts
    /// the rest of its last one off.
    fn cut_unfinished(&self, head: &Head) -> Result<Option<End>, LogError> {
        let (Some((file, size)), Some(next)) = (self.file, head.next) else {
            return Ok(None);
        };
        if size <= head.end.length || size >= next.length {
            return Ok(None);
        }
        let length = usize::try_from(size - head.end.length).unwrap_or(usize::MAX);
        let bytes = read_at(file, head.end.length, length).map_err(|error| self.failed(error))?;
        let Some(end) = whole_lines(&bytes, head.end) else {
            return Ok(None);
        };
        rustix::fs::ftruncate(file, end.length).map_err(|error| self.failed(error))?;
        Ok(Some(end))
    }

    fn without_head(&self, why: BreakReason) -> Result<Found, LogError> {
        let seq = self.last_seq().map_err(|error| self.failed(error))?;
        let end = End {
            seq,
            hash: Digest::ZEROS,
            length: self.size(),
        };
        let first = oldest_seq(self.folder).unwrap_or(seq + 1);
        self.broken(first, end, why)
    }

    fn broken(&self, first: u64, trusted: End, why: BreakReason) -> Result<Found, LogError> {
        let broken = ChainBroken {
            why,
            after_seq: trusted.seq,
            our_bytes: trusted.length,
            found_bytes: self.size(),
        };
        let end = End {
            length: self.size(),
            ..trusted
        };
        Ok(Found {
            first,
            end,
            broken: Some(broken),
            is_torn: self.is_torn().map_err(|error| self.failed(error))?,
        })
    }

    fn is_torn(&self) -> Result<bool, Errno> {
        let Some((file, size @ 1..)) = self.file else {
            return Ok(false);
        };
        Ok(read_at(file, size - 1, 1)? != b"\n")
    }

    /// The number of the last record that can be read at the end of the log.
    fn last_seq(&self) -> Result<u64, Errno> {
        let older = open_segment(self.folder, 1);
        let file = match (self.file, &older) {
            (Some((file, size @ 1..)), _) => Some((file.as_fd(), size)),
            (_, Some(older)) => Some((older.as_fd(), size_of(&rustix::fs::fstat(older)?))),
            _ => None,
        };
        let Some((file, size)) = file else {
            return Ok(0);
        };
        let start = size.saturating_sub(2 * LONGEST_LINE as u64);
        let bytes = read_at(file, start, 2 * LONGEST_LINE)?;
        let lines = bytes.rsplit(|byte| *byte == b'\n');
        let mut numbers = lines.filter_map(|line| Header::parse(line).map(|header| header.seq));
        Ok(numbers.next().unwrap_or(0))
    }

    fn failed(&self, error: Errno) -> LogError {
        LogError::Inspect {
            path: self.folder.path_of(&segment_name(0)),
            error,
        }
    }
}

/// The end after the whole lines of `bytes`, if they follow on `end`.
fn whole_lines(bytes: &[u8], mut end: End) -> Option<End> {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        let header = Header::parse(line)?;
        if (header.seq, header.prev) != (end.seq + 1, end.hash) {
            return None;
        }
        end = End {
            seq: header.seq,
            hash: sum(line),
            length: end.length + line.len() as u64,
        };
    }
    Some(end)
}

/// The last line of a file of `size` bytes, with its newline.
fn last_line(file: &OwnedFd, size: u64) -> Result<Vec<u8>, Errno> {
    let start = size.saturating_sub(LONGEST_LINE as u64 + 1);
    let mut bytes = read_at(file, start, LONGEST_LINE + 1)?;
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let begin = body.iter().rposition(|byte| *byte == b'\n');
    Ok(bytes.split_off(begin.map_or(0, |at| at + 1)))
}

/// Up to `length` bytes from a place on.
fn read_at(file: impl AsFd, from: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let rest = &mut bytes[filled..];
        match rustix::io::pread(&file, rest, from + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
