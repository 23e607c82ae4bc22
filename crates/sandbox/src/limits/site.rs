//! A place of version 2 below which a group can be made.
//!
//! Of all places from our own upwards that we may change, the one whose
//! children can have the most of the wanted controllers, and of those the
//! nearest: below it, every limit that holds for us holds for the sandbox too.

use std::path::PathBuf;

use ringfence_sys::Errno;

use super::files::{Folder, errno_of};
use super::name::GroupName;
use super::part;
use super::place::Controller;
use crate::cradle::Cradle;

const ENABLED: &str = "cgroup.subtree_control";
const PROCESSES: &str = "cgroup.procs";

/// Who is in the place itself: groups with controllers below them must not
/// have processes of their own, but for the topmost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crowd {
    Nobody,
    OnlyUs,
}

/// A place, and what its children can have.
#[derive(Debug)]
pub(crate) struct Site {
    folder: Folder,
    enabled: Vec<Controller>,
    to_enable: Vec<Controller>,
    crowd: Crowd,
}

impl Site {
    /// The best of `places`, which start with our own.
    pub(crate) fn best(places: &[PathBuf], wanted: &[Controller], cradle: &Cradle) -> Option<Self> {
        let named: Vec<Controller> = wanted
            .iter()
            .copied()
            .filter(|controller| controller.v2_name().is_some())
            .collect();
        let mut best: Option<Self> = None;
        for place in places {
            let Some(site) = Self::look(Folder::new(place), &named, cradle) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| best.worth() < site.worth()) {
                best = Some(site);
            }
        }
        best
    }

    fn look(folder: Folder, wanted: &[Controller], cradle: &Cradle) -> Option<Self> {
        let listed = |file: &str| -> Vec<Controller> {
            let text = folder.read(file).unwrap_or_default();
            let lists = |name: &str| text.split_whitespace().any(|word| word == name);
            let all = wanted.iter().copied();
            all.filter(|controller| controller.v2_name().is_some_and(lists))
                .collect()
        };
        // Those that are enabled are among them. Beside hierarchies of version
        // 1, there are often none.
        let possible = listed("cgroup.controllers");
        if possible.is_empty() {
            return None;
        }
        if !folder.may_write("") || !folder.may_write(PROCESSES) || !is_domain(&folder) {
            return None;
        }
        // Who bears the sandbox's first process there has our id, but no rights
        // over anybody else's files, even if we are root.
        if folder.is_anothers(PROCESSES) {
            return None;
        }
        let enabled = listed(ENABLED);
        let crowd = crowd_in(&folder, cradle);
        let to_enable = if crowd.is_some() && folder.may_write(ENABLED) {
            let mut to_enable = possible;
            to_enable.retain(|controller| !enabled.contains(controller));
            to_enable
        } else {
            Vec::new()
        };
        let site = Self {
            folder,
            enabled,
            to_enable,
            crowd: crowd.unwrap_or(Crowd::Nobody),
        };
        (site.worth() > 0).then_some(site)
    }

    fn worth(&self) -> usize {
        self.enabled.len() + self.to_enable.len()
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Makes the controllers available to children, and says which are.
    pub(crate) fn prepare(
        &self,
        cradle: &Cradle,
    ) -> Result<(Vec<Controller>, Option<Leaf>), Errno> {
        let mut available = self.enabled.clone();
        if self.to_enable.is_empty() {
            return Ok((available, None));
        }
        let mut leaf = (self.crowd == Crowd::OnlyUs)
            .then(|| {
                cradle.dismiss();
                Leaf::enter(&self.folder)
            })
            .transpose()?;
        for controller in &self.to_enable {
            let name = controller.v2_name().unwrap_or_default();
            if self.folder.write(ENABLED, format!("+{name}")).is_ok() {
                available.push(*controller);
                if let Some(leaf) = &mut leaf {
                    leaf.enabled.push(name);
                }
            }
        }
        Ok((available, leaf))
    }
}

/// Whether it can have children with controllers for processes.
fn is_domain(folder: &Folder) -> bool {
    folder
        .read("cgroup.type")
        .is_none_or(|kind| kind.trim() == "domain")
}

/// `None` when others are in the way of controllers.
fn crowd_in(folder: &Folder, cradle: &Cradle) -> Option<Crowd> {
    // The topmost group of the machine has no type, and may have processes.
    if !folder.has("cgroup.type") {
        return Some(Crowd::Nobody);
    }
    let processes = folder.read(PROCESSES)?;
    if processes.is_empty() {
        return Some(Crowd::Nobody);
    }
    let ours = [Some(std::process::id()), cradle.holder()];
    let is_ours = |line: &str| line.parse().is_ok_and(|pid| ours.contains(&Some(pid)));
    processes.lines().all(is_ours).then_some(Crowd::OnlyUs)
}

/// A group below our own that we moved into, so that controllers could be
/// enabled there.
#[derive(Debug)]
pub(crate) struct Leaf {
    above: Folder,
    folder: Folder,
    enabled: Vec<&'static str>,
}

