//! The connections to one host and port, and what is known of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hyper::client::conn::http2;
use tokio::sync::{Mutex, MutexGuard};

use super::alpn::Agreed;
use super::body::RequestBody;
use super::upstream::Http1;

type Http2 = http2::SendRequest<RequestBody>;

/// Connections for one request at a time that are kept without use, of one host.
const MOST_KEPT: usize = 64;
/// Connections for many requests, and how many requests each has before there
/// is another one. Servers rarely allow fewer than a hundred.
const MOST_SHARED: usize = 4;
const MOST_REQUESTS: usize = 96;

/// One host and port.
#[derive(Default)]
pub(super) struct Host {
    kept: RefCell<Vec<Kept<Http1>>>,
    shared: RefCell<Vec<Shared>>,
    agreed: Cell<Option<Agreed>>,
    opening: Mutex<()>,
}

struct Kept<S> {
    sender: S,
    /// Of the policy that it was opened under.
    generation: u64,
    /// Not used since the last look.
    is_idle: bool,
}

struct Shared {
    kept: Kept<Http2>,
    /// Held by every request under way.
    load: Rc<()>,
}

/// One request's share of a connection.
pub(super) struct Lease {
    _load: Option<Rc<()>>,
}

impl Lease {
    /// Of a connection that has no other request.
    pub(super) fn none() -> Self {
        Self { _load: None }
    }
}

impl Host {
    /// What its server chose when it had the choice.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        self.agreed.get()
    }

    pub(super) fn set_agreed(&self, agreed: Agreed) {
        self.agreed.set(Some(agreed));
    }

    /// One at a time opens what the others may use as well.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.opening.lock().await
    }

    /// A kept connection that is still good.
    pub(super) fn take(&self, generation: u64) -> Option<Http1> {
        let mut kept = self.kept.borrow_mut();
        kept.retain(|kept| kept.generation == generation && kept.sender.sender.is_ready());
        // The one used last is the least likely to be closed by now.
        kept.pop().map(|kept| kept.sender)
    }

    /// Keeps a connection on which nothing is under way.
    pub(super) fn keep(&self, sender: Http1, generation: u64) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MOST_KEPT {
            kept.remove(0);
        }
        kept.push(Kept {
            sender,
            generation,
            is_idle: false,
        });
    }

    /// Keeps a connection once its response was read to the end.
    pub(super) fn keep_when_ready(self: &Rc<Self>, mut http1: Http1, generation: u64) {
        let host = Rc::clone(self);
        tokio::task::spawn_local(async move {
            if http1.sender.ready().await.is_ok() {
                host.keep(http1, generation);
            }
        });
    }

    /// The shared connection with the fewest requests, if it may have another.
    /// When all that there may be are full, requests wait in the least full one.
    pub(super) fn shared(&self, generation: u64) -> Option<(Http2, Lease)> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|one| one.kept.generation == generation && !one.kept.sender.is_closed());
        let is_full = shared.len() >= MOST_SHARED;
        let best = shared.iter_mut().min_by_key(|one| one.requests())?;
        if best.requests() >= MOST_REQUESTS && !is_full {
            return None;
        }
        best.kept.is_idle = false;
        Some(best.lease())
    }

    /// Lets requests share a new connection, and gives out the first lease.
    pub(super) fn share(&self, sender: Http2, generation: u64) -> (Http2, Lease) {
        let new = Shared {
            kept: Kept {
                sender,
                generation,
                is_idle: false,
            },
            load: Rc::default(),
        };
        let lease = new.lease();
        self.shared.borrow_mut().push(new);
        lease
    }

    /// How many connections are kept that nobody uses.
    pub(super) fn unused(&self) -> usize {
        let shared = self.shared.borrow();
        let shared = shared.iter().filter(|one| one.requests() == 0).count();
        self.kept.borrow().len() + shared
    }

    /// Lets go of all of them.
    pub(super) fn forget_unused(&self) {
        self.kept.borrow_mut().clear();
        self.shared.borrow_mut().retain(|one| one.requests() > 0);
    }

    /// Lets go of what was not used since the last call.
    pub(super) fn forget_idle(&self) {
        let mut kept = self.kept.borrow_mut();
        kept.retain_mut(|kept| !std::mem::replace(&mut kept.is_idle, true));
        let mut shared = self.shared.borrow_mut();
        shared.retain_mut(|one| {
            let is_idle = one.requests() == 0 && one.kept.is_idle;
            one.kept.is_idle = one.requests() == 0;
            !is_idle && !one.kept.sender.is_closed()
        });
    }

    /// Whether somebody would miss it.
    pub(super) fn is_in_use(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) > 1
            || !self.kept.borrow().is_empty()
            || !self.shared.borrow().is_empty()
    }
}

impl Shared {
    fn requests(&self) -> usize {
        Rc::strong_count(&self.load) - 1
    }

    fn lease(&self) -> (Http2, Lease) {
        let lease = Lease {
            _load: Some(Rc::clone(&self.load)),
        };
        (self.kept.sender.clone(), lease)
    }
}
