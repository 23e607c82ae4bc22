//! The account of what a run adds to storage: to its private storage, and to
//! the writable folders of the host.
//!
//! Every name is made and every file opened for writing by the init, so the
//! count of names is exact and refuses in time. Bytes are added by the command
//! itself; the account sees them at its looks, whose pace follows how much is
//! left. Without a limit there is no account and nothing is done here.

mod files;
mod ledger;

use std::os::fd::OwnedFd;
use std::time::Instant;

use ringfence_sys::Errno;
use rustix::fs::{OFlags, Stat};

pub(super) use self::files::Name;
use self::ledger::Ledger;
use super::storage::Storage;
use crate::limits::{LimitHit, Usage};

/// The least number of names that a limit allows.
const LEAST_NAMES: u64 = 1024;
/// So many bytes of a limit allow one name.
const BYTES_PER_NAME: u64 = 16 * 1024;

/// How many files, folders and links a limit of so many bytes allows.
pub(super) fn most_names(bytes: u64) -> u64 {
    (bytes / BYTES_PER_NAME).max(LEAST_NAMES)
}

/// The account, where there is a limit.
#[derive(Debug, Default)]
pub(super) struct Account(Option<Box<Ledger>>);

/// Something that is about to lose a name.
pub(super) struct Doomed(Option<OwnedFd>);

impl Account {
    /// The account of a run that may add so many bytes to what is on `storage`
    /// and to the host; `None` stands for no limit. To be opened once the
    /// command is a process of its own, which must not have our limits.
    pub(super) fn open(limited: Option<(u64, Storage)>) -> Self {
        Self(limited.map(|(limit, storage)| Box::new(Ledger::new(limit, storage))))
    }

    /// Counts what is written to these, which were as they are here before
    /// anything was.
    pub(super) fn with_streams(mut self, streams: Vec<(OwnedFd, Stat)>) -> Self {
        for (stream, before) in streams {
            let _ = self.opened(&stream, Some(&before), Name::Given);
        }
        self
    }

    /// Before a name is made anywhere.
    pub(super) fn admit_name(&mut self) -> Result<(), Errno> {
        self.ledger().map_or(Ok(()), Ledger::admit_name)
    }

    /// A name was made in `folder`.
    pub(super) fn made_name(&mut self, folder: &OwnedFd) {
        if let Some(ledger) = self.ledger().filter(|ledger| ledger.is_of_host(folder)) {
            ledger.count_names(1);
        }
    }

    /// A folder was made in `folder`.
    pub(super) fn made_folder(&mut self, folder: &OwnedFd) {
        if let Some(ledger) = self.ledger().filter(|ledger| ledger.is_of_host(folder)) {
            ledger.count_names(1);
            ledger.files.made_folder();
        }
    }

    /// Before a file is opened for writing, with these flags.
    pub(super) fn admit_writing(&mut self, flags: OFlags) -> Result<(), Errno> {
        self.ledger()
            .map_or(Ok(()), |ledger| ledger.admit_writing(flags))
    }

    /// Before space is taken for a part of an open file.
    pub(super) fn admit_space(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        self.ledger()
            .map_or(Ok(()), |ledger| ledger.admit_space(file, offset, length))
    }

    /// A file was opened for writing that was as `before`.
    pub(super) fn opened(
        &mut self,
        file: &OwnedFd,
        before: Option<&Stat>,
        name: Name,
    ) -> Result<(), Errno> {
        self.ledger()
            .map_or(Ok(()), |ledger| ledger.opened(file, before, name))
    }

    /// Somebody inside gets a file as a mere place (`O_PATH`), which would keep
    /// it from being freed without anybody having it open.
    pub(super) fn gave_out_place(&mut self) {
        if let Some(ledger) = self.ledger() {
            ledger.files.gave_out_place();
        }
    }

    /// Before the name of something in `folder` is removed.
    pub(super) fn before_removing(&mut self, folder: &OwnedFd, name: &std::ffi::OsStr) -> Doomed {
        Doomed(
            self.ledger()
                .and_then(|ledger| ledger.before_removing(folder, name)),
        )
    }

    /// It was removed.
    pub(super) fn removed(&mut self, doomed: Doomed) {
        if let (Some(ledger), Some(place)) = (self.ledger(), doomed.0) {
            ledger.count_names(-1);
            let _ = ledger.files.removed(place);
        }
    }

    /// The init itself made a link or wrote a whole file: it was as `before`
    /// and is as `now`.
    pub(super) fn replaced(&mut self, before: Option<&Stat>, now: Option<&Stat>) {
        let on_host = now.or(before).map(|status| status.st_dev);
        if let (Some(ledger), Some(device)) = (self.ledger(), on_host)
            && !ledger.is_private(device)
        {
            ledger.files.replaced(before, now);
            ledger.count_names(i64::from(now.is_some()) - i64::from(before.is_some()));
        }
    }

