//! A connection whose destination is known, carried to its end.
//!
//! Once it is admitted, the first bytes tell what is spoken. TLS must ask for
//! the name that was admitted, and is looked into where the policy needs that;
//! HTTP is judged request by request, and anything else passes as it is. A
//! server that speaks first is heard at once.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use ringfence_audit::{CloseReason, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::attempt::Attempt;
use crate::closing::close_with;
use crate::cover::Cover;
use crate::exit::{Exit, OpenError, Upstream};
use crate::http::fields::Persistence;
use crate::http::peer::Peer;
use crate::http::pinned::{self, Early};
use crate::http::{self, forward::open_failed};
use crate::inbox::Inbox;
use crate::intercept;
use crate::limits::Limits;
use crate::refusal::Form;
use crate::relay::{Clock, Watchers, relay, reset_on_close};
use crate::sentry::Sentry;
use crate::speech::{Guess, Speech, heard, heard_in_all};
use crate::tls::{self, Wanted};

use objection::{Objection, check_name, check_named};

/// The port of HTTP.
const WEB: u16 = 80;
/// For a client of it to say what it wants.
const FIRST_WORDS: Duration = Duration::from_millis(200);
/// Why TLS and the like are refused under some rules, as a code and in words.
const NEEDS_INSPECTION: (&str, &str) = (
    "needs-inspection",
    "the rule looks at every request, and this connection cannot be looked into",
);
/// How long a client that is refused has to show in what form it would
/// understand that.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens the way to where `attempt` leads and carries the connection, or tells
/// the client in its own language why not. `early` was already read.
pub(crate) async fn carry(client: TcpStream, early: Inbox, attempt: Attempt, exit: Rc<Exit>) {
    let mut client = Peer::client(client, early, exit.memory());
    client.take_what_is_there();
    let inspected = exit.needs_inspection(&attempt);
    if inspected || attempt.port == WEB || exit.guards_host(&attempt) {
        await_request(&mut client, inspected, exit.limits()).await;
    }
    let attempt = Attempt {
        spoken: spoken(&client.inbox),
        http: http::seen(&client.inbox),
        ..attempt
    };
    if inspected || exit.guards(&attempt, attempt.spoken) {
        match attempt.spoken {
            Protocol::Http if exit.binds_in_clear(&attempt) => {
                return intercept::serve_plain(client, attempt, exit, Persistence::Keep).await;
            }
            Protocol::Http => {}
            Protocol::Tls if exit.interception().is_some() => {
                return look_into(client, attempt, exit).await;
            }
            _ => {
                let refused = exit.refuse(&attempt, NEEDS_INSPECTION.0, NEEDS_INSPECTION.1);
                return answer(client, &refused.into()).await;
            }
        }
    }
    match exit.open(&attempt).await {
        Ok(upstream) => tunnel(client.stream, client.inbox, attempt, upstream, exit).await,
        Err(error) => answer(client, &error).await,
    }
}

/// Looks into TLS that asks for the name that was admitted, and refuses any
/// other.
async fn look_into(client: Peer, attempt: Attempt, exit: Rc<Exit>) {
    let objection = match heard(&client.inbox) {
        Speech::Tls(wanted) => check_named(&attempt.target, &wanted).err(),
        _ => Some(Objection::malformed_tls()),
    };
    match objection {
        None => intercept::serve(client, attempt, exit).await,
        Some(objection) => {
            objection.record(attempt, &exit);
            close_with(client.stream, &tls::ACCESS_DENIED).await;
        }
    }
}

/// On the port of the web clients speak first, so that what they ask for can
/// be known before anything is opened. It is not waited for long.
/// Where every request has to be judged nothing else can be carried, and it is
/// waited for as long as for any head.
async fn await_request(client: &mut Peer, inspected: bool, limits: &Limits) {
    let asking = async {
        while client.inbox.len() <= tls::LONGEST_HELLO
            && may_be_request(&client.inbox)
            && matches!(client.fill().await, Ok(1..))
        {}
    };
    let time = if inspected {
        limits.head_time
    } else {
        FIRST_WORDS
    };
    let _ = tokio::time::timeout(time, asking).await;
}

