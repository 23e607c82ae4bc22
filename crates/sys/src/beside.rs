//! Work on another processor while we go on.

use std::os::unix::thread::JoinHandleExt;
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
        let thread = thread::Builder::new().stack_size(STACK);
        Self(Some(match thread.spawn(work.clone()) {
            Ok(thread) => {
                processors::move_thread_away(thread.as_pthread_t());
                State::Worked(thread)
            }
            Err(_) => State::Done(work()),
        }))
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

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
    fn it_is_not_where_we_are() {
        let ours = rustix::thread::sched_getaffinity(None).unwrap();
        let where_it_may_be = || rustix::thread::sched_getaffinity(None).unwrap().count();
        let theirs = Beside::start(where_it_may_be).finish();
        assert_eq!(theirs, ours.count().max(2) - 1);
    }
}
