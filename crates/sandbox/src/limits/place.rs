//! Where control groups can be made: the hierarchies that are mounted here,
//! and our own place in each.

use std::path::{Component, Path, PathBuf};

use super::files::{self, Folder};
use super::scope;
use crate::mount_table::MountTable;

/// As much as the list of our groups usually takes.
const USUAL: usize = 1024;

/// What a control group can hold or count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Controller {
    Cpu,
    Memory,
    Pids,
    /// CPU time that was used.
    CpuTime,
}

impl Controller {
    /// Its name in version 1.
    pub(crate) fn v1_name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::CpuTime => "cpuacct",
        }
    }

    /// Its name in version 2, where every group counts its CPU time.
    pub(crate) fn v2_name(self) -> Option<&'static str> {
        match self {
            Self::CpuTime => None,
            other => Some(other.v1_name()),
        }
    }
}

/// The hierarchies, and our own place in each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    v1: Vec<(Vec<String>, PathBuf)>,
    /// Our own place, then those above it up to the top of what is mounted.
    v2: Vec<PathBuf>,
}

impl Hierarchies {
    /// Those of this process.
    pub(crate) fn here() -> Self {
        Self::among(&MountTable::read())
    }

    /// Those of this process, which has these mounts.
    pub(crate) fn among(mounts: &MountTable) -> Self {
        let own = files::read(Path::new("/proc/self/cgroup"), USUAL);
        Self::find(&own.unwrap_or_default(), &mounts.text(), Path::new("/"))
    }

    /// From the texts of `/proc/PID/cgroup` and `/proc/PID/mountinfo`; mount
    /// points are taken below `root`.
    fn find(own: &str, mounts: &str, root: &Path) -> Self {
        let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        let mut found = Self::default();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(names), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            let Some(mount) = mounts.iter().find(|mount| mount.is_of(&names)) else {
                continue;
            };
            let Some((top, place)) = mount.place_of(path, root) else {
                continue;
            };
            if mount.version == Version::Two {
                let above = place.ancestors().take_while(|at| at.starts_with(&top));
                found.v2 = above.map(Path::to_path_buf).collect();
            } else {
                found.v1.push((names, place));
            }
        }
        found
    }

    /// Our own place in version 1 for this controller.
    pub(crate) fn v1(&self, controller: Controller) -> Option<&Path> {
        let holds = |names: &[String]| names.iter().any(|name| name == controller.v1_name());
        let found = self.v1.iter().find(|(names, _)| holds(names));
        found.map(|(_, place)| place.as_path())
    }

    /// Our own place in version 2, then those above it.
    pub(crate) fn v2(&self) -> &[PathBuf] {
        &self.v2
    }

    /// Whether a group elsewhere in version 2 could hold any of these: the
    /// topmost that we see has the controllers, and we were given no place yet.
    pub(crate) fn may_gain(&self, wanted: &[Controller]) -> bool {
        let top = self.v2.last().map(Folder::new);
        let known = top.and_then(|top| top.read("cgroup.controllers"));
        let known = known.unwrap_or_default();
        let is_known = |name: &str| known.split_whitespace().any(|word| word == name);
        let mut names = wanted.iter().filter_map(|controller| controller.v2_name());
        names.any(is_known) && !self.v2.first().is_some_and(|own| scope::holds(own))
    }

    /// The least memory that a group we are in may use.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        let above = self.v2.iter();
        let v2 = above.filter_map(|place| Folder::new(place).number("memory.max"));
        let v1 = self.v1(Controller::Memory);
        let v1 = v1.and_then(|place| Folder::new(place).number("memory.limit_in_bytes"));
        v2.chain(v1).min()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A mounted hierarchy.
