//! Layers of home directories that are kept from run to run.
//!
//! Each is a directory `NAME` of `ringfence/homes` in the state directory: a lock, what is known of
//! it, and below `layer` what code inside wrote. That is hostile: it is measured and removed by
//! descriptor, no link in it is followed, nothing of it is read or run, and however large or deep
//! it is, looking at it ends.

pub(crate) mod dropped;
mod error;
mod tree;

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_audit::Timestamp;
use ringfence_policy::HomeName;
use ringfence_sys::Errno;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, ResolveFlags};
use serde::{Deserialize, Serialize};

pub use self::error::HomesError;
pub use self::tree::{Entry, EntryKind, Size};

const LOCK: &str = "lock";
const ABOUT: &str = "about.json";
const LAYER: &str = "layer";
/// The most bytes that are read of what is known of a layer.
const LARGEST_ABOUT: usize = 64 * 1024;
/// How often a name may change hands while it is taken.
const MOST_TRIES: usize = 16;

/// The kept homes of a user.
#[derive(Debug)]
pub struct Homes {
    path: PathBuf,
}

/// One of them.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptHome {
    /// What it is called.
    pub name: String,
    /// The directory of the project that used it last, if that is known.
    pub project: Option<String>,
    /// When it was used last, if that is known.
    pub used: Option<Timestamp>,
    /// Whether a run uses it now.
    pub in_use: bool,
    /// What it takes.
    #[serde(flatten)]
    pub size: Size,
}

/// What is known of a layer, written by us.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    project: String,
    used: Timestamp,
}

/// A kept home that a run has for itself.
#[derive(Debug)]
pub struct HeldHome {
    path: PathBuf,
    _lock: OwnedFd,
}

impl HeldHome {
    /// Where the layer is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Homes {
    /// Those in this directory, be it there or not.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Takes one for a run in `project`, making it if there is none. It is the run's alone until
    /// what is returned is dropped.
    pub fn take(&self, name: &HomeName, project: &Path) -> Result<HeldHome, HomesError> {
        let unusable = |errno| HomesError::unusable(&self.path.join(name.as_str()), errno);
        let homes = self.make().map_err(unusable)?;
        for _ in 0..MOST_TRIES {
            let own = make_folder(homes.as_fd(), name.as_str()).map_err(unusable)?;
            let lock = match lock(own.as_fd()) {
                Err(Errno::WOULDBLOCK) => {
                    return Err(HomesError::InUse {
                        name: name.to_string(),
                    });
                }
                // Removed since.
                Err(Errno::NOENT) => continue,
                other => other.map_err(unusable)?,
            };
            if !is_still(&own, homes.as_fd(), name.as_str()) {
                continue;
            }
            let layer = make_folder(own.as_fd(), LAYER).map_err(unusable)?;
            for part in ["upper", "work"] {
                make_folder(layer.as_fd(), part).map_err(unusable)?;
            }
            note(own.as_fd(), project).map_err(unusable)?;
            return Ok(HeldHome {
                path: self.path.join(name.as_str()).join(LAYER),
                _lock: lock,
            });
        }
        Err(unusable(Errno::AGAIN))
    }

    /// All of them, by name.
    pub fn list(&self) -> Result<Vec<KeptHome>, HomesError> {
        let Some(homes) = self.open()? else {
            return Ok(Vec::new());
        };
        let names = tree::names(homes.as_fd()).map_err(|errno| self.unreadable(errno))?;
        let mut names: Vec<HomeName> = names
            .iter()
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect();
        names.sort();
        let found = names.iter().filter_map(|name| {
            open_folder(homes.as_fd(), name.as_str())
                .ok()
                .map(|own| (name, own))
        });
        Ok(found.map(|(name, own)| look(name, own.as_fd())).collect())
    }

    /// One of them, and what is at the top of it: at most a hundred names.
    pub fn show(&self, name: &HomeName) -> Result<(KeptHome, Vec<Entry>), HomesError> {
        let own = self.find(name)?;
        let home = look(name, own.as_fd());
        let layer =
            open_folder(own.as_fd(), LAYER).and_then(|layer| open_folder(layer.as_fd(), "upper"));
        let entries = layer
            .map(|upper| tree::top(upper.as_fd()))
            .unwrap_or_default();
        Ok((home, entries))
    }

