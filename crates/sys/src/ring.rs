//! Records from one process to another through shared memory.
//!
//! Made before a process is copied: one side then writes, the other reads.
//! Nothing is ever dropped: a writer that finds no room waits for the reader.
//! The reader takes everything in the memory as made up by an enemy: it keeps
//! its own position, copies before it looks, and checks every length.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::{Errno, Result, check};

/// Room for records, in words of eight bytes: 1 MiB.
const ROOM: usize = 128 * 1024;
/// The largest record, in bytes.
pub const LARGEST_RECORD: usize = 96 * 1024;
/// How many counters there are.
pub const COUNTERS: usize = 512;
/// Words before the records: the reader's position, the writer's, counters.
const HEAD: usize = 0;
const TAIL: usize = 8;
const FIRST_COUNTER: usize = 64;
const WORDS_OF_COUNTER: usize = 3;
const HEADER: usize = 2048;
const BYTES: usize = (HEADER + ROOM) * 8;
/// The reader is woken when this much waits for it.
const MUCH: u64 = (ROOM / 4) as u64;
/// How long a record may wait for the reader to be woken.
const SOON: Duration = Duration::from_millis(50);

/// Shared memory for records, of which nobody has a side yet.
#[derive(Debug)]
pub struct Ring {
    memory: Arc<Memory>,
    /// Readable when there is something worth reading.
    filled: OwnedFd,
    /// Readable when there is room again.
    emptied: OwnedFd,
}

/// The writing side.
#[derive(Debug)]
pub struct RingWriter {
    ring: Ring,
    tail: u64,
    /// When the oldest record was written that the reader was not woken for.
    unannounced: Option<Instant>,
}

/// The reading side.
#[derive(Debug)]
pub struct RingReader {
    ring: Ring,
    head: AtomicU64,
}

/// A counter: how often, and when first and last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// How often.
    pub count: u64,
    /// The first time, in the writer's unit.
    pub first: u64,
    /// The last time.
    pub last: u64,
}