struct Mount<'a> {
    version: Version,
    /// The group that is shown at the mount point.
    shown: &'a str,
    point: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// One line of `/proc/PID/mountinfo` (proc(5)), if it is a hierarchy.
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let version = match right.next()? {
            "cgroup" => Version::One,
            "cgroup2" => Version::Two,
            _ => return None,
        };
        let options = right.nth(1)?;
        let mut left = left.split(' ').skip(3);
        let (shown, point) = (left.next()?, left.next()?);
        // Written with escapes: nobody mounts control groups there.
        let is_plain = !point.contains('\\') && !shown.contains('\\');
        is_plain.then_some(Self {
            version,
            shown,
            point,
            options,
        })
    }

    /// Whether it is the hierarchy with these controllers; version 2 has none.
    fn is_of(&self, names: &[String]) -> bool {
        let is_v2 = names.iter().all(String::is_empty);
        match self.version {
            Version::Two => is_v2,
            Version::One => {
                !is_v2
                    && names
                        .iter()
                        .all(|name| self.options.split(',').any(|option| option == name))
            }
        }
    }

    /// The mount point, and the folder of the group `path` below it.
    fn place_of(&self, path: &str, root: &Path) -> Option<(PathBuf, PathBuf)> {
        let below = Path::new(path).strip_prefix(self.shown).ok()?;
        let is_below = below
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let top = root.join(self.point.trim_start_matches('/'));
        // Joining nothing would add a slash.
        let place = if below.as_os_str().is_empty() {
            top.clone()
        } else {
            top.join(below)
        };
        is_below.then_some((top, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
";

    fn find(own: &str, mounts: &str) -> Hierarchies {
        Hierarchies::find(own, mounts, Path::new("/fake"))
    }

    #[test]
    fn version_1_is_found_by_controller() {
        let own = "4:memory:/jobs/a\n2:cpu,cpuacct:/\n9:name=systemd:/x\n";
        let found = find(own, MOUNTS);
        let place = |controller| found.v1(controller).map(|path| path.to_str().unwrap());
        assert_eq!(
            place(Controller::Memory),
            Some("/fake/sys/fs/cgroup/memory/jobs/a")
        );
        for controller in [Controller::Cpu, Controller::CpuTime] {
            assert_eq!(place(controller), Some("/fake/sys/fs/cgroup/cpu,cpuacct"));
        }
        assert_eq!(place(Controller::Pids), None);
        assert!(found.v2().is_empty());
    }

    #[test]
    fn version_2_is_our_own_place_and_all_above_it() {
        let found = find("0::/user.slice/shell.scope\n", MOUNTS);
        let places: Vec<_> = found.v2().iter().map(|at| at.to_str().unwrap()).collect();
        assert_eq!(
            places,
            [
                "/fake/sys/fs/cgroup/unified/user.slice/shell.scope",
                "/fake/sys/fs/cgroup/unified/user.slice",
                "/fake/sys/fs/cgroup/unified",
            ]
        );
    }

    #[test]
    fn a_mount_that_shows_a_part_is_taken_from_there() {
        let mounts = "41 31 0:38 /pods/p1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let found = find("0::/pods/p1/work\n", mounts);
        assert_eq!(found.v2()[0], Path::new("/fake/sys/fs/cgroup/work"));
        assert_eq!(found.v2().len(), 2);
        // Another part than ours, or one that lies above it.
        assert!(find("0::/elsewhere\n", mounts).v2().is_empty());
        assert!(find("0::/pods/p1/../p2\n", mounts).v2().is_empty());
    }

    #[test]
    fn a_place_elsewhere_is_worth_asking_for_only_with_controllers() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("cg")).unwrap();
        let controllers = root.path().join("cg/cgroup.controllers");
        let mounts = "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n";
        let gain = |own: &str, wanted: Controller| {
            let own = format!("0::/{own}\n");
            Hierarchies::find(&own, mounts, root.path()).may_gain(&[wanted])
        };
        assert!(!gain("session-1.scope", Controller::Memory));
        std::fs::write(controllers, "cpuset memory pids\n").unwrap();
        assert!(gain("session-1.scope", Controller::Memory));
        // What no group holds, or what comes with any.
        assert!(!gain("session-1.scope", Controller::Cpu));
        assert!(!gain("session-1.scope", Controller::CpuTime));
        // Asked for and got already.
        let given = "app.slice/ringfence-1-2-3-0000000a.scope/below";
        assert!(!gain(given, Controller::Memory));
        assert!(!Hierarchies::default().may_gain(&[Controller::Memory]));
    }

    #[test]
    fn nonsense_is_passed_over() {
        assert_eq!(find("", ""), Hierarchies::default());
        assert_eq!(find("x\n1:\n::\n", "a b\n - \n"), Hierarchies::default());
    }

    #[test]
    fn the_least_limit_above_counts() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("cg");
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/memory.max"), "1000\n").unwrap();
        std::fs::write(top.join("a/b/memory.max"), "max\n").unwrap();
        let mounts = "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw\n";
        let found = Hierarchies::find("0::/a/b\n", mounts, root.path());
        assert_eq!(found.memory_limit(), Some(1000));
    }
}