/// Whether more bytes could make a request of it.
fn may_be_request(bytes: &[u8]) -> bool {
    match heard(bytes) {
        Speech::Unclear(_) => true,
        Speech::Http => http::awaits_more(bytes),
        _ => false,
    }
}

/// As far as the first bytes tell.
fn spoken(bytes: &[u8]) -> Protocol {
    match heard(bytes) {
        Speech::Tls(_) | Speech::BadTls | Speech::Unclear(Guess::Tls) => Protocol::Tls,
        Speech::Http => Protocol::Http,
        _ => Protocol::Tcp,
    }
}

/// Tells the client that there is no way to where it wanted to go.
async fn answer(mut client: Peer, error: &OpenError) {
    match language_of(&mut client).await {
        Protocol::Http => close_with(client.stream, &open_failed(error, Form::Request)).await,
        Protocol::Tls => {
            let alert = match error {
                OpenError::Refused(_) => tls::ACCESS_DENIED,
                _ => tls::INTERNAL_ERROR,
            };
            close_with(client.stream, &alert).await;
        }
        _ => reset_on_close(&client.stream),
    }
}

/// What the client speaks, if it says something soon.
async fn language_of(client: &mut Peer) -> Protocol {
    let listening = async {
        while matches!(
            heard(&client.inbox),
            Speech::Unclear(Guess::Nothing | Guess::Text)
        ) {
            match client.fill().await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    };
    // Whoever said nothing until then is told by a reset.
    let _ = tokio::time::timeout(PATIENCE, listening).await;
    spoken(&client.inbox)
}

/// Carries a connection that was admitted and opened.
pub(crate) async fn tunnel(
    client: TcpStream,
    early: Inbox,
    attempt: Attempt,
    upstream: Upstream,
    exit: Rc<Exit>,
) {
    if exit.learn_secrets(&attempt).await.is_err() {
        upstream.tracked.because(CloseReason::Refused);
        reset_on_close(&upstream.stream);
        return reset_on_close(&client);
    }
    let watch = Watchers {
        up: Sentry::of(&exit, &attempt),
        down: Cover::of_returns(&exit, &attempt),
    };
    let guarded = [Protocol::Http, Protocol::Tls].map(|spoken| exit.guards(&attempt, spoken));
    let mut opening = Opening {
        guarded,
        client: Peer::client(client, early, exit.memory()),
        attempt,
        upstream,
        watch,
        sent: 0,
        answered: false,
        greeted: false,
    };
    let clock = Clock::new();
    let head_time = exit.limits().head_time;
    let outcome = {
        let listening = opening.listen(head_time, &clock);
        tokio::select! {
            outcome = listening => outcome,
            why = clock.run_out(exit.limits()) => Outcome::Cut(why),
        }
    };
    Box::pin(opening.proceed(outcome, exit)).await;
}

/// A connection of which it is not known yet what is spoken.
struct Opening {
    /// Whether HTTP and TLS should have been looked into, had they been spoken
    /// at once.
    guarded: [bool; 2],
    client: Peer,
    attempt: Attempt,
    upstream: Upstream,
    /// Who watches what passes in clear.
    watch: Watchers,
    /// How many bytes of the client were passed on already.
    sent: usize,
    /// The server has said something.
    answered: bool,
    /// It did before the client said anything.
    greeted: bool,
}

/// What came of listening.
enum Outcome {
    Tls(Wanted),
    BadTls,
    Http,
    Raw,
    Endless,
    Cut(CloseReason),
}

/// The next thing that happens on a connection.
enum Next {
    Client(std::io::Result<usize>),
    Server(std::io::Result<usize>),
    /// The server does not go on with what may be a secret.
    Quiet,
    Revoked,
    Late,
}

impl Opening {
    async fn listen(&mut self, head_time: Duration, clock: &Clock) -> Outcome {
        let mut deadline = None;
        loop {
            let guess = match heard(&self.client.inbox) {
                Speech::Unclear(guess) => guess,
                Speech::Tls(wanted) => return Outcome::Tls(wanted),
                Speech::BadTls => return Outcome::BadTls,
                Speech::Http => return Outcome::Http,
                Speech::Raw => return Outcome::Raw,
                Speech::Endless => return Outcome::Endless,
            };
            let waits = self.waits(guess);
            if guess == Guess::Text
                && !waits
                && let Err(why) = self.send_text().await
            {
                return Outcome::Cut(why);
            }
            if waits {
                deadline.get_or_insert(Instant::now() + head_time);
            }
            let mut buffer = [0; 2048];
            match self.next(&mut buffer, waits, deadline).await {
                Next::Client(Ok(0)) if waits => return Outcome::Cut(CloseReason::Malformed),
                Next::Client(Ok(0)) => {
                    return match heard_in_all(&self.client.inbox) {
                        Speech::Http => Outcome::Http,
                        _ => Outcome::Raw,
                    };
                }
                Next::Client(Ok(_)) => clock.touch(),
                Next::Client(Err(_)) => return Outcome::Cut(CloseReason::ClientReset),
                // Where every request is judged nothing else may be said.
                Next::Server(_) if self.upstream.needs_inspection => return Outcome::Raw,
                Next::Server(Ok(0)) => return Outcome::Raw,
                Next::Server(Ok(read)) => {
                    clock.touch();
                    if self.pass_back(&buffer[..read]).await.is_err() {
                        return Outcome::Cut(CloseReason::ClientReset);
                    }
                }
                Next::Server(Err(_)) => return Outcome::Cut(CloseReason::ServerReset),
                Next::Quiet => {
                    if self.let_go().await.is_err() {
                        return Outcome::Cut(CloseReason::ClientReset);
                    }
                }
                Next::Revoked => return Outcome::Cut(CloseReason::PolicyChanged),
                Next::Late => return Outcome::Cut(CloseReason::Idle),
            }
        }
    }

    /// Whether nothing may pass before it is known what is spoken. Text may,
    /// because no server acts on half a line; unless every request has to be
    /// judged, or there will be one.
    fn waits(&self, guess: Guess) -> bool {
        match guess {
            Guess::Nothing => false,
            Guess::Tls => true,
            Guess::Text => self.upstream.needs_inspection || self.guarded[0],
        }
    }

    async fn next(&mut self, buffer: &mut [u8], waits: bool, deadline: Option<Instant>) -> Next {
        let server = &mut self.upstream.stream;
        let from_server = server.read(buffer);
        let late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let quiet = async {
            match &self.watch.down {
                Some(cover) => cover.run_out().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.upstream.tracked.revoked() => Next::Revoked,
            read = self.client.fill() => Next::Client(read),
            read = from_server, if !waits => Next::Server(read),
            () = quiet => Next::Quiet,
            () = late => Next::Late,
        }
    }

    /// Passes the beginning of a line on.
    async fn send_text(&mut self) -> Result<(), CloseReason> {
        let text = &self.client.inbox[self.sent..];
        if let Some(sentry) = &mut self.watch.up {
            sentry.check(text).map_err(|_| CloseReason::Refused)?;
        }
        let sent = self.upstream.stream.write_all(text).await;
        sent.map_err(|_| CloseReason::ServerReset)?;
        self.upstream.tracked.sent_up(text.len() as u64);
        self.sent = self.client.inbox.len();
        Ok(())
    }

    async fn pass_back(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.answered = true;
        self.greeted |= self.client.inbox.is_empty();
        let Some(cover) = &mut self.watch.down else {
            return self.give(bytes).await;
        };
        let mut covered = BytesMut::new();
        cover.feed(bytes, &mut covered)?;
        self.give(&covered).await
    }

    /// Passes back what was held.
    async fn let_go(&mut self) -> std::io::Result<()> {
        let mut held = BytesMut::new();
        if let Some(cover) = &mut self.watch.down {
            cover.let_go(&mut held);
        }
        self.give(&held).await
    }

    async fn give(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.client.stream.write_all(bytes).await?;
        self.upstream.tracked.came_down(bytes.len() as u64);
        Ok(())
    }

    /// A client of HTTP/2 whose server has sent its settings already. One that
    /// waits for an answer gets it in HTTP/1.
    fn begins_http2(&self) -> bool {
        self.greeted && self.client.inbox.starts_with(b"PRI ")
    }

    async fn proceed(self, outcome: Outcome, exit: Rc<Exit>) {
        if self.is_late(&outcome) && !self.answered && self.sent == 0 {
            return self.begin_anew(exit).await;
        }
        match self.check(&outcome) {
            Ok(()) => self.go_on(outcome, exit).await,
            Err(objection) => self.object(objection, &outcome, &exit).await,
        }
    }

    /// A client that was slow with its first words: nothing was said over this
    /// connection, and they are known now.
    async fn begin_anew(self, exit: Rc<Exit>) {
        self.upstream.tracked.because(CloseReason::Finished);
        drop(self.upstream);
        let Peer { stream, inbox, .. } = self.client;
        Box::pin(carry(stream, inbox, self.attempt, exit)).await;
    }

    /// Whether this should have been looked into, had it been known at once.
    fn is_late(&self, outcome: &Outcome) -> bool {
        let [http, tls] = self.guarded;
        match outcome {
            Outcome::Http => http,
            Outcome::Tls(_) => tls,
            _ => false,
        }
    }

    async fn object(mut self, objection: Objection, outcome: &Outcome, exit: &Exit) {
        match objection {
            Objection::Cut(why) => self.end(why, None).await,
            objection @ Objection::Refused { .. } => {
                let answer = self.alert(outcome);
                objection.record(self.attempt.clone(), exit);
                self.end(CloseReason::Refused, answer).await;
            }
        }
    }

    /// Whether this may go on over this connection.
    fn check(&self, outcome: &Outcome) -> Result<(), Objection> {
        let inspected = self.upstream.needs_inspection;
        match outcome {
            Outcome::Cut(why) => Err(Objection::Cut(*why)),
            _ if self.is_late(outcome) => {
                Err(Objection::because(NEEDS_INSPECTION.0, NEEDS_INSPECTION.1))
            }
            Outcome::Tls(_) | Outcome::Raw if inspected => {
                Err(Objection::because(NEEDS_INSPECTION.0, NEEDS_INSPECTION.1))
            }
            Outcome::Tls(wanted) => check_name(&self.attempt.target, wanted),
            Outcome::BadTls => Err(Objection::malformed_tls()),
            // After a greeting no line is so long, and there are protocols
            // without lines.
            Outcome::Endless if self.greeted => Ok(()),
            Outcome::Endless => Err(Objection::because(
                "endless-line",
                "the first line has no end",
            )),
            Outcome::Http if self.begins_http2() => Err(Objection::because(
                "http-version",
                "HTTP/2 in clear cannot be judged request by request",
            )),
            Outcome::Http if self.answered => Err(Objection::because(
                "late-request",
                "a request came after something else was spoken",
            )),
            Outcome::Http | Outcome::Raw => Ok(()),
        }
    }

    async fn go_on(mut self, outcome: Outcome, exit: Rc<Exit>) {
        if let Outcome::Tls(_) = outcome
            && let Err(objection) = self.shake_hands(exit.limits()).await
        {
            self.object(objection, &outcome, &exit).await;
            return;
        }
        let Self {
            client,
            attempt,
            upstream,
            watch,
            sent,
            ..
        } = self;
        // What passes within TLS is not in clear.
        let watch = match outcome {
            Outcome::Tls(_) => Watchers::default(),
            _ => watch,
        };
        if let Outcome::Http = outcome {
            let bytes = client.inbox;
            let early = Early { bytes, sent };
            pinned::serve(client.stream, early, attempt, upstream, exit).await;
        } else {
            let mut early = client.inbox;
            early.advance(sent);
            relay(client.stream, early, upstream, watch, exit.limits()).await;
        }
    }

    /// What tells a TLS client that it is refused.
    fn alert(&mut self, outcome: &Outcome) -> Option<[u8; 7]> {
        match outcome {
            Outcome::Tls(_) | Outcome::BadTls => {
                self.attempt.spoken = Protocol::Tls;
                Some(tls::ACCESS_DENIED)
            }
            _ => None,
        }
    }

    async fn end(self, why: CloseReason, answer: Option<[u8; 7]>) {
        self.upstream.tracked.because(why);
        reset_on_close(&self.upstream.stream);
        drop(self.upstream);
        match answer {
            Some(answer) => close_with(self.client.stream, &answer).await,
            None => reset_on_close(&self.client.stream),
        }
    }
}

mod handshake;
mod objection;
#[cfg(test)]
mod tests;
