//! [`Snapshot`]: the files of the log at one moment.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::chain::{HEAD_SIZE, KEY_SIZE, Key};
use crate::log::{
    Folder, HEAD, Identity, KEY, LOCK, LONGEST_LINE, MOST_KEPT, segment_name, wait_for,
};
use crate::read::ReadError;

/// Bytes that are read at once.
const AT_ONCE: usize = 256 * 1024;

/// The files of the log while nobody wrote to them.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The oldest first.
    pub(super) files: Vec<LogFile>,
    /// Bytes of the newest file; nothing if that is missing.
    pub(super) newest: Option<u64>,
    pub(super) head: Option<Vec<u8>>,
    pub(super) key: Option<Key>,
}

/// One file of the log, as long as it was.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) name: String,
    path: PathBuf,
    reader: BufReader<io::Take<File>>,
}

/// A line of the log.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// With its newline, unless the file ends without.
    pub(super) bytes: &'a [u8],
    /// Where it begins.
    pub(super) offset: u64,
    pub(super) is_too_long: bool,
}

impl Snapshot {
    /// Waits until nobody writes, and opens everything.
    pub(super) fn take(folder: &Path) -> Result<Self, ReadError> {
        let folder = match Folder::open(folder) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(Self::nothing()),
            Err(error) => {
                let path = folder.to_path_buf();
                return Err(ReadError { path, error });
            }
        };
        let failed = |name: &str, error| ReadError {
            path: folder.path_of(name),
            error,
        };
        let lock = open(&folder, LOCK)?;
        let locked = lock.as_ref().map(|lock| wait_for(lock.as_fd())).transpose();
        let _locked = locked.map_err(|error| failed(LOCK, error))?;
        let (files, newest) = log_files(&folder)?;
        let head = read_small(&folder, HEAD, HEAD_SIZE)?;
        let key = read_small(&folder, KEY, KEY_SIZE)?;
        let key = key.and_then(|bytes| Some(Key::new(&bytes.try_into().ok()?)));
        Ok(Self {
            files,
            newest,
            head,
            key,
        })
    }

    fn nothing() -> Self {
        Self {
            files: Vec::new(),
            newest: None,
            head: None,
            key: None,
        }
    }
}

fn open(folder: &Folder, name: &str) -> Result<Option<OwnedFd>, ReadError> {
    // Without waiting, or a pipe put in its place would hang us.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let failed = |error| ReadError {
        path: folder.path_of(name),
        error,
    };
    let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    let stat = rustix::fs::fstat(&file).map_err(failed)?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(failed(Errno::INVAL));
    }
    Ok(Some(file))
}

/// A file that has at most `most` bytes; one byte more of a larger one.
fn read_small(folder: &Folder, name: &str, most: usize) -> Result<Option<Vec<u8>>, ReadError> {
    let Some(file) = open(folder, name)? else {
        return Ok(None);
    };
    let mut bytes = vec![0; most + 1];
    let read = rustix::io::pread(&file, &mut bytes, 0).map_err(|error| ReadError {
        path: folder.path_of(name),
        error,
    })?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// The files of the log, the oldest first, and the size of the newest.
fn log_files(folder: &Folder) -> Result<(Vec<LogFile>, Option<u64>), ReadError> {
    let mut files = Vec::new();
    let mut newest = None;
    let mut known: Vec<Identity> = Vec::new();
    for age in 0..=MOST_KEPT {
        let name = segment_name(age);
        let Some(file) = open(folder, &name)? else {
            continue;
        };
        let path = folder.path_of(&name);
        let stat = rustix::fs::fstat(&file).map_err(|error| ReadError {
            path: path.clone(),
            error,
        })?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if age == 0 {
            newest = Some(size);
        }
        // Two names of one file would look like records that are there twice.
        if !known.contains(&Identity::from(&stat)) {
            known.push(Identity::from(&stat));
            let reader = BufReader::with_capacity(AT_ONCE, File::from(file).take(size));
            files.push(LogFile { name, path, reader });
        }
    }
    files.reverse();
    Ok((files, newest))
}

impl LogFile {
    /// Calls back with every line.
    pub(super) fn each_line(&mut self, mut tell: impl FnMut(Line<'_>)) -> Result<(), ReadError> {
        let mut bytes = Vec::new();
        let mut offset = 0;
        loop {
            bytes.clear();
            let read = self.read_line(&mut bytes);
            let (length, is_too_long) = read.map_err(|error| ReadError {
                path: self.path.clone(),
                error: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            })?;
            if length == 0 {
                return Ok(());
            }
            tell(Line {
                bytes: &bytes,
                offset,
                is_too_long,
            });
            offset += length;
        }
    }

    /// How long the next line is; of one that is too long, `bytes` gets only
    /// the end.
    fn read_line(&mut self, bytes: &mut Vec<u8>) -> io::Result<(u64, bool)> {
        let most = LONGEST_LINE as u64 + 1;
        let mut length = 0;
        loop {
            let read = self.reader.by_ref().take(most).read_until(b'\n', bytes)? as u64;
            let is_first = length == 0;
            length += read;
            if read < most || bytes.ends_with(b"\n") {
                return Ok((length, !is_first));
            }
            bytes.clear();
        }
    }
}
