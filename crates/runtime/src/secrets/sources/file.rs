//! A secret in a file, whole or at a key of a JSON document.
//!
//! Links on the way to it are resolved once, before the command starts; from
//! then on there must be none, so that code inside cannot lead us elsewhere.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringfence_egress::SecretError;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

use super::{Danger, Surroundings, json};
use crate::secrets::value;

/// The largest JSON document that a secret is looked for in.
const LARGEST_DOCUMENT: usize = 1024 * 1024;

/// A file that may hold a secret.
pub(in crate::secrets) struct SecretFile {
    /// As it was written.
    named: String,
    /// Where it is, or why it is not used.
    place: Result<PathBuf, SecretError>,
    /// What code inside can change on the way to it, if it is to see nothing
    /// of it.
    exposed: Option<PathBuf>,
    key: Option<String>,
}

impl SecretFile {
    pub(super) fn new(named: &str, key: Option<&str>, surroundings: &Surroundings) -> Self {
        let path = whole(named, surroundings);
        let is_masked = surroundings.masked.contains(&path);
        let exposed = surroundings.writable.way(&path).changeable;
        Self {
            named: named.to_owned(),
            place: place(named, &path, surroundings),
            exposed: exposed.filter(|_| !is_masked),
            key: key.map(str::to_owned),
        }
    }

    /// Whether code inside could come to see it.
    pub(super) fn danger(&self) -> Option<Danger<'_>> {
        let named = &self.named;
        match self.exposed.as_deref() {
            Some(place) => Some(Danger::File { named, place }),
            None => self.is_linked().then_some(Danger::Linked { named }),
        }
    }

    /// Whether it has another name, by which it is not hidden.
    fn is_linked(&self) -> bool {
        let place = self.place.as_ref().ok();
        let found = place.and_then(|place| std::fs::symlink_metadata(place).ok());
        found.is_some_and(|found| found.is_file() && found.nlink() > 1)
    }

    /// What the file holds now.
    pub(super) fn read(&self) -> Result<Zeroizing<String>, SecretError> {
        let path = self.place.as_ref().map_err(Clone::clone)?;
        let limit = match self.key {
            Some(_) => LARGEST_DOCUMENT,
            // A line end may follow.
            None => value::LARGEST + 2,
        };
        let bytes = self.bytes(path, limit)?;
        match &self.key {
            Some(key) => json::text_at(&bytes, key).map_err(|error| self.malformed(&error)),
            None => value::text(bytes).map_err(|error| self.malformed(&error)),
        }
    }

    fn bytes(&self, path: &Path, limit: usize) -> Result<Zeroizing<Vec<u8>>, SecretError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let flags = flags | OFlags::NOCTTY;
        let resolve = ResolveFlags::NO_SYMLINKS;
        let file = match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOENT | Errno::NOTDIR) => {
                return Err(SecretError::Missing(format!(
                    "the file {} is not there",
                    self.named
                )));
            }
            Err(Errno::LOOP) => return Err(self.failed(&"it is a link, or in a folder that is")),
            opened => opened.map_err(|errno| self.failed(&errno))?,
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| self.failed(&errno))?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(self.failed(&"it is not a regular file"));
        }
        if stat.st_nlink > 1 {
            return Err(self.failed(&"it has another name, a hard link, that is not hidden"));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(limit + 1));
        let read = File::from(file)
            .take(limit as u64 + 1)
            .read_to_end(&mut bytes);
        match read.map_err(|error| self.failed(&error.kind()))? {
            length if length > limit => {
                Err(self.malformed(&format!("it is longer than {limit} bytes")))
            }
            _ => Ok(bytes),
        }
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> SecretError {
        SecretError::Failed(format!("{}: {why}", self.named))
    }

    fn malformed(&self, why: &dyn std::fmt::Display) -> SecretError {
        SecretError::Malformed(format!("{}: {why}", self.named))
    }
}

/// The path with the links above the file resolved. A link where code inside
/// writes may have been left there by an earlier command, to be taken for what
/// the operator names.
fn place(named: &str, path: &Path, surroundings: &Surroundings) -> Result<PathBuf, SecretError> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(SecretError::Failed(format!("{named}: it is not a file")));
    };
    // What is not there yet must come to be without links.
    let Ok(real) = std::fs::canonicalize(folder) else {
        return Ok(path.to_path_buf());
    };
    if let Some(link) = surroundings.writable.way(folder).changeable_link {
        let link = link.display();
        let why = format!("{link}, on the way to it, is a link that code inside can change");
        return Err(SecretError::Failed(format!("{named}: {why}")));
    }
    Ok(real.join(name))
}