    /// Removes one, unless a run uses it.
    pub fn remove(&self, name: &HomeName) -> Result<(), HomesError> {
        let own = self.find(name)?;
        let unusable = |errno| HomesError::unusable(&self.path.join(name.as_str()), errno);
        let _lock = match lock(own.as_fd()) {
            Err(Errno::WOULDBLOCK) => {
                return Err(HomesError::InUse {
                    name: name.to_string(),
                });
            }
            other => other.map_err(unusable)?,
        };
        let homes = self.open()?.ok_or_else(|| HomesError::Unknown {
            name: name.to_string(),
        })?;
        tree::remove(homes.as_fd(), name.as_str()).map_err(unusable)
    }

    /// Removes those that no run used for so long, and says which.
    pub fn prune(&self, older_than: Duration) -> Result<Vec<String>, HomesError> {
        let now = Timestamp::now();
        let mut removed = Vec::new();
        for home in self.list()? {
            let is_old = home.used.is_none_or(|used| used <= now.minus(older_than));
            let Some(name) = home.name.parse().ok().filter(|_| is_old && !home.in_use) else {
                continue;
            };
            match self.remove(&name) {
                // Taken or removed since.
                Err(HomesError::InUse { .. } | HomesError::Unknown { .. }) => {}
                Err(error) => return Err(error),
                Ok(()) => removed.push(home.name),
            }
        }
        Ok(removed)
    }

    fn find(&self, name: &HomeName) -> Result<OwnedFd, HomesError> {
        let unknown = || HomesError::Unknown {
            name: name.to_string(),
        };
        let homes = self.open()?.ok_or_else(unknown)?;
        match open_folder(homes.as_fd(), name.as_str()) {
            Err(Errno::NOENT) => Err(unknown()),
            other => {
                other.map_err(|errno| HomesError::unusable(&self.path.join(name.as_str()), errno))
            }
        }
    }

    fn open(&self) -> Result<Option<OwnedFd>, HomesError> {
        match open_folder(CWD, &self.path) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            other => other.map(Some).map_err(|errno| self.unreadable(errno)),
        }
    }

    fn make(&self) -> Result<OwnedFd, Errno> {
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .create(&self.path);
        made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let folder = open_folder(CWD, &self.path)?;
        // What is in it was made by code inside; nobody else gets that far.
        rustix::fs::fchmod(&folder, Mode::RWXU)?;
        Ok(folder)
    }

    fn unreadable(&self, errno: Errno) -> HomesError {
        HomesError::unusable(&self.path, errno)
    }
}

fn look(name: &HomeName, own: BorrowedFd<'_>) -> KeptHome {
    let about = about(own);
    let in_use = matches!(lock(own), Err(Errno::WOULDBLOCK));
    let layer = open_folder(own, LAYER);
    KeptHome {
        name: name.to_string(),
        project: about.as_ref().map(|about| about.project.clone()),
        used: about.map(|about| about.used),
        in_use,
        size: layer
            .map(|layer| tree::measure(layer.as_fd()))
            .unwrap_or_default(),
    }
}

