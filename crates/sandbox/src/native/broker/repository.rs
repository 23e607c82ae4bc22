//! What a run may do to Git repositories.
//!
//! A folder is a repository when it has a `HEAD` or is called `.git`. One that
//! was there before keeps its hooks, and of its configuration all that is not
//! harmless. In one made inside, configuration that is renamed into place, as
//! Git does, or linked there, as libgit2 does, is examined, hooks come only as samples, and a folder that gets its
//! `HEAD` is examined then. What is written in place meanwhile is judged when
//! the run is over ([`crate::sweep`]).

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};

use super::caller::{Spot, may_exist, path_of};
use super::{Broker, GUARDED};
use crate::git::{CONTROL_NAMES, HEAD, dangerous_setting, read_plain, read_whole};
use crate::view::FileId;
use crate::wire::Operation;

/// What the `commondir` of a work tree that Git added says.
const COMMON_FOLDER: &[u8] = b"../..\n";

/// What becomes of a file in whose place another is put.
#[derive(Clone, Copy)]
enum Existing {
    Replace,
    Keep,
}

/// An entry of a path that controls what Git runs.
struct Control<'a> {
    /// The would-be Git folder.
    folder: OwnedFd,
    id: FileId,
    /// The rest of the path from there.
    below: &'a Path,
}

impl Control<'_> {
    fn name(&self) -> String {
        first_component(self.below)
    }

    fn is_repository(&self) -> Result<bool, Errno> {
        Ok(is_git_name(&path_of(&self.folder)?) || may_exist(&self.folder, Path::new(HEAD)))
    }
}

