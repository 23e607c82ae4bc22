//! A connection that leads to one place: every request must be for that place.
//!
//! Requests are judged one by one and passed on byte for byte, but for paths
//! that are judged: those are sent in their normal form. A connection that was
//! opened for one name never carries a request for another, which a server
//! with many names would answer.

use std::rc::Rc;

use ringfence_audit::{CloseReason, Protocol};
use tokio::net::TcpStream;

use super::authority::LastAuthority;
use super::exchange::{Exchange, Exchanged, Failure, Head, Plan};
use super::fields::Persistence;
use super::head::{self, BadRequest, Form, Request, Upgrade, header_room};
use super::next_head::{self, NoRequest};
use super::normal;
use super::peer::Peer;
use super::rewrite;
use super::session::{End, check_inspected, failed, late, plan, refused_page, see};
use super::sharing::say_last;
use crate::attempt::Attempt;
use crate::closing::close_with;
use crate::exit::{Exit, Tracked, Upstream};
use crate::inbox::{Inbox, let_go_of_large};
use crate::refusal::{self, Refused};
use crate::relay::{Clock, Watchers, relay, reset_on_close};
use crate::sentry::Sentry;

/// What the client sent so far, and how much of it was passed on already.
pub(crate) struct Early {
    pub(crate) bytes: Inbox,
    pub(crate) sent: usize,
}

struct Session {
    client: Peer,
    server: Peer,
    judge: Judge,
    sent: usize,
}

/// Judges the requests of one connection.
struct Judge {
    attempt: Attempt,
    needs_inspection: bool,
    hosts: LastAuthority,
    /// The head of the last request where it is not passed on as it came.
    head: Vec<u8>,
    exit: Rc<Exit>,
}

/// Serves the client to the end of its connection.
pub(crate) async fn serve(
    client: TcpStream,
    early: Early,
    attempt: Attempt,
    upstream: Upstream,
    exit: Rc<Exit>,
) {
    let judge = Judge {
        attempt: Attempt {
            spoken: Protocol::Http,
            ..attempt
        },
        needs_inspection: upstream.needs_inspection,
        hosts: LastAuthority::default(),
        head: Vec::new(),
        exit: Rc::clone(&exit),
    };
    let mut session = Session {
        client: Peer::client(client, early.bytes, exit.memory()),
        server: Peer::server(upstream.stream, exit.memory()),
        judge,
        sent: early.sent,
    };
    let tracked = upstream.tracked;
    let clock = Clock::new();
    let end = tokio::select! {
        biased;
        () = tracked.revoked() => End::Cut(CloseReason::PolicyChanged),
        end = session.run(&tracked, &clock) => end,
        why = clock.run_out(exit.limits()) => End::Cut(why),
    };
    let Session {
        client,
        server,
        judge,
        ..
    } = session;
    match end {
        End::Switched => {
            let upstream = Upstream {
                stream: server.stream,
                tracked,
                ..upstream
            };
            let watch = Watchers {
                up: Sentry::after_switch(&exit, &judge.attempt),
                down: None,
            };
            relay(client.stream, client.inbox, upstream, watch, exit.limits()).await;
        }
        End::Closed => {}
        End::Early => {
            drop(server);
            close_with(client.stream, &[]).await;
        }
        End::Answered(answer, why) => {
            tracked.because(why);
            reset_on_close(&server.stream);
            drop((server, tracked));
            close_with(client.stream, &answer).await;
        }
        End::Cut(why) => {
            tracked.because(why);
            reset_on_close(&client.stream);
            reset_on_close(&server.stream);
        }
    }
}

impl Session {
    async fn run(&mut self, tracked: &Tracked, clock: &Clock) -> End {
        let mut is_first = true;
        loop {
            let head = match self.next_request(clock).await {
                Ok(head) => head,
                Err(end) => return end,
            };
            // What a server says unasked may answer a request that it found
            // where we sent none.
            if !is_first && self.server.has_stirred() {
                return End::Closed;
            }
            let (mut plan, sentry) = match self.judge.read(&self.client.inbox[..head], is_first) {
                Ok(read) => read,
                Err(answer) => return End::Answered(answer, CloseReason::Refused),
            };
            plan.settle(&mut self.client).await;
            if plan.is_alone() {
                self.judge.say_last(&self.client.inbox[..head]);
            }
            let exchange = Exchange {
                client: &mut self.client,
                server: &mut self.server,
                tracked,
                clock,
                sentry,
            };
            let sent = std::mem::take(&mut self.sent);
            let head = if self.judge.head.is_empty() {
                Head::AsReceived { sent }
            } else {
                // What was sent is the beginning of the first line, which
                // stays as it is where it was not held back.
                self.judge.head.drain(..sent);
                Head::Rewritten(&mut self.judge.head)
            };
            match exchange.run(&plan, head).await {
                // The client tries again by itself when a kept connection
                // closes, but not when it is told of a failure.
                Err(Failure::NoAnswer) if !is_first => return End::Cut(CloseReason::ServerReset),
                exchanged => match end_of(exchanged) {
                    Some(end) => return end,
                    None => is_first = false,
                },
            }
        }
    }

