//! What the exit keeps for connections that are looked into.

use std::rc::Rc;

use ringfence_policy::{Scheme, binds};

use super::{Exit, Tracked};
use crate::attempt::Attempt;
use crate::intercept::{Interception, Pool};
use crate::refusal::Refused;

impl Exit {
    /// How to look into TLS, if that was set up.
    pub(crate) fn interception(&self) -> Option<&Interception> {
        self.interception.as_ref()
    }

    /// Whether what goes to where `attempt` leads is looked into, so that the
    /// way there is opened for single requests.
    pub(crate) fn intercepts(&self, attempt: &Attempt) -> bool {
        let is_able = || self.interception.is_some() || self.binds_in_clear(attempt);
        self.needs_inspection(attempt) && is_able()
    }

    /// The connections to servers that the whole sandbox shares.
    pub(crate) fn pool(self: &Rc<Self>, scheme: Scheme) -> Rc<Pool> {
        self.pools.of(self, scheme)
    }

    /// Judges a request that was admitted once more, before it leaves, and
    /// follows it: it is told when the policy no longer allows it.
    pub(crate) fn follow(&self, attempt: &Attempt) -> Result<Tracked, Refused> {
        self.judge(attempt)?;
        let tracked = self.register.track(attempt);
        tracked.inspected(true);
        Ok(tracked)
    }

    /// Whether requests in clear to where `attempt` leads may get a secret, so
    /// that they must be looked into like those over TLS.
    pub(crate) fn binds_in_clear(&self, attempt: &Attempt) -> bool {
        binds(&self.policy.borrow(), &attempt.request(), Scheme::Http)
    }
}
