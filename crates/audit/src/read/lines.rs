//! [`Lines`]: whole lines of a file that may still grow.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use crate::log::LONGEST_LINE;

/// The lines of one file. What comes before the end of the file and after its
/// last newline stays until there is more.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
    is_whole: bool,
    /// The line is too long to be kept; the rest of it is passed over.
    is_too_long: bool,
}

impl Lines {
    pub(super) fn new(file: File) -> Self {
        Self {
            reader: BufReader::new(file),
            line: Vec::new(),
            is_whole: false,
            is_too_long: false,
        }
    }

    /// Passes over everything that is there.
    pub(super) fn skip_to_end(&mut self) -> io::Result<()> {
        self.reader.seek(SeekFrom::End(0)).map(drop)
    }

    /// The next whole line without its newline; one that is too long comes
    /// out as its beginning.
    pub(super) fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        if std::mem::take(&mut self.is_whole) {
            self.line.clear();
            self.is_too_long = false;
        }
        while !self.is_whole {
            if self.read_some()? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(&self.line))
    }

    /// What follows the last newline, once the file will not grow any more.
    pub(super) fn rest(&mut self) -> &[u8] {
        if std::mem::take(&mut self.is_whole) {
            self.line.clear();
        }
        &self.line
    }

    /// Reads on to the next newline or as far as there is room.
    fn read_some(&mut self) -> io::Result<usize> {
        let start = self.line.len();
        let room = (LONGEST_LINE + 1).saturating_sub(start).max(1);
        let count = self
            .reader
            .by_ref()
            .take(room as u64)
            .read_until(b'\n', &mut self.line)?;
        self.is_whole = self.line.last() == Some(&b'\n') && count > 0;
        if self.is_whole {
            self.line.pop();
        }
        if self.is_too_long || self.line.len() > LONGEST_LINE {
            self.is_too_long = true;
            self.line.truncate(LONGEST_LINE);
        }
        Ok(count)
    }
}
