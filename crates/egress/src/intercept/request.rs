//! One request over a connection that is looked into: read, judged, given its
//! credentials, and passed on.
//!
//! Whatever the request says of itself must agree with the connection. A
//! secret is read only for a request that is allowed, and put in last, so that
//! nothing of the client's can take it out or send it elsewhere.

mod agreement;
mod attaching;
mod draft;
mod expectation;
mod finder;
mod form;
mod last;
#[cfg(test)]
mod tests;
mod trailers;
mod watched;

use std::rc::Rc;

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderValue, SEC_WEBSOCKET_EXTENSIONS,
    TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri, Version};
use http_body::Body;
use hyper::body::Incoming;
use ringfence_policy::{Scheme, judges_paths};

use self::attaching::attach;
use self::draft::Draft;
use self::expectation::{Awaited, Expectation, Signal};
use self::finder::Finder;
use self::trailers::Ended;
use self::watched::Watched;
use super::Intercepted;
use super::answer::{Answer, Failure};
use super::body::{Kept, LocalBody, RequestBody, ResponseBody};
use super::error::SendError;
use super::fields::{drop_hops, drop_ranges, narrow_codings, narrow_transfer};
use super::flight::Flight;
use super::lingering::Lingering;
use super::pool::Last;
use super::response::{Looking, respond};
use super::upgrade::{self, BadWish, Switch, Watching, Wish};
use crate::attempt::{Attempt, HttpSeen};
use crate::exit::OpenError;
use crate::http::normal::normal_target;
use crate::memory::{Reservation, Spent};
use crate::secrets::Watch;

pub(super) use self::watched::Alarm;

/// Serves one request of a client.
pub(crate) async fn handle(
    request: Request<Incoming>,
    connection: Rc<Intercepted>,
    mut flight: Flight,
) -> Response<ResponseBody> {
    let exit = &connection.exit;
    let has_room = flight.take_off(exit.memory()).await;
    let flight = Rc::new(flight);
    let (parts, body) = request.into_parts();
    let unserved = has_room
        .err()
        .map(|Spent| Answer::spent(exit, &seen(&parts, &connection.attempt)));
    let waits = parts.headers.contains_key(EXPECT);
    let body = Kept::new(body);
    let request = Request::from_parts(parts, body.clone());
    let served = if let Some(answer) = unserved {
        Err(answer)
    } else {
        if request.version() != Version::HTTP_2 {
            flight.mind(exit, &connection.attempt, &body);
        }
        serve(request, &connection, &flight).await
    };
    match served {
        Ok(response) => response.map(|answer| answer.holding((body, flight))),
        Err(answer) => {
            let response = answer.into_response();
            let is_sending = !body.is_end_stream() && (!waits || body.was_asked_for());
            response.map(|answer| {
                if is_sending {
                    LocalBody::new(Lingering::new(answer, body)).holding(flight)
                } else {
                    answer.holding((body, flight))
                }
            })
        }
    }
}

/// A request that agrees with its connection.
struct Asked {
    parts: Parts,
    /// Its host, as the server is to read it.
    host: String,
    attempt: Attempt,
    expectation: Expectation,
    wish: Wish,
}

