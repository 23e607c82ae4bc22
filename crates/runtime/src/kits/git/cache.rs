//! [`Cache`]: what was fetched, by repository and commit.
//!
//! Below the cache's folder: `SUM/COMMIT.git`, a bare repository for each
//! commit, and `SUM/ref-SUM`, the commit that a name meant when it was fetched.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::tool::Git;
use crate::kits::reference::{GitReference, is_commit};
use crate::secrets::ContentDigest;

/// What a repository's own choice is called.
const OWN_CHOICE: &str = "HEAD";
/// Where a commit is kept while it is fetched.
const FETCHED: &str = "refs/ringfence/kit";

/// What is kept of one repository.
pub(super) struct Cache<'a> {
    folder: PathBuf,
    reference: &'a GitReference,
    git: &'a Git,
}

impl<'a> Cache<'a> {
    pub(super) fn open(
        root: &Path,
        reference: &'a GitReference,
        git: &'a Git,
    ) -> Result<Self, GitError> {
        let folder = root.join(sum(&reference.url));
        make_own(root)?;
        make_own(&folder)?;
        Ok(Self {
            folder,
            reference,
            git,
        })
    }

    /// The commit that the reference means, as far as that is known and there.
    pub(super) fn pinned(&self) -> Result<Option<String>, GitError> {
        let commit = match self.reference.commit() {
            Some(commit) => Some(commit.to_owned()),
            None => self.read_pin()?,
        };
        Ok(commit.filter(|commit| self.repository(commit).is_dir()))
    }

    pub(super) fn repository(&self, commit: &str) -> PathBuf {
        self.folder.join(format!("{commit}.git"))
    }

    /// Fetches what the reference means by now, and keeps it.
    pub(super) fn fetch(&self) -> Result<String, GitError> {
        let fresh = tempfile::Builder::new()
            .prefix("fetch-")
            .tempdir_in(&self.folder)
            .map_err(|error| failed(&self.folder, error))?;
        let repository = fresh.path().join("kit.git");
        let commit = self.fetch_into(&repository)?;
        let kept = self.repository(&commit);
        match std::fs::rename(&repository, &kept) {
            // Another was faster with the same commit.
            Err(_) if kept.is_dir() => {}
            renamed => renamed.map_err(|error| failed(&kept, error))?,
        }
        if self.reference.commit().is_none() {
            self.write_pin(fresh.path(), &commit)?;
        }
        Ok(commit)
    }

    fn fetch_into(&self, repository: &Path) -> Result<String, GitError> {
        let init = ["init", "--quiet", "--bare", "--template="];
        let git = self.git;
        git.run(repository, None, "make a repository", &init, b"")?;
        let refspec = format!("+{}:{FETCHED}", self.name());
        let mut fetch = vec!["fetch", "--quiet", "--depth=1", "--no-tags"];
        fetch.extend(["--no-recurse-submodules", "--no-auto-gc", "--"]);
        fetch.extend([self.reference.url.as_str(), refspec.as_str()]);
        let transport = Some(self.reference.transport);
        git.run(repository, transport, "fetch the kit", &fetch, b"")?;
        let commit = format!("{FETCHED}^{{commit}}");
        let parse = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ];
        let printed = git.run(repository, None, "find the commit", &parse, b"")?;
        let commit = String::from_utf8_lossy(&printed).trim().to_owned();
        let expected = self.reference.commit();
        if is_commit(&commit) && expected.is_none_or(|expected| expected == commit) {
            Ok(commit)
        } else {
            Err(GitError::Answer("rev-parse"))
        }
    }

    fn name(&self) -> &str {
        self.reference.reference.as_deref().unwrap_or(OWN_CHOICE)
    }

    fn pin(&self) -> PathBuf {
        self.folder.join(format!("ref-{}", sum(self.name())))
    }

    fn read_pin(&self) -> Result<Option<String>, GitError> {
        let path = self.pin();
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| is_commit(text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn write_pin(&self, fresh: &Path, commit: &str) -> Result<(), GitError> {
        let (new, path) = (fresh.join("pin"), self.pin());
        std::fs::write(&new, format!("{commit}\n"))
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|error| failed(&path, error))
    }
}

fn failed(path: &Path, error: io::Error) -> GitError {
    GitError::Cache {
        path: path.to_path_buf(),
        error,
    }
}

fn sum(text: &str) -> String {
    let sum = ContentDigest::of(text.as_bytes()).to_string();
    sum.chars().take(32).collect()
}

/// Makes a folder for ourselves alone, or sees to it that it is.
fn make_own(path: &Path) -> Result<(), GitError> {
    let failed = |error| failed(path, error);
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed)?;
    let found = std::fs::symlink_metadata(path).map_err(failed)?;
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(GitError::Foreign(path.to_path_buf()))
    }
}
