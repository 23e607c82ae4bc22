//! What was there before a run: by its survey, or, where there is none that is
//! whole or the run was cut off, by the times of files.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, StatxTimestamp};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::guard::{GitGuard, Guard, is_dependency};
use crate::survey::Survey;
use crate::view::FileId;
use crate::within::is_within;

/// What is written down of a run, so that it can be swept after it was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SweepRecord {
    /// The version of this format: 1.
    pub version: u32,
    /// The writable directories.
    roots: Vec<OsString>,
    names: Vec<String>,
    git_hooks: bool,
    git_config: bool,
    /// As the hooks, where it is not said.
    #[serde(default)]
    git_others: Option<bool>,
    /// Nanoseconds since the epoch.
    since: i64,
    /// Each with the device and the inode of the directory it was in.
    there: Vec<(OsString, u64, u64)>,
    led_to: Vec<OsString>,
    links: Vec<(OsString, OsString)>,
    relative_hooks: Vec<OsString>,
}

impl SweepRecord {
    pub(super) fn of(guard: &Guard, baseline: &Baseline) -> Self {
        let links = baseline.links.iter();
        let links = links.map(|(place, target)| (text(place), text(target)));
        let there = baseline.there.iter().map(|(path, parent)| {
            let (device, inode) = parent.numbers();
            (text(path), device, inode)
        });
        Self {
            version: 1,
            roots: guard.roots().iter().map(text).collect(),
            names: guard.names().to_vec(),
            git_hooks: guard.guards_git_entry("hooks"),
            git_config: guard.guards_git_entry("config"),
            git_others: Some(guard.guards_git_entry("commondir")),
            since: baseline.since,
            there: there.collect(),
            led_to: baseline.led_to.iter().map(text).collect(),
            links: links.collect(),
            relative_hooks: baseline.relative_hooks.iter().map(text).collect(),
        }
    }

    /// Whether any of these is where the run could write.
    pub fn overlaps(&self, paths: &[&Path]) -> bool {
        let is_near = |one: &Path, other: &Path| is_within(one, other) || is_within(other, one);
        let mut own = self.roots.iter();
        own.any(|root| paths.iter().any(|path| is_near(path, Path::new(root))))
    }

    /// Whether there is nothing left to look at: none of its directories is
    /// there any more.
    pub fn is_moot(&self) -> bool {
        let mut roots = self.roots.iter();
        roots.all(|root| {
            let about = Path::new(root).symlink_metadata();
            about.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        })
    }

    pub(super) fn guard(&self) -> Guard {
        let roots = self.roots.iter().map(PathBuf::from).collect();
        Guard::new(roots, self.names.clone(), Vec::new(), &[])
            .unwrap_or_default()
            .with_git(GitGuard {
                hooks: self.git_hooks,
                config: self.git_config,
                others: self.git_others.unwrap_or(self.git_hooks),
            })
    }
}

/// What was there before.
#[derive(Debug, Clone)]
pub(super) struct Baseline {
    since: i64,
    roots: Vec<PathBuf>,
    /// Protected names and control files, with the directories they were in.
    there: HashMap<PathBuf, FileId>,
    /// Where links and configuration lead, and what is denied, there or not.
    led_to: Vec<PathBuf>,
    /// The same as `there`, by where they were.
    by_parent: HashSet<(FileId, OsString)>,
    links: Vec<(PathBuf, PathBuf)>,
    /// Directories that looked like those of Git.
    alike: HashSet<FileId>,
    /// Directories of hooks that Git seeks in every work tree.
    relative_hooks: Vec<PathBuf>,
    /// What interrupted rebases ran, where that is known.
    rebase_commands: Option<HashSet<(PathBuf, String)>>,
    /// The directories, where all are known.
    directories: Option<HashMap<PathBuf, FileId>>,
}