fn whole(named: &str, surroundings: &Surroundings) -> PathBuf {
    match named.strip_prefix("~/") {
        Some(below) => surroundings.home.join(below),
        None => PathBuf::from(named),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::secrets::writable::WritablePlaces;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir(place.path("home")).unwrap();
            std::fs::create_dir(place.path("work")).unwrap();
            place
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.path(name), text).unwrap();
        }

        fn file(&self, named: &str, key: Option<&str>) -> SecretFile {
            let surroundings = Surroundings {
                home: self.path("home"),
                path: None,
                writable: WritablePlaces::new([self.path("work")]),
                masked: vec![self.path("work/.env")],
            };
            SecretFile::new(named, key, &surroundings)
        }

        fn absolute(&self, name: &str) -> SecretFile {
            self.file(self.path(name).to_str().unwrap(), None)
        }
    }

    fn why(error: &SecretError) -> &str {
        match error {
            SecretError::Missing(why)
            | SecretError::Failed(why)
            | SecretError::Malformed(why)
            | SecretError::Withdrawn(why) => why,
        }
    }

    #[test]
    fn g5_a_file_with_another_name_is_not_used() {
        let place = Place::new();
        std::fs::write(place.path("home/token"), "12345678").unwrap();
        let file = place.file("~/token", None);
        assert!(file.danger().is_none());
        assert!(file.read().is_ok());
        std::fs::hard_link(place.path("home/token"), place.path("work/known")).unwrap();
        let error = file.read().unwrap_err();
        assert!(why(&error).contains("another name"), "{error}");
        let file = place.file("~/token", None);
        assert!(matches!(file.danger(), Some(Danger::Linked { .. })));
        std::fs::remove_file(place.path("work/known")).unwrap();
        assert!(file.danger().is_none());
    }

    #[test]
    fn a_file_is_read_anew_each_time() {
        let place = Place::new();
        let file = place.file("~/token", None);
        assert!(matches!(file.read(), Err(SecretError::Missing(_))));
        place.write("home/token", "first-value\n");
        assert_eq!(file.read().unwrap().as_str(), "first-value\n");
        place.write("home/token", "second-value");
        assert_eq!(file.read().unwrap().as_str(), "second-value");
        assert!(matches!(
            place.file("~/none/token", None).read(),
            Err(SecretError::Missing(_))
        ));
    }

    #[test]
    fn a_key_leads_into_a_document() {
        let place = Place::new();
        place.write(
            "home/auth.json",
            r#"{"a": {"b": ["x", {"c": "the-value"}]}}"#,
        );
        let read = |key| place.file("~/auth.json", Some(key)).read();
        assert_eq!(read("a.b.1.c").unwrap().as_str(), "the-value");
        let error = read("a.b").unwrap_err();
        assert!(matches!(error, SecretError::Malformed(_)));
        assert!(!why(&error).contains("the-value"));
    }

    #[test]
    fn g5_links_are_not_followed_to_another_file() {
        let place = Place::new();
        place.write("home/other", "the-other-secret");
        symlink(place.path("home/other"), place.path("home/token")).unwrap();
        let error = place.file("~/token", None).read().unwrap_err();
        assert!(why(&error).contains("link"), "{error}");
        symlink(place.path("home"), place.path("alias")).unwrap();
        let text = place.absolute("alias/other").read().unwrap();
        assert_eq!(text.as_str(), "the-other-secret");
        symlink(place.path("home"), place.path("work/alias")).unwrap();
        let error = place.absolute("work/alias/other").read().unwrap_err();
        assert!(why(&error).contains("link"), "{error}");
    }

    #[test]
    fn g5_a_folder_that_becomes_a_link_during_a_run_leads_nowhere() {
        let place = Place::new();
        place.write("home/token", "the-other-secret");
        std::fs::create_dir(place.path("work/conf")).unwrap();
        place.write("work/conf/token", "the-right-secret");
        let early = place.absolute("work/conf/token");
        let missing = place.absolute("work/later/token");
        std::fs::rename(place.path("work/conf"), place.path("work/old")).unwrap();
        for name in ["work/conf", "work/later"] {
            symlink(place.path("home"), place.path(name)).unwrap();
        }
        for file in [early, missing] {
            let error = file.read().unwrap_err();
            assert!(why(&error).contains("link"), "{error}");
        }
    }

    #[test]
    fn g5_a_file_that_code_inside_could_come_to_see_is_known() {
        let place = Place::new();
        symlink(place.path("work"), place.path("alias")).unwrap();
        for name in ["work/token", "work/none/token", "alias/token"] {
            assert!(place.absolute(name).danger().is_some(), "{name}");
        }
        for name in ["home/token", "none/token", "work/.env"] {
            assert!(place.absolute(name).danger().is_none(), "{name}");
        }
    }

    #[test]
    fn what_is_no_small_file_is_refused() {
        let place = Place::new();
        let fifo = place.path("home/fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        for name in ["home/fifo", "home"] {
            let error = place.absolute(name).read().unwrap_err();
            assert!(why(&error).contains("regular"), "{error}");
        }
        place.write("home/large", &"x".repeat(value::LARGEST + 3));
        let error = place.file("~/large", None).read().unwrap_err();
        assert!(matches!(error, SecretError::Malformed(_)));
        assert!(!why(&error).contains("xxx"));
    }
}
