//! Places that are hidden from the inside, to tell when somebody looks there.
//!
//! For the record only: nothing is refused by it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The hidden places, there or not, and what is shown in them all the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct SensitivePlaces {
    hidden: Texts,
    shown: Texts,
    /// The last components of hidden places.
    names: Texts,
}

impl SensitivePlaces {
    pub(crate) fn new<'a>(
        hidden: impl IntoIterator<Item = &'a Path>,
        shown: impl IntoIterator<Item = &'a Path>,
    ) -> Self {
        let hidden: Vec<&Path> = hidden.into_iter().collect();
        let names = hidden.iter().filter_map(|path| path.file_name());
        Self {
            names: Texts::of(names),
            shown: Texts::of(shown.into_iter().map(Path::as_os_str)),
            hidden: Texts::of(hidden.iter().map(|path| path.as_os_str())),
        }
    }

    /// Whether a path as somebody wrote it may lead to a hidden place. Quick,
    /// because every path that is opened is asked about.
    pub(crate) fn may_be_named_by(&self, path: &[u8]) -> bool {
        path.split(|byte| *byte == b'/')
            .any(|component| self.names.contain(component))
    }

    /// Whether a whole path is, or lies in, a hidden place.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let path = without_dots(path);
        path.ancestors()
            .find_map(|ancestor| {
                let text = ancestor.as_os_str().as_bytes();
                let is_shown = self.shown.contain(text);
                let is_hidden = self.hidden.contain(text);
                (is_shown || is_hidden).then_some(!is_shown)
            })
            .unwrap_or(false)
    }
}

/// Paths or names by their text, in order: made at every start, and asked about
/// with every file that is opened.
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
