//! [`KitPath`]: where a kit's file goes inside.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use super::fault::KitFault;

/// The folder of a kit's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KitRoot {
    /// The home folder inside.
    Home,
    /// The working folder.
    Workspace,
    /// The private `/tmp`.
    Temporary,
}

/// A file's place, below one of the folders that are writable inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct KitPath {
    /// The folder.
    pub root: KitRoot,
    /// The rest: one or more names.
    pub below: PathBuf,
}

/// How the folders are written in kits.
const ROOTS: [(&str, KitRoot); 6] = [
    ("${WORKDIR}/", KitRoot::Workspace),
    ("/home/agent/", KitRoot::Home),
    ("~/", KitRoot::Home),
    ("$HOME/", KitRoot::Home),
    ("${HOME}/", KitRoot::Home),
    ("/tmp/", KitRoot::Temporary),
];

impl KitPath {
    /// A path below `root`: names only, no `..`.
    pub fn new(root: KitRoot, below: &Path) -> Result<Self, KitFault> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let text = below
            .to_str()
            .filter(|text| !text.contains(char::is_control));
        if text.is_none_or(str::is_empty) || !below.components().all(is_plain) {
            return Err(KitFault::Path(below.display().to_string()));
        }
        Ok(Self {
            root,
            below: below.components().collect(),
        })
    }

    /// Reads a path of `setup.files`. `None` is an absolute path that is not writable here.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, KitFault> {
        for (prefix, root) in ROOTS {
            if let Some(below) = text.strip_prefix(prefix) {
                return Self::new(root, Path::new(below)).map(Some);
            }
        }
        let climbs = text.split('/').any(|part| part == "..");
        if !text.starts_with('/') || climbs || text.contains(char::is_control) {
            return Err(KitFault::Path(text.to_owned()));
        }
        Ok(None)
    }
}

impl fmt::Display for KitPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = match self.root {
            KitRoot::Home => "~",
            KitRoot::Workspace => "${WORKDIR}",
            KitRoot::Temporary => "/tmp",
        };
        write!(f, "{root}/{}", self.below.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_below_what_is_writable() {
        for (text, shown) in [
            ("/home/agent/.config/a.json", "~/.config/a.json"),
            ("~/a", "~/a"),
            ("${WORKDIR}/a//b", "${WORKDIR}/a/b"),
            ("/tmp/x", "/tmp/x"),
        ] {
            let path = KitPath::parse(text).unwrap().unwrap();
            assert_eq!(path.to_string(), shown);
        }
        assert_eq!(KitPath::parse("/etc/hosts").unwrap(), None);
        for text in [
            "a",
            "./a",
            "",
            "~/",
            "/tmp/../etc/x",
            "/etc/../x",
            "/tmp/a\nb",
        ] {
            assert!(KitPath::parse(text).is_err(), "{text:?}");
        }
    }
}
