//! Web servers of chosen names: HTTP/1.1 and HTTP/2 as TLS agrees, with good
//! certificates and bad ones. The other names are served by `http`, which
//! knows less and shows requests exactly as they came.

mod answer;
mod coding;
mod events;
mod pages;
mod repository;
mod socket;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::StartHandshake;
use tokio_rustls::server::TlsStream;

use super::log::Visit;
use super::tls::{Authority, Certificate};
use super::zone::canonical;
use events::Gates;
use pages::Room;

/// What a web server is like.
#[derive(Debug, Clone)]
pub struct Web {
    protocols: Protocols,
    certificate: Certificate,
    wants: Option<String>,
}

/// What it speaks; the client chooses where there is a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocols {
    Both,
    OnlyHttp1,
    OnlyHttp2,
}

impl Web {
    /// One that speaks HTTP/1.1 and HTTP/2 and has a good certificate.
    #[allow(clippy::new_without_default, reason = "the kinds are all named")]
    pub fn new() -> Self {
        Self {
            protocols: Protocols::Both,
            certificate: Certificate::Good,
            wants: None,
        }
    }

    /// Speaks HTTP/1.1 alone.
    #[must_use]
    pub fn only_http1(mut self) -> Self {
        self.protocols = Protocols::OnlyHttp1;
        self
    }

    /// Speaks HTTP/2 alone.
    #[must_use]
    pub fn only_http2(mut self) -> Self {
        self.protocols = Protocols::OnlyHttp2;
        self
    }

    /// Shows this certificate.
    #[must_use]
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = certificate;
        self
    }

    /// Answers 401 unless `Authorization` is exactly this.
    #[must_use]
    pub fn wants(mut self, authorization: &str) -> Self {
        self.wants = Some(authorization.to_owned());
        self
    }

    fn alpn(&self) -> &'static [&'static str] {
        match self.protocols {
            Protocols::Both => &["h2", "http/1.1"],
            Protocols::OnlyHttp1 => &["http/1.1"],
            Protocols::OnlyHttp2 => &["h2"],
        }
    }
}

/// The servers by their names, and what their pages share.
#[derive(Debug, Clone, Default)]
pub(super) struct Webs {
    servers: Arc<Mutex<HashMap<String, Web>>>,
    gates: Gates,
}

impl Webs {
    pub(super) fn set(&self, name: &str, web: Web) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(canonical(name), web);
    }

    pub(super) fn get(&self, name: &str) -> Option<Web> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(&canonical(name)).cloned()
    }

    /// Serves a client that asked for `name`.
    pub(super) async fn attend(
        &self,
        hello: StartHandshake<TcpStream>,
        name: String,
        web: Web,
        place: &Place<'_>,
    ) -> io::Result<()> {
        let server = place.authority.dressed(&name, &web.certificate, web.alpn());
        let stream = hello.into_stream(server).await?;
        let room = Room {
            visit: place.visit.clone(),
            sni: name,
            files: place.files.clone(),
            gates: self.gates.clone(),
            wants: web.wants,
        };
        serve(stream, Arc::new(room))
            .await
            .map_err(io::Error::other)
    }
}

/// Where a server stands.
pub(super) struct Place<'a> {
    pub(super) visit: &'a Visit,
    pub(super) authority: &'static Authority,
    pub(super) files: &'a PathBuf,
}

async fn serve(stream: TlsStream<TcpStream>, room: Arc<Room>) -> hyper::Result<()> {
    let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
    let agreed = agreed.unwrap_or_default();
    let shown = String::from_utf8_lossy(&agreed).into_owned();
    room.visit.saw(format!("alpn {shown}"));
    let stream = TokioIo::new(stream);
    let service = service_fn(move |request| {
        let room = Arc::clone(&room);
        async move { Ok::<_, Infallible>(room.answer(request).await) }
    });
    if agreed == b"h2" {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(stream, service)
            .await
    } else {
        hyper::server::conn::http1::Builder::new()
            .serve_connection(stream, service)
            .with_upgrades()
            .await
    }
}
