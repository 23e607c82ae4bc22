//! The requests of one client that are under way, and the room they take.

use std::cell::Cell;
use std::rc::Rc;

use thiserror::Error;
use tokio::sync::Notify;

use crate::memory::{Memory, Reservation, Use};

/// There is no room for the request's head.
#[derive(Debug, Clone, Copy, Error)]
#[error("there is no room for the request")]
pub(super) struct Unserved;

/// How many there are of one client.
#[derive(Default)]
pub(super) struct Flights {
    count: Cell<usize>,
    /// There was one.
    was_any: Cell<bool>,
    changed: Notify,
}

/// One of them, from its head to the end of its answer.
pub(super) struct Flight {
    all: Rc<Flights>,
    rooms: Vec<Reservation>,
}

impl Flights {
    /// Ends when somebody waits for room and there is no request here any more.
    pub(super) async fn unneeded(&self, memory: &Memory) {
        loop {
            if self.count.get() > 0 || !self.was_any.get() {
                self.changed.notified().await;
                continue;
            }
            tokio::select! {
                () = memory.is_short() => return,
                () = self.changed.notified() => {}
            }
        }
    }
}

impl Flight {
    pub(super) fn new(all: &Rc<Flights>) -> Self {
        all.count.set(all.count.get() + 1);
        all.was_any.set(true);
        all.changed.notify_one();
        Self {
            all: Rc::clone(all),
            rooms: Vec::new(),
        }
    }

    pub(super) fn with_head(mut self, head: Reservation) -> Self {
        self.rooms.push(head);
        self
    }

    /// Waits for room to be served.
    pub(super) async fn take_off(&mut self, memory: &Rc<Memory>) {
        let own = memory.take(Use::Request).await;
        self.rooms.push(own);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.all.count.set(self.all.count.get() - 1);
        self.all.changed.notify_one();
    }
}
