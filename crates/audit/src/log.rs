//! [`Log`]: the append-only file of events, which every `ringfence` of a user
//! shares.
//!
//! Under a lock, each record is tied to the one before, and the head, which a
//! key vouches for, says where the log ends. Records are with the kernel when
//! [`Log::record_all`] returns.

mod batch;
mod error;
mod folder;
mod found;
pub(crate) mod full;
mod head_file;
mod held;
mod key_file;
mod lock;
mod names;
mod rotation;

use std::path::Path;

use rustix::io::Errno;

use crate::chain::{End, Head, Key};
use crate::event::{Event, EventKind, RunId, SandboxText, Timestamp};

use batch::{Batch, Tallies};
pub use error::LogError;
pub(crate) use folder::{Folder, Identity};
use found::{Found, Tail};
use held::Slot;
pub(crate) use lock::wait_for;
pub(crate) use names::{HEAD, KEY, LOCK, MOST_KEPT, segment_name};
pub use rotation::Rotation;

/// More than any event can take: each text in it has a bound, and JSON writes
/// a byte of it as two at most.
pub(crate) const LONGEST_LINE: usize = 128 * 1024;

/// The most records that are written at once.
const MOST_AT_ONCE: usize = 256;

/// The writing end of the log.
#[derive(Debug)]
pub struct Log {
    folder: Folder,
    rotation: Rotation,
    lock: Slot,
    head: Slot,
    file: Slot,
    /// Read with the first record, not before: a process that is copied to
    /// make a sandbox has no key in its memory until then.
    key: Option<Key>,
    tallies: Tallies,
    bytes: u64,
}

/// What the records that the log adds itself have in common with the others.
#[derive(Debug, Clone)]
pub struct Stamp {
    /// When.
    pub time: Timestamp,
    /// The run.
    pub run: RunId,
    /// The name of the sandbox, if it has one.
    pub sandbox: Option<SandboxText>,
}

impl Stamp {
    /// An event at this time of this run.
    pub fn event(&self, kind: EventKind) -> Event {
        Event {
            time: self.time,
            run: self.run,
            kind,
            sandbox: self.sandbox.clone(),
        }
    }
}

impl Log {
    /// Makes the folder where it is missing, and makes sure that it can be
    /// used. The files are made with the first record.
    pub fn open(folder: &Path) -> Result<Self, LogError> {
        Self::open_with(folder, Rotation::default())
    }

    /// The same with other sizes.
    pub fn open_with(folder: &Path, rotation: Rotation) -> Result<Self, LogError> {
        let log = Self {
            folder: Folder::make(folder)?,
            rotation,
            lock: Slot::new(LOCK),
            head: Slot::new(HEAD),
            file: Slot::new(segment_name(0)),
            key: None,
            tallies: Tallies::new(),
            bytes: 0,
        };
        for slot in [&log.lock, &log.head, &log.file] {
            slot.check(&log.folder)?;
        }
        key_file::check(&log.folder)?;
        Ok(log)
    }

    /// Appends one event. After an error nothing may be taken to have been
    /// recorded; the next call tries again.
    pub fn record(&mut self, event: &Event) -> Result<(), LogError> {
        self.record_all(std::slice::from_ref(event))
    }

    /// Appends events, 256 with one write. After an error the first ones may
    /// have been recorded.
    pub fn record_all(&mut self, events: &[Event]) -> Result<(), LogError> {
        for part in events.chunks(MOST_AT_ONCE) {
            self.append(&part[0], |batch, _| {
                part.iter().try_for_each(|event| batch.push(event))
            })?;
        }
        Ok(())
    }

    /// Appends the last record of a run, which vouches for those that this log
    /// has written of it.
    pub fn seal(&mut self, stamp: &Stamp) -> Result<(), LogError> {
        self.seal_after(&[], stamp)
    }

