//! What many starts in a row leave behind: the same things are listed before
//! and after, and anything new is a leak.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::procfs::{self, Process};
use super::timing::Candidate;

/// The kernel takes namespaces and cgroups down after the last process has ended.
const SETTLE: Duration = Duration::from_secs(2);

type Items = BTreeSet<String>;

/// Lists the things of one kind that exist now.
type Lister = fn() -> Items;

/// The kinds of things looked for, and how they are listed.
const KINDS: &[(&str, Lister)] = &[
    ("mounts", mounts),
    ("namespaces", namespaces),
    ("processes", processes),
    ("files", files),
    ("cgroups", cgroups),
];

/// One kind of thing before and after.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) before: usize,
    pub(super) after: usize,
    /// What was not there before.
    pub(super) left_behind: Vec<String>,
}

/// Starts `candidate` `runs` times and compares.
pub(super) fn measure(candidate: &Candidate, runs: usize) -> Result<Vec<Kind>> {
    // Orphans become our children, so that what was started here can be told
    // from what else runs on the machine (PR_SET_CHILD_SUBREAPER, prctl(2)).
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .context("cannot adopt orphans")?;
    let before = census();
    for _ in 0..runs {
        candidate.time()?;
    }
    Ok(settled(&before))
}

fn settled(before: &[Items]) -> Vec<Kind> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let kinds = compare(before, &census());
        let is_clean = kinds.iter().all(|kind| kind.left_behind.is_empty());
        if is_clean || Instant::now() > deadline {
            return kinds;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn census() -> Vec<Items> {
    KINDS.iter().map(|(_, list)| list()).collect()
}

fn compare(before: &[Items], after: &[Items]) -> Vec<Kind> {
    let both = KINDS.iter().zip(before.iter().zip(after));
    both.map(|((name, _), (before, after))| Kind {
        name: (*name).to_string(),
        before: before.len(),
        after: after.len(),
        left_behind: after.difference(before).cloned().collect(),
    })
    .collect()
}

fn mounts() -> Items {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().map(str::to_string).collect()
}

fn namespaces() -> Items {
    let me = procfs::process(std::process::id());
    let family = family().into_iter().chain(me);
    family.flat_map(|process| process.namespaces()).collect()
}

fn processes() -> Items {
    let family = family().into_iter();
    family
        .map(|process| format!("{} {}", process.pid, process.name))
        .collect()
}

fn family() -> Vec<Process> {
    let mut family = procfs::descendants(std::process::id());
    // Orphans that have ended are ours to wait for, not theirs.
    family.retain(|process| !process.is_zombie());
    family
}

/// Everything in our own temporary folder, and what bears our name in the
/// folders that the whole machine uses.
fn files() -> Items {
    let mut found = Items::new();
    list(&env::temp_dir(), &mut found, |_| true);
    for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let ours = paths.filter(|path| bears_our_name(path));
        found.extend(ours.map(|path| show(&path)));
    }
    found
}

fn cgroups() -> Items {
    let mut found = Items::new();
    list(Path::new("/sys/fs/cgroup"), &mut found, |path| {
        path.is_dir() && bears_our_name(path)
    });
    found
}

fn list(folder: &Path, found: &mut Items, wanted: fn(&Path) -> bool) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if wanted(&entry.path()) {
            found.insert(show(&entry.path()));
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), found, wanted);
        }
    }
}

fn bears_our_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().contains("ringfence")
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[&str]) -> Items {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_what_is_new_is_left_behind() {
        let before = vec![
            items(&["a", "b"]),
            items(&["n"]),
            items(&[]),
            items(&[]),
            items(&[]),
        ];
        let after = vec![
            items(&["b", "c"]),
            items(&["n"]),
            items(&[]),
            items(&[]),
            items(&[]),
        ];
        let kinds = compare(&before, &after);
        assert_eq!(kinds[0].left_behind, ["c"]);
        assert_eq!((kinds[0].before, kinds[0].after), (2, 2));
        assert!(kinds[1..].iter().all(|kind| kind.left_behind.is_empty()));
    }

    #[test]
    fn a_process_left_behind_is_seen() {
        let before = census();
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let kinds = compare(&before, &census());
        child.kill().unwrap();
        child.wait().unwrap();
        let processes = kinds.iter().find(|kind| kind.name == "processes").unwrap();
        let expected = format!("{} ", child.id());
        assert!(
            processes
                .left_behind
                .iter()
                .any(|item| item.starts_with(&expected))
        );
    }
}
