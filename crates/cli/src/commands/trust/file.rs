//! A file of a working folder.

use std::path::{Path, PathBuf};

use ringfence_policy::PathContext;
use ringfence_runtime::{Candidate, WORKING_FOLDER_FILE, WorkingFolderError};
use ringfence_sandbox::Host;

use super::asking::Asking;
use crate::error::Failure;

pub(super) fn read(given: &Path, host: &Host) -> Result<Asking, Failure> {
    let file = locate(given)?;
    let candidate = Candidate::read(&file)?.ok_or_else(|| not_there(&file))?;
    let paths = PathContext {
        home: host.home.clone(),
        base: file.parent().unwrap_or(Path::new("/")).to_path_buf(),
    };
    let asked = candidate.asked(&paths)?;
    if asked.services.is_empty() && !file.ends_with(WORKING_FOLDER_FILE) {
        let message = format!("{} asks for no credential", file.display());
        let hint = "it needs no approval to be named with --policy or --settings";
        return Err(Failure::new("nothing-to-approve", message, hint));
    }
    Ok(Asking::File(candidate, asked))
}

/// The file with the links above it resolved, as a run in its folder names it;
/// of a folder, the file that is used by itself.
pub(super) fn locate(given: &Path) -> Result<PathBuf, Failure> {
    let file = if given.is_dir() {
        given.join(WORKING_FOLDER_FILE)
    } else {
        given.to_path_buf()
    };
    let absolute = std::path::absolute(&file).unwrap_or_default();
    let (Some(folder), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(not_there(&file));
    };
    let real = folder.canonicalize().map_err(|_| not_there(&file))?;
    Ok(real.join(name))
}

fn not_there(file: &Path) -> Failure {
    let message = format!("{} is not there", file.display());
    let hint = "name an existing file, or a kit";
    Failure::new("file-unreadable", message, hint)
}

impl From<WorkingFolderError> for Failure {
    fn from(error: WorkingFolderError) -> Self {
        Self::new(error.code(), error.to_string(), error.hint())
    }
}
