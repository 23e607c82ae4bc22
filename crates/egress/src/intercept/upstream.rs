//! Connections to servers: opened through the one door, with TLS that is
//! verified for the name that was admitted, and watched until they end.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use ringfence_audit::{CloseReason, Protocol};
use ringfence_policy::Target;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig};

use super::alpn::Agreed;
use super::body::RequestBody;
use super::error::SendError;
use super::local::OnThisThread;
use super::roots::Roots;
use super::suites;
use super::wire::{Leash, Wire};
use crate::attempt::Attempt;
use crate::exit::{Exit, Tracked};
use crate::memory::{Memory, Use};
use crate::traffic::Traffic;

/// Sessions that can be resumed, over all servers.
/// A hostile server may make each of many kilobytes.
const MOST_SESSIONS: usize = 64;
/// The most of a response that is read ahead.
const HTTP1_ROOM: usize = 72 * 1024;
/// Longer heads are those of nobody who means well.
const LONGEST_HEAD: u16 = u16::MAX;
const MOST_FIELDS: usize = 256;
/// What a server may send before it is read, for one response and for all:
/// enough for one far away while there is room, and what requests have paid for
/// otherwise.
const LARGE_WINDOWS: [u32; 2] = [1024 * 1024, 2 * 1024 * 1024];
const SMALL_WINDOWS: [u32; 2] = [64 * 1024, 1024 * 1024];
const LARGEST_FRAME: u32 = 64 * 1024;
/// What waits to be sent, for one request.
const SEND_ROOM: usize = 64 * 1024;
/// A server that many wait for is asked whether it is still there.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIME: Duration = Duration::from_secs(20);

/// How TLS with servers is begun.
pub(super) struct Connectors {
    /// Offers HTTP/2 and HTTP/1.1.
    either: TlsConnector,
    /// Offers HTTP/1.1 only.
    http1: TlsConnector,
}

/// One for one request at a time, and what passes over it.
pub(super) struct Http1 {
    pub(super) sender: http1::SendRequest<RequestBody>,
    pub(super) traffic: Arc<Traffic>,
}

/// A connection that is ready for requests.
pub(super) enum Sender {
    /// For one request at a time.
    Http1(Http1),
    /// For many.
    Http2(http2::SendRequest<RequestBody>),
}

impl Connectors {
    pub(super) fn new(roots: &Roots) -> Result<Self, rustls::Error> {
        let connector = |names: &[Agreed]| -> Result<TlsConnector, rustls::Error> {
            let mut config = ClientConfig::builder_with_provider(suites::provider())
                .with_protocol_versions(rustls::ALL_VERSIONS)?
                .with_root_certificates(roots.store())
                .with_no_client_auth();
            config.alpn_protocols = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            config.resumption = Resumption::in_memory_sessions(MOST_SESSIONS);
            Ok(Arc::new(config).into())
        };
        Ok(Self {
            either: connector(&[Agreed::Http2, Agreed::Http1])?,
            http1: connector(&[Agreed::Http1])?,
        })
    }

    fn offering(&self, most: Agreed) -> &TlsConnector {
        match most {
            Agreed::Http1 => &self.http1,
            Agreed::Http2 => &self.either,
        }
    }
}

/// Opens a connection to where `attempt` leads. `most` is the highest version
/// that is offered; in clear, only HTTP/1.1 is spoken.
pub(super) async fn open(
    exit: &Rc<Exit>,
    attempt: &Attempt,
    connectors: Option<&Connectors>,
    most: Agreed,
) -> Result<Sender, SendError> {
    let connection = Attempt {
        spoken: match connectors {
            Some(_) => Protocol::Tls,
            None => Protocol::Tcp,
        },
        http: None,
        ..attempt.clone()
    };
    let upstream = exit.open(&connection).await.map_err(SendError::Open)?;
    let tracked = upstream.tracked;
    tracked.inspected(true);
    let (wire, leash) = Wire::new(upstream.stream, BytesMut::new(), tracked.traffic());
    let opening = async {
        match connectors {
            Some(connectors) => secure(exit, &connection, connectors.offering(most), wire).await,
            None => Ok(Secured::Plain(wire)),
        }
    };
    let secured = tokio::select! {
        biased;
        () = tracked.revoked() => Err(SendError::Revoked),
        secured = opening => secured,
    };
    match secured {
        Ok(secured) => begin(secured, tracked, leash, exit.memory()).await,
        Err(error) => {
            tracked.because(error.close_reason());
            Err(error)
        }
    }
}

/// A connection on which HTTP can be spoken.
enum Secured {
    Tls(Box<tokio_rustls::client::TlsStream<Wire>>),
    Plain(Wire),
}

