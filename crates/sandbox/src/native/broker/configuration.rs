//! The configuration of repositories that were there before.
//!
//! It is bound read-only, but a descriptor for writing was opened before that.
//! Git writes `config.lock` and renames it to `config`: where the two differ in
//! harmless settings only, the content is written through that descriptor, into
//! the same file.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use ringfence_sys::Errno;
use rustix::fs::AtFlags;

use super::caller::Spot;
use super::{Broker, GUARDED};
use crate::git::{self, dangerous_change};
use crate::view::FileId;
use crate::wire::Operation;

/// Configuration files that were there before, by the Git directory they are in.
#[derive(Debug, Default)]
pub(in crate::native) struct Configurations(HashMap<FileId, Configuration>);

#[derive(Debug)]
struct Configuration {
    file: OwnedFd,
    /// What it was.
    text: String,
}

impl Configurations {
    /// Keeps a file, open for reading and writing, with the directory it is in.
    /// One that cannot be read as a text stays as it is.
    pub(in crate::native) fn keep(&mut self, directory: &OwnedFd, file: OwnedFd) {
        let text = git::read_whole(&file).ok().flatten();
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(text) = text
            && let Ok(status) = rustix::fs::fstat(directory)
        {
            let id = FileId::of_stat(&status);
            self.0.insert(id, Configuration { file, text });
        }
    }
}

impl Configuration {
    /// What keeps `new` from being its content. It may differ from what it was
    /// at the start, or from what the host made of it since.
    fn refuses(&self, new: &str) -> Result<Option<String>, Errno> {
        let now = git::read_whole(&self.file)?.and_then(|bytes| String::from_utf8(bytes).ok());
        let since = now.and_then(|now| dangerous_change(&now, new).is_none().then_some(()));
        Ok(match since {
            Some(()) => None,
            None => dangerous_change(&self.text, new),
        })
    }

    fn write(&self, text: &str) -> Result<(), Errno> {
        let mut written = 0;
        while written < text.len() {
            written += rustix::io::pwrite(&self.file, &text.as_bytes()[written..], written as u64)?;
        }
        rustix::fs::ftruncate(&self.file, text.len() as u64)
    }
}

impl Broker<'_> {
    /// Carries out a rename to the configuration of a repository that was there
    /// before. False when it is none.
    pub(super) fn update_configuration(&mut self, from: &Spot, to: &Spot) -> Result<bool, Errno> {
        if to.name != "config" || self.known_as(to)?.is_none() || self.known_as(from)?.is_none() {
            return Ok(false);
        }
        let Some(kept) = self.configurations.0.get(&to.folder_id()?) else {
            return Ok(false);
        };
        let text = git::read_text(&from.folder, &from.name)?;
        let refused = match &text {
            Some(text) => kept.refuses(text)?,
            None => Some("not a plain text of ordinary size".to_owned()),
        };
        if let Some(setting) = refused {
            let rule = format!("setting of Git that may run programs or lead elsewhere: {setting}");
            self.refuse(Operation::Rename, to.path(), &rule);
            return Err(GUARDED);
        }
        kept.write(text.as_deref().unwrap_or_default())?;
        rustix::fs::unlinkat(&from.folder, &from.name, AtFlags::empty())?;
        Ok(true)
    }
}
