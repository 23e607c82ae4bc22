//! Work on another processor while we go on.

use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::processors;

/// Enough for anything that is done beside a start.
const STACK: usize = 1 << 20;

/// Something that a thread of its own works on. It is waited for in any case,
/// also when nobody wants it any more: what it made goes then.
#[derive(Debug)]
pub struct Beside<T>(Option<State<T>>);

#[derive(Debug)]
enum State<T> {
    Worked(JoinHandle<T>),
    Done(T),
}

impl<T: Send + 'static> Beside<T> {
    /// Starts to work; where there is no thread to be had, it is done at once.
    pub fn start(work: impl FnOnce() -> T + Clone + Send + 'static) -> Self {
        let allowed = processors::allowed();
        let is_moved = Arc::new(AtomicBool::new(false));
        let may_go = Arc::clone(&is_moved);
        let moved_work = work.clone();
        let thread = thread::Builder::new().stack_size(STACK).spawn(move || {
            while !may_go.load(Ordering::Acquire) {
                thread::park();
            }
            // Where it may go on if that one is taken.
            if let Some(allowed) = &allowed {
                processors::return_to(allowed);
            }
            moved_work()
        });
        let Ok(thread) = thread else {
            return Self(Some(State::Done(work())));
        };
        if let Some(allowed) = &allowed {
            // It has not ended: it waits for the next.
            processors::move_thread_away(thread.as_pthread_t(), allowed);
        }
        is_moved.store(true, Ordering::Release);
        thread.thread().unpark();
        Self(Some(State::Worked(thread)))
    }
}

impl<T> Beside<T> {
    /// What came of it. Panics if the work did.
    pub fn finish(mut self) -> T {
        match self.0.take() {
            Some(State::Done(done)) => done,
            Some(State::Worked(thread)) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => unreachable!("only this takes it"),
        }
    }
}

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        if let Some(State::Worked(thread)) = self.0.take() {
            drop(thread.join());
        }
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
