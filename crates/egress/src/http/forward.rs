//! A client that uses us as its HTTP proxy.
//!
//! Each request names its own destination and is judged by itself. Connections
//! to servers are kept between the requests of one client.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Buf;
use ringfence_audit::CloseReason;
use tokio::net::TcpStream;

use super::body::Framing;
use super::exchange::{Exchange, Exchanged, Failure, Head, Plan};
use super::fields::Persistence;
use super::next_head::{self, NoRequest};
use super::normal;
use super::order::{Order, Orders, bad_request};
use super::peer::Peer;
use super::pool::{self, Open, Pool};
use super::rewrite;
use super::session::{End, check_inspected, failed, late, refused_page};
use super::sharing::say_last;
use crate::attempt::Attempt;
use crate::closing::close_with;
use crate::exit::{Exit, Hop, OpenError, Upstream};
use crate::inbox::{Inbox, let_go_of_large};
use crate::parent::Login;
use crate::proxy::Caller;
use crate::refusal;
use crate::relay::{Clock, Watchers, relay, reset_on_close};
use crate::sentry::Sentry;

/// Why TRACE does not pass the host's own proxy, as a code and in words.
const TRACE: (&str, &str) = (
    "trace-not-allowed",
    "TRACE would show how this host is known to its proxy",
);

/// How serving ends.
pub(crate) enum Served {
    /// The client is done with.
    Finished,
    /// It asked for a tunnel, and has sent this after it.
    Tunnel {
        client: TcpStream,
        early: Inbox,
        attempt: Box<Attempt>,
    },
    /// Its next request, which is in the inbox, may get a secret.
    Inspected { client: Peer, attempt: Box<Attempt> },
}

/// How the requests end.
enum Last {
    End(End),
    Tunnel(Attempt),
    Inspected(Attempt),
}

struct Session {
    client: Peer,
    exit: Rc<Exit>,
    orders: Orders,
    pool: Rc<RefCell<Pool>>,
    /// The server of the request at hand.
    current: Option<Open>,
    /// Who watches that request, if anybody does.
    sentry: Option<Sentry>,
}

/// Serves the client until it is done or asks for a tunnel.
pub(crate) async fn serve(
    client: TcpStream,
    early: Inbox,
    caller: Caller,
    exit: Rc<Exit>,
) -> Served {
    let kept = Rc::new(RefCell::new(Pool::default()));
    let mut session = Session {
        client: Peer::client(client, early, exit.memory()),
        exit: Rc::clone(&exit),
        orders: Orders::new(caller, Rc::clone(&exit)),
        pool: Rc::clone(&kept),
        current: None,
        sentry: None,
    };
    let clock = Clock::new();
    let last = tokio::select! {
        biased;
        last = session.run(&clock) => last,
        why = clock.run_out(exit.limits()) => Last::End(End::Cut(why)),
        never = pool::tidy(&kept) => match never {},
    };
    match last {
        Last::Tunnel(attempt) => Served::Tunnel {
            client: session.client.stream,
            early: session.client.inbox,
            attempt: Box::new(attempt),
        },
        Last::Inspected(attempt) => Served::Inspected {
            client: session.client,
            attempt: Box::new(attempt),
        },
        Last::End(end) => {
            session.finish(end).await;
            Served::Finished
        }
    }
}

impl Session {
    async fn run(&mut self, clock: &Clock) -> Last {
        loop {
            let length = match self.next_request(clock).await {
                Ok(length) => length,
                Err(end) => return Last::End(end),
            };
            let (mut plan, attempt) = match self.orders.read(&self.client.inbox[..length]) {
                Ok(Order::Request(_, attempt)) if self.exit.binds_in_clear(&attempt) => {
                    return Last::Inspected(attempt);
                }
                Ok(Order::Request(plan, attempt)) => (plan, attempt),
                Ok(Order::Tunnel(attempt)) => {
                    self.client.inbox.advance(length);
                    return Last::Tunnel(attempt);
                }
                Err(answer) => return Last::End(End::Answered(answer, CloseReason::Refused)),
            };
            if let Err(end) = self.watch(&attempt) {
                return Last::End(end);
            }
            plan.settle(&mut self.client).await;
            if plan.is_alone() {
                say_last(&mut self.orders.head);
            }
            let served = self.serve_one(&plan, &attempt, clock).await;
            self.orders.give_back(attempt);
            if let Err(end) = served {
                return Last::End(end);
            }
        }
    }

