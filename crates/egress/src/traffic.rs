//! What passed over one connection, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ringfence_audit::CloseReason;

use crate::limits::Limits;
use crate::sips::Sips;

/// Figures of one connection, kept by whoever reads and writes it.
#[derive(Debug)]
pub(crate) struct Traffic {
    started: Instant,
    sent: AtomicU64,
    received: AtomicU64,
    /// Of the last byte, in milliseconds since the start.
    last: AtomicU64,
    /// How often all that was to be written was.
    flushes: AtomicU64,
    is_writing: AtomicBool,
    pub(crate) sips: Sips,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            last: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            is_writing: AtomicBool::new(false),
            sips: Sips::default(),
        }
    }

    /// Counts bytes that we wrote.
    pub(crate) fn sent(&self, count: u64) {
        self.sent.fetch_add(count, Ordering::Relaxed);
        self.touch();
    }

    /// Counts bytes that we read.
    pub(crate) fn received(&self, count: u64) {
        self.received.fetch_add(count, Ordering::Relaxed);
        self.sips.took(usize::try_from(count).unwrap_or(usize::MAX));
        self.touch();
    }

    /// Something is to be written.
    pub(crate) fn written(&self) {
        self.is_writing.store(true, Ordering::Relaxed);
    }

    /// Whether something is still to be written.
    pub(crate) fn is_writing(&self) -> bool {
        self.is_writing.load(Ordering::Relaxed)
    }

    /// Counts that nothing is left to be written.
    pub(crate) fn flushed(&self) {
        self.is_writing.store(false, Ordering::Relaxed);
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    pub(crate) fn total_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn total_received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Since it began.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    fn touch(&self) {
        self.last.store(self.age_in_millis(), Ordering::Relaxed);
    }

    fn age_in_millis(&self) -> u64 {
        u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends when the connection has been quiet or alive for too long.
    pub(crate) async fn run_out(&self, limits: &Limits) -> CloseReason {
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let total = limits.total_time.map(|time| (time, CloseReason::Limit));
            let idle = limits
                .idle_time
                .map(|time| (last + time, CloseReason::Idle));
            let Some((at, why)) = [total, idle].into_iter().flatten().min_by_key(|end| end.0)
            else {
                return std::future::pending().await;
            };
            if at <= self.age() {
                return why;
            }
            tokio::time::sleep_until((self.started + at).into()).await;
        }
    }
}
