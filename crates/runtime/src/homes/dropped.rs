//! What a run wrote to a private layer over the home or another directory, which is gone with it.
//!
//! Code inside made all of it: only names and states are looked at, by descriptor, without
//! following a link, and no more than [`MOST_SEEN`] entries. A directory that the host has too is
//! looked into; of one that it has not, its name is all that is told.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_policy::{is_tool_state, leads_to_tool_state};
use ringfence_sandbox::PrivateLayer;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

use super::tree;
use crate::report::{Change, DroppedChange, DroppedReport};

/// The most entries that are looked at.
const MOST_SEEN: usize = 4096;
/// The most changes that are told one by one.
const MOST_TOLD: usize = 100;
/// The most of a directory's own entries that are told beside each other.
const MOST_BESIDE: usize = 3;
/// How many directories deep is looked.
const DEEPEST: usize = 24;
/// The longest path that is told, in characters.
const LONGEST_PATH: usize = 1024;

/// What `layer` has of changes that somebody may miss, if there is any.
pub(crate) fn look(layer: &OwnedFd, over: &PrivateLayer) -> Option<DroppedReport> {
    let mut look = Look {
        over,
        left: MOST_SEEN,
        is_partial: false,
    };
    let entries = look.entries(layer.as_fd());
    // Most runs end here, and the host's is not even opened.
    if entries.is_empty() {
        return None;
    }
    let host = open_host(CWD, &over.path);
    let pair = Pair {
        layer: layer.as_fd(),
        host: host.as_ref().map(AsFd::as_fd),
    };
    let found = look.sort(entries, &pair, Path::new(""), DEEPEST);
    let more = found.len().saturating_sub(MOST_TOLD);
    let told = found.into_iter().take(MOST_TOLD);
    let changes: Vec<DroppedChange> = told.map(|found| found.told(over)).collect();
    (!changes.is_empty()).then_some(DroppedReport {
        changes,
        more: u64::try_from(more).unwrap_or(u64::MAX),
        is_partial: look.is_partial,
    })
}

/// The same directory in the layer, and on the host if it is there.
struct Pair<'a> {
    layer: BorrowedFd<'a>,
    host: Option<BorrowedFd<'a>>,
}

/// One change, by its path from the home.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    path: PathBuf,
    change: Change,
    is_directory: bool,
    entries: u64,
}

impl Found {
    fn told(self, over: &PrivateLayer) -> DroppedChange {
        let is_hidden = self
            .path
            .ancestors()
            .any(|above| over.hidden.contains(above));
        // Code inside must not bring somebody to open a start file, or where programs are looked for.
        let is_own = |name: &OsStr| name.as_bytes().starts_with(b".");
        // A repository that was there is told by its work tree, which is guarded when it is open.
        let is_pushed_to = self.change == Change::Changed && self.path.ends_with(".git");
        let tree = self.path.parent().filter(|_| is_pushed_to);
        let tree = tree.filter(|tree| !tree.as_os_str().is_empty());
        let told = tree.unwrap_or(&self.path);
        let is_tools = told.iter().any(is_own);
        let path = over.path.join(told);
        let text = path.to_string_lossy();
        let told: String = text.chars().take(LONGEST_PATH).collect();
        let is_exact = path.to_str() == Some(told.as_str());
        DroppedChange {
            path: told,
            change: self.change,
            is_directory: self.is_directory,
            entries: self.entries,
            may_be_proposed: is_exact && !is_hidden && !is_tools,
            is_in_home: over.in_home.is_some(),
        }
    }
}

struct Look<'a> {
    over: &'a PrivateLayer,
    /// How many entries may still be looked at.
    left: usize,
    is_partial: bool,
}

