//! Folders whose files root alone may read, shown to a command that root starts by srt's command
//! line.
//!
//! The sandbox of root has another id on the host, so such files would be shut. Shown through an
//! id-mapped mount they are the command's own, read-only; hidden places in them stay hidden. Only
//! folders whose file system is known to take such a mount, with nothing mounted below: what is
//! mounted below might not show any more.

use std::path::{Path, PathBuf};

/// File systems that have had id-mapped mounts for as long as this program runs anywhere.
const MAPPABLE: [&str; 4] = ["ext4", "xfs", "btrfs", "f2fs"];
/// Folders that the sandbox has its own of, wholly or in part, that are not files, or that are
/// hidden unless they are the home folder.
const OTHERS: [&str; 8] = [
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/tmp",
    "/var",
    "/root",
    "/lost+found",
];

/// Those of this machine; none where somebody else than root asks.
pub(super) fn roots_folders() -> Vec<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts: Vec<Mount<'_>> = table.lines().filter_map(Mount::parse).collect();
    let mut found: Vec<PathBuf> = top_folders()
        .into_iter()
        .filter(|folder| is_mappable(folder, &mounts))
        .collect();
    found.sort();
    found
}

fn top_folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/").into_iter().flatten();
    let folders = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path());
    folders
        .filter(|path| !OTHERS.iter().any(|own| path == Path::new(own)))
        .collect()
}

struct Mount<'a> {
    at: &'a Path,
    kind: &'a str,
}

impl<'a> Mount<'a> {
    /// A line of `mountinfo` (proc(5)). A place with an escaped character is taken as written,
    /// which is below the same folder of the root.
    fn parse(line: &'a str) -> Option<Self> {
        let (place, system) = line.split_once(" - ")?;
        Some(Self {
            at: Path::new(place.split(' ').nth(4)?),
            kind: system.split(' ').next()?,
        })
    }
}

/// Whether the last mount at or above `folder` can be mapped, and none is below.
fn is_mappable(folder: &Path, mounts: &[Mount<'_>]) -> bool {
    let above = mounts.iter().filter(|mount| folder.starts_with(mount.at));
    let own = above.max_by_key(|mount| mount.at.as_os_str().len());
    let is_below = |mount: &Mount<'_>| mount.at != folder && mount.at.starts_with(folder);
    own.is_some_and(|mount| MAPPABLE.contains(&mount.kind)) && !mounts.iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/a rw
30 27 0:30 / /var/lib/x rw - tmpfs x rw
31 27 8:2 / /srv rw - xfs /dev/b rw
32 27 0:40 / /mnt rw - nfs4 h:/x rw";

    #[test]
    fn folders_that_can_be_mapped_as_a_whole_are_taken() {
        let mounts: Vec<_> = TABLE.lines().filter_map(Mount::parse).collect();
        for (folder, taken) in [
            ("/etc", true),
            ("/srv", true),
            ("/var", false),
            ("/mnt", false),
        ] {
            assert_eq!(is_mappable(Path::new(folder), &mounts), taken, "{folder}");
        }
        assert!(!is_mappable(Path::new("/etc"), &[]));
    }

    #[test]
    fn what_the_sandbox_has_its_own_of_is_not_among_them() {
        let folders = roots_folders();
        assert!(!folders.iter().any(|path| path == Path::new("/proc")));
        assert!(folders.is_empty() || rustix::process::geteuid().is_root());
    }
}
