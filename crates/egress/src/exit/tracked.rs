//! Open connections: what passed over each, and a way to cut it.

use ringfence_audit::{CloseReason, Closed, HostText, Recorder};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use tokio::sync::Notify;

use crate::attempt::Attempt;
use crate::traffic::Traffic;

/// All open connections of a run.
pub(super) struct Register {
    open: Rc<RefCell<BTreeMap<u64, Weak<Entry>>>>,
    next: Cell<u64>,
    recorder: Arc<Recorder>,
}

struct Entry {
    attempt: Attempt,
    address: Cell<Option<IpAddr>>,
    admitted: Cell<bool>,
    inspected: Cell<bool>,
    traffic: Arc<Traffic>,
    why: Cell<Option<CloseReason>>,
    revoked: Cell<bool>,
    told: Notify,
}

/// One open connection; letting go of it writes its end down.
pub(crate) struct Tracked {
    number: u64,
    entry: Rc<Entry>,
    open: Rc<RefCell<BTreeMap<u64, Weak<Entry>>>>,
    recorder: Arc<Recorder>,
}

impl Register {
    pub(super) fn new(recorder: Arc<Recorder>) -> Self {
        Self {
            open: Rc::default(),
            next: Cell::new(0),
            recorder,
        }
    }

    pub(super) fn track(&self, attempt: &Attempt) -> Tracked {
        let number = self.next.get();
        self.next.set(number + 1);
        let entry = Rc::new(Entry {
            attempt: attempt.clone(),
            address: Cell::new(None),
            admitted: Cell::new(false),
            inspected: Cell::new(false),
            traffic: Arc::new(Traffic::new()),
            why: Cell::new(None),
            revoked: Cell::new(false),
            told: Notify::new(),
        });
        self.open.borrow_mut().insert(number, Rc::downgrade(&entry));
        Tracked {
            number,
            entry,
            open: Rc::clone(&self.open),
            recorder: Arc::clone(&self.recorder),
        }
    }

    /// Cuts every connection for which `allowed` is false.
    pub(super) fn revoke_unless(&self, allowed: impl Fn(&Attempt, Option<IpAddr>, bool) -> bool) {
        for entry in self.entries() {
            if !allowed(&entry.attempt, entry.address.get(), entry.inspected.get()) {
                entry.why.set(Some(CloseReason::PolicyChanged));
                entry.revoked.set(true);
                entry.told.notify_waiters();
            }
        }
    }

    /// What is still open ends with the run.
    pub(super) fn end_all(&self) {
        for entry in self.entries() {
            if entry.why.get().is_none() {
                entry.why.set(Some(CloseReason::RunEnded));
            }
            entry.write_end(&self.recorder);
        }
    }

    fn entries(&self) -> Vec<Rc<Entry>> {
        self.open
            .borrow()
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }
}

impl Tracked {
    /// Counts bytes towards the destination.
    pub(crate) fn sent_up(&self, count: u64) {
        self.entry.traffic.sent(count);
    }

    /// Counts bytes from the destination.
    pub(crate) fn came_down(&self, count: u64) {
        self.entry.traffic.received(count);
    }

    /// Where its bytes are counted, for whoever carries them elsewhere.
    pub(crate) fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.entry.traffic)
    }

    /// It was recorded that it may go to `address`; its end will be, too.
    pub(crate) fn admitted(&self, address: Option<IpAddr>) {
        self.entry.address.set(address);
        self.entry.admitted.set(true);
    }

    /// Whether every request over it is judged.
    pub(crate) fn inspected(&self, inspected: bool) {
        self.entry.inspected.set(inspected);
    }

    /// Why it is about to end; the first reason given stays.
    pub(crate) fn because(&self, why: CloseReason) {
        if self.entry.why.get().is_none() {
            self.entry.why.set(Some(why));
        }
    }

    /// Ends when the policy no longer allows the connection.
    pub(crate) async fn revoked(&self) {
        while !self.entry.revoked.get() {
            self.entry.told.notified().await;
        }
    }

    /// True once the policy no longer allows it.
    pub(crate) fn is_revoked(&self) -> bool {
        self.entry.revoked.get()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.open.borrow_mut().remove(&self.number);
        self.entry.write_end(&self.recorder);
    }
}

impl Entry {
    /// Writes the end of what was admitted down, once.
    fn write_end(&self, recorder: &Recorder) {
        if !self.admitted.replace(false) {
            return;
        }
        let elapsed = self.traffic.age().as_millis();
        let target = &self.attempt.target;
        let closed = Closed {
            connection: self.attempt.connection,
            via: self.attempt.via,
            host: target.name().map(|name| HostText::new(name.as_str())),
            address: self.address.get(),
            port: self.attempt.port,
            bytes_up: self.traffic.total_sent(),
            bytes_down: self.traffic.total_received(),
            duration_ms: u64::try_from(elapsed).unwrap_or(u64::MAX),
            why: self.why.get().unwrap_or(CloseReason::Finished),
        };
        // The decision was recorded; only its figures would be lost.
        let _ = recorder.closed(closed);
    }
}
