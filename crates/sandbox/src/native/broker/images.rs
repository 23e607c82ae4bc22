//! The program that a process runs, recorded once for each `execve`, after it.
//!
//! A program is met when it makes the first call of all
//! ([`observe::FIRST_CALL`]), or, if it avoids that, its first watched one. With
//! every `execve` the kernel puts sixteen random bytes into the new program's
//! memory (`AT_RANDOM` in getauxval(3)). Threads and forks have the same ones;
//! what is started anew, also by the same process, at the same path and with the
//! same words, has others. So they tell whether a program was met.
//!
//! For the record only: code inside can change its bytes and be recorded again,
//! or give them to the next program and leave that out, as it could run the same
//! code without starting anything.

use std::collections::{HashMap, HashSet};

use ringfence_sys::seccomp::{Answer, Notification};
use ringfence_sys::{self as sys, Errno};
use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use super::Broker;
use super::caller::Caller;
use super::programs;
use super::seen::{self, LONGEST_PATH, text};
use crate::native::observe;

/// The most programs that are remembered as met, in each of two halves.
const MOST_MET: usize = 8 * 1024;
/// The most threads whose program is known without looking.
const MOST_THREADS: usize = 4 * 1024;

const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;
/// More than a kernel has of auxiliary entries.
const MOST_OF_VECTOR: usize = 1024;

/// The bytes that are of one `execve`, and where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    address: u64,
    bytes: [u8; 16],
}

impl Mark {
    /// Whether a thread still runs the program that has this mark.
    fn is_of(self, thread: Pid) -> bool {
        let mut found = [0; 16];
        let read = sys::read_some(thread, self.address, &mut found);
        read == Ok(found.len()) && found == self.bytes
    }
}

/// One program of one process.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Image {
    bytes: [u8; 16],
    path: String,
}

/// A program as it was found.
struct Found {
    image: Image,
    mark: Option<Mark>,
    /// The path that it was started by, as its caller wrote it.
    started_as: Option<Vec<u8>>,
}

/// The programs that were met.
#[derive(Debug, Default)]
pub(super) struct Images {
    recent: HashSet<Image>,
    /// When there are too many these are forgotten, and the recent ones become
    /// these: what is still met stays known.
    older: HashSet<Image>,
    threads: HashMap<Pid, Mark>,
}

impl Images {
    /// Whether the thread's program is on record, as far as one look tells.
    fn knows(&self, thread: Pid) -> bool {
        let mark = self.threads.get(&thread);
        mark.is_some_and(|mark| mark.is_of(thread))
    }

    /// True when it was not met before.
    fn meet(&mut self, thread: Pid, mark: Option<Mark>, image: Image) -> bool {
        if self.threads.len() >= MOST_THREADS {
            self.threads.clear();
        }
        if let Some(mark) = mark {
            self.threads.insert(thread, mark);
        }
        if self.recent.contains(&image) {
            return false;
        }
        let is_new = !self.older.remove(&image);
        if self.recent.len() >= MOST_MET {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(image);
        is_new
    }
}

impl Broker<'_> {
    /// A program made its first call, or says so: lets it go on.
    pub(super) fn see_program_begin(&mut self, call: &Notification) {
        if self.images.knows(call.thread) {
            self.observer.count(call.number);
        } else if !self.record_program(call) {
            return;
        }
        let _ = self.listener.answer(call, Answer::Continue);
    }

    /// Has the program of a caller on record, if it is not. False when that
    /// failed, and with it everything ends.
    pub(super) fn has_program_recorded(&mut self, call: &Notification) -> bool {
        let is_seen_here = observe::sees_programs_begin(self.observer.level());
        !is_seen_here || self.images.knows(call.thread) || self.record_program(call)
    }

    fn record_program(&mut self, call: &Notification) -> bool {
        let caller = Caller::new(&self.listener, call);
        let found = find(call.thread);
        let words = programs::words_of_process(call.thread);
        // What was read was the caller's only if it still waits.
        if caller.confirm().is_err() {
            return true;
        }
        let path = found.image.path.clone();
        if !self.images.meet(call.thread, found.mark, found.image) {
            return true;
        }
        let record = seen::begun(call, path, words);
        let pid = record.observation.pid;
        if self.observer.has_begun(pid, found.started_as.as_deref()) {
            return true;
        }
        self.record(call, Some(record))
    }
}