impl Baseline {
    /// Of a run that begins now.
    pub(super) fn of(survey: &Survey, roots: &[PathBuf]) -> Self {
        let links = survey.links.iter().map(|(place, _)| place);
        let with_parent = |path: &PathBuf| {
            let parent = survey.directories.get(path.parent()?)?;
            Some((path.clone(), *parent))
        };
        let there = survey.frozen.iter().chain(links);
        let there = there.filter_map(with_parent);
        let denied = survey.denied.iter();
        let denied = denied.filter_map(|path| denied_there(path));
        let there: HashMap<_, _> = there.chain(denied).collect();
        let led_to = survey.led_to.iter().chain(&survey.denied);
        Self {
            since: now(),
            roots: roots.to_vec(),
            by_parent: by_parent(&there),
            there,
            led_to: led_to.cloned().collect(),
            links: survey.links.clone(),
            alike: survey.alike.clone(),
            relative_hooks: survey.relative_hooks.clone(),
            rebase_commands: Some(survey.rebase_commands.clone()),
            directories: survey.is_complete.then(|| survey.directories.clone()),
        }
    }

    pub(super) fn of_record(record: &SweepRecord) -> Self {
        let links = record.links.iter();
        let links = links.map(|(place, target)| (place.into(), target.into()));
        let there = record.there.iter();
        let there =
            there.map(|(path, device, inode)| (PathBuf::from(path), FileId::new(*device, *inode)));
        let there: HashMap<_, _> = there.collect();
        Self {
            since: record.since,
            roots: record.roots.iter().map(PathBuf::from).collect(),
            by_parent: by_parent(&there),
            there,
            led_to: record.led_to.iter().map(PathBuf::from).collect(),
            links: links.collect(),
            // Times count, where nothing else is known.
            alike: HashSet::new(),
            relative_hooks: record.relative_hooks.iter().map(PathBuf::from).collect(),
            rebase_commands: None,
            directories: None,
        }
    }

    /// Nothing that is older than now is of the run.
    pub(super) fn begin_now(&mut self) {
        self.since = now();
    }

    pub(super) fn links(&self) -> &[(PathBuf, PathBuf)] {
        &self.links
    }

    pub(super) fn led_to(&self) -> &[PathBuf] {
        &self.led_to
    }

    /// Whether a rebase in this Git directory ran this command before, as far as is known.
    pub(super) fn had_command(&self, path: &Path, command: &str) -> Option<bool> {
        let known = self.rebase_commands.as_ref()?;
        Some(known.contains(&(path.to_path_buf(), command.to_owned())))
    }

    pub(super) fn relative_hooks(&self) -> &[PathBuf] {
        &self.relative_hooks
    }

    /// Whether a directory was there: names in others are free. One that was
    /// put in the place of another counts as the other.
    pub(super) fn had(&self, directory: impl AsFd, path: &Path) -> bool {
        match &self.directories {
            Some(known) => known.contains_key(path),
            None => !self.is_new(directory, OsStr::new("")),
        }
    }

    /// Whether there was a directory at a path, as far as all are known.
    pub(super) fn had_directory(&self, path: &Path) -> bool {
        let known = self.directories.as_ref();
        known.is_some_and(|known| known.contains_key(path))
    }

    /// Whether an entry was there, and in the same directory; or is older than
    /// the run.
    ///
    /// Where all is known that was there, times do not count: an entry keeps its
    /// own when the directory around it is moved, or becomes a repository.
    pub(super) fn had_entry(&self, directory: impl AsFd, path: &Path, name: &OsStr) -> bool {
        let counts_by_time = self.directories.is_none() || self.is_below_dependency(path);
        self.is_in_place(&directory, path, name)
            || (counts_by_time && !self.is_new(directory, name))
    }

    /// The same of an entry that controls what Git does. It may have been moved
    /// with its repository; and a directory that looked like one before has
    /// entries of no meaning.
    pub(super) fn had_control(&self, directory: impl AsFd, path: &Path, name: &OsStr) -> bool {
        self.had_entry(&directory, path, name)
            || self.was_in(&directory, name)
            || (self.was_alike(&directory) && !self.is_new(directory, name))
    }

