//! Which mechanism could hold limits here, best first.

use std::path::{Path, PathBuf};

use super::{Check, Finding, Health};

/// The best rung of the ladder: a delegated cgroup v2, a systemd user scope,
/// a writable cgroup v1, or only the limits of single processes.
pub(super) fn limits() -> Finding {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(folder) = delegated_v2(&own, &mounts) {
        return Finding::ok(
            Check::Limits,
            format!("cgroup v2 delegated at {}", folder.display()),
        );
    }
    if has_user_manager() {
        return Finding::ok(Check::Limits, "systemd user scope");
    }
    if let Some(folder) = writable_v1(&own, &mounts) {
        return Finding::ok(Check::Limits, format!("cgroup v1 at {}", folder.display()));
    }
    Finding::not_there(
        Check::Limits,
        Health::Absent,
        "only the limits of single processes",
        "log in through systemd, or delegate a cgroup: systemd-run --user --scope -p Delegate=yes $SHELL",
    )
}

fn delegated_v2(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = mount_point(mounts, "cgroup2", None)?.join(path);
    let controllers = std::fs::read_to_string(folder.join("cgroup.controllers")).ok()?;
    let useful = controllers
        .split_whitespace()
        .any(|name| matches!(name, "memory" | "pids" | "cpu"));
    (useful && is_writable(&folder)).then_some(folder)
}

fn writable_v1(own: &str, mounts: &str) -> Option<PathBuf> {
    let line = own.lines().find(|line| {
        line.split(':')
            .nth(1)
            .is_some_and(|names| names.split(',').any(|n| n == "memory"))
    })?;
    let path = line.splitn(3, ':').nth(2)?.trim_start_matches('/');
    let folder = mount_point(mounts, "cgroup", Some("memory"))?.join(path);
    is_writable(&folder).then_some(folder)
}

/// Where a cgroup hierarchy is mounted, by its type and a controller.
fn mount_point(mounts: &str, kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (found, options) = (right.next()?, right.nth(1)?);
        let holds = controller.is_none_or(|name| options.split(',').any(|option| option == name));
        (found == kind && holds).then(|| left.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

fn has_user_manager() -> bool {
    std::env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|folder| Path::new(&folder).join("systemd/private").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 20 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        31 20 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn hierarchies_are_found_by_type_and_controller() {
        let memory = mount_point(MOUNTS, "cgroup", Some("memory"));
        assert_eq!(memory.as_deref(), Some(Path::new("/sys/fs/cgroup/memory")));
        assert_eq!(mount_point(MOUNTS, "cgroup", Some("pids")), None);
        assert_eq!(
            mount_point(MOUNTS, "cgroup2", None).as_deref(),
            Some(Path::new("/sys/fs/cgroup/unified"))
        );
    }
}
