//! For tests: servers with certificates of every kind behind an exit that looks
//! into TLS, and clients inside that trust its authority.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use ringfence_policy::{Policy, Resolved};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::body::LocalBody;
use super::local::OnThisThread;
use super::suites;
use super::{Authority, Interception, Roots};
use crate::exit::Settings;
use crate::limits::Limits;
use crate::testing::{Yard, here, policy};

pub(crate) const H1: &[&str] = &["http/1.1"];
pub(crate) const H2: &[&str] = &["h2"];
pub(crate) const BOTH: &[&str] = &["h2", "http/1.1"];

/// What a server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A certificate for this name or address.
    For(&'static str),
    /// The same, but its time is up.
    Expired(&'static str),
    /// One that it signed itself.
    SelfSigned(&'static str),
    /// A good one, to clients that show one as well, over TLS 1.2 or newer.
    ToKnown(&'static str, &'static SupportedProtocolVersion),
}

/// What a server saw of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) version: Version,
    pub(crate) path: String,
    /// The server's connections, counted from 1.
    pub(crate) connection: usize,
    pub(crate) headers: HeaderMap,
}

/// What a server answers.
pub(crate) type Answer = Box<dyn Fn(Request<Incoming>) -> Response<LocalBody>>;

/// An exit that looks into TLS, and the authority that its server has.
pub(crate) struct Rig {
    pub(crate) yard: Rc<Yard>,
    pub(crate) authority: Arc<Authority>,
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) seen: Rc<RefCell<Vec<Seen>>>,
    pub(crate) accepted: Rc<Cell<usize>>,
    /// How many connections began with a session of an earlier one.
    pub(crate) resumed: Rc<Cell<usize>>,
    answer: Rc<Answer>,
}

/// A connection of a client inside, after its handshake.
pub(crate) enum Client {
    Http1(http1::SendRequest<LocalBody>),
    Http2(http2::SendRequest<LocalBody>),
}

impl Rig {
    /// With `a.test`, `b.test` and this machine looked into, and a server that
    /// tells what it was asked.
    pub(crate) async fn new() -> Self {
        Self::with(inspected, Limits::default(), Box::new(telling)).await
    }

    pub(crate) async fn answering(
        answer: impl Fn(Request<Incoming>) -> Response<LocalBody> + 'static,
    ) -> Self {
        Self::with(inspected, Limits::default(), Box::new(answer)).await
    }

    pub(crate) async fn with(
        rules: impl Fn(u16) -> Vec<String>,
        limits: Limits,
        answer: Answer,
    ) -> Self {
        let settings = Settings {
            limits,
            ..Settings::default()
        };
        Self::under(|port| policy(&rules(port)), settings, answer).await
    }

    /// Under any policy, with other settings than interception.
    pub(crate) async fn under(
        policy: impl Fn(u16) -> Arc<Resolved<Policy>>,
        settings: Settings,
        answer: Answer,
    ) -> Self {
        let issuer = issuer();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("root.pem");
        std::fs::write(&file, issuer.pem()).unwrap();
        let authority = Arc::new(Authority::new().unwrap());
        let settings = Settings {
            interception: Some(Interception {
                authority: Arc::clone(&authority),
                roots: Arc::new(Roots::load(&[file]).unwrap()),
            }),
            ..settings
        };
        Self {
            yard: Rc::new(Yard::under(policy, settings).await),
            authority,
            issuer,
            seen: Rc::default(),
            accepted: Rc::default(),
            resumed: Rc::default(),
            answer: Rc::new(answer),
        }
    }

