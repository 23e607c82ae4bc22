//! One walk over the processes of the sandbox.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use ringfence_sys::Errno;
use rustix::fs::OFlags;

use super::mappings::{Known, Mappings};
use super::numbers::Numbers;
use super::processor::{Stamp, Times};
use super::reserve::{Reserve, is_gone};
use crate::limits::WatchPlan;

/// More than any of the files read here has, but for a hostile name in one.
const LARGEST: usize = 4096;
const KIB: u64 = 1024;
/// How many processes are looked at in one go however long it takes: on a busy
/// machine the time may be over at once.
const FEWEST: u32 = 8;
/// The most mappings that are looked at one by one, of all processes together.
const MOST_MAPPINGS: u32 = 1 << 16;

/// How memory is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precision {
    /// By the kernel's counters; what several share is counted in each.
    Quick,
    /// Page by page; what several share is divided among them.
    Exact,
    /// The same, and for shared memory mapping by mapping, so that it can be
    /// told from what is counted elsewhere.
    Detailed,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Count {
    pub(super) precision: Precision,
    /// Bytes of private memory.
    private: u64,
    /// Bytes of shared memory and of files on a tmpfs that are mapped.
    shared: u64,
    /// Those of them that are counted nowhere else, if it was looked at.
    apart: Option<u64>,
    /// The most bytes of files that one process has mapped.
    pub(super) files: u64,
    pub(super) processes: u64,
    pub(super) tasks: u64,
    /// The CPU time of each process.
    pub(super) times: Times,
    /// Those that are there and could not be looked at.
    pub(super) unseen: HashSet<u32>,
    /// Whether there may be more than could be listed.
    is_cut: bool,
}

impl Count {
    /// All memory, when so many bytes are stored whether or not a process has
    /// them mapped. What is mapped may be among them: unless it is known how
    /// much of it, only the larger number counts.
    pub(super) fn memory_with(&self, stored: u64) -> u64 {
        let shared = match self.apart {
            Some(apart) => stored.saturating_add(apart),
            None => stored.max(self.shared),
        };
        self.private.saturating_add(shared)
    }

    /// The most that it can be.
    pub(super) fn most_with(&self, stored: u64) -> u64 {
        match self.apart {
            Some(_) => self.memory_with(stored),
            None => self
                .private
                .saturating_add(self.shared)
                .saturating_add(stored),
        }
    }

    /// Whether everything was looked at.
    pub(super) fn is_whole(&self) -> bool {
        self.unseen.is_empty() && !self.is_cut
    }

    /// What is shared and mapped, as far as it is known.
    pub(super) fn shared(&self) -> u64 {
        self.shared
    }
}

/// A walk under way.
pub(super) struct Census {
    reserve: Rc<Reserve>,
    processes: Numbers,
    /// The process whose mappings are being read.
    mappings: Option<Mappings>,
    known: Known,
    mappings_left: u32,
    wants: Wants,
    /// The limit of memory.
    enough: Option<u64>,
    count: Count,
}

#[derive(Debug, Clone, Copy)]
struct Wants {
    memory: bool,
    times: bool,
}

impl Census {
    pub(super) fn begin(
        plan: &WatchPlan,
        precision: Precision,
        reserve: &Rc<Reserve>,
    ) -> Result<Self, Errno> {
        Ok(Self {
            reserve: Rc::clone(reserve),
            processes: Numbers::of_processes(reserve)?,
            mappings: None,
            known: Known::default(),
            mappings_left: MOST_MAPPINGS,
            enough: plan.memory,
            wants: Wants {
                memory: plan.memory.is_some(),
                times: precision == Precision::Quick
                    && (plan.cpu_time.is_some() || plan.memory.is_none()),
            },
            count: Count {
                precision,
                private: 0,
                shared: 0,
                apart: None,
                files: 0,
                processes: 0,
                tasks: 0,
                times: Times::new(),
                unseen: HashSet::new(),
                is_cut: false,
            },
        })
    }

    /// The same in every detail, where so much is counted elsewhere.
    pub(super) fn begin_detailed(
        plan: &WatchPlan,
        known: Known,
        reserve: &Rc<Reserve>,
    ) -> Result<Self, Errno> {
        let mut census = Self::begin(plan, Precision::Detailed, reserve)?;
        census.known = known;
        census.count.apart = Some(0);
        Ok(census)
    }