    /// Whether a directory looked like one of Git's before.
    pub(super) fn was_alike(&self, directory: impl AsFd) -> bool {
        let now = rustix::fs::fstat(directory).map(|status| FileId::of_stat(&status));
        now.is_ok_and(|now| self.alike.contains(&now))
    }

    /// Whether a directory is one of dependencies, or below one: nobody surveyed
    /// those.
    fn is_below_dependency(&self, path: &Path) -> bool {
        let mut below = self.roots.iter();
        let below = below.find_map(|root| path.strip_prefix(root).ok());
        let mut names = below.into_iter().flat_map(Path::iter);
        names.any(|name| is_dependency(name.as_encoded_bytes()))
    }

    /// Whether an entry was read-only, with all that is in it, wherever the
    /// directory that it was in is now.
    pub(super) fn was_frozen(&self, directory: impl AsFd, path: &Path, name: &OsStr) -> bool {
        let place = path.join(name);
        let mut roots = self.roots.iter();
        let is_link = || self.links.iter().any(|(link, _)| *link == place);
        self.was_in(directory, name) && !roots.any(|root| root.starts_with(&place)) && !is_link()
    }

    /// Whether an entry of this name was in this directory, wherever that was.
    fn was_in(&self, directory: impl AsFd, name: &OsStr) -> bool {
        let now = rustix::fs::fstat(directory).map(|status| FileId::of_stat(&status));
        now.is_ok_and(|now| self.by_parent.contains(&(now, name.to_owned())))
    }

    /// Whether an entry was read-only throughout: it was there, and in the same
    /// directory.
    pub(super) fn is_in_place(&self, directory: impl AsFd, path: &Path, name: &OsStr) -> bool {
        let known = self.there.get(&path.join(name));
        let now = rustix::fs::fstat(directory).map(|status| FileId::of_stat(&status));
        known.is_some_and(|known| now.is_ok_and(|now| now == *known))
    }

    /// Whether a file is older than the run.
    pub(super) fn is_older(&self, directory: impl AsFd, name: &OsStr) -> bool {
        !self.is_new(directory, name)
    }

    /// Whether a file was made or changed since, which moving it does too. A
    /// directory changes with every name in it: of that its birth counts, where
    /// its file system knows it. What cannot be looked at is not new.
    fn is_new(&self, directory: impl AsFd, name: &OsStr) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let wanted = StatxFlags::BTIME | StatxFlags::CTIME;
        let Ok(status) = rustix::fs::statx(directory, name, flags, wanted) else {
            return false;
        };
        let time = |time: StatxTimestamp| nanoseconds(time.tv_sec, i64::from(time.tv_nsec));
        if name.is_empty() {
            let knows_birth = status.stx_mask & StatxFlags::BTIME.bits() != 0;
            return knows_birth && time(status.stx_btime) > self.since;
        }
        // What was made in the same tick counts as new.
        time(status.stx_ctime) >= self.since
    }
}

/// A denied path that is there, with the directory it is in.
fn denied_there(path: &Path) -> Option<(PathBuf, FileId)> {
    path.symlink_metadata().ok()?;
    let parent = path.parent()?.symlink_metadata().ok()?;
    Some((path.to_path_buf(), FileId::new(parent.dev(), parent.ino())))
}

fn by_parent(there: &HashMap<PathBuf, FileId>) -> HashSet<(FileId, OsString)> {
    let named = there.iter();
    let named = named.filter_map(|(path, parent)| Some((*parent, path.file_name()?.to_owned())));
    named.collect()
}

/// A path as it is written down, whatever bytes it has.
fn text(path: impl AsRef<OsStr>) -> OsString {
    path.as_ref().to_owned()
}

/// By the clock that the kernel takes the times of files from.
fn now() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    nanoseconds(now.tv_sec, now.tv_nsec)
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}
