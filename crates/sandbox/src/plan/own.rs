//! The sandbox's own folder: files that are made for it, which nothing inside
//! can change.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use ringfence_policy::ReadScope;

use super::error::PlanError;
use super::files::Files;
use super::ids::Ids;
use super::late::{LateFile, LateFiles};
use super::layout;
use crate::trust::{self, OWN_FOLDER, TrustFile, TrustPlan};
use crate::view::{Content, Overlay, OwnContent, OwnFile, Place};

/// The most files that are given.
const MOST_FILES: usize = 4096;
/// The most bytes in all of them.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// A file for the sandbox's own folder, `/run/ringfence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// Its place below that folder.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Its mode; whatever it says, nobody can write to it.
    pub mode: u32,
}

/// What is laid over the view for these files and for trust: the own folder,
/// unless it would be empty, and replacements of files of the host.
pub(super) fn overlays(
    files: &Files,
    ids: &Ids,
    given: Vec<GivenFile>,
    trust: Option<TrustPlan>,
    late: &mut LateFiles,
) -> Result<Vec<Overlay>, PlanError> {
    check(&given)?;
    let mut content: Vec<OwnFile> = given.into_iter().map(own_file).collect();
    if trust.is_some() {
        content.extend(TrustFile::ALL.map(|file| trusted_file(file, late)));
    }
    if content.is_empty() {
        return Ok(Vec::new());
    }
    if !is_free(files, ids) {
        return Err(PlanError::OwnFolderTaken);
    }
    let mut overlays = vec![Overlay {
        path: OWN_FOLDER.into(),
        content: Content::Own(content),
    }];
    if trust.is_some() {
        overlays.extend(replacements(files, late)?);
    }
    Ok(overlays)
}

fn own_file(given: GivenFile) -> OwnFile {
    OwnFile {
        path: given.path,
        content: OwnContent::Bytes(given.bytes),
        mode: given.mode & 0o555,
    }
}

fn trusted_file(file: TrustFile, late: &mut LateFiles) -> OwnFile {
    OwnFile {
        path: file.name().into(),
        content: OwnContent::Late(late.number(LateFile::Trust(file))),
        mode: 0o444,
    }
}

fn check(given: &[GivenFile]) -> Result<(), PlanError> {
    let bytes: usize = given.iter().map(|file| file.bytes.len()).sum();
    if given.len() > MOST_FILES || bytes > MOST_BYTES {
        return Err(PlanError::TooMuchGiven {
            files: given.len(),
            bytes,
        });
    }
    let is_plain = |path: &Path| {
        let mut parts = path.components().peekable();
        parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
    };
    let mut taken: HashSet<&Path> = TrustFile::ALL.map(|file| Path::new(file.name())).into();
    for GivenFile { path, .. } in given {
        if !is_plain(path) || !taken.insert(path) {
            return Err(PlanError::GivenPath { path: path.clone() });
        }
    }
    Ok(())
}

/// Whether the place of the own folder is the sandbox's alone, so that making
/// it there neither fails nor leaves something on the host.
fn is_free(files: &Files, ids: &Ids) -> bool {
    let own = Path::new(OWN_FOLDER);
    let is_above = |place: &Place| own.starts_with(&place.path);
    let mut of_host = files.shown.iter().chain(&files.writable);
    if of_host.any(is_above) {
        return false;
    }
    match files.scope {
        ReadScope::System => !is_above(&files.working_place),
        ReadScope::Host => own
            .parent()
            .is_some_and(|run| layout::hides(files, ids, run)),
    }
}

/// Of files with trusted certificates that the view shows.
fn replacements(files: &Files, late: &mut LateFiles) -> Result<Vec<Overlay>, PlanError> {
    let mut found: Vec<Overlay> = Vec::new();
    for (path, file) in trust::replaced() {
        let Some(place) = Place::find(path)?.filter(|place| !place.is_folder) else {
            continue;
        };
        let is_hidden = |hidden: &Place| place.path.starts_with(&hidden.path);
        let is_known = |known: &Overlay| known.path == place.path;
        if !files.hidden.iter().any(is_hidden) && !found.iter().any(is_known) {
            found.push(Overlay {
                path: place.path,
                content: Content::Replaced(late.number(LateFile::Trust(file))),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(path: &str) -> GivenFile {
        GivenFile {
            path: path.into(),
            bytes: Vec::new(),
            mode: 0o644,
        }
    }

    #[test]
    fn given_files_stay_in_the_folder_and_apart() {
        assert!(check(&[given("a/b"), given("a/c"), given("c")]).is_ok());
        for path in ["", "/a", "../a", "a/../../b", "a/./..", "bundle.pem"] {
            let refused = check(&[given(path)]);
            assert!(
                matches!(refused, Err(PlanError::GivenPath { .. })),
                "{path}"
            );
        }
        assert!(check(&[given("a"), given("a")]).is_err());
    }

    #[test]
    fn there_is_a_most_that_is_given() {
        let many: Vec<_> = (0..=MOST_FILES).map(|n| given(&n.to_string())).collect();
        assert!(matches!(
            check(&many),
            Err(PlanError::TooMuchGiven { files, .. }) if files == MOST_FILES + 1
        ));
        let large = GivenFile {
            bytes: vec![0; MOST_BYTES + 1],
            ..given("a")
        };
        assert!(matches!(
            check(&[large]),
            Err(PlanError::TooMuchGiven { files: 1, .. })
        ));
    }

    #[test]
    fn a_given_file_can_be_read_and_run_but_never_written() {
        let file = own_file(GivenFile {
            mode: 0o4777,
            ..given("a")
        });
        assert_eq!(file.mode, 0o555);
    }
}
