//! Kernel modules with all that they need, in the order to load them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// What a module's own notes call those that it needs.
const NEEDS: &[u8] = b"\0depends=";

/// A module's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) content: Vec<u8>,
}

/// The modules of one kernel by name.
#[derive(Debug)]
pub(super) struct Modules {
    files: BTreeMap<String, PathBuf>,
}

impl Modules {
    /// Those below `folder`.
    pub(super) fn find(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        collect(folder, &mut files)?;
        Ok(Self { files })
    }

    /// `wanted`, each after what it needs; a name that is no module is built
    /// into the kernel.
    pub(super) fn in_order(&self, wanted: &[&str]) -> Result<Vec<Module>> {
        let mut ordered = Vec::new();
        for name in wanted {
            self.add(name, &mut ordered)?;
        }
        Ok(ordered)
    }

    fn add(&self, name: &str, ordered: &mut Vec<Module>) -> Result<()> {
        let Some(file) = self.files.get(name) else {
            return Ok(());
        };
        if ordered.iter().any(|module| module.name == name) {
            return Ok(());
        }
        let content = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        for need in needs(&content) {
            self.add(&need, ordered)?;
        }
        let name = name.to_string();
        ordered.push(Module { name, content });
        Ok(())
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "ko") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            files.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

/// The modules that one names as its needs.
fn needs(content: &[u8]) -> Vec<String> {
    let Some(at) = content.windows(NEEDS.len()).position(|part| part == NEEDS) else {
        return Vec::new();
    };
    let list = &content[at + NEEDS.len()..];
    let list = list.split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(list);
    let names = names.split(',').filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_read_from_a_modules_notes() {
        assert_eq!(
            needs(b"ELF\0license=GPL\0depends=a-b,c\0x=y\0"),
            ["a_b", "c"]
        );
        assert!(needs(b"ELF\0depends=\0x=y\0").is_empty());
        assert!(needs(b"ELF").is_empty());
    }

    #[test]
    fn a_module_comes_after_what_it_needs_and_once() {
        let folder = std::env::temp_dir().join(format!("xtask-modules-{}", std::process::id()));
        fs::create_dir_all(folder.join("deep")).unwrap();
        for (file, needs) in [
            ("top.ko", "low,mid-dle"),
            ("deep/mid-dle.ko", "low"),
            ("low.ko", ""),
        ] {
            fs::write(folder.join(file), format!("\0depends={needs}\0")).unwrap();
        }
        let found = Modules::find(&folder)
            .unwrap()
            .in_order(&["top", "low", "built_in"]);
        fs::remove_dir_all(&folder).unwrap();
        let names: Vec<String> = found
            .unwrap()
            .into_iter()
            .map(|module| module.name)
            .collect();
        assert_eq!(names, ["low", "mid_dle", "top"]);
    }
}
