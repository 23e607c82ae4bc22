//! How many tasks there are at a time, where `RLIMIT_NPROC` holds their number.
//!
//! A fork that the kernel refuses leaves no trace, so a number at the limit is
//! the evidence. Numbers of processes are given out one after the other: how
//! far the last one is from the one before tells how many tasks can have come,
//! and only when these could be too many, or twice the peak, are they counted.
//! What comes and is gone between two glances stays unseen.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags};

use super::numbers::Numbers;
use super::reserve::Reserve;

/// Between two glances lies at least this.
const SHORTEST: Duration = Duration::from_millis(1);
/// How soon to glance again while tasks come, and the longest otherwise.
const WHILE_BUSY: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);
/// Between two counts lies at least this many times what the last one took.
const REST: u32 = 20;
/// So few tasks are not worth counting for a new peak.
const FEW: u64 = 16;
/// The most processes that are counted in one go.
const MOST_AT_ONCE: usize = 128;
/// The links that the folder of tasks has besides one for each.
const OTHER_LINKS: u64 = 2;
/// Its last number is the last process of the reader's own namespace (proc(5)).
const LAST_PROCESS: &str = "/proc/loadavg";

/// The account of tasks.
#[derive(Debug)]
pub(super) struct Tasks {
    limit: u64,
    /// As of the last count.
    counted: u64,
    last: Option<u64>,
    peak: Option<u64>,
    next_glance: Instant,
    pause: Duration,
    /// Not before this.
    rested: Instant,
}

/// What a glance came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glance {
    /// No more than there may be.
    Fine,
    /// So many, which is all that there may be.
    Full(u64),
    /// Too many to be counted in one go.
    Crowd,
}

/// How far a count went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    All(u64),
    /// There are more.
    Some(u64),
}

impl Tasks {
    pub(super) fn new(limit: u64) -> Self {
        let now = Instant::now();
        Self {
            limit,
            counted: 0,
            last: None,
            peak: None,
            next_glance: now + WHILE_BUSY,
            pause: WHILE_BUSY,
            rested: now,
        }
    }

    /// When to glance if nothing else wakes the init.
    pub(super) fn next_glance(&self) -> Instant {
        self.next_glance
    }

    pub(super) fn peak(&self) -> Option<u64> {
        self.peak
    }

    /// Takes a number that was counted otherwise.
    pub(super) fn note(&mut self, tasks: u64) -> Glance {
        self.counted = tasks;
        self.peak = self.peak.max(Some(tasks));
        if tasks >= self.limit {
            Glance::Full(tasks)
        } else {
            Glance::Fine
        }
    }

    /// Looks whether there may be too many, and counts if so.
    pub(super) fn glance(&mut self, now: Instant, reserve: &Reserve) -> Glance {
        if now < self.rested {
            return Glance::Fine;
        }
        self.rested = now + SHORTEST;
        let came = self.came(last_process(reserve));
        self.pause = if came == 0 {
            (self.pause * 2).min(LONGEST)
        } else {
            WHILE_BUSY
        };
        self.next_glance = now + self.pause;
        // As long as nobody counts they may all be there.
        self.counted = self.counted.saturating_add(came);
        if self.counted < self.limit.min(self.new_peak()) {
            return Glance::Fine;
        }
        let found = count(reserve, MOST_AT_ONCE);
        self.rested = now + (now.elapsed() * REST).max(SHORTEST);
        match found {
            Counted::All(tasks) => self.note(tasks),
            Counted::Some(tasks) => {
                self.peak = self.peak.max(Some(tasks));
                Glance::Crowd
            }
        }
    }

    /// How many would be worth counting for the peak alone.
    fn new_peak(&self) -> u64 {
        self.peak.map_or(0, |peak| peak.saturating_mul(2).max(FEW))
    }

    /// The most tasks that can have come since the last time.
    fn came(&mut self, last: Option<u64>) -> u64 {
        let before = std::mem::replace(&mut self.last, last);
        match (before, last) {
            (Some(before), Some(last)) if last >= before => last - before,
            // The first time, or the numbers began anew.
            _ => self.limit,
        }
    }
}

fn last_process(reserve: &Reserve) -> Option<u64> {
    let mut buffer = [0; 128];
    let file = reserve
        .open(Path::new(LAST_PROCESS), OFlags::empty())
        .ok()?;
    let length = rustix::io::read(file, &mut buffer).ok()?;
    last_number(std::str::from_utf8(&buffer[..length]).ok()?)
}

fn last_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(4)?.parse().ok()
}

/// All tasks but the init's first, which is allowed for, unless there are more
/// than so many processes, or they cannot be looked at.
fn count(reserve: &Reserve, most: usize) -> Counted {
    let mut tasks = workers();
    let Ok(mut processes) = Numbers::of_processes(reserve) else {
        return Counted::Some(tasks);
    };
    for process in processes.by_ref().take(most) {
        tasks += tasks_of(&format!("/proc/{process}/task"));
    }
    if processes.next().is_some() || processes.is_cut() {
        return Counted::Some(tasks);
    }
    Counted::All(tasks)
}

/// The tasks of the init itself that are counted as the sandbox's.
pub(super) fn workers() -> u64 {
    tasks_of("/proc/self/task").saturating_sub(1)
}

/// None where a process has ended meanwhile.
fn tasks_of(folder: &str) -> u64 {
    let flags = AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(CWD, folder, flags, StatxFlags::NLINK).map_or(0, |status| {
        u64::from(status.stx_nlink).saturating_sub(OTHER_LINKS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_the_last_process() {
        assert_eq!(last_number("0.10 0.20 0.30 1/200 4711\n"), Some(4711));
        assert_eq!(last_number("0.10 0.20"), None);
        assert!(last_process(&Reserve::new().unwrap()).is_some());
    }

    #[test]
    fn only_those_that_came_can_be_more() {
        let mut tasks = Tasks::new(100);
        assert_eq!(tasks.came(Some(500)), 100);
        assert_eq!(tasks.came(Some(507)), 7);
        assert_eq!(tasks.came(Some(507)), 0);
        assert_eq!(tasks.came(Some(4)), 100);
        assert_eq!(tasks.came(None), 100);
        assert_eq!(tasks.came(Some(9)), 100);
    }

    #[test]
    fn g9_a_number_at_the_limit_is_evidence_and_the_peak_stays() {
        let mut tasks = Tasks::new(10);
        assert_eq!((tasks.peak(), tasks.note(9)), (None, Glance::Fine));
        assert_eq!(tasks.new_peak(), 18);
        assert_eq!(tasks.note(10), Glance::Full(10));
        assert_eq!(tasks.note(3), Glance::Fine);
        assert_eq!(tasks.peak(), Some(10));
    }

    #[test]
    fn the_tasks_of_a_process_are_told_by_the_links_of_their_folder() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let tasks = tasks_of(&format!("/proc/{}/task", child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(tasks, 1);
        let reserve = Reserve::new().unwrap();
        assert!(matches!(count(&reserve, 0), Counted::Some(_)));
        assert_eq!(tasks_of("/proc/0/task"), 0);
    }
}
