//! The handshake with a client, in the name of the server it wants.

use std::io;

use ringfence_policy::Target;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::rustls::{AlertDescription, Error};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

use super::alpn::{Agreed, Offer};
use super::authority::AuthorityError;
use super::wire::Wire;
use super::{Intercepted, Interception};

/// Plaintext that waits to be sent.
const SEND_ROOM: usize = 32 * 1024;

/// A client that we are the server of.
pub(super) struct Accepted {
    pub(super) stream: TlsStream<Wire>,
    pub(super) agreed: Agreed,
}

/// Why a handshake came to nothing, where that is worth a record.
#[derive(Debug)]
pub(super) enum Unaccepted {
    /// The client does not take our certificate.
    Distrusts,
    /// It speaks something that cannot be looked into.
    Speaks,
    /// It speaks HTTP/2 only, and the server does not.
    OnlyHttp2,
    /// It is bent.
    Malformed(Error),
    /// Its second hello is for another name than its first.
    OtherName,
    /// There is no certificate for the name.
    Certificate(AuthorityError),
    /// The client is gone.
    Gone,
}

impl Unaccepted {
    /// The reason code and the words for it.
    pub(super) fn reason(&self) -> Option<(&'static str, String)> {
        Some(match self {
            Self::Distrusts => (
                "client-distrusts",
                "the client does not trust the sandbox's certificate authority: it pins \
                 certificates or has a store of its own"
                    .to_owned(),
            ),
            Self::Speaks => (
                "needs-inspection",
                "the rule looks at every request, and the client does not speak HTTP".to_owned(),
            ),
            Self::OnlyHttp2 => (
                "protocol-mismatch",
                "the client speaks HTTP/2 only, and the server does not".to_owned(),
            ),
            Self::OtherName => (
                "tls-name-mismatch",
                "the client asked for another name in its second hello".to_owned(),
            ),
            Self::Malformed(error) => ("malformed-tls", format!("TLS failed: {error}")),
            Self::Certificate(error) => ("no-certificate", error.to_string()),
            Self::Gone => return None,
        })
    }
}

impl From<io::Error> for Unaccepted {
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(Error::AlertReceived(alert)) if is_distrust(*alert) => Self::Distrusts,
            Some(Error::AlertReceived(_)) | None => Self::Gone,
            Some(error) => Self::Malformed(error.clone()),
        }
    }
}

/// What clients say who do not take a certificate.
fn is_distrust(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::AccessDenied
    )
}

/// Shakes hands with the client on the wire, once it is known what its server
/// would have agreed on.
pub(super) async fn accept(
    wire: Wire,
    connection: &Intercepted,
    interception: &Interception,
) -> Result<Accepted, Unaccepted> {
    let start = LazyConfigAcceptor::new(Acceptor::default(), wire).await?;
    let offer = Offer::of(start.client_hello().alpn());
    let agreed = agree(offer, connection).await;
    let config = interception
        .authority
        .serve_as(&connection.attempt.target, agreed)
        .map_err(Unaccepted::Certificate)?;
    let time = connection.exit.limits().head_time;
    let stream = tokio::time::timeout(time, finish(start, config)).await;
    let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    // Without a version in common the handshake fails, which tells the client.
    match (offer, agreed) {
        (Offer::Other, _) => Err(Unaccepted::Speaks),
        (Offer::Http2, Agreed::Http1) => Err(Unaccepted::OnlyHttp2),
        _ => {
            let stream = stream?;
            check_again(&stream, &connection.attempt.target)?;
            Ok(Accepted { stream, agreed })
        }
    }
}

async fn finish(
    start: StartHandshake<Wire>,
    config: std::sync::Arc<tokio_rustls::rustls::ServerConfig>,
) -> io::Result<TlsStream<Wire>> {
    let room = |session: &mut tokio_rustls::rustls::ServerConnection| {
        session.set_buffer_limit(Some(SEND_ROOM));
    };
    start.into_stream_with(config, room).await
}

/// The server decides, if the client leaves it the choice.
async fn agree(offer: Offer, connection: &Intercepted) -> Agreed {
    if matches!(offer, Offer::Http1 | Offer::Other) {
        return Agreed::Http1;
    }
    let pool = &connection.pool;
    match pool.agree(&connection.attempt).await {
        Ok(agreed) => agreed,
        Err(failure) => {
            // There is a client to be told of it over either version.
            pool.fail_first(connection.attempt.connection, failure);
            Agreed::Http2
        }
    }
}

/// A client may be asked for a second hello, which was not looked at before.
fn check_again(stream: &TlsStream<Wire>, target: &Target) -> Result<(), Unaccepted> {
    let named = stream.get_ref().1.server_name();
    match named.map(Target::parse) {
        None => Ok(()),
        Some(Ok(named)) if named == *target => Ok(()),
        Some(_) => Err(Unaccepted::OtherName),
    }
}
