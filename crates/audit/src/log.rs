//! [`Log`]: the append-only file of events, which every `ringfence` of a user
//! shares.
//!
//! A record is one `write` of one whole line, so that several processes can
//! append at once. It is with the kernel when [`Log::record`] returns.

mod error;
mod file;
mod folder;
mod rotation;

use std::path::Path;

use crate::event::Event;

pub use error::LogError;
use file::OpenFile;
pub(crate) use folder::{Folder, Identity};
pub use rotation::Rotation;
pub(crate) use rotation::{MOST_KEPT, segment_name};

/// More than any event can take: each text in it has a bound, and JSON writes
/// a byte as six at most.
pub(crate) const LONGEST_LINE: usize = 32 * 1024;

/// The writing end of the log.
#[derive(Debug)]
pub struct Log {
    folder: Folder,
    rotation: Rotation,
    file: Option<OpenFile>,
    line: Vec<u8>,
}

impl Log {
    /// Makes the folder where it is missing, and makes sure that it can be
    /// used. The file is made with the first record.
    pub fn open(folder: &Path) -> Result<Self, LogError> {
        Self::open_with(folder, Rotation::default())
    }

    /// The same with other sizes.
    pub fn open_with(folder: &Path, rotation: Rotation) -> Result<Self, LogError> {
        let folder = Folder::make(folder)?;
        OpenFile::check(&folder)?;
        Ok(Self {
            folder,
            rotation,
            file: None,
            line: Vec::new(),
        })
    }

    /// Appends one event. After an error nothing may be taken to have been
    /// recorded; the next call tries again.
    pub fn record(&mut self, event: &Event) -> Result<(), LogError> {
        self.encode(event)?;
        // Taken out, so that an error makes the next call open it again, which
        // looks for a torn line.
        let mut file = self.file_to_use()?;
        file.append(&self.line, &self.folder)?;
        self.file = Some(file);
        Ok(())
    }

    /// Fills the buffer with a newline, the event and a newline.
    fn encode(&mut self, event: &Event) -> Result<(), LogError> {
        self.line.clear();
        self.line.push(b'\n');
        serde_json::to_writer(&mut self.line, event).map_err(|_| LogError::Encode)?;
        self.line.push(b'\n');
        Ok(())
    }

    /// The file to append to: the one that is open while it will do, else the
    /// one that has the name.
    fn file_to_use(&mut self) -> Result<OpenFile, LogError> {
        if let Some(mut held) = self.file.take()
            && held.is_still_good(&self.folder, self.rotation)?
        {
            return Ok(held);
        }
        let named = OpenFile::stat(&self.folder)?;
        if named.is_some_and(|named| self.rotation.is_due(named.size)) {
            rotation::rotate(&self.folder, self.rotation)?;
        }
        OpenFile::open(&self.folder)
    }
}
