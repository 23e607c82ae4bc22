//! Where programs are found: by the invoking user, and by an ordinary user
//! who cannot enter every folder that root can.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Programs that `setup` brings for the tests alone.
pub(crate) const TOOLS: &str = "/usr/local/lib/ringfence-tests/bin";

/// Where a system keeps its programs; the start of every search path built here.
const SYSTEM: &[&str] = &[
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    TOOLS,
];

/// The folders of `PATH`, then the system's own and cargo's.
pub(crate) fn own_path() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    folders.extend(SYSTEM.iter().map(PathBuf::from));
    folders.extend(cargo_home().map(|home| home.join("bin")));
    folders
}

/// The system's folders, then those of `PATH` that every user may enter.
pub(crate) fn public_path() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    for folder in own_path() {
        if !folders.contains(&folder) && open_to_others(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The first executable file called `program` in `folders`.
pub(crate) fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let candidates = folders.iter().map(|folder| folder.join(program));
    candidates.into_iter().find(|path| is_executable(path))
}

/// Whether every user may enter `folder`, which means each folder above it too.
pub(crate) fn open_to_others(folder: &Path) -> bool {
    const ENTER: u32 = 0o001;
    let Ok(real) = fs::canonicalize(folder) else {
        return false;
    };
    folder.is_absolute()
        && real.ancestors().all(|part| {
            fs::metadata(part).is_ok_and(|about| about.permissions().mode() & ENTER != 0)
        })
}

fn is_executable(path: &Path) -> bool {
    const ANY_EXECUTE: u32 = 0o111;
    fs::metadata(path)
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & ANY_EXECUTE != 0)
}

fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_is_found_and_nonsense_is_not() {
        let path = public_path();
        assert!(find("sh", &path).is_some());
        assert_eq!(find("no-such-program-anywhere", &path), None);
    }

    #[test]
    fn a_closed_or_relative_folder_is_not_open_to_others() {
        let folder = env::temp_dir().join(format!("xtask-closed-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let inner = folder.join("bin");
        fs::create_dir(&inner).unwrap();
        let verdict = open_to_others(&inner);
        fs::remove_dir_all(&folder).unwrap();
        assert!(!verdict);
        assert!(!open_to_others(Path::new(".")));
        assert!(open_to_others(Path::new("/usr/bin")));
    }
}