impl Broker<'_> {
    /// What of a repository may not be touched by `operation`.
    pub(super) fn git_rule(
        &self,
        operation: Operation,
        spot: &Spot,
    ) -> Result<Option<&'static str>, Errno> {
        for control in controls(spot)? {
            let is_old = self.guard.is_old_repository(control.id);
            let is_repository = is_old || control.is_repository()?;
            if !self.guard.guards_git_entry(&control.name()) || !is_repository {
                continue;
            }
            if is_old || !self.is_new_repository(control.id) {
                return Ok(Some("hooks and configuration of a repository"));
            }
            let rule = rule_in_new_repository(operation, &control);
            if rule.is_some() {
                return Ok(rule);
            }
        }
        Ok(None)
    }

    /// Called before a name is made: a folder that gets a `HEAD` becomes a
    /// repository, and must not bring along what Git would run.
    pub(super) fn before_making(&mut self, operation: Operation, spot: &Spot) -> Result<(), Errno> {
        if !is_head(spot.path()) || self.known_as(spot)?.is_none() {
            return Ok(());
        }
        let is_old = self.guard.is_old_repository(spot.folder_id()?);
        if is_old || may_exist(&spot.folder, Path::new(HEAD)) {
            return Ok(());
        }
        let depth = self.depth_of(&spot.folder)?;
        let before = self.replaceable(&spot.folder);
        let reason = examine(&spot.folder, depth)?;
        let now = self.replaceable(&spot.folder);
        for (before, now) in before.iter().zip(&now) {
            self.disk.replaced(before.as_ref(), now.as_ref());
        }
        if let Some(reason) = reason {
            self.judged = None;
            self.refuse(operation, spot.path(), &reason);
            return Err(GUARDED);
        }
        self.new_repositories.remember(spot.folder_id()?);
        Ok(())
    }

    /// Whether a rename or a link would put configuration into a new repository.
    pub(super) fn brings_configuration(&self, to: &Spot) -> Result<bool, Errno> {
        if self.known_as(to)?.is_none()
            || !is_config(to.path())
            || !self.guard.guards_git_entry("config")
        {
            return Ok(false);
        }
        let is_repository =
            is_git_name(&path_of(&to.folder)?) || may_exist(&to.folder, Path::new(HEAD));
        let id = to.folder_id()?;
        Ok(is_repository && !self.guard.is_old_repository(id) && self.is_new_repository(id))
    }

    /// Carries out the rename of a configuration file with a copy that was
    /// examined.
    pub(super) fn install_configuration(&mut self, from: &Spot, to: &Spot) -> Result<(), Errno> {
        let text = read_plain(&from.folder, &from.name)?;
        let text = self.examined(Operation::Rename, to, text)?;
        self.put(to, &text, Existing::Replace)?;
        let doomed = self.disk.before_removing(&from.folder, &from.name);
        rustix::fs::unlinkat(&from.folder, &from.name, AtFlags::empty())?;
        self.disk.removed(doomed);
        Ok(())
    }

    /// Carries out a link to a configuration file with a copy that was examined:
    /// what is written to the source by its other name has no effect.
    pub(super) fn link_configuration(&mut self, source: &OwnedFd, to: &Spot) -> Result<(), Errno> {
        if to.status()?.is_some() {
            return Err(Errno::EXIST);
        }
        let text = read_place(source)?;
        let text = self.examined(Operation::Link, to, text)?;
        self.disk.admit_name()?;
        self.put(to, &text, Existing::Keep)?;
        self.settle(Operation::Create, to, || {
            let _ = rustix::fs::unlinkat(&to.folder, &to.name, AtFlags::empty());
        })
    }

    /// The content of a configuration file to be, if it is harmless.
    fn examined(
        &mut self,
        operation: Operation,
        to: &Spot,
        text: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, Errno> {
        let depth = self.depth_of(&to.folder)?;
        if let Some(setting) = dangerous(text.as_deref(), depth) {
            let rule = format!("setting of Git that may run programs or lead elsewhere: {setting}");
            self.judged = None;
            self.refuse(operation, to.path(), &rule);
            return Err(GUARDED);
        }
        Ok(text.unwrap_or_default())
    }

    /// A Git directory that was made inside, or became one there.
    fn is_new_repository(&self, directory: FileId) -> bool {
        self.made.has(directory) || self.new_repositories.has(directory)
    }

    /// How far below its root a directory is.
    fn depth_of(&self, directory: &OwnedFd) -> Result<usize, Errno> {
        let path = path_of(directory)?;
        let known = self.roots.known_as(directory, &path).map_err(|_| GUARDED)?;
        let depth = |known: PathBuf| {
            let roots = self.guard.roots().iter();
            let below = roots.filter_map(|root| known.strip_prefix(root).ok());
            below.map(|below| below.components().count()).min()
        };
        Ok(known.and_then(depth).unwrap_or(0))
    }

    fn put(&mut self, spot: &Spot, bytes: &[u8], existing: Existing) -> Result<(), Errno> {
        let before = spot.status()?;
        put(&spot.folder, &spot.name, bytes, existing)?;
        self.disk.replaced(before.as_ref(), spot.status()?.as_ref());
        Ok(())
    }

    /// What is there of the files that [`examine`] replaces.
    fn replaceable(&self, folder: &OwnedFd) -> Vec<Option<Stat>> {
        let names: &[&str] = if self.disk.is_kept() {
            &["config", "config.worktree", "commondir"]
        } else {
            &[]
        };
        let status =
            |name: &&str| rustix::fs::statat(folder, *name, AtFlags::SYMLINK_NOFOLLOW).ok();
        names.iter().map(status).collect()
    }

    /// Makes the `commondir` of a work tree with the only content it may have.
    /// The caller gets a file to write its own idea of that to.
    pub(super) fn make_common_folder(&mut self, spot: &Spot) -> Result<Option<OwnedFd>, Errno> {
        let name_is = |name: &str| spot.name.eq_ignore_ascii_case(name);
        if self.known_as(spot)?.is_none()
            || !name_is("commondir")
            || !self.is_new_repository(spot.folder_id()?)
        {
            return Ok(None);
        }
        if !is_work_tree_of_repository(spot)? {
            return Ok(None);
        }
        self.put(spot, COMMON_FOLDER, Existing::Replace)?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        rustix::fs::open("/tmp", flags, Mode::from_raw_mode(0o600)).map(Some)
    }

    /// The Git folder of a repository that was there before stays in place,
    /// and so does its `HEAD`: without them other configuration could be put
    /// there, and the rest put back.
    pub(super) fn judge_part_of_repository(
        &mut self,
        operation: Operation,
        spot: &Spot,
        status: &Stat,
    ) -> Result<(), Errno> {
        let path = spot.path();
        if self.known_as(spot)?.is_none() {
            return Ok(());
        }
        let is_old_git_folder = is_git_name(path) && !self.made.has(FileId::of_stat(status));
        // Where these are decides which folder their configuration is in.
        let is_work_tree = spot.holds(Path::new("commondir")) && spot.holds(Path::new(HEAD));
        let is_work_trees = path.file_name().is_some_and(|name| name == "worktrees")
            && may_exist(&spot.folder, Path::new(HEAD));
        let is_moved = operation == Operation::Rename && (is_work_tree || is_work_trees);
        let is_old_head = is_head(path) && !self.is_new_repository(spot.folder_id()?);
        if is_old_git_folder || is_old_head || is_moved {
            self.judged = None;
            self.refuse(operation, path, "part of a repository");
            return Err(GUARDED);
        }
        Ok(())
    }
}

