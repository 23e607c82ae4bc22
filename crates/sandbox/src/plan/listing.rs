//! Folders read once, to see which of many names are not in them, and what
//! else is.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringfence_sys::Errno;
use rustix::fs::FileType;

use super::entries;

/// A folder with more entries than this is not read: asking for single names
/// is cheaper.
const MOST_ENTRIES: usize = 256;

/// What is in the folders asked about.
#[derive(Debug, Default)]
pub(super) struct Listings {
    read: Vec<(OsString, Listing)>,
    places: HashMap<OsString, usize>,
    /// The one that was asked about last, as most are next.
    last: usize,
}

#[derive(Debug)]
enum Listing {
    /// Nothing is there.
    Absent,
    /// By name.
    Entries(Vec<(OsString, FileType)>),
    /// Too large, or not readable.
    Unknown,
}

impl Listings {
    /// False when nothing is at `path`, links not followed. True when
    /// something is or may be.
    pub(super) fn may_have(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return true;
        };
        match self.of(folder) {
            Listing::Absent => false,
            Listing::Entries(entries) => {
                let found = entries.binary_search_by(|(known, _)| known.as_os_str().cmp(name));
                found.is_ok()
            }
            Listing::Unknown => true,
        }
    }

    /// Whether one of the `count` components in front of the last of `path` is a link.
    pub(super) fn has_link_on_the_way(&mut self, path: &Path, count: usize) -> bool {
        let mut above = path.ancestors().skip(1).take(count);
        above.any(|folder| self.is_link(folder))
    }

    fn is_link(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        match self.of(folder) {
            Listing::Absent => false,
            Listing::Entries(entries) => {
                let found = entries.binary_search_by(|(known, _)| known.as_os_str().cmp(name));
                found.is_ok_and(|at| !entries::is_no_link(entries[at].1))
            }
            Listing::Unknown => path.is_symlink(),
        }
    }

    /// The paths of what is in a folder, links left out. As much of it as can
    /// be read.
    pub(super) fn without_links(&mut self, folder: &Path) -> Vec<PathBuf> {
        match self.of(folder) {
            Listing::Absent => Vec::new(),
            Listing::Entries(entries) => {
                let entries = entries
                    .iter()
                    .filter(|(_, kind)| entries::is_no_link(*kind));
                entries.map(|(name, _)| folder.join(name)).collect()
            }
            Listing::Unknown => entries::without_links(folder),
        }
    }

    fn of(&mut self, folder: &Path) -> &Listing {
        let key = folder.as_os_str();
        if self.read.get(self.last).is_none_or(|(last, _)| last != key) {
            self.last = match self.places.get(key) {
                Some(place) => *place,
                None => self.add(folder),
            };
        }
        &self.read[self.last].1
    }

    fn add(&mut self, folder: &Path) -> usize {
        let place = self.read.len();
        let key = folder.as_os_str().to_owned();
        self.read.push((key.clone(), self.read(folder)));
        self.places.insert(key, place);
        place
    }

    fn read(&self, folder: &Path) -> Listing {
        // The folder above may tell already.
        let above = folder
            .parent()
            .and_then(|above| self.places.get(above.as_os_str()));
        let above = above.map(|place| &self.read[*place].1);
        if let (Some(Listing::Entries(entries)), Some(name)) = (above, folder.file_name())
            && !entries.iter().any(|(known, _)| known == name)
        {
            return Listing::Absent;
        }
        match entries::list(folder, MOST_ENTRIES) {
            Ok(Some(mut entries)) => {
                entries.sort_unstable_by(|(one, _), (another, _)| one.cmp(another));
                Listing::Entries(entries)
            }
            Err(Errno::NOENT) => Listing::Absent,
            Ok(None) | Err(_) => Listing::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_known_and_the_rest_may_be() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        let mut listings = Listings::default();
        let mut may_have = |name: &str| listings.may_have(&folder.path().join(name));
        assert!(may_have("file") && may_have("link"));
        assert!(!may_have("none") && !may_have("none/below") && !may_have("none/below/deeper"));
        assert!(may_have("file/below"));
    }

    #[test]
    fn a_large_folder_is_not_read_to_its_end_to_look_for_a_name() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..=MOST_ENTRIES {
            std::fs::write(folder.path().join(n.to_string()), "").unwrap();
        }
        let mut listings = Listings::default();
        assert!(listings.may_have(&folder.path().join("none")));
        let all = listings.without_links(folder.path());
        assert_eq!(all.len(), MOST_ENTRIES + 1);
    }

    #[test]
    fn what_is_in_a_folder_is_told_without_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b", "a"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::os::unix::fs::symlink("a", at("link")).unwrap();
        let mut listings = Listings::default();
        assert_eq!(listings.without_links(folder.path()), [at("a"), at("b")]);
        assert!(listings.may_have(&at("link")));
        assert!(listings.without_links(&at("none")).is_empty());
    }
}
