//! Clients whose requests are looked into, served to the end of their
//! connection.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use ringfence_audit::{CloseReason, Protocol};
use ringfence_policy::Scheme;
use tokio::io::{AsyncRead, AsyncWrite};

use super::accept::{Accepted, accept};
use super::alpn::Agreed;
use super::body::ResponseBody;
use super::flight::{Flight, Flights, Unserved};
use super::local::{HeadTimer, OnThisThread};
use super::wire::{Leash, Wire};
use super::{Intercepted, handle};
use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::http::fields::Persistence;
use crate::http::peer::Peer;
use crate::memory::{Reservation, SPENT, Use};
use crate::traffic::Traffic;
use crate::{closing, refusal};

const LONGEST_HEAD: u16 = u16::MAX;
const MOST_FIELDS: usize = 256;
/// The most of a request that is read ahead.
const HTTP1_ROOM: usize = 72 * 1024;
const MOST_STREAMS: u32 = 128;
/// Streams that a client began and took back before we saw them.
const MOST_RESETS: usize = 50;
/// What a client may send before it is read, for one request and for all.
const STREAM_WINDOW: u32 = 96 * 1024;
const CONNECTION_WINDOW: u32 = 128 * 1024;
const LARGEST_FRAME: u32 = 16 * 1024;
/// What waits to be sent, for one request.
const SEND_ROOM: usize = 64 * 1024;
/// What a request takes besides its head, before it is served.
const OWN_ROOM: usize = 8 * 1024;

/// Serves a client that speaks TLS, of which the whole hello is in the inbox
/// and asks for the name that was admitted.
pub(crate) async fn serve(client: Peer, attempt: Attempt, exit: Rc<Exit>) {
    let attempt = Attempt {
        spoken: Protocol::Tls,
        http: None,
        ..attempt
    };
    let Ok(room) = exit.memory().take_soon(Use::Intercepted).await else {
        // Before the handshake there is nobody who could be told.
        exit.refuse(&attempt, SPENT.0, SPENT.1);
        return;
    };
    let session = Session::new(attempt, Scheme::Https, exit, room);
    let traffic = Arc::clone(&session.traffic);
    let (wire, leash) = Wire::new(client.stream, client.inbox.into_bytes(), traffic);
    // A hyper connection is large, and most others are not looked into.
    session.run(leash, Box::pin(session.over_tls(wire))).await;
    let client = session.connection.attempt.connection;
    session.connection.pool.forget(client);
}

/// Serves a client that speaks HTTP/1 in clear, of which what was read so far
/// is in the inbox.
pub(crate) async fn serve_plain(
    client: Peer,
    attempt: Attempt,
    exit: Rc<Exit>,
    persistence: Persistence,
) {
    let attempt = Attempt {
        spoken: Protocol::Http,
        http: None,
        ..attempt
    };
    let Ok(room) = exit.memory().take_soon(Use::Intercepted).await else {
        let refused = exit.refuse(&attempt, SPENT.0, SPENT.1);
        let answer = refusal::http_unserved(503, &refused);
        return closing::close_with(client.stream, &answer).await;
    };
    let session = Session::new(attempt, Scheme::Http, exit, room);
    let traffic = Arc::clone(&session.traffic);
    let (wire, leash) = Wire::new(client.stream, client.inbox.into_bytes(), traffic);
    let serving = Box::pin(session.http1(wire, persistence));
    session.run(leash, serving).await;
}

/// One client connection at work.
struct Session {
    connection: Rc<Intercepted>,
    traffic: Arc<Traffic>,
    /// Its first request has come.
    asked: Rc<Cell<bool>>,
    flights: Rc<Flights>,
}

impl Session {
    fn new(attempt: Attempt, scheme: Scheme, exit: Rc<Exit>, room: Reservation) -> Self {
        let traffic = Arc::new(Traffic::new());
        let pool = exit.pool(scheme);
        Self {
            connection: Rc::new(Intercepted {
                exit,
                attempt,
                scheme,
                pool,
            }),
            flights: Flights::new(Arc::clone(&traffic), room),
            traffic,
            asked: Rc::default(),
        }
    }

    /// Until it is over, or has been quiet or alive for too long. A connection
    /// that was upgraded lives on in other hands until then.
    async fn run(&self, mut leash: Leash, serving: impl Future<Output = ()>) {
        let limits = self.connection.exit.limits();
        let served = async {
            serving.await;
            leash.gone().await;
        };
        let why = tokio::select! {
            biased;
            () = served => CloseReason::Finished,
            why = self.traffic.run_out(limits) => why,
            never = self.flights.mend(self.connection.exit.memory()) => match never {},
        };
        if why != CloseReason::Finished {
            leash.cut();
            leash.gone().await;
        }
    }