/// In a repository made inside: hooks only as samples in a folder made there.
fn rule_in_new_repository(operation: Operation, control: &Control<'_>) -> Option<&'static str> {
    let name = control.name().to_ascii_lowercase();
    let is_entry_itself = control.below.components().count() == 1;
    match name.as_str() {
        "hooks" if is_entry_itself => {
            let is_harmless = matches!(
                operation,
                Operation::MakeFolder | Operation::Remove | Operation::ChangeMode
            );
            (!is_harmless).then_some("hooks of a new repository")
        }
        "hooks" => {
            let is_sample = control
                .below
                .extension()
                .is_some_and(|extension| extension == "sample");
            let is_removal = operation == Operation::Remove;
            (!is_sample && !is_removal).then_some("live hook of a new repository")
        }
        "commondir" => (operation != Operation::Remove)
            .then_some("configuration of a new repository from elsewhere"),
        // Git writes it beside and renames it, libgit2 links it, and both are
        // examined. Others write it in place, which is judged when the run is
        // over.
        _ => matches!(operation, Operation::Link | Operation::Bind)
            .then_some("configuration of a new repository from elsewhere"),
    }
}

/// What makes a folder unfit to become a repository. What is fit is replaced
/// by copies that nobody holds open.
fn examine(folder: &OwnedFd, depth: usize) -> Result<Option<String>, Errno> {
    for name in ["config", "config.worktree"] {
        if !may_exist(folder, Path::new(name)) {
            continue;
        }
        let text = read_plain(folder, OsStr::new(name))?;
        if let Some(setting) = dangerous(text.as_deref(), depth) {
            return Ok(Some(format!(
                "repository whose {name} can run programs: {setting}"
            )));
        }
        let text = text.unwrap_or_default();
        put(folder, OsStr::new(name), &text, Existing::Replace)?;
    }
    if may_exist(folder, Path::new("hooks")) && !has_only_samples(folder) {
        return Ok(Some("repository with live hooks".to_owned()));
    }
    if may_exist(folder, Path::new("commondir")) {
        let is_plain =
            read_plain(folder, OsStr::new("commondir"))?.as_deref() == Some(COMMON_FOLDER);
        // Of a repository, configuration is guarded or was examined.
        if !is_plain || !may_exist(folder, &Path::new("../..").join(HEAD)) {
            return Ok(Some(
                "repository with configuration from another folder".to_owned(),
            ));
        }
        let name = OsStr::new("commondir");
        put(folder, name, COMMON_FOLDER, Existing::Replace)?;
    }
    Ok(None)
}

fn has_only_samples(folder: &OwnedFd) -> bool {
    let is_folder = rustix::fs::statat(folder, "hooks", AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory);
    let path = format!("/proc/self/fd/{}/hooks", folder.as_raw_fd());
    let Ok(entries) = std::fs::read_dir(path) else {
        return false;
    };
    let is_sample = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            Path::new(&entry.file_name())
                .extension()
                .is_some_and(|e| e == "sample")
        })
    };
    is_folder && entries.into_iter().all(is_sample)
}

/// A folder two below a repository, in `worktrees`.
fn is_work_tree_of_repository(spot: &Spot) -> Result<bool, Errno> {
    let path = path_of(&spot.folder)?;
    let is_below = path
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name == "worktrees");
    Ok(is_below && may_exist(&spot.ancestor(2)?, Path::new(HEAD)))
}

/// What is wrong with a configuration file.
fn dangerous(text: Option<&[u8]>, depth: usize) -> Option<String> {
    match text.map(std::str::from_utf8) {
        Some(Ok(text)) => dangerous_setting(text, depth),
        _ => Some("not a plain text of ordinary size".to_owned()),
    }
}

