//! Hidden files that have another name.
//!
//! What is hidden is a place: a second hard link of a hidden file is read by its
//! own name, wherever that lies. Nothing knows the names of a file, so it is
//! said here and not prevented.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringfence_policy::{PathContext, PathRule, base_layer};

use super::{Check, Finding, Health};

/// The most entries that are looked at.
const MOST_ENTRIES: usize = 10_000;
/// How far below a hidden place.
const DEEPEST: usize = 4;
/// The most that are named.
const MOST_NAMED: usize = 3;

/// Looks through the hidden places of a home folder.
pub(super) fn examine(home: &Path) -> Finding {
    let context = PathContext {
        home: home.to_path_buf(),
        base: home.to_path_buf(),
    };
    let rules = base_layer(&context).filesystem.read_deny;
    let places = rules.into_iter().filter_map(|rule| match rule.value {
        PathRule::Literal(path) if path.starts_with(home) => Some(path),
        _ => None,
    });
    let mut look = Look::default();
    for place in places {
        look.at(&place, 0);
    }
    look.finding()
}

#[derive(Default)]
struct Look {
    entries: usize,
    linked: Vec<PathBuf>,
}

impl Look {
    fn at(&mut self, path: &Path, depth: usize) {
        let Ok(found) = std::fs::symlink_metadata(path) else {
            return;
        };
        self.entries += 1;
        if found.is_file() && found.nlink() > 1 {
            self.linked.push(path.to_path_buf());
        }
        if !found.is_dir() || depth == DEEPEST {
            return;
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            if self.entries >= MOST_ENTRIES {
                return;
            }
            self.at(&entry.path(), depth + 1);
        }
    }

    fn finding(self) -> Finding {
        let check = Check::HiddenFiles;
        let entries = self.entries;
        if self.linked.is_empty() {
            let detail = format!("each by one name, of {entries} entries looked at");
            return Finding::ok(check, detail);
        }
        let named: Vec<String> = self
            .linked
            .iter()
            .take(MOST_NAMED)
            .map(|path| path.display().to_string())
            .collect();
        let more = match self.linked.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let detail = format!(
            "with another name, a hard link, by which they may be readable inside: {}{more}",
            named.join(", ")
        );
        let fix = "find the other name: find / -xdev -samefile FILE; and hide it with --hide, or \
                   make FILE a file of its own: cp FILE FILE.new && mv FILE.new FILE";
        Finding::not_there(check, Health::Absent, detail, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g4_a_hidden_file_with_another_name_is_told() {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join(".ssh/id_test");
        std::fs::create_dir(home.path().join(".ssh")).unwrap();
        std::fs::write(&key, "key").unwrap();
        assert_eq!(examine(home.path()).health, Health::Ok);
        std::fs::hard_link(&key, home.path().join("copy")).unwrap();
        let told = examine(home.path());
        assert_eq!(told.health, Health::Absent);
        assert!(told.detail.contains(".ssh/id_test"), "{}", told.detail);
    }
}
