//! An organisation's HTTP proxy, as a host may have to use one: tunnels and
//! forwarded requests, with or without a password.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, copy, copy_bidirectional};
use tokio::net::{TcpSocket, TcpStream};

use super::head::{Head, invalid};
use super::log::Visit;
use super::place::port;
use super::server::Shared;

/// `user:password` as a header has it.
const CREDENTIALS: &str = "Basic dXNlcjpwYXNzd29yZA==";

/// Who may use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Everyone,
    WithPassword,
}

impl Access {
    pub(super) fn at(port: u16) -> Self {
        match port {
            port::PROXY_WITH_PASSWORD => Self::WithPassword,
            _ => Self::Everyone,
        }
    }

    fn allows(self, head: &Head) -> bool {
        self == Self::Everyone || head.header("proxy-authorization") == Some(CREDENTIALS)
    }
}

/// Serves one request of a connection, or tunnels the rest of it.
pub(super) async fn serve(
    stream: TcpStream,
    access: Access,
    visit: &Visit,
    shared: &Shared,
) -> io::Result<()> {
    let mut client = BufReader::new(stream);
    // After a refusal the client may try again with a password.
    while let Some(head) = Head::read(&mut client).await? {
        visit.saw(&head.raw);
        if !access.allows(&head) {
            client.write_all(REFUSAL.as_bytes()).await?;
            continue;
        }
        if is_for_us(&head) {
            return show(&mut client, "200 OK", &head).await;
        }
        let destination = Destination::of(&head)?;
        let Ok(upstream) = shared.dial(&destination.host, destination.port).await else {
            return show(&mut client, "502 Bad Gateway", &head).await;
        };
        return match destination.target {
            None => tunnel(client, upstream).await,
            Some(target) => forward(client, upstream, &head, &target).await,
        };
    }
    Ok(())
}

/// Whether a request goes no further (RFC 9110, 7.6.2).
fn is_for_us(head: &Head) -> bool {
    matches!(head.method.as_str(), "TRACE" | "OPTIONS") && head.header("max-forwards") == Some("0")
}

/// Gives a request back as it came, as error pages do as well.
async fn show(client: &mut BufReader<TcpStream>, status: &str, head: &Head) -> io::Result<()> {
    let length = head.raw.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: message/http\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{}",
        head.raw
    );
    client.write_all(answer.as_bytes()).await
}

const REFUSAL: &str = "HTTP/1.1 407 Proxy Authentication Required\r\n\
    Proxy-Authenticate: Basic realm=\"test\"\r\nContent-Length: 0\r\n\r\n";

/// Where a request goes.
struct Destination {
    host: String,
    port: u16,
    /// The path to ask for there; `None` for a tunnel.
    target: Option<String>,
}

impl Destination {
    fn of(head: &Head) -> io::Result<Self> {
        if head.method == "CONNECT" {
            let (host, port) = authority(&head.target, None)?;
            let target = None;
            return Ok(Self { host, port, target });
        }
        let rest = head.target.strip_prefix("http://");
        let rest = rest.ok_or_else(|| invalid("no request for a proxy"))?;
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = authority(place, Some(port::HTTP))?;
        let target = Some(format!("/{path}"));
        Ok(Self { host, port, target })
    }
}

/// Splits `host:port`; the host may be an address in brackets.
fn authority(text: &str, default: Option<u16>) -> io::Result<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (text, default),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = port.ok_or_else(|| invalid("no port"))?;
    Ok((host.to_owned(), port))
}

async fn tunnel(mut client: BufReader<TcpStream>, mut upstream: TcpStream) -> io::Result<()> {
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    copy_bidirectional(&mut client, &mut upstream).await?;
    Ok(())
}

/// One request and its answer; the connection ends with them.
async fn forward(
    client: BufReader<TcpStream>,
    upstream: TcpStream,
    head: &Head,
    target: &str,
) -> io::Result<()> {
    let kept = head.headers.iter().filter(|(name, _)| {
        let name = name.to_ascii_lowercase();
        !name.starts_with("proxy-") && name != "connection"
    });
    let mut lines = vec![format!("{} {target} HTTP/1.1", head.method)];
    lines.extend(kept.map(|(name, value)| format!("{name}: {value}")));
    lines.push("Via: 1.1 proxy.test\r\nConnection: close\r\n\r\n".to_owned());
    let request = lines.join("\r\n");
    let length = head
        .header("content-length")
        .and_then(|text| text.parse().ok());
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_upstream, mut to_upstream) = upstream.into_split();
    to_upstream.write_all(request.as_bytes()).await?;
    let mut body = (&mut from_client).take(length.unwrap_or(0));
    copy(&mut body, &mut to_upstream).await?;
    copy(&mut from_upstream, &mut to_client).await?;
    to_client.shutdown().await
}

impl Shared {
    /// Connects from the world to one of its own addresses.
    async fn dial(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.zone.addresses(host),
        };
        let mut failure = invalid("no such name");
        for address in addresses {
            let socket = self.world.dial(if address.is_ipv4() { 4 } else { 6 });
            let socket = TcpSocket::from_std_stream(nonblocking(socket)?);
            match socket.connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

fn nonblocking(socket: std::net::TcpStream) -> io::Result<std::net::TcpStream> {
    socket.set_nonblocking(true)?;
    Ok(socket)
}
