//! Git directories that are there before a run.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::looking::{Looked, open_directory, open_readable, open_root};
use super::walk::{Entry, Surveyor, list};
use crate::git::{self, CONTROL_NAMES, Named};
use crate::view::FileId;

/// The most entries of a Git directory that are looked at.
const MOST_ENTRIES: usize = 10_000;
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
                    self.repository(&inner, &place, Some(path));
                }
            }
            FileType::Symlink => {
                self.link(directory, &place, &entry.name);
                self.repository_at(&place, Some(path));
            }
            _ => {
                self.freeze(place.clone());
                let content = git::read_plain(directory, &entry.name).ok().flatten();
                if let Some(target) = content.as_deref().and_then(git::gitfile_target) {
                    self.repository_at(&path.join(target), Some(path));
                }
            }
        }
    }

    /// A Git directory somewhere else. Of one that cannot be written only the
    /// configuration counts: it may name what can be.
    fn repository_at(&mut self, path: &Path, tree: Option<&Path>) {
        let Ok(path) = std::fs::canonicalize(path) else {
            return;
        };
        let is_writable = self.guard.roots().iter().any(|root| path.starts_with(root));
        if is_writable {
            if let Ok(directory) = open_root(&path) {
                self.repository(&directory, &path, tree);
            }
        } else if let Ok(directory) = open_readable(&path) {
            let mut trees: Vec<_> = tree.map(Path::to_path_buf).into_iter().collect();
            trees.extend(work_trees(&directory, &path));
            self.follow_configuration(&directory, &path, &trees);
            let common = git::read_text(&directory, OsStr::new("commondir"));
            if let Ok(Some(common)) = common
                && let Ok(common) = std::fs::canonicalize(path.join(git::without_line_end(&common)))
                && let Ok(directory) = open_readable(&common)
            {
                self.follow_configuration(&directory, &common, &trees);
            }
        }
    }

    /// The repositories that a root lies in the work tree of.
    pub(super) fn repositories_around(&mut self, root: &Path) {
        if !self.guard.guards_git() {
            return;
        }
        for tree in root.ancestors().skip(1) {
            let entry = tree.join(".git");
            let Ok(about) = entry.symlink_metadata() else {
                continue;
            };
            if !about.is_file() {
                self.repository_at(&entry, Some(tree));
            } else if let Ok(directory) = open_readable(tree)
                && let Ok(Some(content)) = git::read_plain(&directory, OsStr::new(".git"))
                && let Some(target) = git::gitfile_target(&content)
            {
                self.repository_at(&tree.join(target), Some(tree));
            }
        }
    }

    /// Guards what is there of a Git directory's control files, and of those
    /// that its configuration names. `tree` is a work tree that leads to it.
    pub(super) fn repository(&mut self, directory: &Looked, path: &Path, tree: Option<&Path>) {
        let Ok(status) = rustix::fs::fstat(directory) else {
            return;
        };
        let is_known = !self.found.repositories.insert(FileId::of_stat(&status));
        let mut trees: Vec<_> = tree.map(Path::to_path_buf).into_iter().collect();
        if is_known {
            // By another work tree.
            self.follow_configuration(directory, path, &trees);
            return;
        }
        trees.extend(work_trees(directory, path));
        self.follow_configuration(directory, path, &trees);
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
        if entry.name == "config" {
            self.found.configurations.push(place);
        } else if entry.name == "commondir"
            && let Ok(Some(common)) = git::read_text(directory, &entry.name)
        {
            self.repository_at(&path.join(git::without_line_end(&common)), None);
        }
    }

    /// What configuration has Git read and run, in each of these work trees.
    fn follow_configuration(&mut self, directory: &Looked, path: &Path, trees: &[PathBuf]) {
        let mut named = self.user_named().to_vec();
        for name in ["config", "config.worktree"] {
            if let Some(text) = git::read_roughly(directory, OsStr::new(name)) {
                named.extend(self.guard.user_git().named_in(path, &text));
            }
        }
        self.follow_named(named, path, trees);
        self.follow_rebase(directory, path, trees);
    }

    /// What the user's own configuration names outright, wherever a repository is.
    pub(super) fn follow_user(&mut self) {
        let named = self.user_named().to_vec();
        let anywhere = Path::new("/");
        self.follow_named(named, Path::new(""), &[anywhere.to_path_buf()]);
    }

    fn follow_named(&mut self, named: Vec<Named>, path: &Path, trees: &[PathBuf]) {
        for named in named {
            match named {
                Named::Configuration(path) => self.leads_to(&path),
                Named::Hooks(path) => {
                    if path.is_relative() && !self.found.relative_hooks.contains(&path) {
                        self.found.relative_hooks.push(path.clone());
                    }
                    for tree in trees {
                        self.leads_to(&tree.join(&path));
                    }
                }
                Named::Program { path: word, is_run } => {
                    self.program(path, trees, &word, is_run);
                }
            }
        }
    }

    /// A program that Git is told to run, or a file that it is told of, in each
    /// of these work trees. What is not there may be no path at all, unless it
    /// looks like one. In the Git directory itself such words are branches.
    fn program(&mut self, own: &Path, trees: &[PathBuf], word: &Path, is_run: bool) {
        let looks_like_path = word.components().count() > 1;
        for tree in trees.iter().filter(|tree| *tree != own) {
            let path = tree.join(word);
            let found = std::fs::metadata(&path);
            let is_file = found.as_ref().is_ok_and(std::fs::Metadata::is_file);
            if is_file || (found.is_err() && is_run && looks_like_path) {
                self.leads_to(&path);
            }
        }
    }

    /// What a rebase that was interrupted runs when it goes on.
    fn follow_rebase(&mut self, directory: &Looked, path: &Path, trees: &[PathBuf]) {
        let [folder, list] = git::REBASE;
        let Ok(folder) = open_directory(directory.as_fd(), OsStr::new(folder)) else {
            return;
        };
        let Some(list) = git::read_roughly(&folder, OsStr::new(list)) else {
            return;
        };
        for program in git::rebase_programs(&list) {
            self.program(path, trees, &program, true);
        }
        let commands = git::rebase_commands(&list).map(str::to_owned);
        let commands = commands.map(|command| (path.to_path_buf(), command));
        self.found.rebase_commands.extend(commands);
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
            self.repository(&directory, &path, None);
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
                self.repository(&inner, &path.join(&entry.name), None);
            }
        }
    }
}