    /// Looks at processes until `until`, at least at a few; whether it is over.
    pub(super) fn go_on(&mut self, until: Instant) -> bool {
        let mut few = FEWEST;
        while self.step() {
            if self.has_seen_enough() {
                return true;
            }
            few = few.saturating_sub(1);
            if few == 0 && Instant::now() >= until {
                return false;
            }
        }
        true
    }

    /// One process, or one mapping; whether there was any.
    fn step(&mut self) -> bool {
        if let Some(mappings) = &mut self.mappings {
            let share = mappings.next(&self.known);
            self.add_share(share);
            return true;
        }
        let process = self.processes.next();
        if let Some(process) = process {
            self.add(process);
        }
        process.is_some()
    }

    fn add_share(&mut self, share: Option<u64>) {
        let Some(share) = share else {
            self.mappings = None;
            return;
        };
        self.count.apart = self.count.apart.map(|sum| sum.saturating_add(share));
        self.mappings_left = self.mappings_left.saturating_sub(1);
        if self.mappings_left == 0 {
            self.mappings = None;
            // Nobody is ended for what may have been counted twice.
            self.count.apart = None;
        }
    }

    /// However many processes there are, too much is too much.
    fn has_seen_enough(&self) -> bool {
        self.count.precision >= Precision::Exact
            && self
                .enough
                .is_some_and(|limit| self.count.memory_with(0) > limit)
    }

    pub(super) fn count(mut self) -> Count {
        self.count.is_cut = self.processes.is_cut();
        self.count
    }

    fn add(&mut self, process: u32) {
        let mut tasks = 1;
        if self.wants.memory
            && let Some(text) = self.read(process, "status")
        {
            let status = Status::parse(&text);
            tasks = status.tasks.max(1);
            self.add_memory(process, &status);
            if self.count.apart.is_some() && status.shared > 0 {
                self.mappings = Mappings::open(&self.reserve, process).ok();
            }
        }
        if self.wants.times
            && let Some(text) = self.read(process, "stat")
            && let Some(stat) = Stat::parse(&text)
        {
            tasks = stat.tasks.max(1);
            let key = (process, stat.started);
            self.count.times.insert(key, stat.stamp);
        }
        self.count.processes += 1;
        self.count.tasks += tasks;
    }

    /// Nothing of a process that has ended meanwhile, which has nothing any
    /// more. One that cannot be looked at for another reason is noted.
    fn read(&mut self, process: u32, file: &str) -> Option<String> {
        let read = read(&self.reserve, process, file);
        if read.as_ref().is_err_and(|errno| !is_gone(*errno)) {
            self.count.unseen.insert(process);
        }
        read.ok()
    }

    fn add_memory(&mut self, process: u32, status: &Status) {
        let exact = (self.count.precision >= Precision::Exact)
            .then(|| read(&self.reserve, process, "smaps_rollup"))
            .and_then(Result::ok)
            .map(|text| Shares::parse(&text));
        let (private, shared) = match exact {
            Some(shares) => (shares.private, shares.shared),
            None => (status.private, status.shared),
        };
        self.count.private = self.count.private.saturating_add(private);
        self.count.shared = self.count.shared.saturating_add(shared);
        self.count.files = self.count.files.max(status.files);
    }
}

fn read(reserve: &Reserve, process: u32, file: &str) -> Result<String, Errno> {
    let path = Path::new("/proc").join(process.to_string()).join(file);
    let file = reserve.open(&path, OFlags::NONBLOCK)?;
    let mut buffer = [0; LARGEST];
    let length = rustix::io::read(file, &mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// Of `/proc/PID/status`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    private: u64,
    shared: u64,
    files: u64,
    tasks: u64,
}

impl Status {
    fn parse(text: &str) -> Self {
        let mut status = Self::default();
        // The name comes first and has its line ends escaped.
        for (key, value) in fields(text) {
            match key {
                "RssAnon" | "VmSwap" => status.private += value * KIB,
                "RssShmem" => status.shared = value * KIB,
                "RssFile" => status.files = value * KIB,
                "Threads" => status.tasks = value,
                _ => {}
            }
        }
        status
    }
}

/// Of `/proc/PID/smaps_rollup`: the process's share of each page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shares {
    private: u64,
    shared: u64,
}