impl Ring {
    /// New shared memory, with nothing in it.
    pub fn new() -> Result<Self> {
        Ok(Self {
            memory: Arc::new(Memory::new()?),
            filled: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            emptied: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// The descriptors that a side needs.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.filled.as_fd(), self.emptied.as_fd()]
    }

    /// Becomes the writing side. Processes made from now on have none of it.
    pub fn into_writer(self) -> Result<RingWriter> {
        self.memory.keep_from_children()?;
        Ok(RingWriter {
            ring: self,
            tail: 0,
            unannounced: None,
        })
    }

    /// Both sides, for threads of one process.
    pub fn into_both(self) -> Result<(RingWriter, RingReader)> {
        let twin = Self {
            memory: Arc::clone(&self.memory),
            filled: rustix::io::fcntl_dupfd_cloexec(&self.filled, 0)?,
            emptied: rustix::io::fcntl_dupfd_cloexec(&self.emptied, 0)?,
        };
        Ok((self.into_writer()?, twin.into_reader()?))
    }

    /// Becomes the reading side. Processes made from now on have none of it.
    pub fn into_reader(self) -> Result<RingReader> {
        self.memory.keep_from_children()?;
        Ok(RingReader {
            ring: self,
            head: AtomicU64::new(0),
        })
    }
}

impl RingWriter {
    /// Adds a record. Waits for room no longer than `patience`, then fails
    /// with `ETIMEDOUT`.
    pub fn push(&mut self, record: &[u8], patience: Duration) -> Result<()> {
        if record.len() > LARGEST_RECORD {
            return Err(Errno::MSGSIZE);
        }
        let needed = 1 + record.len().div_ceil(8) as u64;
        if self.room()? < needed {
            self.await_room(needed, patience)?;
        }
        self.put(self.tail, record.len() as u64);
        for (at, chunk) in record.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.put(self.tail + 1 + at as u64, u64::from_ne_bytes(word));
        }
        self.tail += needed;
        self.ring.memory.words()[TAIL].store(self.tail, Ordering::Release);
        let since = *self.unannounced.get_or_insert_with(Instant::now);
        if ROOM as u64 - self.room()? >= MUCH || since.elapsed() >= SOON {
            self.announce();
        }
        Ok(())
    }

    /// Counts one more at `number`; numbers beyond the last share that.
    pub fn count(&mut self, number: usize, time: u64) {
        let at = FIRST_COUNTER + number.min(COUNTERS - 1) * WORDS_OF_COUNTER;
        let [count, first, last] = [0, 1, 2].map(|word| &self.ring.memory.words()[at + word]);
        let before = count.load(Ordering::Relaxed);
        if before == 0 {
            first.store(time, Ordering::Relaxed);
        }
        last.store(time, Ordering::Relaxed);
        count.store(before.saturating_add(1), Ordering::Release);
    }

    /// When [`Self::announce`] is due, if anything waits for it.
    pub fn due(&self) -> Option<Instant> {
        self.unannounced.map(|since| since + SOON)
    }

    /// Wakes the reader.
    pub fn announce(&mut self) {
        self.unannounced = None;
        let _ = rustix::io::write(&self.ring.filled, &1u64.to_ne_bytes());
    }

    fn put(&self, position: u64, word: u64) {
        self.ring.memory.words()[index(position)].store(word, Ordering::Relaxed);
    }

    fn room(&self) -> Result<u64> {
        let head = self.ring.memory.words()[HEAD].load(Ordering::Acquire);
        let used = self.tail.checked_sub(head).ok_or(Errno::PROTO)?;
        (ROOM as u64).checked_sub(used).ok_or(Errno::PROTO)
    }

    fn await_room(&mut self, needed: u64, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            self.announce();
            let mut old = [0; 8];
            let _ = rustix::io::read(&self.ring.emptied, &mut old);
            if self.room()? >= needed {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Errno::TIMEDOUT);
            }
            let left = rustix::time::Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
            let mut fds = [PollFd::new(&self.ring.emptied, PollFlags::IN)];
            match rustix::event::poll(&mut fds, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl RingReader {
    /// Takes every record there is. `EPROTO` when the memory makes no sense.
    pub fn take(&self) -> Result<Vec<Vec<u8>>> {
        let mut old = [0; 8];
        let _ = rustix::io::read(&self.ring.filled, &mut old);
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.ring.memory.words()[TAIL].load(Ordering::Acquire);
        let filled = tail.checked_sub(head).ok_or(Errno::PROTO)?;
        if filled > ROOM as u64 {
            return Err(Errno::PROTO);
        }
        let copy: Vec<u64> = (head..tail).map(|position| self.word(position)).collect();
        if !copy.is_empty() {
            self.head.store(tail, Ordering::Relaxed);
            self.ring.memory.words()[HEAD].store(tail, Ordering::Release);
            let _ = rustix::io::write(&self.ring.emptied, &1u64.to_ne_bytes());
        }
        records(&copy)
    }

    /// The counters that count something, by number.
    pub fn counters(&self) -> Vec<(usize, Counter)> {
        let read = |number: usize| {
            let at = FIRST_COUNTER + number * WORDS_OF_COUNTER;
            let words = self.ring.memory.words();
            let count = words[at].load(Ordering::Acquire);
            Counter {
                count,
                first: words[at + 1].load(Ordering::Relaxed),
                last: words[at + 2].load(Ordering::Relaxed),
            }
        };
        (0..COUNTERS)
            .map(|number| (number, read(number)))
            .filter(|(_, counter)| counter.count > 0)
            .collect()
    }

    fn word(&self, position: u64) -> u64 {
        self.ring.memory.words()[index(position)].load(Ordering::Relaxed)
    }
}

impl AsFd for RingReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.filled.as_fd()
    }
}

fn index(position: u64) -> usize {
    // The remainder is below ROOM.
    HEADER + usize::try_from(position % ROOM as u64).unwrap_or(0)
}

/// Cuts a copy of the memory into records.
fn records(mut words: &[u64]) -> Result<Vec<Vec<u8>>> {
    let mut records = Vec::new();
    while let Some((length, rest)) = words.split_first() {
        let length = usize::try_from(*length)
            .ok()
            .filter(|length| *length <= LARGEST_RECORD)
            .ok_or(Errno::PROTO)?;
        let (record, rest) = rest
            .split_at_checked(length.div_ceil(8))
            .ok_or(Errno::PROTO)?;
        let mut bytes: Vec<u8> = record.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(length);
        records.push(bytes);
        words = rest;
    }
    Ok(records)
}

/// Memory as a file without a name, which can be sealed. Nothing in it can be
/// executed, without which some machines refuse it (`vm.memfd_noexec`); kernels
/// before 6.3 do not know that.
pub fn sealable_memory(name: &str) -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        other => other,
    }
}

/// Memory that is shared with processes copied from this one.
#[derive(Debug)]
struct Memory(std::ptr::NonNull<AtomicU64>);