/// Locks it without waiting.
fn lock(own: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = rustix::fs::openat(own, LOCK, flags, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok(lock)
}

/// Whether the name still leads to it: who removes one has its lock.
fn is_still(own: &OwnedFd, homes: BorrowedFd<'_>, name: &str) -> bool {
    let same =
        |a: rustix::fs::Stat, b: rustix::fs::Stat| (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino);
    let named = rustix::fs::statat(homes, name, AtFlags::SYMLINK_NOFOLLOW);
    named.is_ok_and(|named| rustix::fs::fstat(own).is_ok_and(|own| same(own, named)))
}

fn note(own: BorrowedFd<'_>, project: &Path) -> Result<(), Errno> {
    const FRESH: &str = "about.json.new";
    let about = About {
        project: project.to_string_lossy().into_owned(),
        used: Timestamp::now(),
    };
    let text = serde_json::to_vec(&about).map_err(|_| Errno::INVAL)?;
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(own, FRESH, flags, Mode::RUSR | Mode::WUSR)?;
    let written = std::fs::File::from(file).write_all(&text);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    rustix::fs::renameat(own, FRESH, own, ABOUT)
}

fn about(own: BorrowedFd<'_>) -> Option<About> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::openat(own, ABOUT, flags, Mode::empty()).ok()?;
    let mut room = vec![0; LARGEST_ABOUT];
    let read = rustix::io::read(&file, &mut room[..]).ok()?;
    serde_json::from_slice(&room[..read]).ok()
}

/// Opens a directory, whose last name is no link.
fn open_folder(folder: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(
        folder,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
}

fn make_folder(folder: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    match rustix::fs::mkdirat(folder, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => open_folder(folder, name),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn homes() -> (tempfile::TempDir, Homes) {
        let folder = tempfile::tempdir().unwrap();
        let homes = Homes::new(folder.path().join("state/homes"));
        (folder, homes)
    }

    fn name(text: &str) -> HomeName {
        text.parse().unwrap()
    }

    #[test]
    fn a_home_is_taken_by_one_run_at_a_time() {
        let (_folder, homes) = homes();
        assert!(homes.list().unwrap().is_empty());
        let held = homes.take(&name("a"), Path::new("/p")).unwrap();
        assert!(held.path().join("upper").is_dir() && held.path().join("work").is_dir());
        let code = homes.take(&name("a"), Path::new("/p")).unwrap_err().code();
        assert_eq!(
            (code, homes.remove(&name("a")).unwrap_err().code()),
            ("home-in-use", "home-in-use")
        );
        assert!(homes.list().unwrap()[0].in_use);
        assert!(homes.prune(Duration::ZERO).unwrap().is_empty());
        drop(held);
        assert!(!homes.list().unwrap()[0].in_use);
        homes.remove(&name("a")).unwrap();
        assert_eq!(
            homes.remove(&name("a")).unwrap_err().code(),
            "unknown-home-name"
        );
    }

    #[test]
    fn g4_links_of_a_layer_are_neither_followed_nor_counted_through() {
        let (folder, homes) = homes();
        let held = homes.take(&name("a"), Path::new("/p")).unwrap();
        let upper = held.path().join("upper");
        let precious = folder.path().join("precious");
        std::fs::create_dir(&precious).unwrap();
        std::fs::write(precious.join("file"), vec![1; 1 << 20]).unwrap();
        symlink(&precious, upper.join("link")).unwrap();
        drop(held);
        let (home, entries) = homes.show(&name("a")).unwrap();
        assert!(home.size.bytes < 1 << 20 && entries[0].kind == EntryKind::Link);
        homes.remove(&name("a")).unwrap();
        assert!(precious.join("file").exists() && !upper.exists());
    }

    #[test]
    fn g4_a_layer_that_is_itself_a_link_is_not_followed() {
        let (folder, homes) = homes();
        let precious = folder.path().join("precious");
        std::fs::create_dir_all(precious.join("layer")).unwrap();
        drop(homes.take(&name("b"), Path::new("/p")).unwrap());
        symlink(&precious, folder.path().join("state/homes/a")).unwrap();
        assert!(homes.take(&name("a"), Path::new("/p")).is_err());
        assert!(homes.show(&name("a")).is_err() && homes.remove(&name("a")).is_err());
        assert!(precious.join("layer").is_dir());
    }

    #[test]
    fn what_was_not_used_for_long_is_pruned() {
        let (_folder, homes) = homes();
        for each in ["a", "b"] {
            drop(homes.take(&name(each), Path::new("/p")).unwrap());
        }
        assert!(homes.prune(Duration::from_hours(1)).unwrap().is_empty());
        assert_eq!(homes.prune(Duration::ZERO).unwrap(), ["a", "b"]);
    }
}
