//! The workspace on disk, read into plain data.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use toml::Table;

/// A text file, by its path from the root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_string(),
            text: text.to_string(),
        }
    }
}

/// A crate's manifest, by the name of its folder.
pub(crate) struct Manifest {
    pub(crate) folder: String,
    pub(crate) table: Table,
}

impl Manifest {
    pub(crate) fn parse(folder: &str, text: &str) -> Result<Self> {
        let table = text
            .parse()
            .with_context(|| format!("the manifest of {folder}"))?;
        Ok(Self {
            folder: folder.to_string(),
            table,
        })
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The manifest of the workspace itself.
pub(crate) fn root_manifest() -> Result<Table> {
    Ok(fs::read_to_string(root().join("Cargo.toml"))?.parse()?)
}

/// The manifests of all crates.
pub(crate) fn manifests() -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(folder.join("Cargo.toml"))
            .with_context(|| format!("crates/{name} has no manifest"))?;
        manifests.push(Manifest::parse(&name, &text)?);
    }
    ensure!(!manifests.is_empty(), "there are no crates");
    Ok(manifests)
}

/// Every text file that is tracked, or would be with the next `git add`.
pub(crate) fn sources() -> Result<Vec<Source>> {
    let listing = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .context("cannot start git")?;
    ensure!(
        listing.status.success(),
        "git ls-files: {}",
        String::from_utf8_lossy(&listing.stderr)
    );
    let paths = String::from_utf8(listing.stdout)?;
    let sources: Vec<Source> = paths.split_terminator('\0').filter_map(read).collect();
    ensure!(!sources.is_empty(), "git lists no files");
    Ok(sources)
}

/// Nothing for what is no text, and for what is tracked but deleted by now.
fn read(path: &str) -> Option<Source> {
    let text = fs::read_to_string(root().join(path)).ok()?;
    Some(Source::new(path, &text))
}
