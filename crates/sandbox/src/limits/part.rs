//! One part of a control group: its folder in one hierarchy.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use ringfence_sys::Errno;
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::Mechanism;
use super::files::{Folder, errno_of};
use super::group::Shares;
use super::name::GroupName;
use super::place::Controller;
use super::scope;

/// What a CPU limit is a share of, in microseconds.
const PERIOD: u64 = 100_000;
/// The sandbox's first process is not the command's, and counts nevertheless.
pub(crate) const OWN_TASKS: u64 = 1;
/// How often the removal of a group is tried, with a longer wait each time:
/// about five seconds in all, which only a crowded machine ever takes.
const MOST_TRIES: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A folder that was made in one hierarchy, and what it holds.
#[derive(Debug)]
pub(crate) struct Part {
    version: Version,
    folder: Folder,
    /// The file that lets a process of version 1 in by itself, or the folder
    /// of version 2 that one can be born in.
    entrance: File,
    controllers: Vec<Controller>,
}

impl Part {
    pub(crate) fn make_v1(folder: &Path) -> Result<Self, Errno> {
        Self::make(folder, Version::One)
    }

    pub(crate) fn make_v2(folder: &Path) -> Result<Self, Errno> {
        Self::make(folder, Version::Two)
    }

    /// A folder that is there already.
    #[cfg(test)]
    pub(crate) fn fake_v1(path: &Path, controllers: &[Controller]) -> Self {
        Self {
            version: Version::One,
            folder: Folder::new(path),
            entrance: File::open(path).unwrap(),
            controllers: controllers.to_vec(),
        }
    }

    fn make(path: &Path, version: Version) -> Result<Self, Errno> {
        std::fs::create_dir(path).map_err(|error| errno_of(&error))?;
        let mut options = OpenOptions::new();
        let entrance = match version {
            Version::One => options.write(true).open(path.join("tasks")),
            Version::Two => options
                .read(true)
                .custom_flags(OFlags::DIRECTORY.bits().cast_signed())
                .open(path),
        };
        let folder = Folder::new(path);
        match entrance {
            Ok(entrance) => Ok(Self {
                version,
                folder,
                entrance,
                controllers: Vec::new(),
            }),
            Err(error) => {
                remove(&folder);
                Err(errno_of(&error))
            }
        }
    }

    /// Sets the shares of these controllers; those that can be set are its own
    /// from now on.
    pub(crate) fn set(&mut self, shares: &Shares, controllers: &[Controller]) {
        for controller in controllers {
            if self.set_one(shares, *controller).is_ok() {
                self.controllers.push(*controller);
            }
        }
    }

    fn set_one(&self, shares: &Shares, controller: Controller) -> Result<(), Errno> {
        match controller {
            Controller::Cpu => self.set_cpu(shares.cpu.ok_or(Errno::INVAL)?),
            Controller::Memory => self.set_memory(shares.memory.ok_or(Errno::INVAL)?),
            Controller::Pids => {
                let most = shares.pids.ok_or(Errno::INVAL)?;
                self.folder.write("pids.max", most + OWN_TASKS)
            }
            Controller::CpuTime => self.cpu_time().map(drop).ok_or(Errno::NOSYS),
        }
    }

    fn set_cpu(&self, millis: u64) -> Result<(), Errno> {
        let quota = millis.saturating_mul(PERIOD) / 1000;
        match self.version {
            Version::One => {
                self.folder.write("cpu.cfs_period_us", PERIOD)?;
                self.folder.write("cpu.cfs_quota_us", quota)
            }
            Version::Two => self.folder.write("cpu.max", format!("{quota} {PERIOD}")),
        }
    }