    /// Serves everybody who comes.
    pub(crate) fn serve(&self, shown: Shown, alpn: &[&str]) {
        let acceptor = TlsAcceptor::from(Arc::new(self.server_config(shown, alpn)));
        let (yard, seen) = (Rc::clone(&self.yard), Rc::clone(&self.seen));
        let (accepted, resumed) = (Rc::clone(&self.accepted), Rc::clone(&self.resumed));
        let answer = Rc::clone(&self.answer);
        tokio::task::spawn_local(async move {
            loop {
                let stream = yard.accept().await;
                accepted.set(accepted.get() + 1);
                let connection = accepted.get();
                let (acceptor, seen) = (acceptor.clone(), Rc::clone(&seen));
                let (resumed, answer) = (Rc::clone(&resumed), Rc::clone(&answer));
                tokio::task::spawn_local(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let session = stream.get_ref().1;
                    if session.handshake_kind()
                        == Some(tokio_rustls::rustls::HandshakeKind::Resumed)
                    {
                        resumed.set(resumed.get() + 1);
                    }
                    let is_http2 = session.alpn_protocol() == Some(b"h2");
                    let service = service_fn(|request: Request<Incoming>| {
                        seen.borrow_mut().push(Seen {
                            version: request.version(),
                            path: request.uri().path().to_owned(),
                            connection,
                            headers: request.headers().clone(),
                        });
                        let response = answer(request);
                        async move { Ok::<_, Infallible>(response) }
                    });
                    let stream = TokioIo::new(stream);
                    let _ = if is_http2 {
                        hyper::server::conn::http2::Builder::new(OnThisThread)
                            .serve_connection(stream, service)
                            .await
                    } else {
                        hyper::server::conn::http1::Builder::new()
                            .serve_connection(stream, service)
                            .await
                    };
                });
            }
        });
    }

    /// How a server of this rig begins TLS.
    pub(crate) fn acceptor(&self, shown: Shown, alpn: &[&str]) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.server_config(shown, alpn)))
    }

    /// Serves the next one who comes by hand.
    pub(crate) async fn accept(&self, shown: Shown) -> tokio_rustls::server::TlsStream<TcpStream> {
        let acceptor = TlsAcceptor::from(Arc::new(self.server_config(shown, H1)));
        let stream = self.yard.accept().await;
        acceptor.accept(stream).await.unwrap()
    }

    pub(super) fn server_config(&self, shown: Shown, alpn: &[&str]) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let (Shown::For(name)
        | Shown::Expired(name)
        | Shown::SelfSigned(name)
        | Shown::ToKnown(name, _)) = shown;
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if let Shown::Expired(_) = shown {
            params.not_after = (SystemTime::now() - Duration::from_hours(24)).into();
        }
        let certificate = match shown {
            Shown::SelfSigned(_) => params.self_signed(&key).unwrap(),
            _ => params.signed_by(&key, &self.issuer).unwrap(),
        };
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let provider = suites::provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = match shown {
            Shown::ToKnown(_, version) => {
                let mut roots = RootCertStore::empty();
                roots.add(self.issuer.der().clone()).unwrap();
                let known = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder
                    .with_protocol_versions(&[version])
                    .unwrap()
                    .with_client_cert_verifier(known.build().unwrap())
            }
            _ => builder
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth(),
        };
        let chain = vec![certificate.der().clone()];
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = names(alpn);
        config
    }

    /// How a client inside begins TLS that trusts the sandbox's authority.
    pub(crate) fn connector(&self, alpn: &[&str]) -> TlsConnector {
        let own = CertificateDer::from_slice(self.authority.certificate_der());
        connector([own], alpn)
    }

    /// A handshake over a connection that dialled `host`.
    pub(crate) async fn shake(
        &self,
        connector: &TlsConnector,
        host: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = self.yard.dialled(host).await;
        shake(connector, host, stream).await
    }

    /// A client that dialled `host` and offers these versions.
    pub(crate) async fn client(&self, host: &str, alpn: &[&str]) -> Client {
        let stream = self.shake(&self.connector(alpn), host).await.unwrap();
        Client::over(stream).await
    }

    /// Reason codes of everything that was refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        let refused = self.yard.refused().into_iter();
        refused.map(|(_, code)| code).collect()
    }
}

/// A handshake for `host` over `stream`.
pub(crate) async fn shake(
    connector: &TlsConnector,
    host: &str,
    stream: TcpStream,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).unwrap();
    connector.connect(name, stream).await
}

/// A client's side of TLS that trusts `roots`.
pub(crate) fn connector<'a>(
    roots: impl IntoIterator<Item = CertificateDer<'a>>,
    alpn: &[&str],
) -> TlsConnector {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.into_owned()).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(suites::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = names(alpn);
    Arc::new(config).into()
}

impl Client {
    /// Speaks what was agreed on.
    pub(crate) async fn over(stream: TlsStream<TcpStream>) -> Self {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        if is_http2 {
            let begun = http2::Builder::new(OnThisThread).handshake(stream).await;
            let (sender, connection) = begun.unwrap();
            tokio::task::spawn_local(connection);
            Self::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await.unwrap();
            tokio::task::spawn_local(connection.with_upgrades());
            Self::Http1(sender)
        }
    }

    pub(crate) async fn send(
        &mut self,
        request: Request<LocalBody>,
    ) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => sender.send_request(request).await,
        }
    }

    /// Gets `path` of the host, whose port the rig's server has.
    pub(crate) async fn get(&mut self, host: &str, port: u16, path: &str) -> (u16, String) {
        let request = self.request(host, port, path);
        let response = self.send(request).await.unwrap();
        let status = response.status().as_u16();
        (status, text(response).await)
    }

    /// A request without a body, in the form that its version wants.
    pub(crate) fn request(&self, host: &str, port: u16, path: &str) -> Request<LocalBody> {
        let authority = format!("{host}:{port}");
        let builder = match self {
            Self::Http1(_) => Request::get(path).header("host", authority),
            Self::Http2(_) => {
                Request::get(format!("https://{authority}{path}")).version(Version::HTTP_2)
            }
        };
        builder.body(LocalBody::empty()).unwrap()
    }
}

/// The whole body as text.
pub(crate) async fn text(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A response with this body.
pub(crate) fn says(body: impl Into<Bytes>) -> Response<LocalBody> {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {});
    Response::new(LocalBody::new(body))
}

#[expect(clippy::needless_pass_by_value, reason = "an `Answer`")]
fn telling(request: Request<Incoming>) -> Response<LocalBody> {
    says(format!("{:?} {}", request.version(), request.uri().path()))
}

/// Rules under which the test's hosts are looked into.
pub(crate) fn inspected(port: u16) -> Vec<String> {
    let looked_into = |host: &str| format!("{{host: {host}, ports: [{port}], inspect: true}}");
    vec![looked_into("a.test"), looked_into("b.test"), here(port)]
}

fn names(alpn: &[&str]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn issuer() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}
