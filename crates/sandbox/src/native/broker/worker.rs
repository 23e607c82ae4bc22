//! Threads for the few operations that may wait for somebody else, such as
//! opening a pipe or connecting to a busy server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ringfence_sys::Errno;
use ringfence_sys::seccomp::{Answer, Listener};
use rustix::process::Pid;

use super::caller::Caller;
use super::pipes::RESTART;
use crate::native::observe::Observer;
use crate::wire::Refusal;

/// The most operations that may wait at a time.
const MOST_WORKERS: usize = 2048;
/// The most of one process, so that it does not take those of others.
const MOST_OF_ONE: usize = 1024;
/// Enough for a few system calls.
const STACK: usize = 64 * 1024;

/// How many are under way, by the process they are for.
#[derive(Default)]
struct Running {
    all: usize,
    of_one: HashMap<Pid, usize>,
}

impl Running {
    fn begin(&mut self, process: Pid) -> Result<(), Errno> {
        let own = self.of_one.get(&process).copied().unwrap_or(0);
        if self.all >= MOST_WORKERS || own >= MOST_OF_ONE {
            return Err(Errno::AGAIN);
        }
        self.all += 1;
        self.of_one.insert(process, own + 1);
        Ok(())
    }

    fn end(&mut self, process: Pid) {
        self.all = self.all.saturating_sub(1);
        match self.of_one.get_mut(&process) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                self.of_one.remove(&process);
            }
        }
    }
}

/// The threads under way and what they have to report.
pub(super) struct Workers {
    observer: Observer,
    running: Arc<Mutex<Running>>,
    refusals: Arc<Mutex<Vec<Refusal>>>,
}

impl Workers {
    /// Records how operations end with `observer`.
    pub(super) fn new(observer: Observer) -> Self {
        Self {
            observer,
            running: Arc::default(),
            refusals: Arc::default(),
        }
    }

    /// Runs `operation` on a thread of its own, which answers the caller.
    pub(super) fn run(
        &self,
        listener: &Arc<Listener>,
        caller: &Caller<'_>,
        operation: impl FnOnce() -> Result<Answer, Errno> + Send + 'static,
    ) -> Result<(), Errno> {
        let process = caller.process()?;
        lock(&self.running).begin(process)?;
        let (listener, call) = (Arc::clone(listener), *caller.call());
        let running = Arc::clone(&self.running);
        let observer = self.observer.clone();
        let started = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || {
                let result = operation();
                let ended = result.as_ref().map(drop).map_err(|errno| as_told(*errno));
                observer.ended(call.id(), call.number, ended);
                let answer = result.unwrap_or_else(Answer::Fail);
                let _ = listener.answer(&call, answer);
                lock(&running).end(process);
            });
        if started.is_err() {
            lock(&self.running).end(process);
            return Err(Errno::AGAIN);
        }
        Ok(())
    }

    /// Where an operation leaves a refusal to be reported.
    pub(super) fn outbox(&self) -> Arc<Mutex<Vec<Refusal>>> {
        Arc::clone(&self.refusals)
    }

    pub(super) fn take_refusals(&self) -> Vec<Refusal> {
        std::mem::take(&mut *lock(&self.refusals))
    }
}

/// What the caller sees, or will see if it does not make the call again.
fn as_told(errno: Errno) -> Errno {
    if errno == RESTART { Errno::INTR } else { errno }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_cannot_take_every_place() {
        let [one, other] = [2, 3].map(|number| Pid::from_raw(number).unwrap());
        let mut running = Running::default();
        let begun = (0..MOST_OF_ONE + 5).filter(|_| running.begin(one).is_ok());
        assert_eq!(begun.count(), MOST_OF_ONE);
        running.begin(other).unwrap();
        running.end(one);
        running.begin(one).unwrap();
        for _ in 0..MOST_OF_ONE {
            running.end(one);
        }
        running.end(other);
        assert_eq!((running.all, running.of_one.len()), (0, 0));
    }
}
