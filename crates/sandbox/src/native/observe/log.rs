//! Where observations go: into memory shared with the supervisor, in order,
//! each told once and then counted.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ringfence_policy::AuditLevel;
use ringfence_sys::{Errno, LARGEST_RECORD, Ring, RingWriter};

use super::filter::is_of_interest;
use crate::observation::{Observation, Observed, Outcome};
use crate::plan::Plan;

/// How long the supervisor may take to make room. Calls inside wait as long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many different observations are remembered as told; more than these,
/// and all may be told again.
const MOST_REMEMBERED: usize = 64 * 1024;

/// Records what is seen. Clones record to the same place.
#[derive(Debug, Clone)]
pub(in crate::native) struct Observer {
    level: AuditLevel,
    log: Option<Arc<Mutex<Log>>>,
}

#[derive(Debug)]
struct Log {
    writer: RingWriter,
    told: HashSet<u64>,
    hasher: RandomState,
    buffer: Vec<u8>,
    /// Calls that a worker carries out, and how those ended that it was
    /// quicker with than we were.
    under_way: HashMap<u64, Observation>,
    ended_early: HashMap<u64, Outcome>,
    /// The command, with the path that it is started by, if that is on record
    /// and it was not seen to have begun.
    command: Option<(i32, Vec<u8>)>,
    /// The supervisor did not make room.
    is_lost: bool,
}

/// Whether the same observation is told again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Repeat {
    Told,
    Counted,
}

impl Observer {
    /// Records into `ring`, at the level of the plan.
    pub(in crate::native) fn new(plan: &Plan, ring: Option<Ring>) -> Result<Self, Errno> {
        let writer = ring.map(Ring::into_writer).transpose()?;
        Ok(Self {
            level: plan.audit_level(),
            log: writer.map(Log::new).map(Mutex::new).map(Arc::new),
        })
    }

    /// How much is recorded.
    pub(in crate::native) fn level(&self) -> AuditLevel {
        self.level
    }

    /// Whether nothing can be recorded any more: then nothing may go on.
    pub(in crate::native) fn is_lost(&self) -> bool {
        self.log().is_some_and(|log| log.is_lost)
    }

    /// Counts a call.
    pub(in crate::native) fn count(&self, number: i64) {
        if let Some(mut log) = self.log() {
            log.count(number);
        }
    }

    /// Records an observation of call `number`. False when it could not be.
    pub(in crate::native) fn tell(
        &self,
        number: i64,
        observation: Observation,
        repeat: Repeat,
    ) -> bool {
        let Some(mut log) = self.log() else {
            return true;
        };
        log.tell(number, observation, repeat);
        !log.is_lost
    }

    /// Records the command, which is about to be started by `path`. False when
    /// it could not be.
    pub(in crate::native) fn tell_command(&self, observation: Observation, path: &[u8]) -> bool {
        if let Some(mut log) = self.log() {
            log.command = Some((observation.pid, path.to_vec()));
        }
        self.tell(libc::SYS_execve, observation, Repeat::Told)
    }

    /// Whether the program that process `pid` was seen to begin with is the
    /// command, as [`Self::tell_command`] recorded it. True at most once.
    pub(in crate::native) fn has_begun(&self, pid: i32, path: Option<&[u8]>) -> bool {
        let Some(mut log) = self.log() else {
            return false;
        };
        let command = log.command.take_if(|(command, _)| *command == pid);
        command.is_some_and(|(_, started)| path.is_none_or(|path| path == started))
    }

    /// Records an observation once a worker says how the call ended.
    pub(in crate::native) fn tell_later(&self, id: u64, number: i64, observation: Observation) {
        let Some(mut log) = self.log() else { return };
        if let Some(outcome) = log.ended_early.remove(&id) {
            log.tell(number, with(observation, outcome), Repeat::Told);
        } else {
            log.under_way.insert(id, observation);
        }
    }

    /// A worker is done with the call `id`.
    pub(in crate::native) fn ended(&self, id: u64, number: i64, ended: Result<(), Errno>) {
        if !is_of_interest(self.level, number) {
            return;
        }
        let Some(mut log) = self.log() else { return };
        let outcome = outcome_of(ended, number);
        match log.under_way.remove(&id) {
            Some(observation) => {
                log.tell(number, with(observation, outcome), Repeat::Told);
                // The init may be asleep.
                log.writer.announce();
            }
            None => {
                log.ended_early.insert(id, outcome);
            }
        }
    }

    /// When [`Self::wake_supervisor`] is due.
    pub(in crate::native) fn due(&self) -> Option<Instant> {
        self.log().and_then(|log| log.writer.due())
    }

    /// Wakes the supervisor for what it was not woken for, if it is time.
    pub(in crate::native) fn wake_supervisor(&self) {
        if let Some(mut log) = self.log()
            && log.writer.due().is_some_and(|due| due <= Instant::now())
        {
            log.writer.announce();
        }
    }

    /// Everything inside is gone: records what was still under way. The
    /// supervisor is told so next, and takes it then.
    pub(in crate::native) fn finish(&self) {
        let Some(mut log) = self.log() else { return };
        let rest: Vec<_> = log.under_way.drain().collect();
        for (_, observation) in rest {
            log.tell(-1, observation, Repeat::Told);
        }
    }

