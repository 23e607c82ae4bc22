//! Places that are hidden from the inside, to tell when somebody looks there.
//!
//! For the record only: nothing is refused by it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// The rule against writing what stands in for a file with secrets.
pub(crate) const MASKED: &str = "shown without its secrets";

/// The hidden places, there or not, and what is shown in them all the same.
///
/// They are noted while a sandbox is planned, and sorted when somebody asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct SensitivePlaces {
    hidden: Noted,
    shown: Noted,
    masked: Noted,
    sorted: OnceLock<Sorted>,
}

#[derive(Debug, Clone)]
struct Sorted {
    hidden: Texts,
    shown: Texts,
    /// The last components of hidden places.
    names: Texts,
}

impl SensitivePlaces {
    pub(crate) fn new<'a>(
        hidden: impl IntoIterator<Item = &'a Path>,
        shown: impl IntoIterator<Item = &'a Path>,
        masked: impl IntoIterator<Item = &'a Path>,
    ) -> Self {
        Self {
            hidden: Noted::of(hidden.into_iter()),
            shown: Noted::of(shown.into_iter()),
            masked: Noted::of(masked.into_iter()),
            sorted: OnceLock::new(),
        }
    }

    /// Makes the next answer as quick as all others.
    pub(crate) fn sort(&self) {
        self.sorted();
    }

    fn sorted(&self) -> &Sorted {
        self.sorted.get_or_init(|| Sorted {
            hidden: Texts::of(self.hidden.paths().map(Path::as_os_str)),
            shown: Texts::of(self.shown.paths().map(Path::as_os_str)),
            names: Texts::of(self.hidden.paths().filter_map(Path::file_name)),
        })
    }

    /// Whether a path as somebody wrote it may lead to a hidden place. Quick,
    /// because every path that is opened is asked about.
    pub(crate) fn may_be_named_by(&self, path: &[u8]) -> bool {
        let names = &self.sorted().names;
        path.split(|byte| *byte == b'/')
            .any(|component| names.contain(component))
    }

    /// Whether a whole path is, or lies in, a hidden place.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let path = without_dots(path);
        let sorted = self.sorted();
        path.ancestors()
            .find_map(|ancestor| {
                let text = ancestor.as_os_str().as_bytes();
                let is_shown = sorted.shown.contain(text);
                let is_hidden = sorted.hidden.contain(text);
                (is_shown || is_hidden).then_some(!is_shown)
            })
            .unwrap_or(false)
    }
}

impl SensitivePlaces {
    /// What a path is, or lies in, that is read-only because of what it holds
    /// on the host: as a rule that no flag for writing lifts.
    pub(crate) fn rule_for(&self, path: &Path) -> Option<&'static str> {
        if self.masked.paths().any(|masked| masked == path) {
            Some(MASKED)
        } else if self.holds(path) {
            Some("hidden place")
        } else {
            None
        }
    }
}

/// Paths one after the other, each with a NUL after it.
#[derive(Debug, Clone, Default)]
struct Noted(Vec<u8>);

impl Noted {
    fn of<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        // About as much as there is.
        const USUAL: usize = 8192;
        let mut bytes = Vec::with_capacity(USUAL);
        for path in paths {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        Self(bytes)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let each = self.0.split_inclusive(|byte| *byte == 0);
        each.map(|path| Path::new(OsStr::from_bytes(path.strip_suffix(&[0]).unwrap_or(path))))
    }
}

/// Paths or names by their text, in order: asked about with every file that is
/// opened.
#[derive(Debug, Clone, Default)]
struct Texts(Vec<Box<[u8]>>);

impl Texts {
    fn of<'a>(texts: impl Iterator<Item = &'a OsStr>) -> Self {
        let mut texts: Vec<Box<[u8]>> = texts.map(|text| text.as_bytes().into()).collect();
        texts.sort_unstable();
        Self(texts)
    }

    fn contain(&self, text: &[u8]) -> bool {
        let known = self.0.binary_search_by(|known| known.as_ref().cmp(text));
        known.is_ok()
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
            ["/home/u/.ssh", "/home/u/.config/gh", "/etc/shadow"].map(Path::new),
            ["/home/u/.ssh/known_hosts"].map(Path::new),
            ["/home/u/.npmrc"].map(Path::new),
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
    fn the_rule_against_writing_is_that_of_the_place() {
        let rule = |path: &str| places().rule_for(Path::new(path));
        assert_eq!(rule("/home/u/.npmrc"), Some(MASKED));
        assert_eq!(rule("/home/u/.ssh/id_rsa"), Some("hidden place"));
        for path in ["/home/u/.ssh/known_hosts", "/home/u/.npmrc2", "/home/u"] {
            assert_eq!(rule(path), None, "{path}");
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
