//! The numbers of the account: names, and bytes as of the last look; and what
//! is told when there are too many.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ringfence_sys::Errno;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::process::{Resource, Rlimit};

use super::files::{Files, Name};
use super::most_names;
use crate::limits::{LimitHit, LimitName};
use crate::native::storage::{Full, Storage, memory_device};
use crate::native::watchdog;
use crate::view::FileId;

/// What a run can add at most in a second, in bytes; for the pace of looks.
const FASTEST: u64 = 2 << 30;
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);
/// The most files that are watched at a time.
const MOST_FILES: usize = 4096;
/// Descriptors that the init needs for other things.
const OTHER_DESCRIPTORS: u64 = 256;
/// The most files that one look asks about.
const ASKED_PER_LOOK: usize = 256;
/// Between two times that all are asked about lies at least this many times
/// what it took.
const REST: u32 = 4;
/// No longer than it takes to write what would be refused for want of looking.
const LONGEST_REST: Duration = Duration::from_millis(5);
/// The unit of `st_blocks`.
const BLOCK: i64 = 512;

/// The ledger of an account.
#[derive(Debug)]
pub(super) struct Ledger {
    limit: u64,
    most_names: u64,
    storage: Storage,
    /// Files without a name in memory are no storage.
    memory: Option<u64>,
    pub(super) files: Files,
    /// Names made in folders of the host, less those removed.
    names: i64,
    sum: Sum,
    pub(super) next_look: Instant,
    pub(super) peak: Peak,
    told: Told,
    /// When all files may be asked about again.
    rested: Instant,
    pub(super) hits: Vec<LimitHit>,
}

/// What was added in all when it was last looked at.
#[derive(Debug, Clone, Copy)]
struct Sum {
    bytes: u64,
    at: Instant,
}

/// The most there was.
#[derive(Debug, Default)]
pub(super) struct Peak {
    pub(super) bytes: u64,
    pub(super) names: u64,
}

/// What was reported; each thing is once.
#[derive(Debug, Default)]
struct Told {
    names: bool,
    bytes: bool,
    exceeded: bool,
}

impl Ledger {
    pub(super) fn new(limit: u64, storage: Storage) -> Self {
        let now = Instant::now();
        Self {
            limit,
            most_names: most_names(limit),
            storage,
            memory: memory_device().ok(),
            files: Files::new(raise_own_limit()),
            names: 0,
            sum: Sum { bytes: 0, at: now },
            next_look: now + pace(limit),
            peak: Peak::default(),
            told: Told::default(),
            rested: now,
            hits: Vec::new(),
        }
    }

    pub(super) fn admit_name(&mut self) -> Result<(), Errno> {
        if self.all_names() < self.most_names {
            return Ok(());
        }
        self.refuse_names();
        Err(Errno::DQUOT)
    }

    fn refuse_names(&mut self) {
        if !std::mem::replace(&mut self.told.names, true) {
            let names = self.all_names().min(self.most_names);
            self.hit(format!("{names} of {} names", self.most_names), false);
        }
    }

    fn all_names(&self) -> u64 {
        let own = i64::try_from(self.storage.added().inodes + self.files.nameless());
        let all = own.unwrap_or(i64::MAX).saturating_add(self.names);
        u64::try_from(all).unwrap_or(0)
    }

    pub(super) fn count_names(&mut self, more: i64) {
        self.names = self.names.saturating_add(more);
        self.peak.names = self.peak.names.max(self.all_names());
    }

    pub(super) fn admit_writing(&mut self, flags: OFlags) -> Result<(), Errno> {
        self.files.make_room()?;
        if self.sum.at.elapsed() >= SHORTEST {
            self.add_up();
        }
        // What only reads or shortens a file may always be done.
        let grows = flags & OFlags::ACCMODE != OFlags::RDONLY && !flags.contains(OFlags::TRUNC);
        if !grows {
            return Ok(());
        }
        if self.sum.bytes >= self.limit {
            self.make_sure();
        }
        if self.sum.bytes < self.limit {
            return Ok(());
        }
        Err(self.refuse_bytes(format!("{} bytes added", self.sum.bytes)))
    }

    /// Before anything is refused or ended: much may have been closed, and so
    /// freed, since the last look.
    fn make_sure(&mut self) {
        let now = Instant::now();
        if now >= self.rested {
            self.files.settle(MOST_FILES);
            self.rested = now + (now.elapsed() * REST).min(LONGEST_REST);
        }
        self.add_up();
    }

    fn refuse_bytes(&mut self, evidence: String) -> Errno {
        if !std::mem::replace(&mut self.told.bytes, true) {
            self.hit(evidence, false);
        }
        Errno::DQUOT
    }