impl Memory {
    fn new() -> Result<Self> {
        let file = sealable_memory("records")?;
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        // Its pages stay, or touching them could kill the other side.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        // SAFETY: a new mapping at an address that the kernel chooses. The
        // descriptor is not needed afterwards.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                std::os::fd::AsRawFd::as_raw_fd(&file),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(crate::last_errno());
        }
        std::ptr::NonNull::new(address.cast())
            .map(Self)
            .ok_or(Errno::NOMEM)
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, this long and ours until drop;
        // every access of either process is atomic.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), BYTES / 8) }
    }

    fn keep_from_children(&self) -> Result<()> {
        // SAFETY: the range is our own mapping; children just lack it.
        check(libc::c_long::from(unsafe {
            libc::madvise(self.0.as_ptr().cast(), BYTES, libc::MADV_DONTFORK)
        }))?;
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range is our own mapping, and no borrow of it is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

// SAFETY: what is shared are atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    /// Runs `test` with both sides in one process.
    fn with_pair(test: impl FnOnce(&mut RingWriter, &RingReader)) {
        let (mut writer, reader) = Ring::new().unwrap().into_both().unwrap();
        test(&mut writer, &reader);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn records_come_out_as_they_went_in(
            batches in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..20),
                0..30,
            )
        ) {
            with_pair(|writer, reader| {
                for batch in &batches {
                    for record in batch {
                        writer.push(record, PATIENCE).unwrap();
                    }
                    assert_eq!(&reader.take().unwrap(), batch);
                }
            });
        }

        #[test]
        fn nonsense_is_an_error_or_bounded(words in prop::collection::vec(any::<u64>(), 0..64)) {
            if let Ok(found) = records(&words) {
                let bytes: usize = found.iter().map(Vec::len).sum();
                prop_assert!(bytes <= words.len() * 8);
            }
        }

        #[test]
        fn a_position_that_makes_no_sense_is_an_error(tail in (ROOM as u64 + 1)..) {
            with_pair(|_, reader| {
                reader.ring.memory.words()[TAIL].store(tail, Ordering::Release);
                assert_eq!(reader.take(), Err(Errno::PROTO));
            });
        }
    }

    #[test]
    fn a_writer_waits_for_a_slow_reader_and_loses_nothing() {
        const MANY: usize = 100_000;
        with_pair(|writer, reader| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for n in 0..MANY {
                        writer
                            .push(format!("record {n}").as_bytes(), PATIENCE)
                            .unwrap();
                    }
                });
                let mut seen = 0;
                while seen < MANY {
                    for record in reader.take().unwrap() {
                        assert_eq!(record, format!("record {seen}").as_bytes());
                        seen += 1;
                    }
                }
            });
        });
    }

    #[test]
    fn without_a_reader_a_full_ring_is_an_error() {
        with_pair(|writer, _| {
            let record = vec![1; LARGEST_RECORD];
            let full = (0..).find_map(|_| writer.push(&record, Duration::ZERO).err());
            assert_eq!(full, Some(Errno::TIMEDOUT));
        });
    }

    #[test]
    fn the_reader_is_woken_for_much() {
        let is_ready = |reader: &RingReader| {
            let mut fds = [PollFd::new(reader, PollFlags::IN)];
            rustix::event::poll(&mut fds, Some(&rustix::time::Timespec::default())).unwrap() > 0
        };
        with_pair(|writer, reader| {
            assert!(writer.due().is_none() && !is_ready(reader));
            for _ in 0..=ROOM * 8 / 4 / LARGEST_RECORD {
                writer.push(&vec![1; LARGEST_RECORD], PATIENCE).unwrap();
            }
            assert!(is_ready(reader));
            reader.take().unwrap();
            assert!(!is_ready(reader));
            writer.push(b"one more", PATIENCE).unwrap();
            assert!(writer.due().is_some());
            writer.announce();
            assert!(writer.due().is_none() && is_ready(reader));
        });
    }

    #[test]
    fn counters_tell_how_often_first_and_last() {
        with_pair(|writer, reader| {
            for time in [5, 6, 9] {
                writer.count(7, time);
            }
            writer.count(usize::MAX, 3);
            let seven = Counter {
                count: 3,
                first: 5,
                last: 9,
            };
            let other = Counter {
                count: 1,
                first: 3,
                last: 3,
            };
            assert_eq!(reader.counters(), [(7, seven), (COUNTERS - 1, other)]);
        });
    }
}
