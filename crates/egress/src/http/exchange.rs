//! One request on its way to a server, and the response on its way back.
//!
//! Request body and response pass at the same time, as they come, in whatever
//! the reader of each can take: nothing is kept back and nothing piles up.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use bytes::Buf;
use tokio::net::tcp::WriteHalf;

use super::body::{BadChunk, Body, Framing};
use super::fields::Persistence;
use super::head::{Upgrade, Version, header_room};
use super::next_head::{self, NoResponse};
use super::peer::{Broken, Incoming, Peer, Watched, send};
use super::response::{self, Asked, BadResponse, Kind, Response};
use super::sharing::{Beginning, Sharing};
use crate::exit::Tracked;
use crate::refusal::Refused;
use crate::relay::Clock;
use crate::sentry::Sentry;

/// For a client to send the beginning of a body.
const FIRST_WORDS: Duration = Duration::from_millis(200);
/// A server that never comes to its answer is malformed.
const MOST_INTERIM: usize = 32;

/// What the exchange needs to know of its request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The length of the request's head in the client's inbox.
    pub(crate) head: usize,
    pub(crate) framing: Framing,
    pub(crate) version: Version,
    pub(crate) persistence: Persistence,
    pub(crate) upgrade: Upgrade,
    pub(crate) asked: Asked,
    /// Whether another request may follow it; `None` until its body is seen.
    pub(crate) sharing: Option<Sharing>,
    /// A header would replace method or path.
    pub(crate) overrides: bool,
}

impl Plan {
    /// Whether the connection to the server ends with this request.
    pub(crate) fn is_alone(&self) -> bool {
        self.sharing != Some(Sharing::Shared)
    }

    /// Whether the body has to be seen before it is known how the request goes.
    fn wants_body(&self) -> bool {
        self.sharing.is_none()
    }

    /// Looks at what has come of the body.
    fn look(&mut self, inbox: &[u8]) {
        let Framing::Length(length) = self.framing else {
            return;
        };
        let body = &inbox[self.head..];
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.sharing = Sharing::by_body(match body.get(..length) {
            Some(whole) => Beginning::Whole(whole),
            None => Beginning::Part(body),
        });
    }

    /// Finds out whether the request goes alone, for which the beginning of its
    /// body may have to be waited for, though not for long. If it does, nothing
    /// else may be offered with it.
    pub(crate) async fn settle(&mut self, client: &mut Peer) {
        let looking = async {
            while self.wants_body() {
                self.look(&client.inbox);
                if !self.wants_body() || !matches!(client.fill().await, Ok(1..)) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(FIRST_WORDS, looking).await;
        let sharing = self.sharing.unwrap_or(Sharing::Alone);
        self.sharing = Some(sharing);
        if sharing == Sharing::Alone {
            self.upgrade = Upgrade::No;
        }
    }
}

/// How an exchange ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchanged {
    /// Each connection can be used for another one, or not.
    Done {
        client: Persistence,
        server: Persistence,
    },
    /// The response was passed on while the client was still sending.
    Early,
    /// Both sides speak another protocol from here on.
    Switched,
}

/// How an exchange failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The client went away.
    Client,
    /// The client's body is malformed; nothing was answered yet.
    BadBody(BadChunk),
    /// The client's body may not leave; nothing was answered yet.
    Refused(Refused),
    /// The same, within an answer.
    CutShort,
    /// The server went away before it answered; the client may still be told.
    NoAnswer,
    /// The server went away within its answer.
    Server,
    /// The server's answer is malformed, and none of it was passed on.
    BadAnswer(BadResponse),
}

impl Failure {
    /// What a request's body that breaks off before the answer means.
    fn of_upload(broken: Broken) -> Self {
        match broken {
            Broken::Bad(bad) => Self::BadBody(bad),
            Broken::Refused(refused) => Self::Refused(refused),
            Broken::Source | Broken::Sink => Self::Client,
        }
    }
}

