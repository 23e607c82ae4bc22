//! What the exit keeps for connections that are looked into.

use std::rc::Rc;

use ringfence_audit::Protocol;
use ringfence_policy::{HOST_ALIAS, Scheme, binds, binds_host};

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
        (self.needs_inspection(attempt) || self.guards_host(attempt)) && is_able()
    }

    /// Whether a secret may have gone to the host that `attempt` leads to, so
    /// that it may come back from there, whatever the port.
    pub(crate) fn guards_host(&self, attempt: &Attempt) -> bool {
        self.keeper.is_some() && binds_host(&self.policy.borrow(), &attempt.request())
    }

    /// Whether that could be looked into and so must be. On this machine each
    /// port is a server of its own, with a certificate that nobody signed.
    pub(crate) fn guards(&self, attempt: &Attempt, spoken: Protocol) -> bool {
        let is_here = || {
            attempt
                .target
                .name()
                .is_some_and(|name| name.as_str() == HOST_ALIAS)
        };
        match spoken {
            Protocol::Http => self.guards_host(attempt),
            Protocol::Tls => self.guards_host(attempt) && !is_here(),
            _ => false,
        }
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

    /// Whether requests in clear to where `attempt` leads may get a secret, or
    /// the answers to them hold one, so that they must be looked into like
    /// those over TLS.
    pub(crate) fn binds_in_clear(&self, attempt: &Attempt) -> bool {
        binds(&self.policy.borrow(), &attempt.request(), Scheme::Http) || self.guards_host(attempt)
    }
}
