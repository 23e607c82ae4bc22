//! Files whose content is known only when the init is there already, because
//! a secret is needed to make it, and the init must not have a copy of that.

use std::path::{Path, PathBuf};

use ringfence_policy::Filesystem;

use super::error::PlanError;
use super::files::{Files, refuse_link_below};
use crate::trust::TrustFile;
use crate::view::{Content, Overlay, Place};

/// One such file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LateFile {
    /// Certificates that are trusted inside.
    Trust(TrustFile),
    /// A file of the host that shows a placeholder instead of a secret.
    Masked(MaskedPlace),
}

/// A file of the host that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MaskedPlace {
    /// Its path, without links.
    pub(crate) path: PathBuf,
    /// Whose secrets are in it.
    pub(crate) services: Vec<String>,
}

/// All of them; the view knows them by their number.
#[derive(Debug, Default)]
pub(crate) struct LateFiles(Vec<LateFile>);

impl LateFiles {
    /// The number of a file, which is the same whenever it is asked for.
    pub(super) fn number(&mut self, file: LateFile) -> usize {
        if let Some(known) = self.0.iter().position(|known| *known == file) {
            return known;
        }
        self.0.push(file);
        self.0.len() - 1
    }

    /// By their numbers.
    pub(crate) fn all(&self) -> &[LateFile] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The masked files that there are.
pub(super) fn masked(rules: &Filesystem, working: &Path) -> Result<Vec<MaskedPlace>, PlanError> {
    let mut found: Vec<MaskedPlace> = Vec::new();
    for file in &rules.masked {
        let Some(place) = Place::find(&file.path)? else {
            continue;
        };
        refuse_link_below(working, &file.path, &place)?;
        if place.is_folder {
            return Err(PlanError::MaskedFolder { path: place.path });
        }
        let service = file.service.clone();
        // One mount has to hide all of them.
        match found.iter_mut().find(|known| known.path == place.path) {
            Some(known) => known.services.push(service),
            None => found.push(MaskedPlace {
                path: place.path,
                services: vec![service],
            }),
        }
    }
    Ok(found)
}

/// What is laid over masked files.
pub(super) fn overlays(files: &Files, late: &mut LateFiles) -> Vec<Overlay> {
    let lay = |file: &MaskedPlace| Overlay {
        path: file.path.clone(),
        content: Content::Masked(late.number(LateFile::Masked(file.clone()))),
    };
    files.masked.iter().map(lay).collect()
}