impl Shares {
    fn parse(text: &str) -> Self {
        let mut shares = Self::default();
        for (key, value) in fields(text) {
            match key {
                "Pss_Anon" | "SwapPss" => shares.private += value * KIB,
                "Pss_Shmem" => shares.shared = value * KIB,
                _ => {}
            }
        }
        shares
    }
}

/// Lines of a name, a colon, and a number.
pub(super) fn fields(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let number = value.split_ascii_whitespace().next()?.parse().ok()?;
        // No number of kibibytes is that large.
        (number < u64::MAX / (4 * KIB)).then_some((key, number))
    })
}

/// Of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    stamp: Stamp,
    tasks: u64,
    started: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name, in brackets, may hold brackets and spaces.
        let (_, rest) = text.rsplit_once(')')?;
        let numbers: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The state, which follows the name, is the third field of proc(5).
        let field = |number: usize| numbers.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            stamp: Stamp {
                own: field(14)?.saturating_add(field(15)?),
                reaped: field(16)?.saturating_add(field(17)?),
            },
            tasks: field(20)?,
            started: field(22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve() -> Rc<Reserve> {
        Rc::new(Reserve::new().unwrap())
    }

    #[test]
    fn names_of_processes_cannot_pose_as_numbers() {
        let text = "77 (a) S 1 (b 9) R 1 77 77 0 -1 4194304 100 0 0 0 5 6 7 8 20 0 3 0 9000 1 2";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.stamp.own, stat.stamp.reaped), (11, 15));
        assert_eq!((stat.tasks, stat.started), (3, 9000));
        assert_eq!(Stat::parse("77 (a) S 1"), None);
        assert_eq!(Stat::parse(""), None);
        let status =
            Status::parse("Name:\tRssAnon: 9\\nThreads: 9\nRssAnon:\t 4 kB\nThreads:\t2\n");
        assert_eq!((status.private, status.tasks), (4096, 2));
    }

    #[test]
    fn memory_is_private_and_shared_but_not_of_files() {
        let status =
            Status::parse("RssAnon:\t8 kB\nRssFile:\t99 kB\nRssShmem:\t4 kB\nVmSwap:\t1 kB\n");
        assert_eq!((status.private, status.shared), (9 * KIB, 4 * KIB));
        assert_eq!(status.files, 99 * KIB);
        let shares = Shares::parse(
            "00-ff ---p 00000000 00:00 0 [rollup]\nPss: 99 kB\nPss_Anon: 3 kB\nPss_File: 90 kB\nPss_Shmem: 2 kB\nSwapPss: 1 kB\n",
        );
        assert_eq!((shares.private, shares.shared), (4 * KIB, 2 * KIB));
    }

    #[test]
    fn what_lies_on_the_storage_and_is_mapped_counts_once() {
        let mut count = Census::begin(&WatchPlan::default(), Precision::Quick, &reserve())
            .unwrap()
            .count();
        (count.private, count.shared) = (10, 5);
        assert_eq!(count.memory_with(3), 15);
        assert_eq!(count.memory_with(7), 17);
        assert_eq!(count.most_with(7), 22);
        count.apart = Some(2);
        assert_eq!((count.memory_with(7), count.most_with(7)), (19, 19));
    }

    #[test]
    fn a_walk_finds_this_process_with_its_threads() {
        let plan = WatchPlan {
            memory: Some(1),
            cpu_time: Some(std::time::Duration::ZERO),
            ..WatchPlan::default()
        };
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stopped.recv().is_err());
        let mut census = Census::begin(&plan, Precision::Quick, &reserve()).unwrap();
        while !census.go_on(Instant::now()) {}
        let count = census.count();
        let own = std::process::id();
        assert!(count.times.keys().any(|(process, _)| *process == own));
        assert!(count.tasks > count.processes && count.private > 0);
        drop(stop);
        assert!(thread.join().unwrap());
    }
}
