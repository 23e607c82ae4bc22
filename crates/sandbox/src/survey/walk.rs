//! The walk through writable directories.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom};

use super::looking::{Looked, open_directory, open_root};
use super::repository::looks_like_one;
use super::{DEEPEST, MOST_DIRECTORIES, MOST_ENTRIES, MOST_FROZEN, Survey};
use crate::git::Named;
use crate::guard::{Guard, is_dependency};
use crate::rights::gives_rights_at;
use crate::view::FileId;
use crate::within::is_within;

/// An entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: FileType,
}

/// One survey under way.
pub(super) struct Surveyor<'a> {
    pub(super) guard: &'a Guard,
    pub(super) found: Survey,
    entries: usize,
    directories: usize,
    /// What the user's own Git configuration names, once it was read.
    user_named: OnceCell<Vec<Named>>,
}

impl<'a> Surveyor<'a> {
    pub(super) fn new(guard: &'a Guard) -> Self {
        Self {
            guard,
            found: Survey::default(),
            entries: 0,
            directories: 0,
            user_named: OnceCell::new(),
        }
    }

    pub(super) fn survey(mut self) -> Survey {
        let roots = self.guard.roots();
        self.found.is_complete = true;
        for root in roots {
            // A root within another is walked with that.
            let is_inner = roots
                .iter()
                .any(|other| other != root && is_within(root, other));
            if !is_inner && let Some(directory) = self.opened(open_root(root)) {
                self.walk(&directory, root, 0);
                self.repositories_around(root);
            }
        }
        if self.guard.guards_git() {
            self.follow_user();
        }
        for hooks in relative_hooks(self.user_named()) {
            if !self.found.relative_hooks.contains(&hooks) {
                self.found.relative_hooks.push(hooks);
            }
        }
        self.found
    }

    fn walk(&mut self, directory: &Looked, path: &Path, depth: usize) {
        if self.is_over(depth) {
            return;
        }
        let Ok(entries) = list(directory.as_fd(), MOST_ENTRIES - self.entries) else {
            self.found.is_complete = false;
            return;
        };
        self.entries += entries.len();
        self.note(directory.as_fd(), path);
        if looks_like_one(path, &entries)
            && let Ok(status) = rustix::fs::fstat(directory)
        {
            self.found.alike.insert(FileId::of_stat(&status));
        }
        if has(&entries, "HEAD") && has(&entries, "objects") && has(&entries, "refs") {
            self.repository(directory, path, None);
        }
        for entry in &entries {
            self.look_at(directory, path, entry, depth);
        }
    }

    /// What cannot be opened although it is our own was not surveyed.
    pub(super) fn opened(&mut self, opened: Result<Looked, Errno>) -> Option<Looked> {
        let is_missed = !matches!(
            opened,
            Ok(_) | Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
        );
        self.found.is_complete &= !is_missed;
        opened.ok()
    }

    /// What the user's own Git configuration names.
    pub(super) fn user_named(&self) -> &[Named] {
        self.user_named
            .get_or_init(|| self.guard.user_git().named())
    }

    pub(super) fn note(&mut self, directory: BorrowedFd<'_>, path: &Path) {
        if let Ok(status) = rustix::fs::fstat(directory) {
            let id = FileId::of_stat(&status);
            self.found.directories.insert(path.to_path_buf(), id);
        }
    }

    fn look_at(&mut self, directory: &Looked, path: &Path, entry: &Entry, depth: usize) {
        let name = entry.name.as_bytes();
        if name.eq_ignore_ascii_case(b".git") {
            self.git_entry(directory, path, entry);
            return;
        }
        let lower = name.to_ascii_lowercase();
        let sequels: Vec<_> = self.guard.sequels(&lower).cloned().collect();
        let place = path.join(&entry.name);
        if sequels.iter().any(Vec::is_empty) {
            self.protected(directory, &place, entry);
            return;
        }
        for sequel in sequels {
            self.deeper(directory, &place, entry, &sequel);
        }
        if entry.kind == FileType::RegularFile && self.guard.seeks_rights() {
            self.plain_file(directory, place, entry);
            return;
        }
        if entry.kind != FileType::Directory {
            return;
        }
        let inner = if is_dependency(name) {
            None
        } else {
            self.opened(open_directory(directory.as_fd(), &entry.name))
        };
        if let Some(inner) = inner {
            self.walk(&inner, &place, depth + 1);
        } else {
            // Of dependencies, or of somebody else's, who lets nobody look.
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            if let Ok(status) = rustix::fs::statat(directory, &entry.name, flags) {
                let id = FileId::of_stat(&status);
                self.found.directories.insert(place, id);
            }
        }
    }

