//! Connections to servers, kept for the next request of the same sandbox.
//!
//! A connection serves one host and port, under the policy that it was opened
//! under; what the policy allows is asked again for every request that is sent.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use http::{Request, Response, Version};
use hyper::body::Incoming;
use ringfence_audit::ConnectionId;
use ringfence_policy::{Scheme, Target};

use super::alpn::Agreed;
use super::body::RequestBody;
use super::error::SendError;
use super::flight::Flight;
use super::host::{Host, Lease};
use super::repeat::Repeat;
use super::server_body::ServerBody;
use super::upstream::{self, Connectors, Sender};
use crate::attempt::Attempt;
use crate::exit::Exit;

/// Hosts that are remembered; those without connections go first.
const MOST_HOSTS: usize = 512;
/// Connections that are kept without use, over all hosts.
const MOST_UNUSED: usize = 64;
/// How long a connection is kept without use, and at most twice that.
const LONGEST_IDLE: Duration = Duration::from_secs(30);
/// A kept connection may be closed by its server at any moment, and the next
/// one as well.
const MOST_TRIES: usize = 8;

/// Marks a request after which its connection is not used again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last;

/// The connections of one sandbox, of one scheme.
pub(crate) struct Pool {
    exit: Weak<Exit>,
    scheme: Scheme,
    connectors: OnceCell<Connectors>,
    hosts: RefCell<HashMap<(Target, u16), Rc<Host>>>,
    /// Why a server could not be asked what it speaks; the first request of the
    /// client for whom it was asked is told.
    failures: RefCell<HashMap<ConnectionId, SendError>>,
    is_tidied: Cell<bool>,
}

impl Pool {
    pub(crate) fn new(exit: Weak<Exit>, scheme: Scheme) -> Rc<Self> {
        Rc::new(Self {
            exit,
            scheme,
            connectors: OnceCell::new(),
            hosts: RefCell::default(),
            failures: RefCell::default(),
            is_tidied: Cell::new(false),
        })
    }

    /// Sends a request that was admitted, over a connection of its own version
    /// of HTTP.
    pub(super) async fn send(
        self: &Rc<Self>,
        attempt: &Attempt,
        version: Version,
        request: Request<RequestBody>,
        flight: &Flight,
    ) -> Result<Response<ServerBody>, SendError> {
        if let Some(failure) = self.failures.borrow_mut().remove(&attempt.connection) {
            return Err(failure);
        }
        let exit = self.exit.upgrade().ok_or(SendError::Revoked)?;
        // It may be long since it was admitted, and it is cut like a connection.
        let tracked = exit.follow(attempt).map_err(SendError::refused)?;
        let sending = async {
            match version {
                Version::HTTP_2 => self.send_http2(&exit, attempt, request).await,
                _ => self.send_http1(&exit, attempt, request, flight).await,
            }
        };
        let (response, lease) = tokio::select! {
            biased;
            () = tracked.revoked() => return Err(SendError::Revoked),
            sent = sending => sent?,
        };
        Ok(response.map(|body| ServerBody::new(body, tracked, lease)))
    }

    /// What the server that `attempt` leads to speaks with a client that offers
    /// both versions. It is asked once, and the connection is kept.
    pub(super) async fn agree(self: &Rc<Self>, attempt: &Attempt) -> Result<Agreed, SendError> {
        let host = self.host(attempt);
        if let Some(agreed) = host.agreed() {
            return Ok(agreed);
        }
        let _turn = host.turn().await;
        if let Some(agreed) = host.agreed() {
            return Ok(agreed);
        }
        let exit = self.exit.upgrade().ok_or(SendError::Revoked)?;
        let generation = exit.generation();
        match self.open(&exit, attempt, Agreed::Http2).await? {
            Sender::Http1(sender) => {
                host.set_agreed(Agreed::Http1);
                host.keep(sender, generation);
                Ok(Agreed::Http1)
            }
            Sender::Http2(sender) => {
                host.set_agreed(Agreed::Http2);
                host.share(sender, generation);
                Ok(Agreed::Http2)
            }
        }
    }

    /// The first request of this client is answered with `failure`.
    pub(super) fn fail_first(&self, client: ConnectionId, failure: SendError) {
        self.failures.borrow_mut().insert(client, failure);
    }

    /// The client is gone, or was told.
    pub(super) fn forget(&self, client: ConnectionId) {
        self.failures.borrow_mut().remove(&client);
    }