/// Both ends, and what is counted on the way.
pub(crate) struct Exchange<'a> {
    pub(crate) client: &'a mut Peer,
    pub(crate) server: &'a mut Peer,
    pub(crate) tracked: &'a Tracked,
    pub(crate) clock: &'a Clock,
    /// Who watches the request's body, if anybody does.
    pub(crate) sentry: Option<Sentry>,
}

/// The head to send, where it is not the one in the client's inbox.
pub(crate) enum Head<'a> {
    /// As it came, without its first bytes, which were sent before.
    AsReceived { sent: usize },
    /// Another one, with room for the beginning of the body.
    Rewritten(&'a mut Vec<u8>),
}

impl Exchange<'_> {
    /// Sends the request and passes the response on.
    pub(crate) async fn run(self, plan: &Plan, head: Head<'_>) -> Result<Exchanged, Failure> {
        let Self {
            client,
            server,
            tracked,
            clock,
            sentry,
        } = self;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let count_up = |bytes: usize| tracked.sent_up(bytes as u64);
        let mut body = Watched::new(Body::new(plan.framing), sentry);
        let first = body
            .take(&from_client.inbox[plan.head..])
            .map_err(Failure::of_upload)?;
        let opened = send_first(
            &mut from_client,
            &mut to_server,
            (plan.head, first),
            head,
            count_up,
        )
        .await;
        let begun = Cell::new(false);
        let mut answer = Answer {
            from: &mut from_server,
            to: &mut to_client,
            tracked,
            clock,
            begun: &begun,
        };
        if body.is_done() {
            // A server that no longer listens may have answered before.
            return answer.pass(plan).await.map(|answer| answer.after(plan));
        }
        let rest = async {
            match opened {
                Ok(()) => {
                    from_client
                        .pass(&mut body, &mut to_server, count_up, clock)
                        .await
                }
                Err(broken) => Err(broken),
            }
        };
        both_ways(rest, answer, plan).await
    }
}

/// Sends the head and as much of the body as has come, in one piece.
async fn send_first(
    from: &mut Incoming<'_>,
    to: &mut WriteHalf<'_>,
    (length, first): (usize, usize),
    head: Head<'_>,
    count: impl Fn(usize),
) -> Result<(), Broken> {
    let sent = match head {
        Head::AsReceived { sent } => send(to, &from.inbox[sent..length + first], count).await,
        Head::Rewritten(head) => {
            let own = head.len();
            head.extend_from_slice(&from.inbox[length..length + first]);
            let sent = send(to, head, count).await;
            head.truncate(own);
            sent
        }
    };
    from.inbox.advance(length + first);
    sent
}

/// How far the request's body is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upload {
    Running,
    Done,
    /// The server reads no more; it may still answer.
    Stuck,
}

/// Runs the rest of the request's body beside the answer, which may come first.
async fn both_ways(
    rest: impl Future<Output = Result<(), Broken>>,
    mut answer: Answer<'_, '_>,
    plan: &Plan,
) -> Result<Exchanged, Failure> {
    let begun = answer.begun;
    let mut rest = pin!(rest);
    let mut passing = pin!(answer.pass(plan));
    let mut upload = Upload::Running;
    let passed = loop {
        tokio::select! {
            biased;
            sent = &mut rest, if upload == Upload::Running => upload = match sent {
                Ok(()) => Upload::Done,
                Err(Broken::Sink) => Upload::Stuck,
                Err(Broken::Refused(_)) if begun.get() => return Err(Failure::CutShort),
                Err(Broken::Bad(_)) if begun.get() => return Err(Failure::Client),
                Err(broken) => return Err(Failure::of_upload(broken)),
            },
            passed = &mut passing => break passed?,
        }
    };
    match (upload, passed) {
        (Upload::Done, passed) => Ok(passed.after(plan)),
        (_, Passed::Final(_)) => Ok(Exchanged::Early),
        // In the middle of a body nobody agreed to another protocol.
        (_, Passed::Switched) => Err(Failure::Server),
    }
}

