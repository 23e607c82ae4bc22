//! Sandbox kits: `spec.yaml` of schema versions 1 and 2, read strictly.
//!
//! A [`Kit`] keeps what a kit asks for; its layer says what of it holds (allows, denies,
//! variables) and what waits for an approval (credentials). Parts that a sandbox here does not have
//! become notes: of kind unsupported where the kit cannot do without.

mod args;
mod builder;
mod entry;
mod fault;
mod layer;
mod place;
mod shared;
mod surface;
mod v1;
mod v2;
mod word;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::document::Node;
use super::error::{Fault, Position, SourceError};
use crate::credential::{Credential, in_words};
use crate::note::Note;
use crate::origin::{Origin, Sourced};
use crate::rule::{AllowRule, DenyRule};

use builder::Builder;

pub use args::Arguments;
pub use fault::KitFault;
pub use place::{KitPath, KitRoot};
pub use surface::{Change, CredentialSurface, Difference, Surface};
pub(crate) use {v1::KitV1, v2::KitV2};

/// The largest `spec.yaml`, in bytes.
const LARGEST_SPEC: usize = 1024 * 1024;

/// Version of a kit's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum KitSchema {
    /// Domains, services and sources in blocks of their own.
    #[serde(rename = "1")]
    V1,
    /// Each credential says where it goes.
    #[serde(rename = "2")]
    V2,
}

/// What a kit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KitKind {
    /// Adds to a sandbox.
    Mixin,
    /// Is a sandbox, with an image; not supported.
    Sandbox,
}

impl KitKind {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mixin => "mixin",
            Self::Sandbox => "sandbox",
        }
    }
}

/// A rule, and the entry as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KitEntryOf<R> {
    /// As written.
    pub text: String,
    /// What it means.
    pub rule: Sourced<R>,
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    /// It stays.
    Keep,
    /// It is replaced.
    Replace,
}

/// A file that is written before the command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KitFile {
    /// Where.
    pub path: KitPath,
    /// What is in it; `${WORKDIR}` stands for the working folder.
    pub content: String,
    /// Its mode.
    pub mode: u32,
    /// What becomes of one that is there.
    pub existing: Existing,
}

/// A line of shell that is run before the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstallStep {
    /// The line.
    pub command: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A command that is run before the command, or beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StartupStep {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The command does not wait for it.
    pub background: bool,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl fmt::Display for StartupStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beside = if self.background { " &" } else { "" };
        write!(f, "{}{beside}", in_words(&self.argv))
    }
}

/// A kit, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Kit {
    /// Its name.
    pub name: String,
    /// Its own version.
    pub version: Option<String>,
    /// Version of its schema.
    pub schema: KitSchema,
    /// What it is.
    pub kind: KitKind,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Where it was read.
    pub origin: Origin,
    /// Allowed destinations.
    pub allow: Vec<KitEntryOf<AllowRule>>,
    /// Denied destinations.
    pub deny: Vec<KitEntryOf<DenyRule>>,
    /// Credentials that it asks for.
    pub credentials: Vec<Sourced<Credential>>,
    /// Variables inside.
    pub variables: BTreeMap<String, Sourced<String>>,
    /// Files that are written first.
    pub files: Vec<KitFile>,
    /// Lines of shell that are run first.
    pub install: Vec<InstallStep>,
    /// Commands that are started first.
    pub startup: Vec<StartupStep>,
    /// The values of its arguments, which its files may refer to.
    pub arguments: Arguments,
    /// What has no effect here, and what cannot be done here.
    pub notes: Vec<Note>,
}

impl Kit {
    fn empty(schema: KitSchema, origin: &Origin) -> Self {
        Self {
            name: String::new(),
            version: None,
            schema,
            kind: KitKind::Mixin,
            title: None,
            description: None,
            origin: origin.clone(),
            allow: Vec::new(),
            deny: Vec::new(),
            credentials: Vec::new(),
            variables: BTreeMap::new(),
            files: Vec::new(),
            install: Vec::new(),
            startup: Vec::new(),
            arguments: Arguments::default(),
            notes: Vec::new(),
        }
    }
}

/// Reads a kit's `spec.yaml`, with the arguments that were given.
pub fn read_kit(
    text: &str,
    given: &BTreeMap<String, String>,
    origin: &Origin,
) -> Result<Kit, SourceError> {
    let begin = Position { line: 1, column: 1 };
    let fail = |at: Position, fault: Fault| SourceError::at(origin, at, fault);
    if text.len() > LARGEST_SPEC {
        return Err(fail(begin, KitFault::TooLarge(LARGEST_SPEC).into()));
    }
    let tree = Node::from_yaml(text).map_err(|error| document(origin, error))?;
    let (at, version) = tree
        .word("schemaVersion")
        .ok_or_else(|| fail(tree.place(), KitFault::NoVersion.into()))?;
    match version.as_str() {
        "1" => read_v1(tree, given, origin),
        "2" => read_v2(tree, text, given, origin),
        "3" => Err(fail(at, KitFault::ImageKit.into())),
        _ => Err(fail(at, KitFault::Version(version).into())),
    }
}

/// The names of the arguments that a kit declares; none where its text cannot be read.
pub fn declared_arguments(text: &str) -> BTreeSet<String> {
    let small = Some(text).filter(|text| text.len() <= LARGEST_SPEC);
    let args = small
        .and_then(|text| Node::from_yaml(text).ok())
        .and_then(|mut tree| tree.take("args"));
    args.map(|args| args.keys().map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The first version knows no arguments.
fn read_v1(
    tree: Node,
    given: &BTreeMap<String, String>,
    origin: &Origin,
) -> Result<Kit, SourceError> {
    if let Some(name) = given.keys().next() {
        let fault = KitFault::ArgumentUnknown(name.clone());
        return Err(SourceError::at(origin, tree.place(), fault));
    }
    let read: KitV1 = tree.into().map_err(|error| document(origin, error))?;
    let kit = Kit::empty(KitSchema::V1, origin);
    let mut builder = Builder { origin, kit };
    read.build(&mut builder)?;
    Ok(builder.kit)
}

fn read_v2(
    mut tree: Node,
    text: &str,
    given: &BTreeMap<String, String>,
    origin: &Origin,
) -> Result<Kit, SourceError> {
    let begin = tree.place();
    let declared = tree.take("args").map(Node::into).transpose();
    let declared = declared.map_err(|error| document(origin, error))?;
    let declared: args::Declared = declared.unwrap_or_default();
    let placed = |(at, fault)| SourceError::at(origin, at, fault);
    let arguments = Arguments::resolve(&declared, given, begin).map_err(placed)?;
    arguments.apply(&mut tree, text).map_err(placed)?;
    let read: KitV2 = tree.into().map_err(|error| document(origin, error))?;
    let mut kit = Kit::empty(KitSchema::V2, origin);
    kit.arguments = arguments;
    let mut builder = Builder { origin, kit };
    read.build(&mut builder)?;
    Ok(builder.kit)
}

fn document(origin: &Origin, error: super::document::DocumentError) -> SourceError {
    let at = error.at.unwrap_or_default();
    SourceError::at(origin, at, KitFault::Document(error.message))
}

#[cfg(test)]
mod tests;
