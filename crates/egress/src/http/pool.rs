//! Connections to servers that wait for the next request of the same client.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use ringfence_audit::CloseReason;
use ringfence_policy::Target;

use super::peer::Peer;
use crate::attempt::Attempt;
use crate::exit::{Hop, Tracked, Upstream};
use crate::memory::Memory;
use crate::relay::reset_on_close;

/// How many are kept for one client.
const MOST_KEPT: usize = 4;
/// How long one is kept without use, and at most twice that.
const LONGEST_IDLE: Duration = Duration::from_secs(30);

/// An open connection to a server.
pub(crate) struct Open {
    place: Place,
    pub(crate) peer: Peer,
    pub(crate) hop: Hop,
    pub(crate) needs_inspection: bool,
    pub(crate) tracked: Tracked,
}

/// What a connection is good for.
struct Place {
    target: Target,
    port: u16,
    /// Of the policy that it was opened under.
    generation: u64,
}

/// The kept connections of one client, the least recently used first.
#[derive(Default)]
pub(crate) struct Pool {
    kept: Vec<Kept>,
}

struct Kept {
    open: Open,
    /// Not used since the last look.
    is_idle: bool,
}

impl Open {
    /// The connection that was opened for `attempt` under the policy of
    /// `generation`, or an older one.
    pub(crate) fn new(
        upstream: Upstream,
        attempt: &Attempt,
        generation: u64,
        memory: &Rc<Memory>,
    ) -> Self {
        let cover = match &upstream.hop {
            Hop::Forward { login: Some(login) } => Some(login.cover()),
            _ => None,
        };
        Self {
            place: Place {
                target: attempt.target.clone(),
                port: attempt.port,
                generation,
            },
            peer: Peer::server(upstream.stream, memory).covered(cover),
            hop: upstream.hop,
            needs_inspection: upstream.needs_inspection,
            tracked: upstream.tracked,
        }
    }

    /// Ends the connection in the middle of something.
    pub(crate) fn give_up(self, why: CloseReason) {
        self.tracked.because(why);
        reset_on_close(&self.peer.stream);
    }
}

impl From<Open> for Upstream {
    fn from(open: Open) -> Self {
        Self {
            stream: open.peer.stream,
            hop: open.hop,
            needs_inspection: open.needs_inspection,
            tracked: open.tracked,
        }
    }
}

impl Place {
    fn serves(&self, attempt: &Attempt) -> bool {
        self.port == attempt.port && self.target == attempt.target
    }
}

impl Pool {
    /// Takes a connection for `attempt` that is still good.
    pub(crate) fn take(&mut self, attempt: &Attempt, generation: u64) -> Option<Open> {
        self.kept.retain(|kept| {
            kept.open.place.generation == generation && !kept.open.tracked.is_revoked()
        });
        let serves = |kept: &Kept| kept.open.place.serves(attempt);
        let at = self.kept.iter().position(serves)?;
        let Kept { open, .. } = self.kept.remove(at);
        // A server that closed, or spoke without being asked, is done with.
        (!open.peer.has_stirred()).then_some(open)
    }

    /// Keeps a connection, and lets go of the oldest if there are too many.
    pub(crate) fn keep(&mut self, open: Open) {
        if self.kept.len() == MOST_KEPT {
            self.kept.remove(0);
        }
        let is_idle = false;
        self.kept.push(Kept { open, is_idle });
    }

    fn forget_idle(&mut self) {
        self.kept
            .retain_mut(|kept| !std::mem::replace(&mut kept.is_idle, true));
    }
}

/// Lets go of connections that are not used.
pub(crate) async fn tidy(pool: &RefCell<Pool>) -> Infallible {
    loop {
        tokio::time::sleep(LONGEST_IDLE).await;
        pool.borrow_mut().forget_idle();
    }
}