async fn serve(
    mut request: Request<Kept>,
    connection: &Rc<Intercepted>,
    flight: &Rc<Flight>,
) -> Result<Response<ResponseBody>, Answer> {
    let client = hyper::upgrade::on(&mut request);
    let (parts, body) = request.into_parts();
    let mut asked = read(parts, connection)?;
    let draft = draft_of(&mut asked, connection);
    let finder = Finder::new(connection.exit.placeholders().cloned());
    let attached = attach(draft, body, &asked.attempt, &finder, connection).await?;
    let guards = Guards {
        looking: Looking::at(&asked.attempt, connection),
        finder,
        bound: attached.bound,
        alarm: Alarm::new(Rc::clone(&connection.exit), asked.attempt.clone()),
        signal: Signal::default(),
    };
    let (attempt, version, wish) = (asked.attempt, asked.parts.version, asked.wish);
    let method = asked.parts.method.clone();
    let is_last = last::is_last(
        &asked.parts,
        asked.expectation,
        attached.draft.body.as_ref(),
        attached.body.as_ref(),
    );
    let is_last = is_last.await;
    let outgoing = Outgoing {
        is_last,
        parts: asked.parts,
        host: asked.host,
        expectation: asked.expectation,
        wish,
        draft: attached.draft,
        body: attached.body,
        room: attached.room.inspect(|_| flight.holds_much()),
        guards: &guards,
        scheme: connection.scheme,
    };
    let sent = connection
        .pool
        .send(&attempt, version, outgoing.build()?, flight)
        .await;
    guards.signal.give();
    flight.is_answered();
    let response = sent.map_err(|error| guards.failed(error.noted(&connection.exit, &attempt)))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let exit = &connection.exit;
        return respond(response, &method, guards.looking, exit, &attempt, flight).await;
    }
    let switch = Switch {
        wish,
        client,
        response,
        watching: guards.watching(),
        looking: guards.looking,
        flight: Rc::clone(flight),
    };
    switch.make()
}

/// What a request and its answer are held against on their way.
struct Guards {
    looking: Looking,
    finder: Finder,
    /// Services whose placeholders may be in the body and what follows it.
    bound: Vec<String>,
    alarm: Rc<Alarm>,
    signal: Signal,
}

impl Guards {
    /// Watches for placeholders that do not belong into the request.
    fn watch(&self) -> Option<Watch> {
        let bound: Vec<&str> = self.bound.iter().map(String::as_str).collect();
        self.finder.watch(&bound)
    }

    fn watching(&self) -> Option<Watching> {
        Some(Watching {
            watches: [self.watch()?, self.watch()?],
            alarm: Rc::clone(&self.alarm),
        })
    }

    /// What the client is told when there is no answer.
    fn failed(&self, error: SendError) -> Answer {
        if let Some(refused) = self.alarm.raised() {
            return Answer::Refused(refused);
        }
        if let SendError::Open(OpenError::Refused(refused)) = error {
            return Answer::Refused(refused);
        }
        let status = StatusCode::from_u16(error.status());
        Answer::Failed(Failure {
            status: status.unwrap_or(StatusCode::BAD_GATEWAY),
            code: Some(error.code()),
            phrase: error.text(),
        })
    }
}

/// Reads what is asked, and refuses what does not agree with its connection or
/// could not be judged.
fn read(parts: Parts, connection: &Intercepted) -> Result<Asked, Answer> {
    let Intercepted { exit, scheme, .. } = connection;
    let attempt = seen(&parts, &connection.attempt);
    let refuse = |attempt: &Attempt, code, phrase: &str, status| {
        let refused = exit.refuse(attempt, code, phrase);
        Answer::refused_as(status, &refused)
    };
    let host = agreement::agreed_host(&parts, &attempt, *scheme).map_err(|disagreement| {
        let meant = disagreement.meant(&attempt);
        let phrase = disagreement.to_string();
        refuse(&meant, "authority-mismatch", &phrase, disagreement.status())
    })?;
    form::check(&parts)
        .map_err(|bad| refuse(&attempt, bad.code(), &bad.to_string(), bad.status()))?;
    let wish = upgrade::wish(&parts)
        .map_err(|bad| refuse(&attempt, BadWish::CODE, &bad.to_string(), bad.status()))?;
    let expectation = expectation::expectation(&parts.headers);
    if expectation == Expectation::Unknown {
        let phrase = "the expectation is unknown";
        return Err(Answer::failed(StatusCode::EXPECTATION_FAILED, phrase));
    }
    Ok(Asked {
        parts,
        host,
        attempt,
        expectation,
        wish,
    })
}

/// The attempt that this request is.
fn seen(parts: &Parts, connection: &Attempt) -> Attempt {
    Attempt {
        http: Some(HttpSeen {
            method: parts.method.as_str().to_owned(),
            path: target_of(&parts.uri).to_owned(),
        }),
        ..connection.clone()
    }
}

/// Path and query.
fn target_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

/// Whether only the end of a body tells how long it is.
fn is_of_unknown_length(body: &RequestBody) -> bool {
    !body.is_end_stream() && body.size_hint().exact().is_none()
}

