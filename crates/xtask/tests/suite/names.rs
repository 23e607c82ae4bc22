//! Rooms have names that say what lives in them, and front doors are small.

use super::assert_none;
use super::workspace::{self, Source};

/// Names that say nothing, so that anything ends up there.
const VAGUE: &[&str] = &["core", "common", "util", "utils", "helpers", "misc"];
const LONGEST_MAIN: usize = 59;

#[test]
fn crates_have_telling_names() {
    let manifests = workspace::manifests().unwrap();
    let folders: Vec<&str> = manifests
        .iter()
        .map(|manifest| manifest.folder.as_str())
        .collect();
    assert_none(&vague_names(&folders));
}

#[test]
fn main_files_are_short() {
    assert_none(&long_mains(&workspace::sources().unwrap()));
}

fn vague_names(folders: &[&str]) -> Vec<String> {
    let vague = folders.iter().filter(|folder| VAGUE.contains(folder));
    vague
        .map(|folder| format!("a crate named {folder} says nothing"))
        .collect()
}

fn long_mains(sources: &[Source]) -> Vec<String> {
    let mains = sources.iter().filter(|source| {
        source.path.starts_with("crates/") && source.path.ends_with("/src/main.rs")
    });
    mains
        .map(|source| (source, source.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_MAIN)
        .map(|(source, lines)| format!("{} has {lines} lines", source.path))
        .collect()
}

#[test]
fn vague_names_are_seen() {
    assert_eq!(vague_names(&["policy", "utils", "core"]).len(), 2);
}

#[test]
fn a_long_main_is_seen() {
    let sources = [
        Source::new("crates/cli/src/main.rs", &"//\n".repeat(60)),
        Source::new("crates/xtask/src/main.rs", &"//\n".repeat(59)),
        Source::new("crates/cli/src/other.rs", &"//\n".repeat(600)),
    ];
    assert_eq!(
        long_mains(&sources),
        ["crates/cli/src/main.rs has 60 lines"]
    );
}