    async fn send_http1(
        self: &Rc<Self>,
        exit: &Rc<Exit>,
        attempt: &Attempt,
        mut request: Request<RequestBody>,
        flight: &Flight,
    ) -> Result<(Response<Incoming>, Lease), SendError> {
        let host = self.host(attempt);
        for _ in 0..MOST_TRIES {
            let generation = exit.generation();
            let (mut http1, is_new) = match host.take(generation) {
                Some(http1) => (http1, false),
                None => match self.open(exit, attempt, Agreed::Http1).await? {
                    Sender::Http1(http1) => (http1, true),
                    Sender::Http2(_) => return Err(SendError::Version),
                },
            };
            http1.sender.ready().await?;
            flight.answered_over(&http1.traffic);
            let repeat = if is_new { None } else { Repeat::of(&request) };
            let is_last = request.extensions().get::<Last>().is_some();
            match http1.sender.try_send_request(request).await {
                Ok(response) => {
                    if !is_last {
                        host.keep_when_ready(http1, generation);
                    }
                    return Ok((response, Lease::none()));
                }
                Err(mut failed) => match (failed.take_message(), repeat) {
                    (Some(unsent), _) if !is_new => request = unsent,
                    (None, Some(repeat)) => request = repeat.request(),
                    _ => return Err(failed.into_error().into()),
                },
            }
        }
        Err(SendError::Busy)
    }

    async fn send_http2(
        self: &Rc<Self>,
        exit: &Rc<Exit>,
        attempt: &Attempt,
        mut request: Request<RequestBody>,
    ) -> Result<(Response<Incoming>, Lease), SendError> {
        let host = self.host(attempt);
        for _ in 0..MOST_TRIES {
            let (mut sender, lease) = self.shared(exit, attempt, &host).await?;
            let repeat = Repeat::of(&request);
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, lease)),
                Err(mut failed) => match (failed.take_message(), repeat) {
                    (Some(unsent), _) => request = unsent,
                    (None, Some(repeat)) if is_refused(failed.error()) => {
                        request = repeat.request();
                    }
                    _ => return Err(failed.into_error().into()),
                },
            }
        }
        Err(SendError::Busy)
    }

    /// A connection that many requests share, with room for one more.
    async fn shared(
        self: &Rc<Self>,
        exit: &Rc<Exit>,
        attempt: &Attempt,
        host: &Rc<Host>,
    ) -> Result<(hyper::client::conn::http2::SendRequest<RequestBody>, Lease), SendError> {
        if let Some(shared) = host.shared(exit.generation()) {
            return Ok(shared);
        }
        let _turn = host.turn().await;
        let generation = exit.generation();
        if let Some(shared) = host.shared(generation) {
            return Ok(shared);
        }
        match self.open(exit, attempt, Agreed::Http2).await? {
            Sender::Http2(sender) => Ok(host.share(sender, generation)),
            Sender::Http1(sender) => {
                host.set_agreed(Agreed::Http1);
                host.keep(sender, generation);
                Err(SendError::Version)
            }
        }
    }

    async fn open(
        self: &Rc<Self>,
        exit: &Rc<Exit>,
        attempt: &Attempt,
        most: Agreed,
    ) -> Result<Sender, SendError> {
        self.tidy_from_now_on();
        self.make_room();
        let connectors = match self.scheme {
            Scheme::Https => Some(self.connectors(exit)?),
            Scheme::Http => None,
        };
        upstream::open(exit, attempt, connectors, most).await
    }

    /// Keeps no more without use than there is memory for.
    fn make_room(&self) {
        let hosts = self.hosts.borrow();
        if hosts.values().map(|host| host.unused()).sum::<usize>() >= MOST_UNUSED {
            hosts.values().for_each(|host| host.forget_unused());
        }
    }

    fn connectors(&self, exit: &Exit) -> Result<&Connectors, SendError> {
        if let Some(connectors) = self.connectors.get() {
            return Ok(connectors);
        }
        let interception = exit.interception().ok_or(SendError::Revoked)?;
        let made = Connectors::new(&interception.roots)
            .map_err(|error| SendError::Tls(std::io::Error::other(error)))?;
        Ok(self.connectors.get_or_init(|| made))
    }

    fn host(&self, attempt: &Attempt) -> Rc<Host> {
        let place = (attempt.target.clone(), attempt.port);
        let mut hosts = self.hosts.borrow_mut();
        if hosts.len() >= MOST_HOSTS && !hosts.contains_key(&place) {
            hosts.retain(|_, host| host.is_in_use());
        }
        Rc::clone(hosts.entry(place).or_default())
    }

    /// Lets go of connections that are not used, for as long as there are any, or
    /// a response under way after which one will be kept.
    fn tidy_from_now_on(self: &Rc<Self>) {
        if self.is_tidied.replace(true) {
            return;
        }
        let pool = Rc::downgrade(self);
        tokio::task::spawn_local(async move {
            loop {
                tokio::time::sleep(LONGEST_IDLE).await;
                let Some(pool) = pool.upgrade() else { return };
                let mut any = false;
                for host in pool.hosts.borrow().values() {
                    host.forget_idle();
                    any |= host.is_in_use();
                }
                if !any {
                    pool.is_tidied.set(false);
                    return;
                }
            }
        });
    }
}

/// Whether a server said that it has not looked at the request at all
/// (RFC 9113, 8.7).
fn is_refused(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<h2::Error>() {
            return error.reason() == Some(h2::Reason::REFUSED_STREAM);
        }
        source = inner.source();
    }
    false
}