/// What of the request is passed on. What is judged by its path is sent in the
/// normal form of that path, so that the server reads the same.
fn draft_of(asked: &mut Asked, connection: &Intercepted) -> Draft {
    let policy = connection.exit.policy();
    let target = target_of(&asked.parts.uri);
    let normal = judges_paths(&policy, &asked.attempt.request())
        .then(|| normal_target(target))
        .flatten();
    let target = normal.unwrap_or_else(|| target.to_owned());
    if let Some(seen) = &mut asked.attempt.http {
        seen.path.clone_from(&target);
    }
    let mut headers = asked.parts.headers.clone();
    drop_hops(&mut headers);
    narrow_transfer(&mut headers);
    Draft {
        target,
        headers,
        body: None,
    }
}

/// Everything that makes up the request for the server.
struct Outgoing<'a> {
    parts: Parts,
    /// Its connection is not used after it.
    is_last: bool,
    host: String,
    expectation: Expectation,
    wish: Wish,
    draft: Draft,
    body: Option<Kept>,
    /// The room that the draft's body takes.
    room: Option<Reservation>,
    guards: &'a Guards,
    scheme: Scheme,
}

impl Outgoing<'_> {
    fn build(mut self) -> Result<Request<RequestBody>, Answer> {
        self.narrow();
        let malformed = |_| Answer::failed(StatusCode::BAD_REQUEST, "the target is malformed");
        self.parts.uri = self.address().map_err(malformed)?;
        let body = self.body();
        let mut parts = self.parts;
        parts.headers = self.draft.headers;
        if parts.version != Version::HTTP_2 {
            parts.version = Version::HTTP_11;
            self.wish.write(&mut parts.headers);
            if is_of_unknown_length(&body) {
                // Without a word hyper sends none with some methods.
                let chunked = HeaderValue::from_static("chunked");
                parts.headers.insert(TRANSFER_ENCODING, chunked);
            }
            if self.is_last {
                let close = HeaderValue::from_static("close");
                parts.headers.insert(CONNECTION, close);
                parts.extensions.insert(Last);
            }
        }
        let mut request = Request::from_parts(parts, body);
        self.guards.signal.listen(&mut request);
        Ok(request)
    }

    /// Asks for nothing that could not be looked into.
    fn narrow(&mut self) {
        let headers = &mut self.draft.headers;
        if self.guards.looking.is_on() {
            narrow_codings(headers);
            headers.remove("grpc-accept-encoding");
            headers.remove("connect-accept-encoding");
            headers.remove(SEC_WEBSOCKET_EXTENSIONS);
        }
        if self.guards.looking.wants_wholes() {
            drop_ranges(headers);
        }
        if let Some(body) = &self.draft.body {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
    }

    /// Where the request goes, as its version of HTTP writes it.
    fn address(&mut self) -> Result<Uri, http::Error> {
        let target = self.draft.target.as_str();
        if self.parts.version == Version::HTTP_2 {
            self.draft.headers.remove(HOST);
            return Uri::builder()
                .scheme(self.scheme.as_str())
                .authority(self.host.as_str())
                .path_and_query(target)
                .build();
        }
        let host = HeaderValue::try_from(&self.host)?;
        self.draft.headers.insert(HOST, host);
        Uri::builder().path_and_query(target).build()
    }

    fn body(&mut self) -> RequestBody {
        let body = match (self.draft.body.take(), self.body.take()) {
            (Some(whole), _) => return LocalBody::full_holding(whole, self.room.take()),
            (None, Some(body)) if !body.is_end_stream() => {
                LocalBody::new(Ended::new(LocalBody::incoming(body)))
            }
            _ => return LocalBody::empty(),
        };
        let is_http1 = self.parts.version != Version::HTTP_2;
        let body = match self.expectation {
            Expectation::Continue if is_http1 => {
                LocalBody::new(Awaited::new(body, &self.guards.signal))
            }
            _ => body,
        };
        match self.guards.watch() {
            Some(watch) => {
                let alarm = Rc::clone(&self.guards.alarm);
                LocalBody::new(Watched::new(body, watch, alarm))
            }
            None => body,
        }
    }
}