    async fn next_request(&mut self, clock: &Clock) -> Result<usize, End> {
        let_go_of_large(&mut self.orders.head);
        let time = self.exit.limits().head_time;
        let uninterrupted = std::future::pending();
        let next = next_head::request(&mut self.client, time, clock, uninterrupted).await;
        next.map_err(|none| match none {
            NoRequest::Ended | NoRequest::Interrupted => End::Closed,
            NoRequest::Late => late(),
            NoRequest::Bad(bad) => End::Answered(bad_request(bad), CloseReason::Malformed),
        })
    }

    /// Looks at the request's head, and sets somebody to watch its body.
    fn watch(&mut self, attempt: &Attempt) -> Result<(), End> {
        self.sentry = Sentry::of(&self.exit, attempt);
        let looked = match &mut self.sentry {
            Some(sentry) => sentry.check(&self.orders.head),
            None => Ok(()),
        };
        looked.map_err(|refused| End::Answered(refused_page(&refused), CloseReason::Refused))
    }

    /// Serves one request; the end of the session if it is the last one.
    async fn serve_one(
        &mut self,
        plan: &Plan,
        attempt: &Attempt,
        clock: &Clock,
    ) -> Result<(), End> {
        match self.exchange(plan, attempt, clock).await? {
            Exchanged::Done { client, server } => {
                match (server, self.current.take()) {
                    (Persistence::Keep, Some(open)) => self.pool.borrow_mut().keep(open),
                    (_, gone) => drop(gone),
                }
                match client {
                    Persistence::Keep => Ok(()),
                    Persistence::Close => Err(End::Closed),
                }
            }
            Exchanged::Early => Err(End::Early),
            Exchanged::Switched => {
                self.sentry = Sentry::after_switch(&self.exit, attempt);
                Err(End::Switched)
            }
        }
    }

    /// Over a kept connection if there is one. A server may close that at the
    /// same moment; then a request that does no harm twice is sent again.
    async fn exchange(
        &mut self,
        plan: &Plan,
        attempt: &Attempt,
        clock: &Clock,
    ) -> Result<Exchanged, End> {
        let kept = self.pool.borrow_mut().take(attempt, self.exit.generation());
        let Some(kept) = kept else {
            self.open(plan, attempt).await?;
            return self.send(plan, attempt, clock).await?.map_err(failed);
        };
        let admitted = self.exit.admit(attempt);
        admitted.map_err(|refused| End::Answered(refused_page(&refused), CloseReason::Refused))?;
        self.check(kept.needs_inspection, plan, attempt)?;
        self.current = Some(kept);
        match self.send(plan, attempt, clock).await? {
            Err(Failure::NoAnswer) if can_repeat(plan, attempt) => {}
            exchanged => return exchanged.map_err(failed),
        }
        self.open(plan, attempt).await?;
        // The client's own head is used up; the one for the server is not.
        let again = Plan { head: 0, ..*plan };
        self.send(&again, attempt, clock).await?.map_err(failed)
    }

    async fn open(&mut self, plan: &Plan, attempt: &Attempt) -> Result<(), End> {
        let generation = self.exit.generation();
        let opened = self.exit.open(attempt).await;
        let upstream = opened.map_err(|error| {
            let answer = open_failed(&error, refusal::Form::Request);
            End::Answered(answer, CloseReason::Refused)
        })?;
        self.check(upstream.needs_inspection, plan, attempt)?;
        self.current = Some(Open::new(upstream, attempt, generation, self.exit.memory()));
        Ok(())
    }