    pub(super) fn admit_space(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        let status = rustix::fs::fstat(file)?;
        // What it has may lie anywhere: more than this can hardly be meant.
        let has = u64::try_from(status.st_blocks.saturating_mul(BLOCK)).unwrap_or(0);
        let more = length.min(offset.saturating_add(length).saturating_sub(has));
        if self.is_private(status.st_dev) {
            self.foresee(more);
            return Ok(());
        }
        if !self.counts(&status) {
            return Ok(());
        }
        self.add_up();
        if self.sum.bytes.saturating_add(more) > self.limit {
            self.make_sure();
        }
        if self.sum.bytes.saturating_add(more) <= self.limit {
            return Ok(());
        }
        let evidence = format!("{} bytes added and {more} asked for", self.sum.bytes);
        Err(self.refuse_bytes(evidence))
    }

    /// So many bytes are asked for on the private storage: the kernel refuses
    /// what it has no room for, and leaves no sign of it.
    fn foresee(&mut self, more: u64) {
        let level = self.storage.added();
        if more > level.free {
            let evidence = format!("{} bytes added and {more} asked for", level.bytes);
            self.refuse_bytes(evidence);
        }
    }

    pub(super) fn opened(
        &mut self,
        file: &OwnedFd,
        before: Option<&Stat>,
        name: Name,
    ) -> Result<(), Errno> {
        let status = rustix::fs::fstat(file)?;
        if !self.counts(&status) {
            return Ok(());
        }
        let id = FileId::of_stat(&status);
        // Opening may have emptied it already.
        let blocks = before
            .filter(|before| FileId::of_stat(before) == id)
            .map_or(status.st_blocks, |before| before.st_blocks);
        self.files.add(file.as_fd(), id, blocks, name)
    }

    fn counts(&self, status: &Stat) -> bool {
        FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
            && !self.is_private(status.st_dev)
            && self.memory != Some(status.st_dev)
    }

    /// Whether what is on this device lies on the private storage.
    pub(super) fn is_private(&self, device: u64) -> bool {
        self.storage.is_on(device)
    }

    pub(super) fn before_removing(
        &mut self,
        folder: &OwnedFd,
        name: &std::ffi::OsStr,
    ) -> Option<OwnedFd> {
        if !self.is_of_host(folder) {
            // What filled the storage may be what is removed.
            self.look_at_storage();
            return None;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(folder, name, flags, Mode::empty()).ok()
    }

    pub(super) fn is_of_host(&self, folder: &OwnedFd) -> bool {
        rustix::fs::fstat(folder).is_ok_and(|status| !self.is_private(status.st_dev))
    }

    pub(super) fn look(&mut self) {
        self.files.settle(ASKED_PER_LOOK);
        self.add_up();
        self.look_at_storage();
        if self.sum.bytes > self.limit {
            self.make_sure();
        }
        self.next_look = self.sum.at + pace(self.limit.saturating_sub(self.sum.bytes));
        if self.sum.bytes > self.limit && !std::mem::replace(&mut self.told.exceeded, true) {
            self.hit(format!("{} bytes added", self.sum.bytes), true);
        }
    }

    pub(super) fn add_up(&mut self) {
        let own = i64::try_from(self.storage.added().bytes).unwrap_or(i64::MAX);
        let all = own.saturating_add(self.files.grown().saturating_mul(BLOCK));
        self.sum = Sum {
            bytes: u64::try_from(all).unwrap_or(0),
            at: Instant::now(),
        };
        self.peak.bytes = self.peak.bytes.max(self.sum.bytes);
        self.peak.names = self.peak.names.max(self.all_names());
    }

    fn look_at_storage(&mut self) {
        let level = self.storage.added();
        self.peak.bytes = self.peak.bytes.max(level.bytes);
        match level.full {
            Some(Full::Names) => self.refuse_names(),
            Some(Full::Bytes) => {
                let evidence = format!("private storage full with {} bytes", level.bytes);
                self.refuse_bytes(evidence);
            }
            None => {}
        }
    }

    fn hit(&mut self, evidence: String, ends: bool) {
        self.hits.push(LimitHit {
            limit: LimitName::Disk,
            evidence,
            ends,
        });
    }
}

/// How soon to look again when so many bytes are left.
fn pace(left: u64) -> Duration {
    watchdog::pace(left, FASTEST).clamp(SHORTEST, LONGEST)
}

/// Lets the init hold as many files as it can; how many of them to watch.
/// The command keeps the limit it was started with.
fn raise_own_limit() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let wanted = most.min(u64::try_from(MOST_FILES).unwrap_or(u64::MAX) + OTHER_DESCRIPTORS);
    let raised = Rlimit {
        current: limit.current.map(|current| current.max(wanted)),
        maximum: limit.maximum,
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
    let spare = wanted.saturating_sub(OTHER_DESCRIPTORS).max(1);
    usize::try_from(spare).unwrap_or(MOST_FILES).min(MOST_FILES)
}