impl Look<'_> {
    fn entries(&mut self, folder: BorrowedFd<'_>) -> Vec<(CString, FileType)> {
        let mut entries = Vec::new();
        let read = tree::each(folder, |name, kind| {
            self.is_partial |= self.left == 0;
            if self.left > 0 {
                self.left -= 1;
                entries.push((name, kind));
            }
            Ok(!self.is_partial)
        });
        self.is_partial |= read.is_err();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries
    }

    /// What of these entries, of the directory at `below`, is a change.
    fn sort(
        &mut self,
        entries: Vec<(CString, FileType)>,
        pair: &Pair<'_>,
        below: &Path,
        depth: usize,
    ) -> Vec<Found> {
        let mut found = Vec::new();
        for (name, kind) in entries {
            let path = below.join(OsStr::from_bytes(name.to_bytes()));
            if self.is_tool_state(&path) || self.over.covered.contains(&path) {
                continue;
            }
            if kind == FileType::Directory {
                found.extend(self.directory(&name, pair, &path, depth));
            } else {
                found.extend(self.file(&name, kind, pair, path));
            }
        }
        found
    }

    fn directory(
        &mut self,
        name: &CString,
        pair: &Pair<'_>,
        path: &Path,
        depth: usize,
    ) -> Vec<Found> {
        let host = pair.host.and_then(|host| open_host(host, name.as_c_str()));
        // Made on the way to something else.
        let in_home = self.in_home(path);
        let leads_to_state = in_home.is_some_and(|path| leads_to_tool_state(&path));
        let is_passage = leads_to_state || self.is_above_covered(path);
        let whole = |change| Found {
            path: path.to_path_buf(),
            change,
            is_directory: true,
            entries: 1,
        };
        if host.is_none() && !is_passage {
            return vec![whole(Change::Made)];
        }
        match tree::open(pair.layer, name) {
            Ok(inner) if depth > 0 => {
                let entries = self.entries(inner.as_fd());
                let pair = Pair {
                    layer: inner.as_fd(),
                    host: host.as_ref().map(AsFd::as_fd),
                };
                folded(self.sort(entries, &pair, path, depth - 1), path)
            }
            _ => vec![whole(Change::Changed)],
        }
    }

    fn file(
        &self,
        name: &CString,
        kind: FileType,
        pair: &Pair<'_>,
        path: PathBuf,
    ) -> Option<Found> {
        let state = |folder| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let host = pair.host.and_then(state);
        // How an overlay marks what was removed; nobody inside can make any other.
        let is_removed = kind == FileType::CharacterDevice;
        let change = match (&host, is_removed) {
            // Code inside never saw the host's.
            (_, true) if self.over.hidden.contains(&path) => return None,
            (None, true) => return None,
            (Some(_), true) => Change::Removed,
            (None, false) => Change::Made,
            // Opened for writing, and nothing written.
            (Some(host), false) if state(pair.layer).is_some_and(|own| is_same(&own, host)) => {
                return None;
            }
            (Some(_), false) => Change::Changed,
        };
        let is_directory = host.is_some_and(|host| kind_of(&host) == FileType::Directory);
        Some(Found {
            path,
            change,
            is_directory: is_directory && is_removed,
            entries: 1,
        })
    }

    /// Only in a home tools have states.
    fn is_tool_state(&self, path: &Path) -> bool {
        self.in_home(path).is_some_and(|path| is_tool_state(&path))
    }

    fn in_home(&self, path: &Path) -> Option<PathBuf> {
        self.over.in_home.as_ref().map(|above| above.join(path))
    }

    fn is_above_covered(&self, path: &Path) -> bool {
        let mut covered = self.over.covered.iter();
        covered.any(|covered| covered.starts_with(path))
    }
}

/// Many changes below a directory as one of it: such as what a push changes in a repository.
fn folded(found: Vec<Found>, directory: &Path) -> Vec<Found> {
    let is_own = |found: &Found| found.path.parent() == Some(directory);
    if found.len() < 2 || (found.len() <= MOST_BESIDE && found.iter().all(is_own)) {
        return found;
    }
    vec![Found {
        path: directory.to_path_buf(),
        change: Change::Changed,
        is_directory: true,
        entries: found.iter().map(|found| found.entries).sum(),
    }]
}

/// An overlay keeps these when it copies a file.
fn is_same(own: &Stat, host: &Stat) -> bool {
    let state = |stat: &Stat| {
        let (mode, size) = (stat.st_mode, stat.st_size);
        (mode, size, stat.st_mtime, stat.st_mtime_nsec)
    };
    state(own) == state(host)
}

fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn open_host(folder: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A home of the host, a layer over it, and what is told of that.
    struct Case {
        folder: tempfile::TempDir,
        home: PrivateLayer,
    }

    impl Case {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            for name in ["host", "layer"] {
                fs::create_dir(folder.path().join(name)).unwrap();
            }
            let home = PrivateLayer {
                path: folder.path().join("host"),
                in_home: Some(PathBuf::new()),
                covered: vec!["src/project".into()],
                hidden: BTreeSet::from(["secret".into()]),
            };
            Self { folder, home }
        }

        fn write(&self, side: &str, name: &str) {
            let path = self.folder.path().join(side).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, side).unwrap();
        }

        fn look(&self) -> Option<DroppedReport> {
            let path = self.folder.path().join("layer");
            look(&open_host(CWD, &path).unwrap(), &self.home)
        }

        fn told(&self) -> Vec<(String, Change, u64)> {
            let home = format!("{}/", self.home.path.display());
            let changes = self.look().map(|told| told.changes).unwrap_or_default();
            let told = |own: DroppedChange| {
                let path = own.path.strip_prefix(&home).unwrap().to_owned();
                (path, own.change, own.entries)
            };
            changes.into_iter().map(told).collect()
        }
    }

    #[test]
    fn only_what_somebody_may_miss_is_told_by_its_topmost_path() {
        let case = Case::new();
        assert_eq!(case.look(), None);
        for name in [
            ".cache/a",
            ".cargo/registry/x",
            ".config/t/s",
            "src/project/x",
        ] {
            case.write("layer", name);
        }
        assert_eq!(case.look(), None);
        case.write("host", "up.git/config");
        for name in ["up.git/objects/a/b", "up.git/refs/x/y", "new/a/b", "x.tgz"] {
            case.write("layer", name);
        }
        case.write("layer", ".cargo/bin/tool");
        let told = |path: &str, change, entries| (path.to_owned(), change, entries);
        assert_eq!(
            case.told(),
            [
                told(".cargo/bin", Change::Made, 1),
                told("new", Change::Made, 1),
                told("up.git/objects", Change::Made, 1),
                told("up.git/refs", Change::Made, 1),
                told("x.tgz", Change::Made, 1),
            ]
        );
        for name in ["up.git/objects/old", "up.git/refs/old"] {
            case.write("host", name);
        }
        assert!(case.told().contains(&told("up.git", Change::Changed, 2)));
    }

    #[test]
    fn a_repository_is_told_by_its_work_tree() {
        let case = Case::new();
        for name in [
            "src/up/.git/objects/old",
            "src/up/.git/refs/old",
            ".git/objects/old",
        ] {
            case.write("host", name);
        }
        for name in ["src/up/.git/objects/a/b", "src/up/.git/refs/x/y"] {
            case.write("layer", name);
        }
        let changes = case.look().unwrap().changes;
        let path = case.folder.path().join("host/src/up");
        assert_eq!(changes[0].path, path.display().to_string());
        assert!(changes.len() == 1 && changes[0].may_be_proposed);
    }

    #[test]
    fn g4_links_of_the_layer_are_named_and_not_followed() {
        let case = Case::new();
        case.write("host", "real/file");
        symlink("/", case.folder.path().join("layer/real")).unwrap();
        symlink("/", case.folder.path().join("layer/link")).unwrap();
        let told: Vec<_> = case
            .told()
            .into_iter()
            .map(|told| (told.0, told.1))
            .collect();
        let expected = [("link", Change::Made), ("real", Change::Changed)];
        assert_eq!(
            told,
            expected.map(|(path, change)| (path.to_owned(), change))
        );
    }

    #[test]
    fn g9_however_much_there_is_looking_ends() {
        let case = Case::new();
        for number in 0..MOST_SEEN + 10 {
            fs::write(case.folder.path().join(format!("layer/f{number}")), "").unwrap();
        }
        let told = case.look().unwrap();
        assert!(told.is_partial && told.changes.len() == MOST_TOLD);
        assert_eq!(told.more, u64::try_from(MOST_SEEN - MOST_TOLD).unwrap());
        let deep = "d/".repeat(DEEPEST + 40);
        let case = Case::new();
        case.write("host", &format!("{deep}f"));
        case.write("layer", &format!("{deep}f"));
        assert_eq!(case.told().len(), 1);
    }

    #[test]
    fn a_hidden_or_unreadable_name_or_a_start_file_is_told_and_not_proposed() {
        let case = Case::new();
        case.write("layer", "secret");
        case.write("layer", ".local/bin/ls");
        case.write("layer", ".bashrc");
        let path = case
            .folder
            .path()
            .join("layer")
            .join(OsStr::from_bytes(b"a\xffb"));
        fs::write(path, "").unwrap();
        let told = case.look().unwrap();
        assert_eq!(told.changes.len(), 4);
        assert!(told.changes.iter().all(|change| !change.may_be_proposed));
    }
}
