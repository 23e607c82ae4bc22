//! Work on another processor while we go on.

use std::os::unix::thread::{JoinHandleExt, RawPthread};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::processors;

/// Enough for anything that is done beside a start.
const STACK: usize = 1 << 20;

/// For how long the end of the work is looked for before it is waited for:
/// longer than it takes to be woken up.
const A_WHILE: Duration = Duration::from_micros(500);

/// Something that a thread of its own works on. It is waited for in any case,
/// also when nobody wants it any more: what it made goes then.
#[derive(Debug)]
pub struct Beside<T>(State<T>);

#[derive(Debug)]
enum State<T> {
    Worked(Worker<T>),
    Done(T),
}

impl<T: Send + 'static> Beside<T> {
    /// Starts to work; where there is no thread to be had, it is done at once.
    pub fn start(work: impl FnOnce() -> T + Clone + Send + 'static) -> Self {
        let allowed = processors::allowed();
        let is_moved = Arc::new(AtomicBool::new(false));
        let outcome = Arc::new(Mutex::new(None));
        let (may_go, told) = (Arc::clone(&is_moved), Arc::clone(&outcome));
        let moved_work = work.clone();
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            while !may_go.load(Ordering::Acquire) {
                thread::park();
            }
            // Where it may go on if that one is taken.
            if let Some(allowed) = &allowed {
                processors::return_to(allowed);
            }
            let outcome = catch_unwind(AssertUnwindSafe(moved_work));
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        });
        let Ok(thread) = thread else {
            return Self(State::Done(work()));
        };
        if let Some(allowed) = &allowed {
            // It has not ended: it waits for the next.
            processors::move_thread_away(thread.as_pthread_t(), allowed);
        }
        is_moved.store(true, Ordering::Release);
        thread.thread().unpark();
        Self(State::Worked(Worker {
            thread: Some(thread.into_pthread_t()),
            is_looked_for: allowed.is_some_and(|allowed| allowed.count() > 1),
            outcome,
        }))
    }
}

impl<T> Beside<T> {
    /// What came of it. Panics if the work did.
    pub fn finish(self) -> T {
        match self.0 {
            State::Done(done) => done,
            State::Worked(worker) => worker.finish(),
        }
    }
}

/// A thread that is over when this is gone.
#[derive(Debug)]
struct Worker<T> {
    /// Until it was joined.
    thread: Option<RawPthread>,
    /// Whether it can end while we do something.
    is_looked_for: bool,
    outcome: Arc<Mutex<Option<thread::Result<T>>>>,
}

impl<T> Worker<T> {
    fn finish(mut self) -> T {
        self.join();
        let outcome = self
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match outcome {
            Some(outcome) => outcome.unwrap_or_else(|panic| resume_unwind(panic)),
            None => unreachable!("a thread that is over has said what came of it"),
        }
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        let since = Instant::now();
        while self.is_looked_for && since.elapsed() < A_WHILE {
            // SAFETY: the thread was not joined yet, nor detached.
            if unsafe { libc::pthread_tryjoin_np(thread, null_mut()) } == 0 {
                return;
            }
            // Whoever it waits for may be on our processor.
            thread::yield_now();
        }
        // SAFETY: as above: the last try did not succeed.
        unsafe { libc::pthread_join(thread, null_mut()) };
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_it_is_had() {
        assert_eq!(Beside::start(|| 7).finish(), 7);
    }

    #[test]
    fn it_is_done_also_if_nobody_wants_it() {
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        drop(Beside::start(move || seen.store(true, Ordering::Release)));
        assert!(done.load(Ordering::Acquire));
    }

    #[test]
    fn neither_it_nor_we_stay_on_some_processors() {
        let allowed = || rustix::thread::sched_getaffinity(None).unwrap();
        let ours = allowed();
        for _ in 0..200 {
            // Most are over before anything else can be done with them.
            assert!(Beside::start(allowed).finish() == ours);
            assert!(allowed() == ours);
        }
    }
}
