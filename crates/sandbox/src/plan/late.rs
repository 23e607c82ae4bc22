//! Files whose content is known only when the init is there already, because
//! a secret is needed to make it, and the init must not have a copy of that.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ringfence_policy::{Filesystem, LayerKind, SETTINGS_FILES};

use super::error::PlanError;
use super::files::{Files, refuse_link_below};
use crate::host::Host;
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
    /// Whose secrets are in it; nobody's of a settings file.
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

/// The settings files with tokens in them, which are hidden by default, taken out of what is
/// hidden: they are shown without the tokens. What lies in a folder that somebody hides stays hidden.
pub(super) fn settings(
    rules: &Filesystem,
    host: &Host,
    hidden: &mut Vec<Place>,
) -> Vec<MaskedPlace> {
    let folders: Vec<PathBuf> = hidden
        .iter()
        .filter(|place| place.is_folder)
        .map(|place| place.path.clone())
        .collect();
    let is_reached = |path: &Path| {
        is_reached(path, host) && !folders.iter().any(|folder| path.starts_with(folder))
    };
    let is_by_default = |path: &Path| {
        let mut denied = rules.read_deny.iter();
        denied.all(|rule| rule.origin.layer == LayerKind::Default || !rule.value.matches(path))
    };
    let is_masked = |place: &Place| {
        let named = SETTINGS_FILES.iter().any(|name| place.path.ends_with(name));
        named && !place.is_folder && is_by_default(&place.path) && is_reached(&place.path)
    };
    let (settings, rest) = std::mem::take(hidden).into_iter().partition(is_masked);
    *hidden = rest;
    let settings: Vec<Place> = settings;
    let masked = settings.into_iter().map(|place| MaskedPlace {
        path: place.path,
        services: Vec::new(),
    });
    masked.collect()
}

/// Whether the sandbox can walk to a file of the home folder. Root's has another id on the host:
/// it passes what is open to others, and what is below the home folder's own closed folder, which
/// is shown as its owner's.
fn is_reached(path: &Path, host: &Host) -> bool {
    let is_closed = |folder: &&Path| {
        let mode = std::fs::metadata(folder).map(|found| found.permissions().mode());
        mode.is_ok_and(|mode| mode & 0o005 != 0o005)
    };
    let outermost = path.ancestors().skip(1).filter(is_closed).last();
    path.starts_with(&host.home)
        && (host.uid != 0 || outermost.is_none_or(|closed| host.home.starts_with(closed)))
}

/// What is laid over masked files.
pub(super) fn overlays(files: &Files, late: &mut LateFiles) -> Vec<Overlay> {
    let lay = |file: &MaskedPlace| Overlay {
        path: file.path.clone(),
        content: Content::Masked(late.number(LateFile::Masked(file.clone()))),
    };
    files.masked.iter().map(lay).collect()
}
