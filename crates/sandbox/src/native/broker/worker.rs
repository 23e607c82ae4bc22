//! Threads for the few operations that may wait for somebody else, such as
//! opening a pipe or connecting to a busy server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ringfence_sys::Errno;
use ringfence_sys::seccomp::{Answer, Listener, Notification};

use crate::wire::Refusal;

/// The most operations that may wait at a time.
const MOST_WORKERS: usize = 256;
/// Enough for a few system calls.
const STACK: usize = 64 * 1024;

/// The threads under way and what they have to report.
#[derive(Default)]
pub(super) struct Workers {
    running: Arc<AtomicUsize>,
    refusals: Arc<Mutex<Vec<Refusal>>>,
}

impl Workers {
    /// Runs `operation` on a thread of its own, which answers `call`.
    pub(super) fn run(
        &self,
        listener: &Arc<Listener>,
        call: &Notification,
        operation: impl FnOnce() -> Result<Answer, Errno> + Send + 'static,
    ) -> Result<(), Errno> {
        if self.running.load(Ordering::Relaxed) >= MOST_WORKERS {
            return Err(Errno::AGAIN);
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        let (listener, call, running) = (Arc::clone(listener), *call, Arc::clone(&self.running));
        let started = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || {
                let answer = operation().unwrap_or_else(Answer::Fail);
                let _ = listener.answer(&call, answer);
                running.fetch_sub(1, Ordering::Relaxed);
            });
        if started.is_err() {
            self.running.fetch_sub(1, Ordering::Relaxed);
            return Err(Errno::AGAIN);
        }
        Ok(())
    }

    /// Where an operation leaves a refusal to be reported.
    pub(super) fn outbox(&self) -> Arc<Mutex<Vec<Refusal>>> {
        Arc::clone(&self.refusals)
    }

    pub(super) fn take_refusals(&self) -> Vec<Refusal> {
        std::mem::take(&mut *self.refusals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
