//! [`LoadedKit`]: a kit with everything that belongs to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ringfence_policy::{
    Kit, KitPath, KitRoot, KitSchema, LayerKind, Note, Origin, PathContext, Profile, Surface,
    builtin_layers, read_kit, resolve,
};

use super::collect::{Collected, KitBytes, MOST_BYTES, SPEC};
use super::error::KitError;
use super::inputs::GivenArguments;
use super::reference::KitReference;
use super::{folder, git, zipped};
use crate::host_env::HostEnv;
use crate::secrets::ContentDigest;

/// Whether a name of a commit is looked up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// It means what it meant when it was first fetched.
    #[default]
    Pinned,
    /// It means what it means now.
    Fresh,
}

/// Where fetched kits are kept, and how they are fetched.
pub struct KitStore {
    /// The directory.
    pub directory: PathBuf,
    /// Where git is looked for, and what it may know of.
    pub env: HostEnv,
}

/// A kit, read whole.
#[derive(Debug)]
pub struct LoadedKit {
    /// What it asks for.
    pub kit: Kit,
    reference: KitReference,
    commit: Option<String>,
    files: Vec<BroughtFile>,
    digest: ContentDigest,
    surface: Surface,
}

/// A file of `files/`.
#[derive(Debug)]
pub(super) struct BroughtFile {
    pub(super) path: KitPath,
    pub(super) content: KitBytes,
}

/// Reads kits. An argument `NAME=VALUE` is for every kit that declares it; one
/// that no kit declares is an error.
pub fn load_kits(
    references: &[KitReference],
    arguments: &[String],
    store: &KitStore,
    freshness: Freshness,
) -> Result<Vec<LoadedKit>, KitError> {
    let read = |reference| Content::read(reference, store, freshness);
    let contents: Vec<Content> = references.iter().map(read).collect::<Result<_, _>>()?;
    let mut given = GivenArguments::parse(arguments)?;
    let kits = contents
        .into_iter()
        .map(|content| LoadedKit::new(content, &mut given));
    let kits = kits.collect::<Result<_, _>>()?;
    given.refuse_unused()?;
    Ok(kits)
}

/// What was read of a kit, before it means anything.
struct Content {
    reference: KitReference,
    commit: Option<String>,
    spec: String,
    files: BTreeMap<String, KitBytes>,
}

impl Content {
    fn read(
        reference: &KitReference,
        store: &KitStore,
        freshness: Freshness,
    ) -> Result<Self, KitError> {
        let mut collected = Collected::new(&reference.to_string());
        let mut commit = None;
        match reference {
            KitReference::Folder(path) => folder::read(path, &mut collected)?,
            KitReference::Zip(path) => zipped::read(path, &mut collected)?,
            KitReference::Git(git) => {
                commit = Some(git::read(git, store, freshness, &mut collected)?);
            }
        }
        let (spec, files) = collected.finish()?;
        Ok(Self {
            reference: reference.clone(),
            commit,
            spec,
            files,
        })
    }
}

impl LoadedKit {
    fn new(content: Content, given: &mut GivenArguments) -> Result<Self, KitError> {
        let arguments = given.of(&content.spec);
        let digest = digest(&content.spec, &content.files, &arguments);
        let name = format!("{}/{SPEC}", content.reference.place());
        let origin = Origin::new(LayerKind::Kit, name);
        let kit = read_kit(&content.spec, &arguments, &origin)?;
        let files = brought(&kit, &content.reference, content.files)?;
        let surface = kit.surface(written(&kit, &files));
        Ok(Self {
            kit,
            reference: content.reference,
            commit: content.commit,
            files,
            digest,
            surface,
        })
    }

    /// How it was named.
    pub fn reference(&self) -> &KitReference {
        &self.reference
    }

    /// Its commit, if it is from a repository.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// The sum of all of it, and of the arguments that were given.
    pub fn digest(&self) -> ContentDigest {
        self.digest
    }

    /// What it could do.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The services whose secrets it asks for.
    pub fn services(&self) -> Vec<String> {
        let credentials = self.kit.credentials.iter();
        credentials.map(|own| own.service.clone()).collect()
    }

    /// Resolves the kit alone, with all that it asks for, upon what is built in;
    /// returns what is to be told of it. What it cannot do without is told, not
    /// an error.
    pub fn check(&self, paths: &PathContext) -> Result<Vec<Note>, KitError> {
        let mut layer = self.kit.layer();
        for service in self.services() {
            layer.approve(&service);
        }
        let notes = std::mem::take(&mut layer.notes);
        let mut layers = builtin_layers(Profile::Default, paths);
        layers.push(layer);
        resolve(layers, None)?;
        Ok(notes)
    }

    pub(super) fn brought(&self) -> &[BroughtFile] {
        &self.files
    }
}

fn digest(
    spec: &str,
    files: &BTreeMap<String, KitBytes>,
    arguments: &BTreeMap<String, String>,
) -> ContentDigest {
    let arguments = arguments
        .iter()
        .flat_map(|(name, value)| [("arg", name.as_bytes()), ("value", value.as_bytes())]);
    let files = files.iter().flat_map(|(path, file)| {
        let mode: &[u8] = if file.executable { b"x" } else { b"-" };
        [(path.as_str(), file.bytes.as_slice()), ("mode", mode)]
    });
    let spec = std::iter::once((SPEC, spec.as_bytes()));
    ContentDigest::of_parts(spec.chain(files).chain(arguments))
}

/// Where each file of `files/` goes. References to arguments are replaced in
/// those that are text, which must not make more of them than a kit may have.
fn brought(
    kit: &Kit,
    reference: &KitReference,
    files: BTreeMap<String, KitBytes>,
) -> Result<Vec<BroughtFile>, KitError> {
    let mut left = MOST_BYTES;
    let place = |(file, mut content): (String, KitBytes)| {
        let failed = |fault| KitError::File {
            file: file.clone(),
            fault,
        };
        let (root, below) = match file.strip_prefix("files/home/") {
            Some(below) => (KitRoot::Home, below),
            None => (
                KitRoot::Workspace,
                file.trim_start_matches("files/workspace/"),
            ),
        };
        let path = KitPath::new(root, Path::new(below)).map_err(failed)?;
        if kit.schema == KitSchema::V2
            && let Ok(text) = std::str::from_utf8(&content.bytes)
            && let Some(new) = kit.arguments.substitute(text).map_err(failed)?
        {
            content.bytes = new.into_bytes();
        }
        let after = left.checked_sub(content.bytes.len());
        left = after.ok_or_else(|| KitError::TooLarge {
            kit: reference.to_string(),
        })?;
        Ok(BroughtFile { path, content })
    };
    files.into_iter().map(place).collect()
}

/// Every file that is written, with its sum.
fn written(kit: &Kit, brought: &[BroughtFile]) -> BTreeMap<String, String> {
    let own = kit.files.iter();
    let own = own.map(|file| {
        let is_program = file.mode & 0o111 != 0;
        (
            file.path.to_string(),
            sum(file.content.as_bytes(), is_program),
        )
    });
    let brought = brought.iter().map(|file| {
        let content = &file.content;
        (
            file.path.to_string(),
            sum(&content.bytes, content.executable),
        )
    });
    brought.chain(own).collect()
}

/// What was data may be run once it is a program.
fn sum(bytes: &[u8], is_program: bool) -> String {
    let sum = ContentDigest::of(bytes);
    let kind = if is_program { " program" } else { "" };
    format!("{sum}{kind}")
}