    /// A file without a protected name. One that gives rights could be changed
    /// by a mapping, unless it is read-only.
    fn plain_file(&mut self, directory: &Looked, place: PathBuf, entry: &Entry) {
        let status = rustix::fs::statat(directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW);
        if status.is_ok_and(|status| gives_rights_at(&place, &status)) {
            self.freeze(place);
        }
    }

    /// A protected name itself.
    fn protected(&mut self, directory: &Looked, place: &Path, entry: &Entry) {
        if entry.kind == FileType::Symlink {
            self.link(directory, place, &entry.name);
        } else {
            self.freeze(place.to_path_buf());
        }
    }

    /// What follows the first component of a protected name, as far as it is
    /// there.
    fn deeper(&mut self, directory: &Looked, place: &Path, entry: &Entry, sequel: &[Vec<u8>]) {
        if entry.kind == FileType::Symlink {
            let rest: PathBuf = sequel.iter().map(|part| OsStr::from_bytes(part)).collect();
            self.leads_to(&place.join(rest));
            return;
        }
        let Ok(inner) = open_directory(directory.as_fd(), &entry.name) else {
            return;
        };
        let Ok(entries) = list(inner.as_fd(), MOST_ENTRIES) else {
            return;
        };
        let Some((first, rest)) = sequel.split_first() else {
            return;
        };
        let wanted = entries
            .iter()
            .filter(|entry| entry.name.as_bytes().eq_ignore_ascii_case(first));
        for entry in wanted {
            let place = place.join(&entry.name);
            if rest.is_empty() || entry.kind == FileType::RegularFile {
                // A file on the way may say where the rest is.
                self.protected(&inner, &place, entry);
            } else {
                self.deeper(&inner, &place, entry, rest);
            }
        }
    }

    /// A link in place of a protected name: it stays, and so does what it leads
    /// to.
    pub(super) fn link(&mut self, directory: &Looked, place: &Path, name: &OsStr) {
        if let Ok(target) = rustix::fs::readlinkat(directory, name, Vec::new()) {
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            self.found.links.push((place.to_path_buf(), target));
        }
        self.leads_to(place);
    }

    /// Guards where a path leads in the end, if that is in a writable root.
    pub(super) fn leads_to(&mut self, path: &Path) {
        let target = real(path);
        let roots = self.guard.roots();
        if !roots.iter().any(|root| is_within(&target, root)) || roots.contains(&target) {
            return;
        }
        if target.symlink_metadata().is_ok() {
            self.freeze(target.clone());
            // So that it is known later whether it is still in its place.
            if let Some(parent) = target.parent()
                && let Ok(directory) = open_root(parent)
            {
                self.note(directory.as_fd(), parent);
            }
        }
        self.found.led_to.push(target);
    }

    pub(super) fn freeze(&mut self, place: PathBuf) {
        if self.found.frozen.len() >= MOST_FROZEN {
            self.found.is_complete = false;
        } else if !self.found.frozen.contains(&place) {
            self.found.frozen.push(place);
        }
    }

    fn is_over(&mut self, depth: usize) -> bool {
        self.directories += 1;
        let is_over =
            depth > DEEPEST || self.directories > MOST_DIRECTORIES || self.entries >= MOST_ENTRIES;
        self.found.is_complete &= !is_over;
        is_over
    }
}

/// Directories of hooks that are sought from each work tree.
fn relative_hooks(named: &[Named]) -> Vec<PathBuf> {
    let hooks = named.iter().filter_map(|named| match named {
        Named::Hooks(path) if path.is_relative() => Some(path.clone()),
        _ => None,
    });
    hooks.collect()
}

fn has(entries: &[Entry], name: &str) -> bool {
    entries.iter().any(|entry| entry.name == name)
}

/// With every link resolved as far as the path exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(found) = std::fs::canonicalize(ancestor) {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return found.components().chain(rest.components()).collect();
        }
    }
    path.to_path_buf()
}

/// The entries of a directory, `E2BIG` if there are more than `most`.
pub(crate) fn list(directory: BorrowedFd<'_>, most: usize) -> Result<Vec<Entry>, Errno> {
    // It may have been listed before.
    rustix::fs::seek(directory, SeekFrom::Start(0))?;
    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 * 1024];
    let mut raw = RawDir::new(directory, &mut buffer);
    let mut entries = Vec::new();
    while let Some(entry) = raw.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if entries.len() >= most {
            return Err(Errno::TOOBIG);
        }
        entries.push(Entry {
            name: OsStr::from_bytes(name).to_owned(),
            kind: entry.file_type(),
        });
    }
    // File systems that do not say what an entry is.
    for entry in &mut entries {
        if entry.kind == FileType::Unknown {
            let status = rustix::fs::statat(directory, &entry.name, AtFlags::SYMLINK_NOFOLLOW)?;
            entry.kind = FileType::from_raw_mode(status.st_mode);
        }
    }
    Ok(entries)
}