/// The response on its way to the client.
struct Answer<'a, 'p> {
    from: &'a mut Incoming<'p>,
    to: &'a mut WriteHalf<'p>,
    tracked: &'a Tracked,
    clock: &'a Clock,
    /// Something of the final response was passed on.
    begun: &'a Cell<bool>,
}

/// A response that was passed on.
enum Passed {
    Final(Ended),
    Switched,
}

/// A whole response, and whether the server said more than that.
struct Ended {
    response: Response,
    surplus: bool,
}

impl Passed {
    fn after(self, plan: &Plan) -> Exchanged {
        let Self::Final(Ended { response, surplus }) = self else {
            return Exchanged::Switched;
        };
        if plan.is_alone() {
            return Exchanged::Done {
                client: Persistence::Close,
                server: Persistence::Close,
            };
        }
        let client = match plan.persistence {
            Persistence::Keep => response.persistence_for(plan.version),
            Persistence::Close => Persistence::Close,
        };
        // Nobody asked for what comes after the answer.
        let server = match response.persistence() {
            Persistence::Keep if !surplus => Persistence::Keep,
            _ => Persistence::Close,
        };
        Exchanged::Done { client, server }
    }
}

impl Answer<'_, '_> {
    /// Passes everything on up to the end of the final response.
    async fn pass(&mut self, plan: &Plan) -> Result<Passed, Failure> {
        for _ in 0..MOST_INTERIM {
            let (length, response) = self.next_head(plan.asked).await?;
            match response.kind {
                Kind::Interim => self.send(length).await?,
                Kind::Final => return self.pass_final(length, response).await,
                Kind::Switching if !plan.upgrade.is_offered() => {
                    return Err(self.bad(BadResponse::Switch));
                }
                Kind::Switching => {
                    self.begun.set(true);
                    let all = self.from.inbox.len();
                    self.send(all).await?;
                    return Ok(Passed::Switched);
                }
            }
        }
        Err(self.bad(BadResponse::Malformed))
    }

    async fn next_head(&mut self, asked: Asked) -> Result<(usize, Response), Failure> {
        let length = match next_head::response(self.from, self.clock).await {
            Ok(length) => length,
            Err(NoResponse::Bad(bad)) => return Err(self.bad(bad)),
            Err(NoResponse::Silent) if !self.begun.get() => return Err(Failure::NoAnswer),
            Err(NoResponse::Ended) if !self.begun.get() => {
                return Err(self.bad(BadResponse::Malformed));
            }
            Err(_) => return Err(Failure::Server),
        };
        match response::parse(&self.from.inbox[..length], &mut header_room(), asked) {
            Ok(response) => Ok((length, response)),
            Err(bad) => Err(self.bad(bad)),
        }
    }

    async fn pass_final(&mut self, head: usize, response: Response) -> Result<Passed, Failure> {
        let mut body = Watched::new(Body::new(response.framing), None);
        let Ok(first) = body.take(&self.from.inbox[head..]) else {
            return Err(self.bad(BadResponse::Malformed));
        };
        self.begun.set(true);
        self.send(head + first).await?;
        let tracked = self.tracked;
        let count = |bytes: usize| tracked.came_down(bytes as u64);
        match self.from.pass(&mut body, self.to, count, self.clock).await {
            Ok(()) => Ok(Passed::Final(Ended {
                response,
                surplus: !self.from.inbox.is_empty(),
            })),
            Err(Broken::Sink) => Err(Failure::Client),
            Err(Broken::Source | Broken::Bad(_) | Broken::Refused(_)) => Err(Failure::Server),
        }
    }

    /// Passes the next bytes of the inbox on.
    async fn send(&mut self, count: usize) -> Result<(), Failure> {
        let sent = send(self.to, &self.from.inbox[..count], |bytes| {
            self.tracked.came_down(bytes as u64);
        });
        sent.await.map_err(|_| Failure::Client)?;
        self.from.inbox.advance(count);
        Ok(())
    }

    /// Once something was passed on, the client can only be cut off.
    fn bad(&self, why: BadResponse) -> Failure {
        if self.begun.get() {
            Failure::Server
        } else {
            Failure::BadAnswer(why)
        }
    }
}