    async fn next_request(&mut self, clock: &Clock) -> Result<usize, End> {
        let_go_of_large(&mut self.judge.head);
        let time = self.judge.exit.limits().head_time;
        let server = &self.server;
        // A server that closes or speaks unasked has ended the connection.
        let next = next_head::request(&mut self.client, time, clock, server.stirs()).await;
        next.map_err(|none| match none {
            NoRequest::Ended | NoRequest::Interrupted => End::Closed,
            NoRequest::Late => late(),
            NoRequest::Bad(bad) => {
                End::Answered(self.judge.refuse_bad(bad), CloseReason::Malformed)
            }
        })
    }
}

impl Judge {
    /// Whether the request may pass, and who watches its body; the answer to
    /// the client if not.
    fn read(&mut self, head: &[u8], is_first: bool) -> Result<(Plan, Option<Sentry>), Vec<u8>> {
        let mut room = header_room();
        let request = match head::parse(head, &mut room) {
            Ok(request) => request,
            Err(bad) => return Err(self.refuse_bad(bad)),
        };
        see(&mut self.attempt, &request);
        self.hosts_fit(&request)?;
        let plan = plan(&request, head.len());
        self.rewrite(&request, &plan, head);
        let mut sentry = Sentry::of(&self.exit, &self.attempt);
        self.check(&request, &plan)
            .map_err(|(code, phrase)| self.exit.refuse(&self.attempt, code, phrase))
            .and_then(|()| sentry.as_mut().map_or(Ok(()), |sentry| sentry.check(head)))
            .and_then(|()| self.admit(is_first))
            .map_err(|refused| refused_page(&refused))?;
        Ok((plan, sentry))
    }

    /// Makes the head for the server where it is not the client's own.
    fn rewrite(&mut self, request: &Request<'_, '_>, plan: &Plan, head: &[u8]) {
        self.head.clear();
        if plan.upgrade == Upgrade::Dropped {
            rewrite::without_offer(request, head, &mut self.head);
        }
        let judged = self
            .needs_inspection
            .then(|| normal::judged_target(&self.exit, &self.attempt));
        if let Some(target) = judged.flatten() {
            if self.head.is_empty() {
                self.head.extend_from_slice(head);
            }
            normal::set_target(&mut self.head, &target);
        }
    }

    /// Makes the head one after which the connection ends.
    fn say_last(&mut self, head: &[u8]) {
        if self.head.is_empty() {
            self.head.extend_from_slice(head);
        }
        say_last(&mut self.head);
    }

    fn admit(&self, is_first: bool) -> Result<(), Refused> {
        if is_first {
            self.exit.admit_first(&self.attempt)
        } else {
            self.exit.admit(&self.attempt)
        }
    }

    fn check(
        &self,
        request: &Request<'_, '_>,
        plan: &Plan,
    ) -> Result<(), (&'static str, &'static str)> {
        if matches!(request.form, Form::Authority(_)) {
            let phrase = "a tunnel inside a connection is not allowed";
            return Err(("nested-connect", phrase));
        }
        if self.needs_inspection {
            check_inspected(plan)?;
        }
        Ok(())
    }

    /// Every name in the request must be the one the connection was made to.
    fn hosts_fit(&mut self, request: &Request<'_, '_>) -> Result<(), Vec<u8>> {
        let url = match request.form {
            Form::Absolute { authority, .. } => Some(authority),
            _ => None,
        };
        for text in [url, request.host].into_iter().flatten() {
            let attempt = &self.attempt;
            match self.hosts.read(text) {
                Ok(host) if host.means(&attempt.target, attempt.port) => {}
                Ok(host) => {
                    let meant = Attempt {
                        target: host.target.clone(),
                        port: host.port.unwrap_or(attempt.port),
                        ..attempt.clone()
                    };
                    let phrase = "the request names another host than its connection";
                    let refused = self.exit.refuse(&meant, "host-mismatch", phrase);
                    return Err(refused_page(&refused));
                }
                Err(bad) => return Err(self.refuse_bad(bad)),
            }
        }
        Ok(())
    }

    fn refuse_bad(&self, bad: BadRequest) -> Vec<u8> {
        let phrase = bad.to_string();
        self.exit.refuse(&self.attempt, bad.code(), &phrase);
        refusal::http_error(bad.status(), &phrase)
    }
}

/// The end of the session, if the exchange is that.
fn end_of(exchanged: Result<Exchanged, Failure>) -> Option<End> {
    match exchanged {
        Ok(Exchanged::Done {
            client: Persistence::Keep,
            server: Persistence::Keep,
        }) => None,
        Ok(Exchanged::Done { .. }) => Some(End::Closed),
        Ok(Exchanged::Early) => Some(End::Early),
        Ok(Exchanged::Switched) => Some(End::Switched),
        Err(failure) => Some(failed(failure)),
    }
}