/// The bytes of what a descriptor without access stands for, if that is a plain
/// file of ordinary size.
fn read_place(place: &OwnedFd) -> Result<Option<Vec<u8>>, Errno> {
    let status = rustix::fs::fstat(place)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => read_whole(&file),
        Err(Errno::ACCESS) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Puts a new file with this content at `name`.
fn put(folder: &OwnedFd, name: &OsStr, bytes: &[u8], existing: Existing) -> Result<(), Errno> {
    let mut fresh = name.to_os_string();
    fresh.push(".ringfence");
    let _ = rustix::fs::unlinkat(folder, &fresh, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &fresh, flags, Mode::from_raw_mode(0o644))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    let flags = match existing {
        Existing::Replace => RenameFlags::empty(),
        Existing::Keep => RenameFlags::NOREPLACE,
    };
    rustix::fs::renameat_with(folder, &fresh, folder, name, flags).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(folder, &fresh, AtFlags::empty());
    })
}

/// The entries of a spot's path that may control what Git runs.
fn controls(spot: &Spot) -> Result<Vec<Control<'_>>, Errno> {
    let is_control = |name: &OsStr| {
        CONTROL_NAMES
            .iter()
            .any(|control| name.eq_ignore_ascii_case(control))
    };
    let path = spot.path();
    let mut found = Vec::new();
    for (levels, ancestor) in path.ancestors().enumerate() {
        if !ancestor.file_name().is_some_and(is_control) {
            continue;
        }
        let Some(below) = ancestor
            .parent()
            .and_then(|folder| path.strip_prefix(folder).ok())
        else {
            continue;
        };
        let folder = spot.ancestor(levels)?;
        let id = FileId::of_stat(&rustix::fs::fstat(&folder)?);
        found.push(Control { folder, id, below });
    }
    Ok(found)
}

fn first_component(path: &Path) -> String {
    let first: Option<PathBuf> = path
        .components()
        .next()
        .map(|first| PathBuf::from(first.as_os_str()));
    first
        .map(|first| first.display().to_string())
        .unwrap_or_default()
}

fn is_config(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        ["config", "config.worktree"]
            .iter()
            .any(|config| name.eq_ignore_ascii_case(config))
    })
}

fn is_head(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(HEAD))
}

pub(super) fn is_git_name(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        let opened = rustix::fs::open(folder.path(), OFlags::PATH, Mode::empty()).unwrap();
        (folder, opened)
    }

    #[test]
    fn g4_a_folder_with_live_hooks_or_dangerous_configuration_is_unfit() {
        let (path, opened) = folder();
        assert_eq!(examine(&opened, 1).unwrap(), None);
        std::fs::create_dir(path.path().join("hooks")).unwrap();
        std::fs::write(path.path().join("hooks/x.sample"), "").unwrap();
        std::fs::write(path.path().join("config"), "[core]\n\tbare = false\n").unwrap();
        assert_eq!(examine(&opened, 1).unwrap(), None);
        for (name, text) in [
            ("config", "[core]\n\tfsmonitor = x\n"),
            ("hooks/post-commit", ""),
            ("commondir", ".."),
        ] {
            let (path, opened) = folder();
            std::fs::create_dir(path.path().join("hooks")).unwrap();
            std::fs::write(path.path().join(name), text).unwrap();
            assert!(examine(&opened, 1).unwrap().is_some(), "{name}");
        }
    }

    #[test]
    fn links_in_place_of_files_are_unfit() {
        for name in ["config", "config.worktree", "hooks", "commondir"] {
            let (path, opened) = folder();
            std::os::unix::fs::symlink("/nowhere", path.path().join(name)).unwrap();
            assert!(examine(&opened, 1).unwrap().is_some(), "{name}");
        }
    }

    #[test]
    fn g4_what_was_held_open_is_not_what_git_will_read() {
        use std::io::Write;
        let (path, opened) = folder();
        let config = path.path().join("config");
        let mut held = std::fs::File::create(&config).unwrap();
        held.write_all(b"[core]\n").unwrap();
        assert_eq!(examine(&opened, 1).unwrap(), None);
        held.write_all(b"\tfsmonitor = x\n").unwrap();
        assert_eq!(std::fs::read_to_string(&config).unwrap(), "[core]\n");
        assert_eq!(std::fs::read_dir(path.path()).unwrap().count(), 1);
    }
}
