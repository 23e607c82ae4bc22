//! Facts about processes, read from `/proc` as proc(5) describes it.
//! A process may end at any time: what cannot be read is left out.

use std::collections::BTreeMap;
use std::fs;

/// A process of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// The command's name, at most 15 bytes.
    pub(super) name: String,
    state: char,
}

impl Process {
    /// Ended, and only waiting for its parent to ask.
    pub(super) fn is_zombie(&self) -> bool {
        self.state == 'Z'
    }

    /// Its number in each pid namespace, ours first. More than one: it is in
    /// another namespace; the last is 1: it is that namespace's init.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let status = read(self.pid, "status");
        let line = field(&status, "NSpid:").unwrap_or_default();
        line.split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect()
    }

    /// Proportional set size, if this user may read it.
    pub(super) fn pss_kib(&self) -> Option<u64> {
        kib(&read(self.pid, "smaps_rollup"), "Pss:")
    }

    /// The largest resident set size so far.
    pub(super) fn peak_rss_kib(&self) -> Option<u64> {
        kib(&read(self.pid, "status"), "VmHWM:")
    }

    /// How many threads it has.
    pub(super) fn threads(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid));
        tasks.into_iter().flatten().count()
    }

    /// The namespaces it is in, as `kind:[number]`.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let entries = fs::read_dir(format!("/proc/{}/ns", self.pid));
        let links = entries.into_iter().flatten().flatten();
        links
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .map(|link| link.to_string_lossy().into_owned())
            .collect()
    }

    /// Reads `/proc/<pid>/stat`; the name stands in parentheses and may hold any byte.
    fn parse(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        Some(Self {
            pid: pid.parse().ok()?,
            name: name.to_string(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

/// The living and dead descendants of `ancestor`, itself not included.
pub(super) fn descendants(ancestor: u32) -> Vec<Process> {
    below(ancestor, all())
}

/// Process `pid`, if it exists.
pub(super) fn process(pid: u32) -> Option<Process> {
    Process::parse(&read(pid, "stat"))
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect()
}

fn below(ancestor: u32, processes: Vec<Process>) -> Vec<Process> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

fn read(pid: u32, file: &str) -> String {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn kib(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse().ok()
}

/// What follows `name` on the line that starts with it.
pub(super) fn field<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, parent: u32) -> Process {
        Process {
            pid,
            parent,
            name: "x".into(),
            state: 'S',
        }
    }

    #[test]
    fn a_name_may_hold_parentheses_and_spaces() {
        let process = Process::parse("12 (a) (b) Z 7 12 12 0").unwrap();
        assert_eq!(
            (process.pid, process.parent, process.name.as_str()),
            (12, 7, "a) (b")
        );
        assert!(process.is_zombie());
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_in_any_order() {
        let processes = vec![sample(5, 4), sample(2, 1), sample(4, 2), sample(9, 8)];
        let pids: Vec<u32> = below(1, processes)
            .iter()
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids, [2, 4, 5]);
    }

    #[test]
    fn memory_is_read_in_kib() {
        let rollup = "5500-7ff [rollup]\nRss:   1200 kB\nPss:     345 kB\n";
        assert_eq!(kib(rollup, "Pss:"), Some(345));
        assert_eq!(kib("", "Pss:"), None);
    }

    #[test]
    fn this_process_is_readable() {
        let me = process(std::process::id()).unwrap();
        assert!(me.pss_kib().is_some() && me.peak_rss_kib().is_some());
        assert!(me.threads() > 0);
        assert!(!me.namespaces().is_empty() && !me.numbers().is_empty());
    }
}
