//! [`Collected`]: the files of a kit, taken in one by one with limits.

use std::collections::BTreeMap;

use super::error::KitError;

/// The most bytes of a kit.
pub(super) const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The most files of a kit.
pub(super) const MOST_FILES: usize = 2048;
/// The most folders above a file.
pub(super) const DEEPEST: usize = 32;
/// The longest path, in bytes.
const LONGEST_PATH: usize = 1024;

/// The file that makes a folder a kit.
pub(super) const SPEC: &str = "spec.yaml";
/// The folder of files that are brought along.
pub(super) const FILES: &str = "files";

/// A file of a kit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KitBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

/// What was taken in so far.
#[derive(Debug)]
pub(super) struct Collected {
    /// The kit as named, for messages.
    kit: String,
    files: BTreeMap<String, KitBytes>,
    bytes: usize,
}

impl Collected {
    pub(super) fn new(kit: &str) -> Self {
        Self {
            kit: kit.to_owned(),
            files: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// How many bytes there is still room for.
    pub(super) fn room(&self) -> usize {
        MOST_BYTES - self.bytes
    }

    /// Checks a path of the kit. False for what is no part of it, such as a
    /// read-me file.
    pub(super) fn wants(&self, path: &str) -> Result<bool, KitError> {
        let entry = || path.to_owned();
        let kit = || self.kit.clone();
        let is_name = |part: &str| !["", ".", ".."].contains(&part);
        let is_plain = !path.contains(|c: char| c == '\\' || c.is_control());
        if path.len() > LONGEST_PATH || !is_plain || !path.split('/').all(is_name) {
            let (kit, entry) = (kit(), entry());
            return Err(KitError::Path { kit, entry });
        }
        if path == SPEC {
            return Ok(true);
        }
        let Some(below) = path.strip_prefix("files/") else {
            return Ok(false);
        };
        if path.split('/').count() > DEEPEST {
            return Err(KitError::TooMany { kit: kit() });
        }
        if !below.starts_with("home/") && !below.starts_with("workspace/") {
            let (kit, entry) = (kit(), entry());
            return Err(KitError::Place { kit, entry });
        }
        Ok(true)
    }

    /// Takes in a file whose path was checked.
    pub(super) fn add(&mut self, path: &str, file: KitBytes) -> Result<(), KitError> {
        if file.bytes.len() > self.room() {
            return Err(self.too_large());
        }
        if self.files.len() >= MOST_FILES {
            let kit = self.kit.clone();
            return Err(KitError::TooMany { kit });
        }
        self.bytes += file.bytes.len();
        match self.files.insert(path.to_owned(), file) {
            None => Ok(()),
            Some(_) => Err(KitError::Twice {
                kit: self.kit.clone(),
                entry: path.to_owned(),
            }),
        }
    }

    pub(super) fn too_large(&self) -> KitError {
        let kit = self.kit.clone();
        KitError::TooLarge { kit }
    }

    pub(super) fn special(&self, entry: &str) -> KitError {
        KitError::Special {
            kit: self.kit.clone(),
            entry: entry.to_owned(),
        }
    }

    /// The text of `spec.yaml`, and the other files by path.
    pub(super) fn finish(mut self) -> Result<(String, BTreeMap<String, KitBytes>), KitError> {
        let kit = self.kit;
        let Some(spec) = self.files.remove(SPEC) else {
            return Err(KitError::NoSpec { kit });
        };
        let text = String::from_utf8(spec.bytes).map_err(|_| KitError::NotText { kit })?;
        Ok((text, self.files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(length: usize) -> KitBytes {
        KitBytes {
            bytes: vec![b'x'; length],
            executable: false,
        }
    }

    #[test]
    fn only_files_of_a_kit_are_taken() {
        let kit = Collected::new("k");
        for path in ["spec.yaml", "files/home/.config/a", "files/workspace/a"] {
            assert!(kit.wants(path).unwrap(), "{path}");
        }
        for path in ["README.md", "testdata/a", "Dockerfile", "sub/spec.yaml"] {
            assert!(!kit.wants(path).unwrap(), "{path}");
        }
        for path in [
            "../spec.yaml",
            "/spec.yaml",
            "files/home/../../../x",
            "files//home/x",
            "./spec.yaml",
            "files\\home\\x",
            "files/home/a\nb",
            "",
        ] {
            let code = kit.wants(path).unwrap_err().code();
            assert_eq!(code, "kit-file-path", "{path:?}");
        }
        assert_eq!(
            kit.wants("files/etc/x").unwrap_err().code(),
            "kit-file-path"
        );
        let deep = format!("files/home/{}x", "d/".repeat(DEEPEST));
        assert_eq!(kit.wants(&deep).unwrap_err().code(), "kit-too-large");
    }

    #[test]
    fn limits_hold() {
        let mut kit = Collected::new("k");
        kit.add("files/home/a", file(MOST_BYTES)).unwrap();
        assert_eq!(kit.add("b", file(1)).unwrap_err().code(), "kit-too-large");
        let mut kit = Collected::new("k");
        for number in 0..MOST_FILES {
            kit.add(&number.to_string(), file(0)).unwrap();
        }
        assert_eq!(kit.add("b", file(0)).unwrap_err().code(), "kit-too-large");
        let mut kit = Collected::new("k");
        kit.add("a", file(0)).unwrap();
        assert_eq!(kit.add("a", file(0)).unwrap_err().code(), "kit-file-path");
        assert_eq!(kit.finish().unwrap_err().code(), "kit-no-spec");
    }
}