async fn secure(
    exit: &Exit,
    attempt: &Attempt,
    connector: &TlsConnector,
    wire: Wire,
) -> Result<Secured, SendError> {
    let name = server_name(&attempt.target)?;
    let shaking = connector.connect(name, wire);
    let shaken = tokio::time::timeout(exit.limits().connect_time, shaking).await;
    let shaken = shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match shaken {
        Ok(stream) => Ok(Secured::Tls(Box::new(stream))),
        Err(error) => Err(distrusted(exit, attempt, error)),
    }
}

/// Says what is wrong with a handshake; a certificate that does not hold is
/// written down.
fn distrusted(exit: &Exit, attempt: &Attempt, error: io::Error) -> SendError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(why)) = inner else {
        return SendError::Tls(error);
    };
    let phrase = format!("the server's certificate does not hold: {}", in_words(why));
    SendError::Certificate(exit.refuse(attempt, "upstream-certificate", &phrase))
}

/// As people say it; the rest as the library has it.
fn in_words(why: &CertificateError) -> String {
    let words = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet"
        }
        CertificateError::UnknownIssuer => "no trusted authority has signed it",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name"
        }
        CertificateError::BadEncoding => "it is malformed",
        CertificateError::BadSignature => "its signature is wrong",
        CertificateError::Revoked => "it was revoked",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "it is not meant for servers"
        }
        // Such as an authority's own certificate, or a name that it may not sign.
        CertificateError::Other(why) => return format!("it breaks a rule ({why})"),
        other => return other.to_string(),
    };
    words.to_owned()
}

fn server_name(target: &Target) -> Result<ServerName<'static>, SendError> {
    match target {
        Target::Addr(address) => Ok(ServerName::IpAddress((*address).into())),
        Target::Name(name) => ServerName::try_from(name.as_str().to_owned())
            .map_err(|error| SendError::Tls(io::Error::other(error))),
    }
}

async fn begin(
    secured: Secured,
    tracked: Tracked,
    leash: Leash,
    memory: &Rc<Memory>,
) -> Result<Sender, SendError> {
    match secured {
        Secured::Plain(wire) => begin_http1(wire, tracked, leash).await,
        Secured::Tls(stream) => {
            let agreed = Agreed::of(stream.get_ref().1.alpn_protocol());
            match agreed {
                Agreed::Http1 => begin_http1(*stream, tracked, leash).await,
                Agreed::Http2 => begin_http2(*stream, tracked, leash, memory).await,
            }
        }
    }
}

async fn begin_http1<S>(stream: S, tracked: Tracked, leash: Leash) -> Result<Sender, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HTTP1_ROOM)
        .max_headers(MOST_FIELDS)
        .max_header_size(LONGEST_HEAD.into())
        .preserve_header_case(true)
        .handshake(TokioIo::new(stream))
        .await?;
    let traffic = tracked.traffic();
    tokio::task::spawn_local(attend(connection.with_upgrades(), tracked, leash));
    Ok(Sender::Http1(Http1 { sender, traffic }))
}

async fn begin_http2<S>(
    stream: S,
    tracked: Tracked,
    leash: Leash,
    memory: &Rc<Memory>,
) -> Result<Sender, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let room = memory.try_take_bytes(Use::Window, Use::Window.cost());
    let [of_stream, of_all] = match room {
        Some(_) => LARGE_WINDOWS,
        None => SMALL_WINDOWS,
    };
    let (sender, connection) = http2::Builder::new(OnThisThread)
        .timer(TokioTimer::new())
        .initial_stream_window_size(of_stream)
        .initial_connection_window_size(of_all)
        .max_frame_size(LARGEST_FRAME)
        .max_header_list_size(LONGEST_HEAD.into())
        .max_send_buf_size(SEND_ROOM)
        .keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_TIME)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::task::spawn_local(async move {
        attend(connection, tracked, leash).await;
        drop(room);
    });
    Ok(Sender::Http2(sender))
}

/// Keeps a connection going until it ends or the policy no longer allows it.
/// One that was upgraded lives on in other hands, and ends the same way.
async fn attend(
    connection: impl Future<Output = hyper::Result<()>>,
    tracked: Tracked,
    mut leash: Leash,
) {
    let served = async {
        let why = match connection.await {
            Ok(()) => CloseReason::Finished,
            Err(_) => CloseReason::ServerReset,
        };
        leash.gone().await;
        why
    };
    let why = tokio::select! {
        biased;
        () = tracked.revoked() => CloseReason::PolicyChanged,
        why = served => why,
    };
    tracked.because(why);
    if why == CloseReason::PolicyChanged {
        leash.cut();
        leash.gone().await;
    }
}
