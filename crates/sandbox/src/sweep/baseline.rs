//! What was there before a run: by its survey, or, where there is none that is
//! whole or the run was cut off, by the times of files.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::guard::Guard;
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
    /// Nanoseconds since the epoch.
    since: i64,
    there: Vec<OsString>,
    links: Vec<(OsString, OsString)>,
}

impl SweepRecord {
    pub(super) fn of(guard: &Guard, baseline: &Baseline) -> Self {
        let links = baseline.links.iter();
        let links = links.map(|(place, target)| (text(place), text(target)));
        Self {
            version: 1,
            roots: guard.roots().iter().map(text).collect(),
            names: guard.names().to_vec(),
            git_hooks: guard.guards_git_entry("hooks"),
            git_config: guard.guards_git_entry("config"),
            since: baseline.since,
            there: baseline.there.iter().map(text).collect(),
            links: links.collect(),
        }
    }

    /// Whether any of these is where the run could write.
    pub fn overlaps(&self, paths: &[&Path]) -> bool {
        let is_near = |one: &Path, other: &Path| is_within(one, other) || is_within(other, one);
        let mut own = self.roots.iter();
        own.any(|root| paths.iter().any(|path| is_near(path, Path::new(root))))
    }

    pub(super) fn guard(&self) -> Guard {
        let roots = self.roots.iter().map(PathBuf::from).collect();
        Guard::new(roots, self.names.clone(), Vec::new(), &[])
            .unwrap_or_default()
            .with_git(self.git_hooks, self.git_config)
    }
}

/// What was there before.
#[derive(Debug, Clone)]
pub(super) struct Baseline {
    since: i64,
    /// Protected names and control files.
    there: HashSet<PathBuf>,
    links: Vec<(PathBuf, PathBuf)>,
    /// The directories, where all are known.
    directories: Option<HashMap<PathBuf, FileId>>,
}

impl Baseline {
    /// Of a run that begins now.
    pub(super) fn of(survey: &Survey) -> Self {
        // The clock that the kernel takes the times of files from.
        let now = clock_gettime(ClockId::RealtimeCoarse);
        let links = survey.links.iter().map(|(place, _)| place);
        Self {
            since: nanoseconds(now.tv_sec, now.tv_nsec),
            there: survey.frozen.iter().chain(links).cloned().collect(),
            links: survey.links.clone(),
            directories: survey.is_complete.then(|| survey.directories.clone()),
        }
    }

    pub(super) fn of_record(record: &SweepRecord) -> Self {
        let links = record.links.iter();
        let links = links.map(|(place, target)| (place.into(), target.into()));
        Self {
            since: record.since,
            there: record.there.iter().map(PathBuf::from).collect(),
            links: links.collect(),
            directories: None,
        }
    }

    pub(super) fn links(&self) -> &[(PathBuf, PathBuf)] {
        &self.links
    }

    /// Whether a directory was there: names in others are free. One that was
    /// put in the place of another counts as the other.
    pub(super) fn had(&self, directory: &OwnedFd, path: &Path) -> bool {
        match &self.directories {
            Some(known) => known.contains_key(path),
            None => !Self::is_born_after(directory, OsStr::new(""), self.since),
        }
    }

    /// Whether an entry was there, and in the same directory.
    pub(super) fn had_entry(&self, directory: &OwnedFd, path: &Path, name: &OsStr) -> bool {
        if self.there.contains(&path.join(name)) {
            return self.is_same(directory, path);
        }
        // What was made in the same tick counts as new.
        self.directories.is_none() && !Self::is_born_after(directory, name, self.since - 1)
    }

    fn is_same(&self, directory: &OwnedFd, path: &Path) -> bool {
        let known = self.directories.as_ref().and_then(|known| known.get(path));
        let now = rustix::fs::fstat(directory).map(|status| FileId::of_stat(&status));
        known.is_none_or(|known| now.is_ok_and(|now| now == *known))
    }

    /// Whether a file was made, or, where its file system does not tell that,
    /// changed after that. One that cannot be looked at was not.
    fn is_born_after(directory: &OwnedFd, name: &OsStr, since: i64) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let wanted = StatxFlags::BTIME | StatxFlags::CTIME;
        let Ok(status) = rustix::fs::statx(directory, name, flags, wanted) else {
            return false;
        };
        let knows_birth = status.stx_mask & StatxFlags::BTIME.bits() != 0;
        let time = if knows_birth {
            status.stx_btime
        } else if name.is_empty() {
            // A directory changes with every name in it.
            return false;
        } else {
            status.stx_ctime
        };
        nanoseconds(time.tv_sec, i64::from(time.tv_nsec)) > since
    }
}

/// A path as it is written down, whatever bytes it has.
fn text(path: impl AsRef<OsStr>) -> OsString {
    path.as_ref().to_owned()
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}
