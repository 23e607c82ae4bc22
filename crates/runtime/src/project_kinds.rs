//! What kind of project a folder holds.

use std::path::Path;

/// As many entries of a folder as are looked at: a project's files are few, and
/// a folder may hold millions.
const MOST_ENTRIES: usize = 10_000;

/// The presets whose files are in `folder`; none if it cannot be read. Code
/// inside may have written it, so it is good for a suggestion and no more.
pub fn project_kinds(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let entries = entries.take(MOST_ENTRIES).flatten();
    let names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    ringfence_policy::project_kinds(names.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_looked_at_and_a_missing_one_is_of_no_kind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(project_kinds(folder.path()).is_empty());
        std::fs::write(folder.path().join("go.mod"), "").unwrap();
        assert_eq!(project_kinds(folder.path()), ["go"]);
        assert!(project_kinds(&folder.path().join("missing")).is_empty());
    }
}