    /// Where every request is judged, the head is for what was judged.
    fn check(&mut self, needs_inspection: bool, plan: &Plan, attempt: &Attempt) -> Result<(), End> {
        if !needs_inspection {
            return Ok(());
        }
        if let Some(target) = normal::judged_target(&self.exit, attempt) {
            normal::set_target(&mut self.orders.head, &target);
        }
        check_inspected(plan).map_err(|(code, phrase)| {
            let refused = self.exit.refuse(attempt, code, phrase);
            End::Answered(refused_page(&refused), CloseReason::Refused)
        })
    }

    /// Over the current connection, as long as the policy allows it.
    async fn send(
        &mut self,
        plan: &Plan,
        attempt: &Attempt,
        clock: &Clock,
    ) -> Result<Result<Exchanged, Failure>, End> {
        let Some(open) = &mut self.current else {
            return Ok(Err(Failure::NoAnswer));
        };
        let is_shown = matches!(&open.hop, Hop::Forward { login: Some(_) }) && is_trace(attempt);
        if is_shown {
            let refused = self.exit.refuse(attempt, TRACE.0, TRACE.1);
            return Err(End::Answered(refused_page(&refused), CloseReason::Refused));
        }
        let mut absolute;
        let head = match &open.hop {
            Hop::Destination => &mut self.orders.head,
            Hop::Forward { login } => {
                absolute = self.orders.head.clone();
                rewrite::to_absolute(
                    &mut absolute,
                    &attempt.destination(),
                    login.as_ref().map(Login::authorization),
                );
                &mut absolute
            }
        };
        let exchange = Exchange {
            client: &mut self.client,
            server: &mut open.peer,
            tracked: &open.tracked,
            clock,
            sentry: self.sentry.take(),
        };
        tokio::select! {
            biased;
            () = open.tracked.revoked() => Err(End::Cut(CloseReason::PolicyChanged)),
            exchanged = exchange.run(plan, Head::Rewritten(head)) => Ok(exchanged),
        }
    }

    async fn finish(self, end: End) {
        let Self {
            client,
            exit,
            current,
            sentry,
            ..
        } = self;
        match (end, current) {
            (End::Switched, Some(open)) => {
                let upstream = Upstream::from(open);
                relay(
                    client.stream,
                    client.inbox,
                    upstream,
                    Watchers {
                        up: sentry,
                        down: None,
                    },
                    exit.limits(),
                )
                .await;
            }
            (End::Closed | End::Switched, _) => {}
            (End::Early, open) => {
                drop(open);
                close_with(client.stream, &[]).await;
            }
            (End::Answered(answer, why), open) => {
                if let Some(open) = open {
                    open.give_up(why);
                }
                close_with(client.stream, &answer).await;
            }
            (End::Cut(why), open) => {
                if let Some(open) = open {
                    open.give_up(why);
                }
                reset_on_close(&client.stream);
            }
        }
    }
}

/// Whether the answer would be the request itself, as the next proxy got it.
fn is_trace(attempt: &Attempt) -> bool {
    let seen = attempt.http.as_ref();
    seen.is_some_and(|seen| seen.method.eq_ignore_ascii_case("TRACE"))
}

/// Whether a request may be sent twice.
fn can_repeat(plan: &Plan, attempt: &Attempt) -> bool {
    let harmless = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];
    let method = attempt.http.as_ref().map(|seen| seen.method.as_str());
    plan.framing == Framing::Empty && method.is_some_and(|method| harmless.contains(&method))
}

/// The answer when there is no connection to the destination.
pub(crate) fn open_failed(error: &OpenError, form: refusal::Form) -> Vec<u8> {
    match error {
        OpenError::Refused(refused) => refusal::http_response(refused, form),
        other => refusal::http_error(other.status(), &other.text()),
    }
}
