//! The requests of one client that are under way, and the room they take.
//!
//! Of HTTP/1, one that passes little gives most of its room and its client's
//! back, and reads only sips until it has taken it again.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::body::Kept;
use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::memory::{Memory, Reservation, SPENT, Spent, Use};
use crate::traffic::Traffic;

/// When it is first looked whether little passes, and how often at least.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const NEXT_LOOK: Duration = Duration::from_secs(1);
/// A larger request may have made buffers large.
const LARGEST_REQUEST: usize = 16 * 1024;

/// There is no room for the request's head.
#[derive(Debug, Clone, Copy, Error)]
#[error("there is no room for the request")]
pub(super) struct Unserved;

/// How many there are of one client.
pub(super) struct Flights {
    count: Cell<usize>,
    /// There was one.
    was_any: Cell<bool>,
    changed: Notify,
    /// What passes over the client's connection, and the room for it.
    traffic: Arc<Traffic>,
    client: RefCell<Option<Reservation>>,
    /// The room instead, while little passes.
    little: RefCell<Option<Reservation>>,
    /// A request with little room is over.
    landed: Notify,
}

/// One of them, from its head to the end of its answer.
pub(super) struct Flight {
    all: Rc<Flights>,
    head: RefCell<Option<Reservation>>,
    own: Rc<RefCell<Option<Reservation>>>,
    upstream: Rc<RefCell<Option<Arc<Traffic>>>>,
    /// It holds something large besides.
    is_large: Rc<Cell<bool>>,
    minder: RefCell<Option<JoinHandle<()>>>,
}

impl Flights {
    pub(super) fn new(traffic: Arc<Traffic>, client: Reservation) -> Rc<Self> {
        Rc::new(Self {
            count: Cell::default(),
            was_any: Cell::default(),
            changed: Notify::default(),
            traffic,
            client: RefCell::new(Some(client)),
            little: RefCell::default(),
            landed: Notify::default(),
        })
    }

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

    /// Takes the client's room again after requests that gave it back.
    pub(super) async fn mend(&self, memory: &Rc<Memory>) -> Infallible {
        loop {
            self.landed.notified().await;
            if self.client.borrow().is_none() {
                let client = memory.take(Use::Intercepted).await;
                self.widen(client);
            }
        }
    }

    fn widen(&self, client: Reservation) {
        self.client.replace(Some(client));
        self.little.take();
        self.traffic.sips.widen();
    }
}

impl Flight {
    pub(super) fn new(all: &Rc<Flights>) -> Self {
        all.count.set(all.count.get() + 1);
        all.was_any.set(true);
        all.changed.notify_one();
        Self {
            all: Rc::clone(all),
            head: RefCell::default(),
            own: Rc::default(),
            upstream: Rc::default(),
            is_large: Rc::default(),
            minder: RefCell::default(),
        }
    }

    pub(super) fn with_head(self, head: Reservation) -> Self {
        self.head.replace(Some(head));
        self
    }

    /// Waits for room to be served.
    pub(super) async fn take_off(&mut self, memory: &Rc<Memory>) -> Result<(), Spent> {
        if self.all.client.borrow().is_none() {
            let client = memory.take_soon(Use::Intercepted).await?;
            self.all.widen(client);
        }
        let own = memory.take_soon(Use::Request).await?;
        self.own.replace(Some(own));
        Ok(())
    }

    /// It holds something large besides, to its end.
    pub(super) fn holds_much(&self) {
        self.is_large.set(true);
    }

    /// What passes over the connection that its answer comes over, which has no
    /// other request.
    pub(super) fn answered_over(&self, upstream: &Arc<Traffic>) {
        upstream.sips.begin();
        self.upstream.replace(Some(Arc::clone(upstream)));
    }

    /// The head of its answer has come, and what follows is passed on.
    pub(super) fn is_answered(&self) {
        if let Some(upstream) = &*self.upstream.borrow() {
            upstream.sips.pass_to(&self.all.traffic);
        }
    }

    /// So is what its client sends.
    pub(super) fn has_switched(&self) {
        if let Some(upstream) = &*self.upstream.borrow() {
            self.all.traffic.sips.pass_to(upstream);
        }
    }

    /// From now on its room is given back while little passes.
    pub(super) fn mind(&self, exit: &Rc<Exit>, attempt: &Attempt, body: &Kept) {
        let minder = Minder {
            all: Rc::clone(&self.all),
            own: Rc::clone(&self.own),
            upstream: Rc::clone(&self.upstream),
            is_large: Rc::clone(&self.is_large),
            body: body.clone(),
            exit: Rc::clone(exit),
            attempt: attempt.clone(),
        };
        let minder = tokio::task::spawn_local(minder.run());
        self.minder.replace(Some(minder));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(minder) = self.minder.take() {
            minder.abort();
        }
        if let Some(upstream) = self.upstream.take() {
            upstream.sips.begin();
            upstream.sips.widen();
            self.all.traffic.sips.begin();
        }
        self.all.landed.notify_one();
        self.all.count.set(self.all.count.get() - 1);
        self.all.changed.notify_one();
    }
}

/// Gives the room of one request and of its client back while little passes,
/// and takes it again for more.
struct Minder {
    all: Rc<Flights>,
    own: Rc<RefCell<Option<Reservation>>>,
    upstream: Rc<RefCell<Option<Arc<Traffic>>>>,
    is_large: Rc<Cell<bool>>,
    body: Kept,
    exit: Rc<Exit>,
    attempt: Attempt,
}

impl Minder {
    async fn run(self) {
        let mut next = FIRST_LOOK;
        loop {
            tokio::time::sleep(next).await;
            next = NEXT_LOOK.min(2 * next);
            let Some(upstream) = self.quiet() else {
                continue;
            };
            let Some(little) = self.exit.memory().try_take(Use::Stream) else {
                continue;
            };
            self.give_back(little, &upstream);
            self.wanting(&upstream).await;
            if self.take_again().await.is_err() {
                self.exit.refuse(&self.attempt, SPENT.0, SPENT.1);
                upstream.sips.cut();
                self.all.traffic.sips.cut();
                return;
            }
            upstream.sips.widen();
        }
    }

    /// The connection to the server, where little is held of it and for it.
    fn quiet(&self) -> Option<Arc<Traffic>> {
        let upstream = self.upstream.borrow().clone()?;
        let client = &self.all.traffic;
        let is_quiet = !self.is_large.get()
            && self.body.is_done()
            && upstream.sips.is_little()
            && client.sips.is_below(LARGEST_REQUEST)
            && !upstream.is_writing()
            && !client.is_writing();
        is_quiet.then_some(upstream)
    }

    fn give_back(&self, little: Reservation, upstream: &Traffic) {
        upstream.sips.narrow();
        self.all.traffic.sips.narrow();
        self.all.little.replace(Some(little));
        self.own.take();
        self.all.client.take();
    }

    /// Ends when either side sends more than may be held.
    async fn wanting(&self, upstream: &Traffic) {
        let client = &self.all.traffic.sips;
        poll_fn(|context| {
            let both = [
                upstream.sips.poll_wanting(context),
                client.poll_wanting(context),
            ];
            if both.iter().any(Poll::is_ready) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    async fn take_again(&self) -> Result<(), Spent> {
        let memory = self.exit.memory();
        let client = memory.take_soon(Use::Intercepted).await?;
        let own = memory.take_soon(Use::Request).await?;
        self.own.replace(Some(own));
        self.all.widen(client);
        Ok(())
    }
}