    /// Appends events and, in the same write as the last of them, the last
    /// record of their run.
    pub fn seal_after(&mut self, events: &[Event], stamp: &Stamp) -> Result<(), LogError> {
        let together = events.len().saturating_sub(MOST_AT_ONCE);
        let (first, last) = events.split_at(together);
        self.record_all(first)?;
        let sealed = crate::event::Sealed {
            records: 0,
            mac: crate::event::Digest::ZEROS,
        };
        let like = stamp.event(EventKind::Sealed(sealed));
        self.append(&like, |batch, key| {
            last.iter().try_for_each(|event| batch.push(event))?;
            batch.seal(&like, key)
        })?;
        self.tallies.remove(&stamp.run);
        full::forget(&self.folder, stamp.run);
        Ok(())
    }

    /// How many bytes this log has written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends what `fill` puts into a batch.
    fn append(
        &mut self,
        like: &Event,
        fill: impl FnOnce(&mut Batch, &Key) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let appended = self.append_locked(like, fill);
        if appended.as_ref().is_err_and(LogError::is_no_room) {
            full::note(&self.folder, like.run);
        }
        appended
    }

    fn append_locked(
        &mut self,
        like: &Event,
        fill: impl FnOnce(&mut Batch, &Key) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let folder = &self.folder;
        let _locked = lock::take(&mut self.lock, folder)?;
        let mut writer = Writer {
            folder,
            rotation: self.rotation,
            head: &mut self.head,
            file: &mut self.file,
        };
        let (key, found) = writer.find(&mut self.key)?;
        let found = writer.move_on(found, key)?;
        let mut batch = Batch::new(found.end, self.tallies.clone());
        if found.is_torn {
            batch.end_torn_line();
        }
        if let Some(broken) = found.broken {
            batch.push(&Event {
                kind: EventKind::ChainBroken(broken),
                ..like.clone()
            })?;
        }
        fill(&mut batch, key)?;
        writer.write(found.first, found.end, &batch, key)?;
        self.tallies = batch.tallies;
        self.bytes += batch.lines.len() as u64;
        Ok(())
    }
}

/// The files of the log while the lock is held.
struct Writer<'a> {
    folder: &'a Folder,
    rotation: Rotation,
    head: &'a mut Slot,
    file: &'a mut Slot,
}

impl Writer<'_> {
    /// Finds the end of the log.
    fn find<'k>(&mut self, key: &'k mut Option<Key>) -> Result<(&'k Key, Found), LogError> {
        let is_new = match key {
            Some(_) => false,
            None => match key_file::load(self.folder)? {
                key_file::Found::Before(found) => {
                    *key = Some(found);
                    false
                }
                key_file::Found::Now(made) => {
                    *key = Some(made);
                    true
                }
            },
        };
        let key = key.as_ref().ok_or(LogError::Encode)?;
        let head = head_file::read(self.head, self.folder, key)?;
        let tail = Tail::look(self.folder, self.file)?;
        let is_first = is_new && matches!(head, head_file::HeadState::Missing);
        if is_first && tail.is_nothing() {
            return Ok((key, Found::nothing()));
        }
        Ok((key, tail.find(head)?))
    }

    /// Moves the files on if the newest is full.
    fn move_on(&mut self, mut found: Found, key: &Key) -> Result<Found, LogError> {
        if found.broken.is_some() || !self.rotation.is_due(found.end.length) {
            return Ok(found);
        }
        if let Some(first) = self.rotation.first_left(self.folder) {
            found.first = first.max(found.first);
            let head = Head::new(found.first, found.end, None);
            head_file::write(self.head, self.folder, &head, key)?;
        }
        self.rotation.rotate(self.folder)?;
        found.end.length = 0;
        Ok(found)
    }

    /// Says what comes, appends it, and says that it came.
    fn write(&mut self, first: u64, before: End, batch: &Batch, key: &Key) -> Result<(), LogError> {
        let coming = Head::new(first, before, Some(batch.end));
        head_file::write(self.head, self.folder, &coming, key)?;
        self.append(before.length, &batch.lines)?;
        let come = Head::new(first, batch.end, None);
        head_file::write(self.head, self.folder, &come, key)
    }

    fn append(&mut self, at: u64, lines: &[u8]) -> Result<(), LogError> {
        let path = || self.folder.path_of(&segment_name(0));
        let file = self.file.make(self.folder)?;
        let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(file, lines, at));
        if written == Ok(lines.len()) {
            return Ok(());
        }
        // A part of a line would be in the way of the next one.
        let _ = rustix::fs::ftruncate(file, at);
        Err(match written {
            Ok(written) => LogError::Short {
                path: path(),
                written,
                wanted: lines.len(),
            },
            Err(error) => LogError::Write {
                path: path(),
                error,
            },
        })
    }
}

