//! How much memory the connections of one sandbox may hold together.
//!
//! Whoever is about to hold something takes what it costs at most and gives it
//! back when it lets go. Each kind of use has a part of its own, and what is
//! over comes from a part for all. Whoever waits for room holds only kinds that
//! come before the one he waits for. So nobody waits for one who waits for him:
//! the own part of the last kind is held by those who wait for nobody here.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// For whatever use needs more than its own part.
const COMMON: usize = 32 * MIB;
/// Why a request goes no further when there is no room for its head.
pub(crate) const SPENT: (&str, &str) = (
    "memory-budget",
    "the connections of this sandbox hold as much memory as they may",
);
/// How long somebody waits who can be told that there is no room.
const PATIENCE: Duration = Duration::from_secs(10);
/// Whoever waits asks again for a connection that nobody needs.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// There was no room for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent;

/// What memory is held for, in the order in which one holder takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Use {
    /// A server may send far ahead.
    Window,
    /// A connection that passes bytes on.
    Connection,
    /// A client and its one request that are looked into, while little passes:
    /// instead of the two below.
    Stream,
    /// TLS and HTTP with a client.
    Intercepted,
    /// The head of a client's request, where it is large or one of many.
    Head,
    /// A request under way, with its answer.
    Request,
    /// A body that is held as a whole.
    Body,
    /// What a decoder looks back at, or a server's large head.
    Answer,
}

impl Use {
    const ALL: [Self; 8] = [
        Self::Window,
        Self::Connection,
        Self::Stream,
        Self::Intercepted,
        Self::Head,
        Self::Request,
        Self::Body,
        Self::Answer,
    ];

    /// What is kept for this use alone.
    const fn own(self) -> usize {
        match self {
            Self::Window => 0,
            Self::Connection => 24 * MIB,
            Self::Stream | Self::Intercepted => 8 * MIB,
            Self::Head => 2 * MIB,
            Self::Request => 12 * MIB,
            Self::Body => 6 * MIB,
            // One decoder at least.
            Self::Answer => 20 * MIB,
        }
    }

    /// How full the part for all may be after it.
    const fn most_of_common(self) -> usize {
        match self {
            Self::Window => COMMON / 3,
            _ => COMMON,
        }
    }

    /// What one connection, request or part holds at most, about.
    pub(crate) const fn cost(self) -> usize {
        match self {
            Self::Window => 2 * MIB,
            // Two buffers, the first bytes of both sides, and its task.
            Self::Connection => 40 * KIB,
            // A record on its way in from either side, and the buffers of HTTP
            // as they are at first. Of its connection, it has no use for two
            // buffers.
            Self::Stream => 24 * KIB,
            // What TLS and HTTP read ahead and have not sent yet.
            Self::Intercepted => 160 * KIB,
            // A head as it came, as it leaves, and room to grow. For a request,
            // what is read ahead of the server and not sent yet, and a piece of
            // the body on its way through.
            Self::Head | Self::Request => 256 * KIB,
            // As it came, and with secrets put in.
            Self::Body => 3 * MIB,
            Self::Answer => 128 * KIB,
        }
    }
}

/// Where a reservation was taken from.
#[derive(Debug, Clone, Copy)]
enum Part {
    Own(Use),
    Common,
}

/// The budget of one sandbox.
pub(crate) struct Memory {
    own: [Cell<usize>; Use::ALL.len()],
    common: Cell<usize>,
    waiting: RefCell<[VecDeque<Waiting>; Use::ALL.len()]>,
    /// Somebody waits for a client to be done with.
    pressure: Notify,
}

struct Waiting {
    bytes: usize,
    granted: oneshot::Sender<Reservation>,
}

/// A part of the budget; letting go of it gives it back.
pub(crate) struct Reservation {
    bytes: usize,
    part: Part,
    memory: Rc<Memory>,
}

