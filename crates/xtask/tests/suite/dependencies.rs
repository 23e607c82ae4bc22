//! Dependencies point downwards only.

use std::collections::BTreeMap;

use anyhow::Result;
use toml::{Table, Value};

use super::assert_none;
use super::workspace::{self, Manifest};

const PREFIX: &str = "ringfence-";
const TESTKIT: &str = "testkit";
const XTASK: &str = "xtask";

/// What a crate may use: only crates in rows above its own.
enum MayUse {
    Only(&'static [&'static str]),
    /// Every crate in a row above its own.
    AllAbove,
}

const CRATES: &[(&str, MayUse)] = &[
    ("policy", MayUse::Only(&[])),
    ("audit", MayUse::Only(&["policy"])),
    ("sys", MayUse::Only(&[])),
    ("egress", MayUse::Only(&["policy", "audit"])),
    ("image", MayUse::Only(&[])),
    ("skill", MayUse::Only(&["policy"])),
    ("sandbox", MayUse::Only(&["policy", "sys", "image"])),
    ("runtime", MayUse::AllAbove),
    ("server", MayUse::Only(&["runtime"])),
    ("agent", MayUse::Only(&["runtime"])),
    ("operator", MayUse::Only(&["policy", "agent"])),
    ("cli", MayUse::AllAbove),
    (TESTKIT, MayUse::Only(&[])),
    (XTASK, MayUse::Only(&[])),
];

/// How a crate is depended on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Part of the built crate, or of its build script.
    Build,
    /// For its tests only.
    Test,
}

#[test]
fn dependencies_point_downwards() {
    let renamed = package_names(&workspace::root_manifest().unwrap());
    let manifests = workspace::manifests().unwrap();
    let complaints: Vec<String> = manifests
        .iter()
        .flat_map(|manifest| complaints(manifest, &renamed))
        .collect();
    assert_none(&complaints);
}

fn complaints(manifest: &Manifest, renamed: &BTreeMap<String, String>) -> Vec<String> {
    let folder = &manifest.folder;
    let Some(allowed) = allowed(folder) else {
        return vec![format!("{folder} is not in the table of crates")];
    };
    let mut complaints = Vec::new();
    for (how, dependency) in dependencies(&manifest.table, renamed) {
        let is_fine = match how {
            Use::Build => allowed.contains(&dependency.as_str()),
            Use::Test => {
                allowed.contains(&dependency.as_str()) || (dependency == TESTKIT && folder != XTASK)
            }
        };
        if !is_fine {
            complaints.push(format!("{folder} must not use {dependency} ({how:?})"));
        }
    }
    complaints
}

fn allowed(folder: &str) -> Option<Vec<&'static str>> {
    let index = CRATES.iter().position(|(name, _)| *name == folder)?;
    Some(match &CRATES[index].1 {
        MayUse::Only(names) => names.to_vec(),
        MayUse::AllAbove => CRATES[..index].iter().map(|(name, _)| *name).collect(),
    })
}

/// The workspace's own crates that a manifest names, by their folders.
fn dependencies(manifest: &Table, renamed: &BTreeMap<String, String>) -> Vec<(Use, String)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let per_target = targets.into_iter().flat_map(Table::values);
    let holders = std::iter::once(manifest).chain(per_target.filter_map(Value::as_table));
    let mut found = Vec::new();
    for holder in holders {
        for (section, how) in [
            ("dependencies", Use::Build),
            ("build-dependencies", Use::Build),
            ("dev-dependencies", Use::Test),
        ] {
            let listed = holder.get(section).and_then(Value::as_table);
            let names = listed.map(package_names).unwrap_or_default();
            found.extend(names.into_iter().filter_map(|(key, package)| {
                let package = renamed.get(&key).cloned().unwrap_or(package);
                Some((how, package.strip_prefix(PREFIX)?.to_string()))
            }));
        }
    }
    found
}

/// The package behind each key of a dependency section, or of the workspace's
/// own when `table` is the root manifest.
fn package_names(table: &Table) -> BTreeMap<String, String> {
    let of_workspace = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table);
    let section = of_workspace.unwrap_or(table);
    let name = |(key, value): (&String, &Value)| {
        let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
        (key.clone(), package.to_string())
    };
    section.iter().map(name).collect()
}

fn complaints_about(folder: &str, manifest: &str) -> Result<Vec<String>> {
    let root = "[workspace.dependencies]\nquiet = { package = 'ringfence-cli', path = 'x' }";
    let renamed = package_names(&root.parse()?);
    Ok(complaints(&Manifest::parse(folder, manifest)?, &renamed))
}

#[test]
fn the_table_itself_points_downwards() {
    for (index, (name, may_use)) in CRATES.iter().enumerate() {
        if let MayUse::Only(used) = may_use {
            for other in *used {
                let is_above = CRATES[..index].iter().any(|(above, _)| above == other);
                assert!(is_above, "{name} uses {other}");
            }
        }
    }
}

#[test]
fn downward_use_is_accepted() {
    let manifest = "[dependencies]\nringfence-policy.workspace = true\nserde = '1'\n\
                    [dev-dependencies]\nringfence-testkit.workspace = true";
    assert_none(&complaints_about("audit", manifest).unwrap());
}

#[test]
fn upward_use_is_refused_however_it_is_written() {
    for manifest in [
        "[dependencies]\nringfence-runtime.workspace = true",
        "[build-dependencies]\nringfence-runtime = { path = '../runtime' }",
        "[dev-dependencies]\nringfence-runtime.workspace = true",
        "[dependencies]\nother = { package = 'ringfence-runtime', path = '../runtime' }",
        "[dependencies]\nquiet.workspace = true",
        "[target.'cfg(unix)'.dependencies]\nringfence-cli.workspace = true",
    ] {
        assert_eq!(
            complaints_about("policy", manifest).unwrap().len(),
            1,
            "{manifest}"
        );
    }
}

#[test]
fn testkit_is_for_tests_only_and_not_for_xtask() {
    let normal = "[dependencies]\nringfence-testkit.workspace = true";
    let dev = "[dev-dependencies]\nringfence-testkit.workspace = true";
    assert_eq!(complaints_about("cli", normal).unwrap().len(), 1);
    assert_eq!(complaints_about("cli", dev).unwrap().len(), 0);
    assert_eq!(complaints_about("xtask", dev).unwrap().len(), 1);
}

#[test]
fn an_unknown_crate_is_refused() {
    assert_eq!(complaints_about("surprise", "").unwrap().len(), 1);
}