    /// Sees to the end of `serving`, unless the client has not sent a request
    /// by the time it must have. A client without a request is let go of when
    /// others wait for its room.
    async fn attend(&self, serving: impl Serving) {
        let mut serving = pin!(serving);
        let memory = self.connection.exit.memory();
        let unasked = async {
            tokio::time::sleep(self.connection.exit.limits().head_time).await;
            if self.asked.get() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            served = &mut serving => return self.note(served),
            () = unasked => return,
            () = self.flights.unneeded(memory) => serving.as_mut().wind_down(),
        }
        self.note(serving.await);
    }

    async fn over_tls(&self, wire: Wire) {
        let exit = &self.connection.exit;
        let Some(interception) = exit.interception() else {
            return;
        };
        match accept(wire, &self.connection, interception).await {
            Ok(Accepted { mut stream, agreed }) => {
                match agreed {
                    Agreed::Http1 => self.http1(stream, Persistence::Keep).await,
                    Agreed::Http2 => {
                        stream.get_mut().0.gather();
                        self.http2(stream).await;
                    }
                }
                self.note_silence();
            }
            Err(unaccepted) => {
                if let Some((code, phrase)) = unaccepted.reason() {
                    exit.refuse(&self.connection.attempt, code, &phrase);
                }
            }
        }
    }

    async fn http1<S>(&self, stream: S, persistence: Persistence)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let serving = http1::Builder::new()
            .timer(HeadTimer(Arc::clone(&self.traffic)))
            .header_read_timeout(self.connection.exit.limits().head_time)
            // Who ends TLS is gone, for servers too, and his requests hold
            // memory; only what is in clear is ended on one side alone.
            .half_close(self.connection.scheme == Scheme::Http)
            .keep_alive(persistence == Persistence::Keep)
            .max_headers(MOST_FIELDS)
            .max_header_size(LONGEST_HEAD.into())
            .max_buf_size(HTTP1_ROOM)
            .preserve_header_case(true)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service_fn(|head| self.answer(head)))
            .with_upgrades();
        self.attend(serving).await;
    }

    async fn http2<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let serving = http2::Builder::new(OnThisThread)
            .timer(TokioTimer::new())
            .max_concurrent_streams(MOST_STREAMS)
            .max_pending_accept_reset_streams(MOST_RESETS)
            .max_header_list_size(LONGEST_HEAD.into())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(LARGEST_FRAME)
            .max_send_buf_size(SEND_ROOM)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service_fn(|head| self.answer(head)));
        self.attend(serving).await;
    }

    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Unserved>> + 'static {
        self.asked.set(true);
        let connection = Rc::clone(&self.connection);
        let flight = self.begin(&request);
        // It is moved about a few times before it runs.
        Box::pin(async move { Ok(handle(request, connection, flight?).await) })
    }

    /// Room for the head of one of many requests, which are all there before
    /// any is served. That of a client's only one is part of its connection.
    fn begin(&self, request: &Request<Incoming>) -> Result<Flight, Unserved> {
        let flight = Flight::new(&self.flights);
        if request.version() != Version::HTTP_2 {
            return Ok(flight);
        }
        let Intercepted { exit, attempt, .. } = &*self.connection;
        let bytes = OWN_ROOM + 2 * size_of_head(request);
        if let Some(head) = exit.memory().try_take_bytes(Use::Head, bytes) {
            return Ok(flight.with_head(head));
        }
        exit.refuse(attempt, SPENT.0, SPENT.1);
        Err(Unserved)
    }

    /// Not every client that distrusts us says so: some hang up.
    fn note_silence(&self) {
        if !self.asked.get() {
            let phrase = "the client hung up before it asked for anything: \
                          it may pin certificates, or have a store of its own";
            let attempt = &self.connection.attempt;
            self.connection
                .exit
                .refuse(attempt, "client-hung-up", phrase);
        }
    }

    /// What is no HTTP is written down; a connection that breaks is not.
    fn note(&self, served: hyper::Result<()>) {
        if let Err(error) = served
            && error.is_parse()
        {
            let phrase = format!("the request is malformed: {error}");
            let attempt = &self.connection.attempt;
            self.connection
                .exit
                .refuse(attempt, "malformed-request", &phrase);
            self.asked.set(true);
        }
    }
}

/// As its version of HTTP tells it, about.
fn size_of_head(request: &Request<Incoming>) -> usize {
    const EACH: usize = 64;
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| EACH + name.as_str().len() + value.len());
    let target = request.uri().path_and_query();
    fields.sum::<usize>() + target.map_or(0, |target| target.as_str().len())
}

/// A connection that can be ended once its requests are answered.
trait Serving: Future<Output = hyper::Result<()>> {
    fn wind_down(self: Pin<&mut Self>);
}

impl<S, F> Serving for http1::UpgradeableConnection<TokioIo<S>, F>
where
    Self: Future<Output = hyper::Result<()>>,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: HttpService<Incoming, ResBody = ResponseBody>,
    F::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<S, F> Serving for http2::Connection<TokioIo<S>, F, OnThisThread>
where
    Self: Future<Output = hyper::Result<()>>,
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    F: HttpService<Incoming, ResBody = ResponseBody>,
    F::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    OnThisThread: Http2ServerConnExec<F::Future, ResponseBody>,
{
    fn wind_down(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}