/// Whether an error means that there is no room.
pub(crate) fn is_full(error: Errno) -> bool {
    matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
}

#[cfg(test)]
mod tests {
    use ringfence_testkit::Folder as TestFolder;

    use super::*;
    use crate::chain::sum;
    use crate::event::{Digest, Sealed};
    use crate::verify::verify;

    fn event(records: u64) -> Event {
        let stamp = Stamp {
            time: Timestamp::from_micros(0),
            run: RunId::from_bits(u128::from(records)),
            sandbox: None,
        };
        let mac = Digest::ZEROS;
        stamp.event(EventKind::Sealed(Sealed { records, mac }))
    }

    fn end(text: &str) -> End {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        End {
            seq: lines.len() as u64,
            hash: sum(lines[lines.len() - 1].as_bytes()),
            length: text.len() as u64,
        }
    }

    /// A log as a writer leaves it that is killed once so much is written.
    fn killed_at(folder: &TestFolder, written: &str, before: &str, whole: &str) -> Key {
        let key = Key::new(&[7; 32]);
        std::fs::write(folder.join(KEY), [7; 32]).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(folder.join(KEY), private).unwrap();
        let head = Head::new(1, end(before), Some(end(whole)));
        std::fs::write(folder.join(HEAD), head.encode(&key).unwrap()).unwrap();
        folder.write(segment_name(0), written);
        key
    }

    fn is_altered(folder: &TestFolder) -> bool {
        let found = verify(folder.path()).unwrap();
        let is_of_chain = |problem: &crate::Problem| problem.kind.code() != "wrong-seal";
        found.problems.iter().any(is_of_chain)
    }

    #[test]
    fn a_writer_that_was_killed_within_an_append_leaves_nothing_that_looks_altered() {
        let made = TestFolder::new();
        let mut log = Log::open(made.path()).unwrap();
        log.record(&event(1)).unwrap();
        let before = made.read(segment_name(0));
        log.record_all(&[event(2), event(3), event(4)]).unwrap();
        let whole = made.read(segment_name(0));
        for length in before.len()..=whole.len() {
            let folder = TestFolder::new();
            let written = &whole[..length];
            killed_at(&folder, written, &before, &whole);
            assert!(!is_altered(&folder), "{length}");
            let mut next = Log::open(folder.path()).unwrap();
            next.record(&event(5)).unwrap();
            assert!(!is_altered(&folder), "{length}");
            let text = folder.read(segment_name(0));
            let kept = written.rfind('\n').map_or(0, |at| at + 1);
            assert!(text.starts_with(&whole[..kept]), "{length}");
            assert_eq!(text.lines().count(), whole[..kept].lines().count() + 1);
        }
    }

    #[test]
    fn a_writer_that_was_killed_within_a_rotation_leaves_nothing_that_looks_altered() {
        let folder = TestFolder::new();
        let mut log = Log::open(folder.path()).unwrap();
        log.record_all(&[event(1), event(2)]).unwrap();
        let moved = folder.join(segment_name(1));
        std::fs::rename(folder.join(segment_name(0)), moved).unwrap();
        assert!(!is_altered(&folder));
        log.record(&event(3)).unwrap();
        assert!(!is_altered(&folder));
        assert_eq!(folder.read(segment_name(0)).lines().count(), 1);
    }

    #[test]
    fn the_first_fields_are_what_a_reader_of_json_finds() {
        let folder = TestFolder::new();
        let mut log = Log::open(folder.path()).unwrap();
        for number in 1..30 {
            log.record(&event(number)).unwrap();
        }
        let text = folder.read(segment_name(0));
        for line in text.lines() {
            let header = crate::chain::Header::parse(line.as_bytes()).unwrap();
            let record: crate::Record = serde_json::from_str(line).unwrap();
            assert_eq!((header.seq, header.prev), (record.seq, record.prev));
            assert_eq!(header.run, record.event.run);
            assert_eq!(header.kind, "sealed");
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
        }
    }
}
