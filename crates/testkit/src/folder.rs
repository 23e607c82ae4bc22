//! A temporary folder that a sandbox can work in.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// An empty folder, removed when dropped. Its path has no links in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _folder: TempDir,
}

impl Folder {
    /// Makes one below the system's folder for temporary files.
    #[allow(
        clippy::new_without_default,
        reason = "it makes a folder, which a default should not"
    )]
    pub fn new() -> Self {
        Self::from(TempDir::with_prefix("ringfence-test-").expect("a temporary folder"))
    }

    /// Makes one that is not below the folders for temporary files, of which
    /// every sandbox has its own: in `/opt` as root, else in the home folder
    /// that the user database names.
    pub fn durable() -> Self {
        let user = std::fs::metadata("/proc/self").map_or(0, |own| own.uid());
        let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let listed = users
            .lines()
            .find(|line| line.split(':').nth(2) == Some(&user.to_string()));
        let home = listed
            .and_then(|line| line.split(':').nth(5))
            .unwrap_or("/opt");
        let parent = if user == 0 { "/opt" } else { home };
        Self::from(TempDir::with_prefix_in("ringfence-test-", parent).expect("a temporary folder"))
    }

    fn from(folder: TempDir) -> Self {
        let path = folder.path().canonicalize().expect("its real path");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("its mode");
        Self {
            path,
            _folder: folder,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its path as text.
    pub fn text(&self) -> &str {
        self.path.to_str().expect("a path in Unicode")
    }

    /// The path of an entry.
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file, making the folders above it.
    pub fn write(&self, name: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder above")).expect("folders");
        std::fs::write(&path, text).expect("a written file");
        path
    }

    /// Reads a file.
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.join(name)).expect("a readable file")
    }

    /// Whether an entry is there, links not followed.
    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        std::fs::symlink_metadata(self.join(name)).is_ok()
    }

    /// Every path below it, relative and sorted.
    pub fn listing(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a listing").flatten() {
                let path = entry.path();
                found.push(
                    path.strip_prefix(&self.path)
                        .expect("below")
                        .display()
                        .to_string(),
                );
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