/// The program that a thread runs.
fn find(thread: Pid) -> Found {
    let link = format!("/proc/{}/exe", thread.as_raw_pid());
    let path = rustix::fs::readlink(link, Vec::new()).map(|path| text(path.as_bytes()));
    let vector = auxiliary_vector(thread).unwrap_or_default();
    let mark = entry(&vector, AT_RANDOM).and_then(|address| mark_at(thread, address));
    let mut buffer = [0; LONGEST_PATH];
    let started_as = entry(&vector, AT_EXECFN)
        .and_then(|address| sys::read_c_string_into(thread, address, &mut buffer).ok());
    Found {
        image: Image {
            bytes: mark.map_or_else(|| number_of(thread), |mark| mark.bytes),
            path: path.unwrap_or_else(|_| programs::UNREADABLE.to_owned()),
        },
        mark,
        started_as: started_as.map(<[u8]>::to_vec),
    }
}

/// What stands for the bytes of a program that nobody may look into: each of
/// those is recorded once for a process.
fn number_of(thread: Pid) -> [u8; 16] {
    let mut bytes = [0; 16];
    let number = seen::process_of(thread).as_raw_pid();
    bytes[..4].copy_from_slice(&number.to_ne_bytes());
    bytes
}

fn mark_at(thread: Pid, address: u64) -> Option<Mark> {
    let bytes = sys::read_bytes(thread, address, 16).ok()?;
    let bytes = bytes.try_into().ok()?;
    Some(Mark { address, bytes })
}

/// As the kernel wrote it: pairs of numbers.
fn auxiliary_vector(thread: Pid) -> Result<Vec<u8>, Errno> {
    let path = format!("/proc/{}/auxv", thread.as_raw_pid());
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = [0; MOST_OF_VECTOR];
    let length = rustix::io::read(file, &mut buffer)?;
    Ok(buffer[..length].to_vec())
}

fn entry(vector: &[u8], kind: u64) -> Option<u64> {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    vector
        .chunks_exact(16)
        .find(|pair| number(&pair[..8]) == Some(kind))
        .and_then(|pair| number(&pair[8..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    fn image(number: usize) -> Image {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_ne_bytes());
        Image {
            bytes,
            path: "/bin/true".to_owned(),
        }
    }

    #[test]
    fn this_program_is_found_by_its_bytes_and_paths() {
        let found = find(rustix::thread::gettid());
        let own = std::env::current_exe().unwrap().display().to_string();
        assert_eq!(found.image.path, own);
        assert_eq!(found.mark.unwrap().bytes, found.image.bytes);
        assert!(found.started_as.is_some());
        assert!(found.mark.unwrap().is_of(rustix::process::getpid()));
    }

    #[test]
    fn threads_have_the_program_of_their_process_and_others_another() {
        let here = find(rustix::thread::gettid()).image;
        let of_thread = std::thread::spawn(|| find(rustix::thread::gettid()).image);
        assert_eq!(of_thread.join().unwrap(), here);
        let mut other = std::process::Command::new("sleep")
            .arg("9")
            .spawn()
            .unwrap();
        let thread = pid(other.id().try_into().unwrap());
        assert_ne!(find(thread).image.bytes, here.bytes);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn what_is_met_again_and_again_stays_known_among_many() {
        let mut images = Images::default();
        assert!(images.meet(pid(2), None, image(0)));
        for number in 1..10 * MOST_MET {
            assert!(images.meet(pid(3), None, image(number)));
            if number % 1000 == 0 {
                assert!(!images.meet(pid(2), None, image(0)), "{number}");
            }
        }
        assert!(images.recent.len() + images.older.len() <= 2 * MOST_MET);
    }

    #[test]
    fn entries_are_found_in_any_vector() {
        let pairs = [6u64, 4096, AT_RANDOM, 7, 0, 0];
        let vector: Vec<u8> = pairs
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .collect();
        assert_eq!(entry(&vector, AT_RANDOM), Some(7));
        assert_eq!(entry(&vector, AT_EXECFN), None);
        assert_eq!(entry(&vector[..40], 0), None);
    }
}
