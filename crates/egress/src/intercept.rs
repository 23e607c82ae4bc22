//! TLS that is looked into, where a rule or a credential needs it.
//!
//! Towards the client we are the server, with a certificate of the sandbox's
//! own [`Authority`]; towards the server we are a client that verifies it. What
//! passes between the two is HTTP, judged request by request. The version of
//! HTTP is the one that client and server would have agreed on.

mod accept;
mod alpn;
mod answer;
mod authority;
mod body;
mod error;
mod fields;
mod flight;
mod host;
mod keeper;
mod lingering;
mod local;
mod pool;
mod repeat;
mod request;
mod response;
mod roots;
mod serve;
mod server_body;
mod suites;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod upgrade;
mod upstream;
mod wire;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use ringfence_policy::Scheme;

use crate::attempt::Attempt;
use crate::exit::Exit;

pub use authority::{Authority, AuthorityError};
pub(crate) use keeper::Keeper;
pub(crate) use pool::Pool;
use request::handle;
pub(crate) use response::{Hider, Hiding, Looking};
pub use roots::{Roots, RootsError};
pub(crate) use serve::{serve, serve_plain};

/// What looking into TLS needs.
#[derive(Debug, Clone)]
pub struct Interception {
    /// Signs towards clients.
    pub authority: Arc<Authority>,
    /// Whom we trust towards servers.
    pub roots: Arc<Roots>,
}

/// One client connection that is looked into.
pub(crate) struct Intercepted {
    pub(crate) exit: Rc<Exit>,
    /// What the connection was admitted for.
    pub(crate) attempt: Attempt,
    pub(crate) scheme: Scheme,
    pub(crate) pool: Rc<Pool>,
}

/// The pools of one sandbox, made when they are needed. What goes over TLS and
/// what does not never share a connection.
#[derive(Default)]
pub(crate) struct Pools {
    https: OnceCell<Rc<Pool>>,
    http: OnceCell<Rc<Pool>>,
}

impl Pools {
    pub(crate) fn of(&self, exit: &Rc<Exit>, scheme: Scheme) -> Rc<Pool> {
        let pool = match scheme {
            Scheme::Https => &self.https,
            Scheme::Http => &self.http,
        };
        Rc::clone(pool.get_or_init(|| Pool::new(Rc::downgrade(exit), scheme)))
    }
}
