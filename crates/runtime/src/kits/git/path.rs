//! Where programs of the host are looked for.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where they are when nothing else is left.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// `path` without folders that code which ran in `folder` could have put a
/// program into: those in it, such as `node_modules/.bin`, and relative ones.
pub(super) fn outside_of(folder: &Path, path: Option<&OsStr>) -> OsString {
    let path = path.unwrap_or(OsStr::new(USUAL));
    let is_within = |own: &Path| {
        let real = std::fs::canonicalize(own);
        own.starts_with(folder) || real.is_ok_and(|real| real.starts_with(folder))
    };
    let kept: Vec<PathBuf> = std::env::split_paths(path)
        .filter(|own| own.is_absolute() && !is_within(own))
        .collect();
    match std::env::join_paths(kept) {
        Ok(kept) if !kept.is_empty() => kept,
        _ => USUAL.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn g4_programs_of_the_working_folder_are_not_found() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let text = |name: &str| place.join(name).display().to_string();
        for name in ["work/bin", "other"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        symlink(place.join("work/bin"), place.join("alias")).unwrap();
        let all = ["work/bin", "work/none", "alias", "other"].map(text);
        let path = format!("{}:bin:.::/usr/bin", all.join(":"));
        let kept = outside_of(&place.join("work"), Some(OsStr::new(&path)));
        assert_eq!(kept, OsString::from(format!("{}:/usr/bin", text("other"))));
        for path in [None, Some(OsStr::new("")), Some(OsStr::new("bin:."))] {
            assert_eq!(outside_of(&place, path), USUAL);
        }
    }
}
