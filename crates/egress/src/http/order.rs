//! What a client of the proxy asks for: a request for some host, or a tunnel.

use std::rc::Rc;

use ringfence_audit::{Protocol, Via};
use ringfence_policy::HostPort;

use super::authority::LastAuthority;
use super::exchange::Plan;
use super::head::{self, BadRequest, Form, Request, header_room};
use super::rewrite;
use super::session::{plan, see};
use crate::attempt::Attempt;
use crate::credentials;
use crate::exit::Exit;
use crate::proxy::Caller;
use crate::refusal::{self, Form as Answered};

/// What is wanted.
pub(super) enum Order {
    /// One request. Its head for the server is in [`Orders::head`].
    Request(Plan, Attempt),
    /// A connection to this place.
    Tunnel(Attempt),
}

/// Reads one client's requests.
pub(super) struct Orders {
    caller: Caller,
    exit: Rc<Exit>,
    urls: LastAuthority,
    hosts: LastAuthority,
    /// The attempt of the request before, to be used again.
    spare: Option<Attempt>,
    /// The head of the last request as the server is to see it.
    pub(super) head: Vec<u8>,
}

impl Orders {
    pub(super) fn new(caller: Caller, exit: Rc<Exit>) -> Self {
        Self {
            caller,
            exit,
            urls: LastAuthority::default(),
            hosts: LastAuthority::default(),
            spare: None,
            head: Vec::new(),
        }
    }

    /// Takes back what [`Self::read`] handed out.
    pub(super) fn give_back(&mut self, attempt: Attempt) {
        self.spare = Some(attempt);
    }

    /// Reads the head of a request; the answer to the client if it is none
    /// that can be served.
    pub(super) fn read(&mut self, head: &[u8]) -> Result<Order, Vec<u8>> {
        let mut room = header_room();
        let request = head::parse(head, &mut room).map_err(bad_request)?;
        if let Some(token) = self.exit.credentials_wanted()
            && !credentials::is_authorized(token, request.proxy_authorization)
        {
            return Err(refusal::http_credentials_wanted(token.realm));
        }
        match request.form {
            Form::Absolute { authority, .. } => {
                let attempt = self.place(&request, authority)?;
                rewrite::to_origin(&request, authority, &mut self.head);
                Ok(Order::Request(plan(&request, head.len()), attempt))
            }
            Form::Authority(authority) => self.tunnel(&request, authority),
            Form::Origin(_) | Form::Asterisk => Err(bad_request(BadRequest::NotForProxy)),
        }
    }

    /// The attempt to reach what the request names.
    fn place(&mut self, request: &Request<'_, '_>, text: &str) -> Result<Attempt, Vec<u8>> {
        let Self { caller, exit, .. } = self;
        let malformed = |_| refuse_malformed(caller, exit, Via::HttpProxy, text);
        let url = self.urls.read(text).map_err(malformed)?;
        let (target, port) = (&url.target, url.http_port());
        let mut attempt = match self.spare.take() {
            Some(spare) if spare.target == *target => Attempt { port, ..spare },
            _ => Attempt {
                spoken: Protocol::Http,
                ..caller.attempt(Via::HttpProxy, exit.meant(target.clone()), port)
            },
        };
        see(&mut attempt, request);
        let agree = match request.host {
            Some(host) if host != text => {
                let host = self.hosts.read(host).map_err(bad_request)?;
                host.target == *target && host.http_port() == port
            }
            _ => true,
        };
        if !agree {
            return Err(two_hosts(exit, &attempt));
        }
        Ok(attempt)
    }

    fn tunnel(&self, request: &Request<'_, '_>, text: &str) -> Result<Order, Vec<u8>> {
        let Self { caller, exit, .. } = self;
        let malformed = |_| refuse_malformed(caller, exit, Via::Connect, text);
        let HostPort { target, port } = HostPort::parse(text).map_err(malformed)?;
        let port = port.ok_or(BadRequest::NoPort).map_err(bad_request)?;
        let attempt = caller.attempt(Via::Connect, exit.meant(target.clone()), port);
        if let Some(host) = request.host {
            let host = HostPort::parse(host).map_err(|bad| bad_request(bad.into()))?;
            if !host.means(&target, port) {
                return Err(two_hosts(exit, &attempt));
            }
        }
        Ok(Order::Tunnel(attempt))
    }
}

pub(super) fn bad_request(bad: BadRequest) -> Vec<u8> {
    refusal::http_error(bad.status(), &bad.to_string())
}

fn two_hosts(exit: &Exit, attempt: &Attempt) -> Vec<u8> {
    let bad = BadRequest::TwoHosts;
    exit.refuse(attempt, bad.code(), &bad.to_string());
    bad_request(bad)
}

fn refuse_malformed(caller: &Caller, exit: &Exit, via: Via, text: &str) -> Vec<u8> {
    let refused = exit.refuse_malformed(caller, via, text.as_bytes(), 0);
    let form = match via {
        Via::Connect => Answered::Connect,
        _ => Answered::Request,
    };
    refusal::http_response(&refused, form)
}