    /// When to call [`Self::look`].
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.0.as_ref().map(|ledger| ledger.next_look)
    }

    /// Looks at what was added, if it is time.
    pub(super) fn look(&mut self) {
        if let Some(ledger) = self.ledger()
            && Instant::now() >= ledger.next_look
        {
            ledger.look();
        }
    }

    /// The last look, once nothing runs any more.
    pub(super) fn close(&mut self) {
        if let Some(ledger) = self.ledger() {
            ledger.files.close();
            ledger.look();
        }
    }

    /// What there is to report since the last time.
    pub(super) fn take_hits(&mut self) -> Vec<LimitHit> {
        self.ledger()
            .map(|ledger| std::mem::take(&mut ledger.hits))
            .unwrap_or_default()
    }

    /// Adds the most that was in use.
    pub(super) fn add_to(&self, usage: &mut Usage) {
        if let Some(ledger) = &self.0 {
            usage.disk = Some(ledger.peak.bytes);
            usage.inodes = Some(ledger.peak.names);
        }
    }

    /// Whether there is a limit.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    fn ledger(&mut self) -> Option<&mut Ledger> {
        self.0.as_deref_mut()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;

    use rustix::fs::Mode;

    use super::*;

    /// An account for which everything in a temporary folder is the host's.
    fn account(limit: u64) -> Account {
        let elsewhere = Storage::at("/proc").unwrap();
        Account(Some(Box::new(Ledger::new(limit, elsewhere))))
    }

    fn place(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH, Mode::empty()).unwrap()
    }

    fn due(account: &mut Account) {
        account.ledger().unwrap().next_look = Instant::now();
        account.look();
    }

    #[test]
    fn g9_the_last_name_allowed_is_the_last_made_until_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut account = account(1);
        let place = place(folder.path());
        for _ in 0..LEAST_NAMES {
            account.admit_name().unwrap();
            account.made_name(&place);
        }
        assert_eq!(account.admit_name(), Err(Errno::DQUOT));
        assert_eq!(account.admit_name(), Err(Errno::DQUOT));
        let hits = account.take_hits();
        assert!(hits.len() == 1 && !hits[0].ends);
        assert_eq!(hits[0].evidence, "1024 of 1024 names");
        File::create(folder.path().join("a")).unwrap();
        let doomed = account.before_removing(&place, OsStr::new("a"));
        account.removed(doomed);
        account.admit_name().unwrap();
        let mut usage = Usage::default();
        account.add_to(&mut usage);
        assert_eq!(usage.inodes, Some(LEAST_NAMES));
    }

    #[test]
    fn g9_more_bytes_than_allowed_end_the_run_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut account = account(64 * 1024);
        let mut file = File::create(folder.path().join("a")).unwrap();
        let held = OwnedFd::from(file.try_clone().unwrap());
        account.opened(&held, None, Name::Given).unwrap();
        due(&mut account);
        assert_eq!(account.take_hits(), []);
        file.write_all(&vec![1; 128 * 1024]).unwrap();
        due(&mut account);
        due(&mut account);
        let hits = account.take_hits();
        assert!(hits.len() == 1 && hits[0].ends, "{hits:?}");
        assert_eq!(account.admit_writing(OFlags::WRONLY), Err(Errno::DQUOT));
        account
            .admit_writing(OFlags::WRONLY | OFlags::TRUNC)
            .unwrap();
    }

    #[test]
    fn a_file_emptied_by_opening_counts_from_what_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![1; 128 * 1024]).unwrap();
        let before = rustix::fs::stat(&path).unwrap();
        let mut account = account(64 * 1024);
        let mut file = File::create(&path).unwrap();
        let held = OwnedFd::from(file.try_clone().unwrap());
        account.opened(&held, Some(&before), Name::Given).unwrap();
        file.write_all(&vec![1; 128 * 1024]).unwrap();
        due(&mut account);
        assert_eq!(account.take_hits(), []);
    }

    #[test]
    fn g9_space_that_is_refused_is_told_by_what_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut account = account(64 * 1024);
        let file = OwnedFd::from(File::create(folder.path().join("a")).unwrap());
        account.admit_space(&file, 0, 64 * 1024).unwrap();
        assert_eq!(account.take_hits(), []);
        let refused = account.admit_space(&file, 1 << 20, 65 * 1024);
        assert_eq!(refused, Err(Errno::DQUOT));
        let hits = account.take_hits();
        assert!(hits.len() == 1 && !hits[0].ends, "{hits:?}");
        assert_eq!(hits[0].evidence, "0 bytes added and 66560 asked for");
    }

    #[test]
    fn files_in_memory_are_no_storage() {
        let mut account = account(64 * 1024);
        let file = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        account.admit_space(&file, 0, 1 << 20).unwrap();
        account.opened(&file, None, Name::Given).unwrap();
        rustix::io::write(&file, &vec![1; 128 * 1024]).unwrap();
        due(&mut account);
        assert_eq!(account.take_hits(), []);
    }

    #[test]
    fn what_was_closed_and_freed_is_not_held_against_the_next() {
        let mut account = account(64 * 1024);
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        account.opened(&file, None, Name::None).unwrap();
        rustix::io::write(&file, &vec![1; 128 * 1024]).unwrap();
        account.ledger().unwrap().add_up();
        drop(file);
        account.admit_writing(OFlags::WRONLY).unwrap();
        assert_eq!(account.take_hits(), []);
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let mut account = Account::open(None);
        account.admit_name().unwrap();
        account.admit_writing(OFlags::WRONLY).unwrap();
        account.close();
        let mut usage = Usage::default();
        account.add_to(&mut usage);
        assert_eq!((usage, account.next_look()), (Usage::default(), None));
    }

    #[test]
    fn small_limits_allow_some_names_and_large_ones_more() {
        assert_eq!(most_names(0), 1024);
        assert_eq!(most_names(1 << 30), 65_536);
    }
}
