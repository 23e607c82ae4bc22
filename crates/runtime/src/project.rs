//! The rules of a project: `ringfence.toml` of its folder, changed entry by
//! entry.
//!
//! What people wrote there stays as it is. A file that was trusted, or was not
//! there, is trusted with its new content; one that was not stays so.

mod edit;

use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;

use ringfence_policy::{Dialect, Endpoint, EntryError, PathContext, Side as EntrySide, Target};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use self::edit::Document;
use crate::secrets::{
    Approvals, ApprovalsError, Candidate, WORKING_FOLDER_FILE, WorkingFolderError,
};

/// Which list of a project a rule goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleList {
    /// `network.allow`.
    Allow,
    /// `network.deny`.
    Deny,
}

/// An entry of a list, in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleEntry(String);

/// What became of entries that were to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    /// The file.
    pub path: PathBuf,
    /// Entries that are new.
    pub added: Vec<RuleEntry>,
    /// Entries that were there before.
    pub known: Vec<RuleEntry>,
    /// Entries that were taken out of the other list.
    pub removed: Vec<RuleEntry>,
    /// Whether the file is used, as it is now.
    pub trusted: bool,
}

/// A project whose rules may be changed.
#[derive(Debug, Clone)]
pub struct Project {
    /// Its folder, without links.
    pub folder: PathBuf,
    /// What paths in its file mean.
    pub paths: PathContext,
    /// The folder of what the operator approved.
    pub approvals: PathBuf,
}

/// Why a project's rules are as they were.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// What is to be added is no entry.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The file cannot be used, or could not with the entry in it.
    #[error(transparent)]
    File(#[from] WorkingFolderError),
    /// The file is no TOML.
    #[error("{}: {why}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be written.
    #[error("{}: {error}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The approvals cannot be read or written.
    #[error(transparent)]
    Approvals(#[from] ApprovalsError),
}

impl ProjectError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Entry(error) => error.code(),
            Self::File(error) => error.code(),
            Self::Malformed { .. } => "file-malformed",
            Self::Unwritable { .. } => "file-unwritable",
            Self::Approvals(error) => error.code(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Entry(error) => error.hint(),
            Self::File(error) => error.hint(),
            Self::Malformed { .. } => "mend the file: ringfence policy check ringfence.toml",
            Self::Unwritable { .. } => "check that you may write the file and its folder",
            Self::Approvals(error) => error.hint(),
        }
    }
}

impl RuleEntry {
    /// Reads `host`, `host:port`, an address or a block, as it stands in a list.
    pub fn parse(text: &str, list: RuleList) -> Result<Self, EntryError> {
        let side = match list {
            RuleList::Allow => EntrySide::Allow,
            RuleList::Deny => EntrySide::Deny,
        };
        let Endpoint { destination, port } = Endpoint::parse(text, Dialect::Native, side)?;
        Ok(Self(match port {
            Some(port) => format!("{destination}:{port}"),
            None => destination.to_string(),
        }))
    }

    /// The entry for one destination and one port of it.
    pub fn of(target: &Target, port: u16) -> Self {
        Self(match target {
            Target::Addr(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            target => format!("{target}:{port}"),
        })
    }

    /// As it stands in a list.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Project {
    /// Adds entries to a list, and takes them out of the other one. Nothing is
    /// written unless the file as a whole makes sense.
    pub fn add(&self, list: RuleList, entries: &[RuleEntry]) -> Result<RuleChange, ProjectError> {
        let mut approvals = Approvals::open(&self.approvals)?;
        let draft = self.draft(list, entries, &approvals)?;
        if !draft.change.is_nothing() {
            write(&draft.after, draft.is_there)?;
            if draft.change.trusted {
                approvals.approve(draft.after.subject(), draft.services, None)?;
            }
        }
        Ok(draft.change)
    }

    /// What [`Self::add`] would do.
    pub fn preview(
        &self,
        list: RuleList,
        entries: &[RuleEntry],
    ) -> Result<RuleChange, ProjectError> {
        let approvals = Approvals::open(&self.approvals)?;
        Ok(self.draft(list, entries, &approvals)?.change)
    }

    fn draft(
        &self,
        list: RuleList,
        entries: &[RuleEntry],
        approvals: &Approvals,
    ) -> Result<Draft, ProjectError> {
        let path = self.folder.join(WORKING_FOLDER_FILE);
        let before = Candidate::read(&path)?;
        let text = before.as_ref().map_or("", |found| &found.text);
        let malformed = |why| ProjectError::Malformed {
            path: path.clone(),
            why,
        };
        let mut document = Document::parse(text).map_err(malformed)?;
        let lists = document.add(list, entries).map_err(malformed)?;
        let place = before.as_ref().map_or(&path, |found| &found.path);
        let after = Candidate::of_text(place.clone(), document.to_string());
        let services = after.asked(&self.paths)?.services;
        let is_trusted = |found: &Candidate| approvals.is_trusted(&found.subject());
        Ok(Draft {
            change: RuleChange {
                path,
                added: lists.added,
                known: lists.known,
                removed: lists.removed,
                trusted: before.as_ref().is_none_or(is_trusted),
            },
            after,
            is_there: before.is_some(),
            services,
        })
    }
}

/// A change before it is made.
struct Draft {
    change: RuleChange,
    after: Candidate,
    /// Whether the file is there.
    is_there: bool,
    /// The services whose secrets the file asks for.
    services: Vec<String>,
}

impl RuleChange {
    /// Whether everything was as wanted before.
    pub fn is_nothing(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// Writes a file where it lies, or makes it. Not by renaming: a sandbox that
/// runs beside has the file bound read-only, and would lose that with it. What
/// is cut short is not what was trusted, and so not used.
fn write(file: &Candidate, is_there: bool) -> Result<(), ProjectError> {
    let unwritable = |error| ProjectError::Unwritable {
        path: file.path.clone(),
        error,
    };
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let flags = if is_there {
        flags | OFlags::TRUNC
    } else {
        flags | OFlags::CREATE | OFlags::EXCL
    };
    // The folder was found without links, and is used as it was found: another
    // sandbox may be at work around it.
    let opened = rustix::fs::openat2(
        rustix::fs::CWD,
        &file.path,
        flags,
        Mode::from_raw_mode(if is_there { 0 } else { 0o644 }),
        ResolveFlags::NO_SYMLINKS,
    );
    let mut opened = File::from(opened.map_err(|errno| unwritable(errno.into()))?);
    let written = opened.write_all(file.text.as_bytes());
    written.and_then(|()| opened.sync_all()).map_err(unwritable)
}

#[cfg(test)]
mod tests;
