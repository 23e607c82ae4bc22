//! Places that are hidden from the inside, to tell when somebody looks there.
//!
//! For the record only: nothing is refused by it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The hidden places, there or not, and what is shown in them all the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct SensitivePlaces {
    hidden: HashSet<PathBuf>,
    shown: HashSet<PathBuf>,
    /// The last components of hidden places.
    names: HashSet<Vec<u8>>,
}

impl SensitivePlaces {
    pub(crate) fn new(
        hidden: impl IntoIterator<Item = PathBuf>,
        shown: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let hidden: HashSet<PathBuf> = hidden.into_iter().collect();
        let names = hidden.iter().filter_map(|path| path.file_name());
        Self {
            names: names.map(|name| name.as_bytes().to_vec()).collect(),
            shown: shown.into_iter().collect(),
            hidden,
        }
    }

    /// Whether a path as somebody wrote it may lead to a hidden place. Quick,
    /// because every path that is opened is asked about.
    pub(crate) fn may_be_named_by(&self, path: &[u8]) -> bool {
        path.split(|byte| *byte == b'/')
            .any(|component| self.names.contains(component))
    }

    /// Whether a whole path is, or lies in, a hidden place.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let path = without_dots(path);
        path.ancestors()
            .find_map(|ancestor| {
                let is_shown = self.shown.contains(ancestor);
                let is_hidden = self.hidden.contains(ancestor);
                (is_shown || is_hidden).then_some(!is_shown)
            })
            .unwrap_or(false)
    }
}

/// The path without `.` and `..`, by its text alone.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other.as_os_str()),
        }
    }
    plain
}

/// A path from a string of the kernel's.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> SensitivePlaces {
        SensitivePlaces::new(
            ["/home/u/.ssh", "/home/u/.config/gh", "/etc/shadow"].map(PathBuf::from),
            ["/home/u/.ssh/known_hosts"].map(PathBuf::from),
        )
    }

    #[test]
    fn hidden_places_and_what_is_in_them_are_told() {
        for path in [
            "/home/u/.ssh",
            "/home/u/.ssh/id_rsa",
            "/etc/shadow",
            "/home/u/x/../.ssh/./id_rsa",
            "/home/u/.config/gh/hosts.yml",
        ] {
            assert!(places().may_be_named_by(path.as_bytes()), "{path}");
            assert!(places().holds(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn others_are_not() {
        for path in [
            "/home/u/.ssh/known_hosts",
            "/home/u/.config",
            "/home/u/.sshx",
            "/w/.ssh",
            "/etc/shadow/../passwd",
            "/",
            "",
        ] {
            assert!(!places().holds(Path::new(path)), "{path}");
        }
        assert!(!places().may_be_named_by(b"/usr/lib/x86_64-linux-gnu/libc.so.6"));
    }
}