impl Leaf {
    fn enter(above: &Folder) -> Result<Self, Errno> {
        let name = GroupName::new()?.to_string();
        let folder = Folder::new(above.path().join(name));
        std::fs::create_dir(folder.path()).map_err(|error| errno_of(&error))?;
        let leaf = Self {
            above: above.clone(),
            folder,
            enabled: Vec::new(),
        };
        match leaf.folder.write(PROCESSES, "0") {
            Ok(()) => Ok(leaf),
            Err(errno) => {
                part::remove(&leaf.folder);
                Err(errno)
            }
        }
    }

    /// Puts everything back as it was.
    pub(crate) fn leave(&self) {
        for name in &self.enabled {
            let _ = self.above.write(ENABLED, format!("-{name}"));
        }
        // Only an empty group is removed: it must not end us.
        if self.above.write(PROCESSES, "0").is_ok() {
            let _ = rustix::fs::rmdir(self.folder.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [Controller; 4] = [
        Controller::Cpu,
        Controller::Memory,
        Controller::Pids,
        Controller::CpuTime,
    ];

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// A group as the kernel shows it; no type means the topmost.
        fn group(&self, path: &str, kind: Option<&str>, files: [&str; 3]) -> PathBuf {
            let place = self.0.path().join(path);
            std::fs::create_dir_all(&place).unwrap();
            let [controllers, enabled, processes] = files;
            let mut all = vec![
                ("cgroup.controllers", controllers),
                (ENABLED, enabled),
                (PROCESSES, processes),
            ];
            all.extend(kind.map(|kind| ("cgroup.type", kind)));
            for (name, text) in all {
                std::fs::write(place.join(name), text).unwrap();
            }
            place
        }
    }

    #[test]
    fn the_place_with_the_most_controllers_wins_then_the_nearest() {
        let tree = Tree::new();
        let top = tree.group("", None, ["cpu memory pids\n", "cpu memory pids\n", "1\n"]);
        let slice = tree.group(
            "s",
            Some("domain"),
            ["cpu memory pids\n", "memory pids\n", ""],
        );
        let own = tree.group("s/own", Some("domain"), ["memory pids\n", "", "1\n2\n"]);
        // The place in the middle can be given what it lacks.
        let site = Site::best(
            &[own.clone(), slice.clone(), top.clone()],
            &WANTED,
            &Cradle::default(),
        )
        .unwrap();
        assert_eq!(site.folder().path(), slice);
        assert_eq!(site.to_enable, [Controller::Cpu]);
        // Not when processes are in it: then the top has more.
        std::fs::write(slice.join(PROCESSES), "1\n").unwrap();
        let site = Site::best(&[own, slice, top.clone()], &WANTED, &Cradle::default()).unwrap();
        assert_eq!(site.folder().path(), top);
    }

    #[test]
    fn a_crowded_place_without_controllers_is_no_place() {
        let tree = Tree::new();
        let own = tree.group("own", Some("domain"), ["memory\n", "", "1\n2\n"]);
        assert!(Site::best(&[own], &WANTED, &Cradle::default()).is_none());
        let none = tree.group("none", Some("domain"), ["hugetlb\n", "hugetlb\n", ""]);
        assert!(Site::best(&[none], &WANTED, &Cradle::default()).is_none());
        let threads = tree.group("t", Some("threaded"), ["cpu\n", "cpu\n", ""]);
        assert!(Site::best(&[threads], &WANTED, &Cradle::default()).is_none());
    }

    #[test]
    fn a_place_of_our_own_is_used_from_a_leaf() {
        let tree = Tree::new();
        let us = format!("{}\n", std::process::id());
        let own = tree.group("own", Some("domain"), ["memory pids\n", "", &us]);
        let site = Site::best(&[own], &WANTED, &Cradle::default()).unwrap();
        assert_eq!(site.crowd, Crowd::OnlyUs);
        assert_eq!(site.worth(), 2);
    }

    #[test]
    fn roots_sandbox_is_not_born_in_a_place_of_somebody_elses() {
        let tree = Tree::new();
        let own = tree.group("own", Some("domain"), ["memory\n", "memory\n", ""]);
        let best = || Site::best(std::slice::from_ref(&own), &WANTED, &Cradle::default());
        assert!(best().is_some());
        // Only root can give it away.
        if std::os::unix::fs::chown(own.join(PROCESSES), Some(4242), None).is_ok() {
            assert!(best().is_none());
        }
    }

    #[test]
    fn who_holds_the_namespaces_is_no_crowd_and_is_dismissed() {
        let tree = Tree::new();
        let cradle = Cradle::prepare();
        let holder = cradle.holder().unwrap();
        let ours = format!("{}\n{holder}\n", std::process::id());
        let own = tree.group("own", Some("domain"), ["memory pids\n", "", &ours]);
        let places = [own];
        let site = Site::best(&places, &WANTED, &cradle).unwrap();
        assert_eq!(site.crowd, Crowd::OnlyUs);
        assert!(Site::best(&places, &WANTED, &Cradle::default()).is_none());
        // Nobody can move into a folder that is no group.
        assert!(site.prepare(&cradle).is_err());
        assert_eq!(cradle.holder(), None);
    }
}