    /// Memory and swap together, or no swap: otherwise a limit would only move
    /// memory there.
    fn set_memory(&self, bytes: u64) -> Result<(), Errno> {
        let folder = &self.folder;
        match self.version {
            Version::One => {
                folder.write("memory.limit_in_bytes", bytes)?;
                match folder.write("memory.memsw.limit_in_bytes", bytes) {
                    // A kernel that does not count swap.
                    Err(Errno::NOENT) => folder.write("memory.swappiness", 0),
                    other => other,
                }
            }
            Version::Two => {
                folder.write("memory.max", bytes)?;
                folder.write("memory.oom.group", 1)?;
                match folder.write("memory.swap.max", 0) {
                    Err(Errno::NOENT) => Ok(()),
                    other => other,
                }
            }
        }
    }

    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        match self.version {
            Version::One => Mechanism::CgroupV1,
            Version::Two if scope::holds(self.path()) => Mechanism::SystemdScope,
            Version::Two => Mechanism::CgroupV2,
        }
    }

    pub(crate) fn is_v2(&self) -> bool {
        self.version == Version::Two
    }

    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.folder.path() == path
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn entrance(&self) -> &File {
        &self.entrance
    }

    pub(crate) fn memory_kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        self.folder.field(file, "oom_kill").unwrap_or(0)
    }

    pub(crate) fn pids_refused(&self) -> u64 {
        self.folder.field("pids.events", "max").unwrap_or(0)
    }

    pub(crate) fn throttled(&self) -> (u64, u64) {
        let field = |name| self.folder.field("cpu.stat", name).unwrap_or(0);
        (field("nr_throttled"), field("nr_periods"))
    }

    pub(crate) fn memory(&self) -> Option<u64> {
        let files: &[&str] = match self.version {
            Version::One => &[
                "memory.memsw.max_usage_in_bytes",
                "memory.max_usage_in_bytes",
            ],
            Version::Two => &["memory.peak", "memory.current"],
        };
        files.iter().find_map(|file| self.folder.number(file))
    }

    pub(crate) fn pids(&self) -> Option<u64> {
        let files = ["pids.peak", "pids.current"];
        let tasks = files.iter().find_map(|file| self.folder.number(file))?;
        Some(tasks.saturating_sub(OWN_TASKS))
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        match self.version {
            Version::One => self
                .folder
                .number("cpuacct.usage")
                .map(Duration::from_nanos),
            Version::Two => self
                .folder
                .field("cpu.stat", "usage_usec")
                .map(Duration::from_micros),
        }
    }

    /// Removes the folder, with an end for whatever is still in it.
    pub(crate) fn remove(&self) {
        remove(&self.folder);
    }
}

/// Removes the groups beside these whose supervisor was killed. Each hierarchy
/// is looked at: in another one, that supervisor may have had another place.
/// What is still busy is left to the next start.
pub(crate) fn remove_left_over(parts: &[Part], own: &GroupName) {
    for parent in parts.iter().filter_map(|part| part.path().parent()) {
        let Ok(entries) = parent.read_dir() else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let known = name.to_str().and_then(GroupName::parse);
            if known.is_some_and(|known| known.is_left_over_for(own)) {
                try_to_remove(&Folder::new(entry.path()));
            }
        }
    }
}

/// A group is busy until the last of its processes is gone altogether, which
/// takes a moment after its death.
pub(crate) fn remove(folder: &Folder) {
    for turn in 0..MOST_TRIES {
        if try_to_remove(folder) {
            return;
        }
        std::thread::sleep(Duration::from_millis(u64::from(turn)));
    }
}

/// False if it is busy; then whatever is in it is killed.
fn try_to_remove(folder: &Folder) -> bool {
    let is_busy = rustix::fs::rmdir(folder.path()) == Err(Errno::BUSY);
    if is_busy {
        kill_all_in(folder);
    }
    !is_busy
}

