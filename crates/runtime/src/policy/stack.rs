//! [`Stack`]: layers on the way to a policy, and the files that some of them
//! were read from.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ringfence_policy::{Kept, Layer, LayerKind, PathRule, Sourced};
use ringfence_sandbox::PRIVATE_FOLDERS;

use super::{PolicyLoadError, Sources};
use crate::place::place_of;
use crate::secrets::{Approvals, ContentDigest, Subject, WritablePlaces};

/// The largest policy file, in bytes.
pub(super) const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// A small text and where it lies.
pub(super) struct TextFile {
    pub(super) text: String,
    /// Without links; `None` for what is in no folder, such as a pipe.
    place: Option<PathBuf>,
}

/// A layer that was read from a file.
pub(super) struct FileLayer {
    layer: Layer,
    place: Option<PathBuf>,
    digest: ContentDigest,
}

/// Layers; the order among kinds does not matter.
#[derive(Default)]
pub(super) struct Stack {
    layers: Vec<Layer>,
    /// Which of them are of files.
    files: Vec<(usize, Option<PathBuf>, ContentDigest)>,
}

impl TextFile {
    /// Reads it, also from what has no size, such as a pipe.
    pub(super) fn read(path: &Path) -> Result<Self, PolicyLoadError> {
        let unreadable = |error| PolicyLoadError::Unreadable {
            path: path.to_path_buf(),
            error,
        };
        let file = File::open(path).map_err(unreadable)?;
        let place = place_of(&file);
        let mut text = String::new();
        let read = file.take(LARGEST_FILE + 1).read_to_string(&mut text);
        let length = read.map_err(unreadable)?;
        if length as u64 > LARGEST_FILE {
            return Err(PolicyLoadError::TooLarge {
                path: path.to_path_buf(),
            });
        }
        Ok(Self { text, place })
    }

    /// What was read from it.
    pub(super) fn layer(self, layer: Layer) -> FileLayer {
        FileLayer {
            layer,
            place: self.place,
            digest: ContentDigest::of(self.text.as_bytes()),
        }
    }
}

impl FileLayer {
    /// What it says, wherever it lies.
    pub(super) fn anywhere(self) -> Layer {
        self.layer
    }
}

impl Stack {
    pub(super) fn push(&mut self, layer: Layer) {
        self.layers.push(layer);
    }

    pub(super) fn extend(&mut self, layers: impl IntoIterator<Item = Layer>) {
        self.layers.extend(layers);
    }

    pub(super) fn push_file(&mut self, file: FileLayer) {
        self.files
            .push((self.layers.len(), file.place, file.digest));
        self.layers.push(file.layer);
    }

    pub(super) fn len(&self) -> usize {
        self.layers.len()
    }

    /// The layers. Those that code inside may have written, under this policy
    /// or an earlier one, ask for their credentials, and get those that were
    /// approved for the file as it is now.
    pub(super) fn settle(self, sources: &Sources<'_>) -> Result<Vec<Layer>, PolicyLoadError> {
        let Self { mut layers, files } = self;
        let writable = writable(&layers, &sources.paths.base);
        for (number, place, digest) in files {
            let layer = &mut layers[number];
            let is_outside = place.as_ref().is_some_and(|place| !writable.holds(place));
            if is_outside {
                continue;
            }
            layer.kept = Kept::InWorkingFolder;
            // Of what lies nowhere nothing can be approved beforehand.
            if let Some(place) = place {
                approve(layer, &Subject::file(&place, digest), sources)?;
            }
        }
        Ok(layers)
    }
}

fn approve(
    layer: &mut Layer,
    subject: &Subject,
    sources: &Sources<'_>,
) -> Result<(), PolicyLoadError> {
    let services: Vec<String> = layer.unapproved_services().map(str::to_owned).collect();
    if services.is_empty() {
        return Ok(());
    }
    let approvals = Approvals::open(&sources.approvals)?;
    for service in services {
        if approvals.is_approved(subject, &service) {
            layer.approve(&service);
        }
    }
    Ok(())
}

/// The working folder, and all that any of the layers makes writable.
fn writable(layers: &[Layer], working_folder: &Path) -> WritablePlaces {
    let rules = layers.iter().flat_map(|layer| {
        let rules = layer.filesystem.write_allow.iter();
        rules.flatten().filter(|rule| !is_private(rule))
    });
    let places = rules.filter_map(|rule| match &rule.value {
        PathRule::Literal(path) => Some(path.clone()),
        PathRule::Glob(_) => None,
    });
    WritablePlaces::new(places.chain([working_folder.to_path_buf()]))
}

/// A sandbox has its own of these, unless settings of `srt` name them.
fn is_private(rule: &Sourced<PathRule>) -> bool {
    let mut private = PRIVATE_FOLDERS.iter().map(PathBuf::from);
    let is_own = private.any(|folder| rule.value == PathRule::Literal(folder));
    is_own && rule.origin.layer != LayerKind::SrtSettings
}