impl Memory {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            own: Default::default(),
            common: Cell::new(0),
            waiting: RefCell::default(),
            pressure: Notify::new(),
        })
    }

    /// Takes what one such use costs, when there is room for it.
    pub(crate) async fn take(self: &Rc<Self>, what: Use) -> Reservation {
        self.take_bytes(what, what.cost()).await
    }

    /// The same for so many bytes, no more than the use has of its own.
    pub(crate) async fn take_bytes(self: &Rc<Self>, what: Use, bytes: usize) -> Reservation {
        loop {
            if let Some(taken) = self.try_take_bytes(what, bytes) {
                return taken;
            }
            let (granted, grant) = oneshot::channel();
            let one = Waiting { bytes, granted };
            self.waiting.borrow_mut()[what as usize].push_back(one);
            // It is always granted as long as the budget is there.
            if let Ok(taken) = self.ask_until(grant).await {
                return taken;
            }
        }
    }

    /// Takes what one such use costs, or learns within a bounded time that
    /// there is no room for it.
    pub(crate) async fn take_soon(self: &Rc<Self>, what: Use) -> Result<Reservation, Spent> {
        self.take_bytes_soon(what, what.cost()).await
    }

    /// The same for so many bytes.
    pub(crate) async fn take_bytes_soon(
        self: &Rc<Self>,
        what: Use,
        bytes: usize,
    ) -> Result<Reservation, Spent> {
        let taken = tokio::time::timeout(PATIENCE, self.take_bytes(what, bytes)).await;
        taken.map_err(|_| {
            // Whoever came behind may want less.
            self.serve_waiting();
            Spent
        })
    }

    /// Takes what one such use costs at once, or not at all.
    pub(crate) fn try_take(self: &Rc<Self>, what: Use) -> Option<Reservation> {
        self.try_take_bytes(what, what.cost())
    }

    /// The same for so many bytes.
    pub(crate) fn try_take_bytes(self: &Rc<Self>, what: Use, bytes: usize) -> Option<Reservation> {
        let is_first = self.waiting.borrow()[what as usize].is_empty();
        let part = self.part_for(what, bytes).filter(|_| is_first)?;
        Some(self.grant(part, bytes))
    }

    /// Ends when somebody waits for a connection that nobody needs.
    pub(crate) async fn is_short(&self) {
        loop {
            self.pressure.notified().await;
            // It may be long since anybody said so.
            if self.is_waited_for() {
                return;
            }
        }
    }

    /// Whether a request is under way.
    #[cfg(test)]
    pub(crate) fn is_in_use(&self) -> bool {
        [Use::Stream, Use::Request]
            .iter()
            .any(|own| self.own[*own as usize].get() > 0)
    }

    /// Whether anybody waits for room.
    pub(crate) fn is_waited_for(&self) -> bool {
        let waiting = self.waiting.borrow();
        let mut all = waiting.iter().flatten();
        all.any(|one| !one.granted.is_closed())
    }

    async fn ask_until(
        self: &Rc<Self>,
        mut grant: oneshot::Receiver<Reservation>,
    ) -> Result<Reservation, oneshot::error::RecvError> {
        loop {
            self.pressure.notify_one();
            if let Ok(granted) = tokio::time::timeout(ASK_AGAIN, &mut grant).await {
                return granted;
            }
            // Somebody in front may have given up.
            self.serve_waiting();
        }
    }

    fn part_for(&self, what: Use, bytes: usize) -> Option<Part> {
        if self.own[what as usize].get() + bytes <= what.own() {
            return Some(Part::Own(what));
        }
        let is_room = self.common.get() + bytes <= what.most_of_common();
        is_room.then_some(Part::Common)
    }

    fn used(&self, part: Part) -> &Cell<usize> {
        match part {
            Part::Own(what) => &self.own[what as usize],
            Part::Common => &self.common,
        }
    }

    fn grant(self: &Rc<Self>, part: Part, bytes: usize) -> Reservation {
        let used = self.used(part);
        used.set(used.get() + bytes);
        Reservation {
            bytes,
            part,
            memory: Rc::clone(self),
        }
    }

    fn serve_waiting(self: &Rc<Self>) {
        while let Some((next, part)) = self.next_that_fits() {
            // Whoever has just given up gives it back at once.
            drop(next.granted.send(self.grant(part, next.bytes)));
        }
    }

    /// Who is nearer to his end comes first.
    fn next_that_fits(&self) -> Option<(Waiting, Part)> {
        let mut waiting = self.waiting.borrow_mut();
        Use::ALL.into_iter().rev().find_map(|what| {
            let queue = &mut waiting[what as usize];
            while queue.front().is_some_and(|one| one.granted.is_closed()) {
                queue.pop_front();
            }
            let part = self.part_for(what, queue.front()?.bytes)?;
            Some((queue.pop_front()?, part))
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let used = self.memory.used(self.part);
        used.set(used.get() - self.bytes);
        self.memory.serve_waiting();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::testing::run;

    fn is_pending(future: impl Future) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(pin!(future).poll(&mut context), Poll::Pending)
    }

    /// What is promised.
    const MOST: usize = 112 * MIB;

    fn total(memory: &Memory) -> usize {
        let own = memory.own.iter().map(Cell::get).sum::<usize>();
        own + memory.common.get()
    }

    fn fill(memory: &Rc<Memory>, what: Use) -> Vec<Reservation> {
        std::iter::from_fn(|| memory.try_take_bytes(what, what.cost())).collect()
    }

    #[test]
    fn g9_every_use_has_room_that_no_earlier_one_takes() {
        run(async {
            let memory = Memory::new();
            let mut held = fill(&memory, Use::Connection);
            for what in Use::ALL.into_iter().skip(2) {
                let taken = fill(&memory, what);
                assert!(!taken.is_empty(), "{what:?}");
                held.extend(taken);
                assert!(is_pending(memory.take(what)), "{what:?}");
            }
            assert!(total(&memory) <= MOST);
            drop(held);
            assert_eq!(total(&memory), 0);
        });
    }

    #[test]
    fn who_waits_is_served_in_turn_and_who_gave_up_is_not() {
        run(async {
            let memory = Memory::new();
            let mut held = fill(&memory, Use::Connection);
            held.extend(fill(&memory, Use::Request));
            let (order, came) = std::sync::mpsc::channel();
            for (name, what) in [
                ("connection", Use::Connection),
                ("gone", Use::Request),
                ("first", Use::Request),
                ("second", Use::Request),
            ] {
                let (memory, order) = (Rc::clone(&memory), order.clone());
                let waits = async move {
                    let taken = memory.take(what).await;
                    order.send(name).unwrap();
                    drop(taken);
                };
                if name == "gone" {
                    assert!(is_pending(waits));
                } else {
                    tokio::task::spawn_local(waits);
                    tokio::task::yield_now().await;
                }
            }
            drop(held);
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            let order: Vec<&str> = came.try_iter().collect();
            assert_eq!(order, ["connection", "first", "second"]);
            assert_eq!(total(&memory), 0);
        });
    }

    #[test]
    fn nobody_overtakes_who_waits() {
        run(async {
            let memory = Memory::new();
            let mut held = fill(&memory, Use::Connection);
            held.push(memory.take_bytes(Use::Answer, 1).await);
            let waiting = Rc::clone(&memory);
            let waiting = tokio::task::spawn_local(async move {
                drop(waiting.take_bytes(Use::Answer, 20 * MIB).await);
            });
            tokio::task::yield_now().await;
            assert!(memory.try_take_bytes(Use::Answer, 0).is_none());
            drop(held);
            waiting.await.unwrap();
            assert!(memory.try_take_bytes(Use::Answer, 0).is_some());
        });
    }
}