fn kill_all_in(folder: &Folder) {
    if folder.write("cgroup.kill", 1).is_ok() {
        return;
    }
    let processes = folder.read("cgroup.procs").unwrap_or_default();
    // Our own parent namespace's processes would read as 0.
    let pids = processes.lines().filter_map(|line| line.parse().ok());
    for pid in pids.filter_map(Pid::from_raw) {
        if let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(files: &[(&str, &str)]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("group");
        std::fs::create_dir(&group).unwrap();
        for (name, text) in files {
            std::fs::write(group.join(name), text).unwrap();
        }
        (folder, group)
    }

    fn part(version: Version, path: &Path) -> Part {
        Part {
            version,
            folder: Folder::new(path),
            entrance: File::open(path).unwrap(),
            controllers: Vec::new(),
        }
    }

    const ALL: [Controller; 4] = [
        Controller::Cpu,
        Controller::Memory,
        Controller::Pids,
        Controller::CpuTime,
    ];

    fn shares() -> Shares {
        Shares {
            cpu: Some(1500),
            memory: Some(64 << 20),
            pids: Some(20),
            cpu_time: Some(Duration::from_secs(1)),
            are_stated: true,
        }
    }

    #[test]
    fn shares_are_written_as_version_2_wants_them() {
        let files = [
            "cpu.max",
            "memory.max",
            "memory.swap.max",
            "memory.oom.group",
            "pids.max",
        ];
        let (_guard, path) = folder_with(&files.map(|name| (name, "")));
        std::fs::write(
            path.join("cpu.stat"),
            "usage_usec 2500000\nnr_periods 31\nnr_throttled 26\n",
        )
        .unwrap();
        let mut part = part(Version::Two, &path);
        part.set(&shares(), &ALL);
        assert_eq!(part.controllers(), ALL);
        let read = |name| std::fs::read_to_string(path.join(name)).unwrap();
        assert_eq!(read("cpu.max"), "150000 100000");
        assert_eq!(read("memory.max"), "67108864");
        assert_eq!(
            (read("memory.swap.max"), read("memory.oom.group")),
            ("0".into(), "1".into())
        );
        assert_eq!(read("pids.max"), "21");
        assert_eq!(part.cpu_time(), Some(Duration::from_millis(2500)));
        assert_eq!(part.throttled(), (26, 31));
    }

    #[test]
    fn shares_are_written_as_version_1_wants_them() {
        let files = [
            "cpu.cfs_period_us",
            "cpu.cfs_quota_us",
            "memory.limit_in_bytes",
            "memory.memsw.limit_in_bytes",
            "pids.max",
        ];
        let (_guard, path) = folder_with(&files.map(|name| (name, "")));
        std::fs::write(path.join("cpuacct.usage"), "2500000000\n").unwrap();
        let mut part = part(Version::One, &path);
        part.set(&shares(), &ALL);
        assert_eq!(part.controllers(), ALL);
        let read = |name| std::fs::read_to_string(path.join(name)).unwrap();
        assert_eq!(read("cpu.cfs_quota_us"), "150000");
        assert_eq!(read("memory.memsw.limit_in_bytes"), "67108864");
        assert_eq!(part.cpu_time(), Some(Duration::from_millis(2500)));
    }

    #[test]
    fn a_controller_that_is_not_there_holds_nothing() {
        let (_guard, path) = folder_with(&[("pids.max", "")]);
        for version in [Version::One, Version::Two] {
            let mut part = part(version, &path);
            part.set(&shares(), &ALL);
            assert_eq!(part.controllers(), [Controller::Pids]);
        }
    }

    #[test]
    fn counters_are_read_from_either_version() {
        let files = [
            (
                "memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
            ),
            ("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n"),
            ("memory.max_usage_in_bytes", "4096\n"),
            ("memory.peak", "8192\n"),
            ("pids.current", "5\n"),
            ("pids.events", "max 3\n"),
        ];
        let (_guard, path) = folder_with(&files);
        let (one, two) = (part(Version::One, &path), part(Version::Two, &path));
        assert_eq!((one.memory_kills(), two.memory_kills()), (1, 2));
        assert_eq!((one.memory(), two.memory()), (Some(4096), Some(8192)));
        assert_eq!((one.pids(), two.pids_refused()), (Some(4), 3));
    }

    #[test]
    fn a_group_in_a_scope_that_was_asked_for_says_so() {
        let root = tempfile::tempdir().unwrap();
        let name = GroupName::new().unwrap();
        let place = root.path().join(format!("{name}.scope"));
        std::fs::create_dir(&place).unwrap();
        let mechanism = |version, path: &Path| part(version, path).mechanism();
        assert_eq!(mechanism(Version::Two, &place), Mechanism::SystemdScope);
        assert_eq!(mechanism(Version::Two, root.path()), Mechanism::CgroupV2);
        assert_eq!(mechanism(Version::One, &place), Mechanism::CgroupV1);
    }

    #[test]
    fn what_a_dead_supervisor_left_is_removed_in_every_hierarchy() {
        let root = tempfile::tempdir().unwrap();
        let own = GroupName::new().unwrap();
        let alive = own.to_string();
        // No process has this id.
        let mut fields: Vec<String> = alive.split('-').map(str::to_owned).collect();
        fields[1] = u32::MAX.to_string();
        let dead = fields.join("-");
        let parts: Vec<Part> = ["memory", "pids"]
            .into_iter()
            .map(|hierarchy| {
                let parent = root.path().join(hierarchy);
                for name in [alive.as_str(), dead.as_str(), "other-group"] {
                    std::fs::create_dir_all(parent.join(name)).unwrap();
                }
                part(Version::One, &parent.join(&alive))
            })
            .collect();
        remove_left_over(&parts, &own);
        for hierarchy in ["memory", "pids"] {
            let there = |name: &str| root.path().join(hierarchy).join(name).exists();
            assert!(!there(&dead) && there(&alive) && there("other-group"));
        }
    }
}
