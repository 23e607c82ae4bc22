//! The TCP servers of a small internet: which there are, and what each
//! connection goes through.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;

use super::http::{self, Site};
use super::log::{Log, Visit};
use super::namespaces::Sockets;
use super::place::port;
use super::proxy::{self, Access};
use super::raw;
use super::ssh::Ssh;
use super::tls::Authority;
use super::web::{Place, Webs};
use super::zone::Zone;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// HTTP/1.1.
    Http,
    /// HTTP over TLS.
    Https,
    /// Sends back what it gets, then how much that was.
    Echo,
    /// Speaks first, then sends back what it gets.
    Banner,
    /// Speaks the protocol of Redis.
    Redis,
    /// `sshd`.
    Ssh,
    /// An organisation's HTTP proxy.
    Proxy,
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", format!("{self:?}").to_lowercase())
    }
}

/// The world's servers, at all of its addresses.
pub(super) const WORLD: &[(u16, Service)] = &[
    (port::HTTP, Service::Http),
    (port::HTTP_HIGH, Service::Http),
    (port::HTTPS, Service::Https),
    (port::HTTPS_HIGH, Service::Https),
    (port::ECHO, Service::Echo),
    (port::ECHO_HIGH, Service::Echo),
    (port::BANNER, Service::Banner),
    (port::REDIS, Service::Redis),
    (port::SSH, Service::Ssh),
    (port::PROXY, Service::Proxy),
    (port::PROXY_WITH_PASSWORD, Service::Proxy),
];

/// The host's own servers, at all of its addresses.
pub(super) const HOST: &[(u16, Service)] = &[
    (port::HTTP_HIGH, Service::Http),
    (port::ECHO_HIGH, Service::Echo),
];

/// What servers share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) log: Log,
    pub(super) zone: Zone,
    pub(super) authority: &'static Authority,
    /// Files to download.
    pub(super) files: PathBuf,
    /// For a server that dials others.
    pub(super) world: Sockets,
    pub(super) ssh: Arc<OnceLock<Ssh>>,
    /// Web servers of names for which HTTP/1.1 is not enough.
    pub(super) webs: Webs,
}

impl Shared {
    pub(super) async fn serve(self, service: Service, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, from) = listener.accept().await?;
            let to = stream.local_addr()?;
            let from = std::net::SocketAddr::new(from.ip().to_canonical(), from.port());
            let to = std::net::SocketAddr::new(to.ip().to_canonical(), to.port());
            let visit = self.log.open(service, from, to);
            let shared = self.clone();
            tokio::spawn(async move {
                if let Err(error) = shared.attend(service, stream, &visit).await {
                    visit.saw(format!("error: {error}"));
                }
            });
        }
    }

    async fn attend(&self, service: Service, stream: TcpStream, visit: &Visit) -> io::Result<()> {
        stream.set_nodelay(true)?;
        match service {
            Service::Http => http::serve(stream, &self.site(visit, None)).await,
            Service::Https => self.attend_tls(stream, visit).await,
            Service::Echo => raw::echo(stream, visit).await,
            Service::Banner => raw::banner(stream, visit).await,
            Service::Redis => raw::redis(stream, visit).await,
            Service::Ssh => match self.ssh.get() {
                Some(ssh) => ssh.attend(stream).await,
                None => Ok(()),
            },
            Service::Proxy => {
                let access = Access::at(visit.to.port());
                proxy::serve(stream, access, visit, self).await
            }
        }
    }

    async fn attend_tls(&self, stream: TcpStream, visit: &Visit) -> io::Result<()> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let sni = hello.client_hello().server_name().map(str::to_owned);
        visit.saw(format!("sni {}", sni.as_deref().unwrap_or("-")));
        let name = sni.clone().unwrap_or_else(|| visit.to.ip().to_string());
        if let Some(web) = self.webs.get(&name) {
            let place = Place {
                visit,
                authority: self.authority,
                files: &self.files,
            };
            return self.webs.attend(hello, name, web, &place).await;
        }
        let stream = hello.into_stream(self.authority.server(&name)).await?;
        http::serve(stream, &self.site(visit, sni)).await
    }

    fn site(&self, visit: &Visit, sni: Option<String>) -> Site {
        Site {
            visit: visit.clone(),
            sni,
            files: self.files.clone(),
        }
    }
}
