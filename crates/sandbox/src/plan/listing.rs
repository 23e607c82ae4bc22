//! Folders read once, to see which of many names are not in them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;

use ringfence_sys::Errno;

use super::entries;

/// A folder with more entries than this is not read: asking for single names
/// is cheaper.
const MOST_ENTRIES: usize = 256;

/// What is in the folders asked about.
#[derive(Default)]
pub(super) struct Listings(HashMap<OsString, Listing>);

enum Listing {
    /// Nothing is there.
    Absent,
    Entries(HashSet<OsString>),
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
        let key = folder.as_os_str();
        if !self.0.contains_key(key) {
            let listing = self.read(folder);
            self.0.insert(key.to_owned(), listing);
        }
        match &self.0[key] {
            Listing::Absent => false,
            Listing::Entries(names) => names.contains(name),
            Listing::Unknown => true,
        }
    }

    fn read(&mut self, folder: &Path) -> Listing {
        // The folder above may tell already.
        let above = folder
            .parent()
            .and_then(|above| self.0.get(above.as_os_str()));
        if let (Some(Listing::Entries(names)), Some(name)) = (above, folder.file_name())
            && !names.contains(name)
        {
            return Listing::Absent;
        }
        match entries::names(folder, MOST_ENTRIES) {
            Ok(Some(names)) => Listing::Entries(names.into_iter().collect()),
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
    fn a_large_folder_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..=MOST_ENTRIES {
            std::fs::write(folder.path().join(n.to_string()), "").unwrap();
        }
        assert!(Listings::default().may_have(&folder.path().join("none")));
    }
}
