//! Git directories that are there before a run.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::looking::{Looked, open_directory, open_root};
use super::walk::{Entry, Surveyor, list};
use crate::git::{self, CONTROL_NAMES};
use crate::view::FileId;

/// The most entries of a Git directory that are looked at.
const MOST_ENTRIES: usize = 10_000;
/// How far configuration that names configuration is followed.
const DEEPEST_INCLUDE: usize = 5;
/// How deep the name of a submodule may be.
const DEEPEST_MODULE: usize = 8;

impl Surveyor<'_> {
    /// An entry called `.git`: the Git directory, a file or a link that leads to
    /// it.
    pub(super) fn git_entry(&mut self, directory: &Looked, path: &Path, entry: &Entry) {
        if !self.guard.guards_git() {
            return;
        }
        let place = path.join(&entry.name);
        match entry.kind {
            FileType::Directory => {
                let inner = open_directory(directory.as_fd(), &entry.name);
                if let Some(inner) = self.opened(inner) {
                    self.repository(&inner, &place);
                }
            }
            FileType::Symlink => {
                self.link(directory, &place, &entry.name);
                self.repository_at(&place);
            }
            _ => {
                self.freeze(place.clone());
                let content = git::read_plain(directory, &entry.name).ok().flatten();
                if let Some(target) = content.as_deref().and_then(git::gitfile_target) {
                    self.repository_at(&path.join(target));
                }
            }
        }
    }

    /// A Git directory somewhere else, if that can be written.
    fn repository_at(&mut self, path: &Path) {
        let Ok(path) = std::fs::canonicalize(path) else {
            return;
        };
        let is_writable = self.guard.roots().iter().any(|root| path.starts_with(root));
        if is_writable && let Ok(directory) = open_root(&path) {
            self.repository(&directory, &path);
        }
    }

    /// Guards what is there of a Git directory's control files, and of those
    /// that its configuration names.
    pub(super) fn repository(&mut self, directory: &Looked, path: &Path) {
        let Ok(status) = rustix::fs::fstat(directory) else {
            return;
        };
        if !self.found.repositories.insert(FileId::of_stat(&status)) {
            return;
        }
        self.note(directory.as_fd(), path);
        let Ok(entries) = list(directory.as_fd(), MOST_ENTRIES) else {
            self.found.is_complete = false;
            return;
        };
        for entry in &entries {
            let name = entry.name.to_string_lossy();
            let is_control = CONTROL_NAMES
                .iter()
                .any(|control| name.eq_ignore_ascii_case(control));
            if is_control && self.guard.guards_git_entry(&name) {
                self.control(directory, path, entry);
            }
        }
        for entry in entries.iter().filter(|entry| is_directory(entry)) {
            match entry.name.to_str() {
                Some("modules") => self.modules(directory, path, &entry.name, 0),
                Some("worktrees") => self.worktrees(directory, path),
                _ => {}
            }
        }
    }

    fn control(&mut self, directory: &Looked, path: &Path, entry: &Entry) {
        let place = path.join(&entry.name);
        if entry.kind == FileType::Symlink {
            self.link(directory, &place, &entry.name);
            return;
        }
        self.freeze(place.clone());
        if entry.name != "config" && entry.name != "config.worktree" {
            return;
        }
        let text = git::read_text(directory, &entry.name).ok().flatten();
        self.follow_named(path, text.as_deref().unwrap_or_default(), 0);
        if entry.name == "config" {
            self.found.configurations.push(place);
        }
    }

    /// What configuration has Git read, and what that has it read.
    fn follow_named(&mut self, path: &Path, text: &str, depth: usize) {
        for named in git::named_files(text) {
            let place = resolved(path, &named);
            self.leads_to(&place);
            let parent = place.parent().zip(place.file_name());
            if let (git::Named::Configuration(_), Some((parent, name))) = (&named, parent)
                && depth < DEEPEST_INCLUDE
                && let Ok(directory) = std::fs::canonicalize(parent)
                && let Ok(directory) = open_root(&directory)
                && let Ok(Some(more)) = git::read_text(&directory, name)
            {
                self.follow_named(parent, &more, depth + 1);
            }
        }
    }

    /// Submodules, whose names may have several components.
    fn modules(&mut self, parent: &Looked, path: &Path, name: &OsStr, depth: usize) {
        let Ok(directory) = open_directory(parent.as_fd(), name) else {
            return;
        };
        let path = path.join(name);
        let Ok(entries) = list(directory.as_fd(), MOST_ENTRIES) else {
            self.found.is_complete = false;
            return;
        };
        if entries.iter().any(|entry| entry.name == git::HEAD) {
            self.repository(&directory, &path);
        } else if depth < DEEPEST_MODULE {
            for entry in entries.iter().filter(|entry| is_directory(entry)) {
                self.modules(&directory, &path, &entry.name, depth + 1);
            }
        }
    }

    fn worktrees(&mut self, parent: &Looked, path: &Path) {
        let Ok(directory) = open_directory(parent.as_fd(), OsStr::new("worktrees")) else {
            return;
        };
        let path = path.join("worktrees");
        for entry in list(directory.as_fd(), MOST_ENTRIES).unwrap_or_default() {
            if let Ok(inner) = open_directory(directory.as_fd(), &entry.name) {
                self.repository(&inner, &path.join(&entry.name));
            }
        }
    }
}

fn is_directory(entry: &Entry) -> bool {
    entry.kind == FileType::Directory
}

/// Where a file that configuration names is: hooks are sought from the work
/// tree, further configuration from the Git directory.
fn resolved(repository: &Path, named: &git::Named) -> PathBuf {
    let (path, from) = match named {
        git::Named::Hooks(path) => {
            let is_git = repository.file_name().is_some_and(|name| name == ".git");
            let tree = repository.parent().filter(|_| is_git);
            (path, tree.unwrap_or(repository))
        }
        git::Named::Configuration(path) => (path, repository),
    };
    from.join(path)
}
