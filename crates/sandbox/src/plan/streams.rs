//! Standard streams that are files which the view protects.
//!
//! A stream is on the host's own mount, wherever the view shows the same file,
//! and can be opened anew through `/proc/self/fd`, for writing too, by whoever
//! owns the file. Landlock holds that for what lies in no writable place. What
//! lies in one and is read-only or hidden in the view must not be handed in.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{FileType, Stat};

use crate::view::{Content, FileId, View};

/// Files are told by what they are, not by their path: the stream may be on
/// another mount of the same.
pub(super) struct Protected<'a> {
    view: &'a View,
    is_held: bool,
    /// What is in the view, with whether it can be written.
    found: HashMap<FileId, bool>,
}

impl<'a> Protected<'a> {
    /// `is_held` where Landlock holds what lies in no writable place.
    pub(super) fn new(view: &'a View, is_held: bool) -> Self {
        Self {
            view,
            is_held,
            found: HashMap::new(),
        }
    }

    /// Whether a stream is a file that must not be handed in.
    pub(super) fn has(&mut self, stream: BorrowedFd<'_>) -> bool {
        let Ok(status) = rustix::fs::fstat(stream) else {
            return false;
        };
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return false;
        }
        let within = within(stream, &status);
        if self.is_held && !within.iter().any(|id| self.is_writable_place(*id)) {
            return false;
        }
        self.look_at_view();
        let nearest = within.iter().find_map(|id| self.found.get(id));
        nearest != Some(&true)
    }

    fn is_writable_place(&self, id: FileId) -> bool {
        let mut overlays = self.view.overlays.iter();
        overlays
            .any(|overlay| matches!(&overlay.content, Content::Writable(place) if place.id == id))
    }

    /// Of several mounts at one place the last is what shows.
    fn look_at_view(&mut self) {
        if !self.found.is_empty() {
            return;
        }
        for overlay in &self.view.overlays {
            if let Ok(status) = rustix::fs::stat(&overlay.path) {
                let is_writable = matches!(overlay.content, Content::Writable(_));
                self.found.insert(FileId::of_stat(&status), is_writable);
            }
        }
    }
}

/// The file, and the directories that it lies in, the nearest first.
fn within(stream: BorrowedFd<'_>, status: &Stat) -> Vec<FileId> {
    let link = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).map_or_else(
        |_| PathBuf::new(),
        |path| PathBuf::from(OsString::from_vec(path.into_bytes())),
    );
    let above = path.ancestors().skip(1);
    let above = above.filter_map(|directory| rustix::fs::stat(directory).ok());
    let above = above.map(|status| FileId::of_stat(&status));
    std::iter::once(FileId::of_stat(status))
        .chain(above)
        .collect()
}
