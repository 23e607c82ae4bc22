//! A configuration file, and whether it is still the same.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// More than any real one; lists of blocked hosts have some megabytes.
const MOST_BYTES: u64 = 32 << 20;

/// Where a configuration comes from.
pub(super) enum Source {
    File(PathBuf),
    #[cfg(test)]
    Text(String),
}

/// Differs whenever the text may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Missing,
    /// Device, number, size, and when it was changed in what way.
    File([u64; 3], [(i64, i64); 2]),
}

impl Source {
    pub(super) fn version(&self) -> Version {
        match self {
            Self::File(path) => {
                std::fs::metadata(path).map_or(Version::Missing, |file| Version::of(&file))
            }
            #[cfg(test)]
            Self::Text(_) => Version::Missing,
        }
    }

    /// The text; bytes that are none become replacement characters.
    pub(super) fn read(&self) -> io::Result<String> {
        match self {
            Self::File(path) => {
                let mut bytes = Vec::new();
                File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            #[cfg(test)]
            Self::Text(text) => Ok(text.clone()),
        }
    }
}

impl Version {
    fn of(file: &Metadata) -> Self {
        let content = (file.mtime(), file.mtime_nsec());
        let anything = (file.ctime(), file.ctime_nsec());
        Self::File([file.dev(), file.ino(), file.size()], [content, anything])
    }
}
