//! [`Cursor`]: a place in the files of the log.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::ReadError;
use super::lines::Lines;
use crate::chain::{Header, Record};
use crate::event::RunPrefix;
use crate::log::{Folder, Identity, MOST_KEPT, segment_name};

/// How every record begins. The quotes make sure that this is not in the middle
/// of a text, where they would be escaped.
const BEGINNING: &[u8] = br#"{"version":"#;

/// One file of the log.
#[derive(Debug)]
struct Segment {
    path: PathBuf,
    identity: Identity,
    lines: Lines,
}

/// A place in the files of the log, which moves on from older to newer ones.
#[derive(Debug)]
pub(super) struct Cursor {
    folder: PathBuf,
    /// The first is the one that is read.
    segments: VecDeque<Segment>,
    skipped: u64,
}

impl Cursor {
    pub(super) fn at_start(folder: &Path) -> Result<Self, ReadError> {
        Ok(Self {
            folder: folder.to_path_buf(),
            segments: segments(folder)?,
            skipped: 0,
        })
    }

    pub(super) fn at_end(folder: &Path) -> Result<Self, ReadError> {
        let mut cursor = Self::at_start(folder)?;
        let last = cursor.segments.len().saturating_sub(1);
        cursor.segments.drain(..last);
        if let Some(segment) = cursor.segments.front_mut() {
            let skipped = segment.lines.skip_to_end();
            skipped.map_err(|error| unreadable(&segment.path, &error))?;
        }
        Ok(cursor)
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next record of a run that is `wanted`; none at the end of what is
    /// there. Lines of other runs are passed over by their first fields.
    pub(super) fn next_record(
        &mut self,
        wanted: Option<&RunPrefix>,
    ) -> Result<Option<Record>, ReadError> {
        let is_wanted = |line: &[u8]| {
            let run = wanted.and(Header::parse(line)).map(|header| header.run);
            run.zip(wanted)
                .is_none_or(|(run, wanted)| wanted.matches(run))
        };
        loop {
            let is_last = self.segments.len() == 1;
            let Some(segment) = self.segments.front_mut() else {
                return Ok(None);
            };
            let line = segment.lines.next_line();
            let parsed = match line.map_err(|error| unreadable(&segment.path, &error))? {
                Some(line) if is_wanted(line) => Parsed::from(line),
                Some(_) => continue,
                None if is_last => return Ok(None),
                None => self.leave_segment(),
            };
            self.skipped += parsed.skipped;
            if parsed.record.is_some() {
                return Ok(parsed.record.map(|record| *record));
            }
        }
    }

    /// Calls back with the first fields of every record that has its place in
    /// the log, and its line.
    pub(super) fn each_header(
        &mut self,
        mut tell: impl FnMut(Header<'_>, &[u8]),
    ) -> Result<(), ReadError> {
        while let Some(mut segment) = self.segments.pop_front() {
            loop {
                let line = segment.lines.next_line();
                match line.map_err(|error| unreadable(&segment.path, &error))? {
                    Some(line) => {
                        if let Some(header) = Header::parse(line) {
                            tell(header, line);
                        }
                    }
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Leaves a file that will not grow any more.
    fn leave_segment(&mut self) -> Parsed {
        match self.segments.pop_front() {
            Some(mut segment) => Parsed::from(segment.lines.rest()),
            None => Parsed::default(),
        }
    }

    /// Whether there are files newer than the last one that was known.
    pub(super) fn look_for_newer(&mut self) -> Result<bool, ReadError> {
        let mut found = segments(&self.folder)?;
        if let Some(last) = self.segments.back() {
            let known = found.iter().position(|it| it.identity == last.identity);
            found.drain(..known.map_or(0, |at| at + 1));
        }
        let is_newer = !found.is_empty();
        self.segments.append(&mut found);
        Ok(is_newer)
    }
}

/// What is in a line.
#[derive(Default)]
struct Parsed {
    record: Option<Box<Record>>,
    skipped: u64,
}

impl From<&[u8]> for Parsed {
    /// Where a torn line has swallowed the newline before a record, the record
    /// is still found.
    fn from(line: &[u8]) -> Self {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Self::default();
        }
        if let Ok(record) = serde_json::from_slice(line) {
            return Self {
                record: Some(record),
                skipped: 0,
            };
        }
        let mut places = line.windows(BEGINNING.len());
        let last = places.rposition(|place| place == BEGINNING);
        let record = last.and_then(|at| serde_json::from_slice(&line[at..]).ok());
        Self { record, skipped: 1 }
    }
}

/// The files of the log, oldest first. They are opened newest first: when they
/// are moved on meanwhile, one is met twice rather than never.
fn segments(folder: &Path) -> Result<VecDeque<Segment>, ReadError> {
    let mut found: VecDeque<Segment> = VecDeque::new();
    let folder = match Folder::open(folder) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(found),
        Err(error) => {
            return Err(ReadError {
                path: folder.to_path_buf(),
                error,
            });
        }
    };
    for age in 0..=MOST_KEPT {
        let Some(segment) = open_segment(&folder, &segment_name(age))? else {
            continue;
        };
        if found.iter().all(|known| known.identity != segment.identity) {
            found.push_front(segment);
        }
    }
    Ok(found)
}

fn open_segment(folder: &Folder, name: &str) -> Result<Option<Segment>, ReadError> {
    let path = folder.path_of(name);
    // Without waiting, or a pipe put in its place would hang us.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty())
        .and_then(|file| rustix::fs::fstat(&file).map(|stat| (file, stat)));
    match opened {
        Ok((file, stat)) if FileType::from_raw_mode(stat.st_mode).is_file() => Ok(Some(Segment {
            path,
            identity: Identity::from(&stat),
            lines: Lines::new(File::from(file)),
        })),
        Err(Errno::NOENT) => Ok(None),
        Ok(_) => Err(ReadError {
            path,
            error: Errno::INVAL,
        }),
        Err(error) => Err(ReadError { path, error }),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> ReadError {
    ReadError {
        path: path.to_path_buf(),
        error: Errno::from_io_error(error).unwrap_or(Errno::IO),
    }
}