    fn log(&self) -> Option<MutexGuard<'_, Log>> {
        let log = self.log.as_ref()?;
        Some(log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Log {
    fn new(writer: RingWriter) -> Self {
        Self {
            writer,
            told: HashSet::new(),
            hasher: RandomState::new(),
            buffer: Vec::new(),
            under_way: HashMap::new(),
            ended_early: HashMap::new(),
            command: None,
            is_lost: false,
        }
    }

    fn count(&mut self, number: i64) {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        self.writer.count(number, now());
    }

    fn tell(&mut self, number: i64, observation: Observation, repeat: Repeat) {
        // What was refused is told every time, with what it was; the supervisor
        // counts what is alike.
        let is_refused = matches!(observation.outcome, Outcome::Refused(_));
        if repeat == Repeat::Counted && !is_refused && !self.is_new(&observation) {
            return self.count(number);
        }
        self.buffer.clear();
        let written = serde_json::to_writer(&mut self.buffer, &Observed::Call(observation));
        // Its parts are bounded, so that every record fits.
        if written.is_err() || self.buffer.len() > LARGEST_RECORD {
            return self.count(number);
        }
        self.is_lost |= self.writer.push(&self.buffer, PATIENCE).is_err();
    }

    fn is_new(&mut self, observation: &Observation) -> bool {
        let Observation {
            call,
            action,
            paths,
            outcome,
            ..
        } = observation;
        let key = self.hasher.hash_one((call, action, paths, outcome));
        if self.told.len() >= MOST_REMEMBERED {
            self.told.clear();
        }
        self.told.insert(key)
    }
}

/// What came of a call that a worker carried out.
fn outcome_of(ended: Result<(), Errno>, number: i64) -> Outcome {
    match ended {
        Ok(()) => Outcome::Done,
        // It goes on by itself.
        Err(Errno::INPROGRESS) => Outcome::Continued,
        // What the closed network answers is a refusal.
        Err(errno @ (Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN))
            if number == libc::SYS_connect =>
        {
            Outcome::Refused(errno.raw_os_error())
        }
        Err(errno) => Outcome::Failed(errno.raw_os_error()),
    }
}

fn with(mut observation: Observation, outcome: Outcome) -> Observation {
    if matches!(outcome, Outcome::Refused(_)) {
        observation.rule = Some("network is closed".to_owned());
    }
    observation.outcome = outcome;
    observation
}

/// Nanoseconds since the epoch.
pub(in crate::native) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Action;

    fn observer() -> (Observer, ringfence_sys::RingReader) {
        let (writer, reader) = Ring::new().unwrap().into_both().unwrap();
        let log = Arc::new(Mutex::new(Log::new(writer)));
        let observer = Observer {
            level: AuditLevel::Security,
            log: Some(log),
        };
        (observer, reader)
    }

    fn write(path: &str) -> Observation {
        Observation {
            time: now(),
            pid: 7,
            call: "openat".into(),
            action: Action::Write,
            paths: vec![path.into()],
            argv: Vec::new(),
            outcome: Outcome::Done,
            rule: None,
        }
    }

    fn taken(reader: &ringfence_sys::RingReader) -> Vec<Observation> {
        let records = reader.take().unwrap();
        let parsed = records.iter().map(|record| serde_json::from_slice(record));
        parsed
            .map(|observed| match observed.unwrap() {
                Observed::Call(observation) => observation,
                Observed::Count { .. } => panic!("not in the ring"),
            })
            .collect()
    }

    #[test]
    fn what_is_the_same_is_told_once_and_then_counted() {
        let (observer, reader) = observer();
        for path in ["/a", "/b", "/a", "/a"] {
            observer.tell(libc::SYS_openat, write(path), Repeat::Counted);
        }
        let paths: Vec<_> = taken(&reader)
            .into_iter()
            .flat_map(|observation| observation.paths)
            .collect();
        assert_eq!(paths, ["/a", "/b"]);
        let counters = reader.counters();
        assert_eq!((counters.len(), counters[0].1.count), (1, 2));
    }

    #[test]
    fn the_command_is_told_once() {
        let (observer, reader) = observer();
        observer.tell_command(write("/bin/sh"), b"/bin/sh");
        assert_eq!(taken(&reader).len(), 1);
        assert!(!observer.has_begun(8, Some(b"/bin/sh")));
        assert!(observer.has_begun(7, Some(b"/bin/sh")));
        assert!(!observer.has_begun(7, Some(b"/bin/sh")));
        observer.tell_command(write("/bin/sh"), b"/bin/sh");
        assert!(!observer.has_begun(7, Some(b"/bin/true")), "it went on");
    }

    #[test]
    fn the_worst_observation_fits_a_record() {
        let (observer, reader) = observer();
        // Every byte is six in a record.
        let worst = Observation {
            paths: vec!["\u{1}".repeat(4096 + 3); 2],
            argv: vec!["\u{1}".repeat(64); 64],
            rule: Some("r".repeat(2048)),
            ..write("")
        };
        assert!(observer.tell(libc::SYS_execve, worst.clone(), Repeat::Told));
        assert_eq!(taken(&reader), [worst]);
    }

    #[test]
    fn a_worker_may_be_quicker_or_slower_than_the_init() {
        let (observer, reader) = observer();
        let connect = libc::SYS_connect;
        observer.tell_later(1, connect, write("slow"));
        observer.ended(1, connect, Err(Errno::CONNREFUSED));
        observer.ended(2, connect, Ok(()));
        observer.tell_later(2, connect, write("quick"));
        let unfinished = Observation {
            outcome: Outcome::Continued,
            ..write("never")
        };
        observer.tell_later(3, connect, unfinished);
        observer.finish();
        let ended: Vec<_> = taken(&reader)
            .into_iter()
            .map(|observation| (observation.paths[0].clone(), observation.outcome))
            .collect();
        let expected = [
            ("slow".to_owned(), Outcome::Failed(libc::ECONNREFUSED)),
            ("quick".to_owned(), Outcome::Done),
            ("never".to_owned(), Outcome::Continued),
        ];
        assert_eq!(ended, expected);
    }
}