/// Whether Git may take a directory for one of its own. It wants more of one
/// than this.
pub(crate) fn looks_like_one(path: &Path, entries: &[Entry]) -> bool {
    let has = |name: &str| {
        let mut names = entries.iter().map(|entry| &entry.name);
        names.any(|known| known.eq_ignore_ascii_case(name))
    };
    let is_called_so = path
        .file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let has_parts = has("objects") && has("refs");
    is_called_so || has_parts || has("commondir") || (has(git::HEAD) && has("config"))
}

fn is_directory(entry: &Entry) -> bool {
    entry.kind == FileType::Directory
}

/// The work trees that a Git directory says it has, and itself: hooks of a bare
/// repository run there.
fn work_trees(directory: &Looked, path: &Path) -> Vec<PathBuf> {
    let mut trees = vec![path.to_path_buf()];
    for name in ["config", "config.worktree"] {
        let text = git::read_text(directory, OsStr::new(name)).ok().flatten();
        let tree = text.as_deref().and_then(git::work_tree);
        trees.extend(tree.map(|tree| path.join(tree)));
    }
    trees.extend(linked_tree(directory, path));
    if let Ok(linked) = open_directory(directory.as_fd(), OsStr::new("worktrees")) {
        for entry in list(linked.as_fd(), MOST_ENTRIES).unwrap_or_default() {
            let inner = open_directory(linked.as_fd(), &entry.name);
            let place = path.join("worktrees").join(&entry.name);
            trees.extend(inner.ok().and_then(|inner| linked_tree(&inner, &place)));
        }
    }
    trees
}

/// The work tree whose own Git directory, below that of its repository, this is.
fn linked_tree(directory: &Looked, path: &Path) -> Option<PathBuf> {
    let content = git::read_plain(directory, OsStr::new("gitdir")).ok()??;
    let file = OsStr::from_bytes(content.trim_ascii_end());
    path.join(file).parent().map(Path::to_path_buf)
}
