//! Looking at processes of this machine.

use std::os::unix::fs::MetadataExt;

/// The user and the group that the test runs as.
pub fn own_ids() -> (u32, u32) {
    let own = std::fs::metadata("/proc/self").expect("our own entry in /proc");
    (own.uid(), own.gid())
}

/// The processes with `marker` somewhere in their arguments.
pub fn processes_with(marker: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("a listing of /proc");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|arguments| String::from_utf8_lossy(&arguments).contains(marker))
        })
        .collect()
}

/// A field of a process's status, such as `Uid:`; empty when it is gone.
pub fn status_of(pid: u32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap_or_default()
        .trim()
        .to_owned()
}
