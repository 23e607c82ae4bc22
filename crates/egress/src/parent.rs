//! A corporate proxy between the host and the world.
//!
//! Names are judged before they are passed to it; it resolves them itself.

use std::io;
use std::sync::{Arc, OnceLock};

use data_encoding::BASE64;
use percent_encoding::percent_decode_str;
use ringfence_policy::{Cidr, HOST_ALIAS, HostName, Target, TargetError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cover::Cover;
use crate::secrets::{Forms, Hidden, REDACTED};

/// The port of HTTP.
const WEB: u16 = 80;
/// The longest answer to `CONNECT` that is read.
const LONGEST_ANSWER: usize = 16 * 1024;
/// What is shorter would be found in everything.
const SHORTEST_HIDDEN: usize = 8;

/// The host's proxies, by kind of traffic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParentProxies {
    http: Option<ParentProxy>,
    https: Option<ParentProxy>,
    exempt: Vec<Exemption>,
}

/// One proxy that speaks HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct ParentProxy {
    pub(crate) host: Target,
    pub(crate) port: u16,
    pub(crate) login: Option<Login>,
}

/// How this host is known to its proxy.
#[derive(Clone)]
pub(crate) struct Login(Arc<Known>);

struct Known {
    /// Name and password, as they are sent, and the password alone.
    texts: [String; 3],
    /// Every form of them, made when they are first sent.
    forms: OnceLock<Arc<Forms>>,
    authorization: String,
}

// The authorization is a secret of the host's user.
impl std::fmt::Debug for ParentProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ParentProxy({}:{})", self.host, self.port)
    }
}

/// Why a setting names no usable proxy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ParentError {
    /// Something other than `http://host:port`.
    #[error("the proxy of {setting} is not an http:// address")]
    Scheme {
        /// Where it was named.
        setting: String,
    },
    /// No host, or a malformed one.
    #[error("the proxy of {setting} has no usable host: {source}")]
    Host {
        /// Where it was named.
        setting: String,
        /// What is wrong.
        source: TargetError,
    },
    /// A port that is none.
    #[error("the proxy of {setting} has no usable port")]
    Port {
        /// Where it was named.
        setting: String,
    },
}

impl ParentError {
    /// A stable name for this error.
    pub fn code(&self) -> &'static str {
        "parent-proxy-unusable"
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "name it as http://host:port, or unset it: env -u HTTP_PROXY -u HTTPS_PROXY ringfence …"
    }
}

/// A destination that is dialled directly.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exemption {
    Everything,
    Name(HostName, Option<u16>),
    Block(Cidr, Option<u16>),
}

impl ParentProxies {
    /// From the three settings, each with the name it is known by.
    pub fn new(
        http: Option<(&str, &str)>,
        https: Option<(&str, &str)>,
        exempt: Option<&str>,
    ) -> Result<Self, ParentError> {
        let parse = |setting: Option<(&str, &str)>| {
            setting
                .filter(|(_, value)| !value.trim().is_empty())
                .map(|(name, value)| ParentProxy::parse(name, value.trim()))
                .transpose()
        };
        Ok(Self {
            http: parse(http)?,
            https: parse(https)?,
            exempt: exempt.map(exemptions).unwrap_or_default(),
        })
    }

    /// From the host's own variables; lower case is stronger, as for curl.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ParentError> {
        let either = |lower: &'static str, upper: &'static str| {
            [lower, upper]
                .into_iter()
                .find_map(|name| lookup(name).map(|value| (name, value)))
        };
        let (http, https, exempt) = (
            either("http_proxy", "HTTP_PROXY"),
            either("https_proxy", "HTTPS_PROXY"),
            either("no_proxy", "NO_PROXY"),
        );
        Self::new(
            http.as_ref().map(|(name, value)| (*name, value.as_str())),
            https.as_ref().map(|(name, value)| (*name, value.as_str())),
            exempt.as_ref().map(|(_, value)| value.as_str()),
        )
    }

    /// The proxy for a destination; `None` means directly.
    pub(crate) fn of(&self, target: &Target, port: u16, kind: Kind) -> Option<&ParentProxy> {
        let proxy = match kind {
            Kind::Forward => self.http.as_ref(),
            // Nothing but plain HTTP is spoken there.
            Kind::Tunnel if port == WEB => self.http.as_ref().or(self.https.as_ref()),
            Kind::Tunnel => self.https.as_ref(),
        };
        proxy.filter(|_| !is_own(target) && !self.is_exempt(target, port))
    }

    fn is_exempt(&self, target: &Target, port: u16) -> bool {
        self.exempt
            .iter()
            .any(|exemption| exemption.covers(target, port))
    }
}

/// How traffic passes a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As HTTP requests in absolute form.
    Forward,
    /// Through `CONNECT`.
    Tunnel,
}

/// What lies on the host itself is not behind its proxy.
fn is_own(target: &Target) -> bool {
    match target {
        Target::Name(name) => name.is_localhost() || name.as_str() == HOST_ALIAS,
        Target::Addr(address) => address.is_loopback(),
    }
}

impl Exemption {
    fn covers(&self, target: &Target, port: u16) -> bool {
        let fits = |own: &Option<u16>| own.is_none_or(|own| own == port);
        match (self, target) {
            (Self::Everything, _) => true,
            (Self::Name(base, own), Target::Name(name)) => {
                fits(own) && (name == base || name.is_below(base))
            }
            (Self::Block(block, own), Target::Addr(address)) => {
                fits(own) && block.contains(*address)
            }
            _ => false,
        }
    }
}

/// Entries that make no sense are passed over, as every other program does.
fn exemptions(list: &str) -> Vec<Exemption> {
    list.split([',', ' '])
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .filter_map(exemption)
        .collect()
}

fn exemption(entry: &str) -> Option<Exemption> {
    if entry == "*" {
        return Some(Exemption::Everything);
    }
    if let Ok(block) = Cidr::parse(entry) {
        return Some(Exemption::Block(block, None));
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host, Some(port.parse().ok()?))
        }
        _ => (entry, None),
    };
    let host = host.strip_prefix("*.").unwrap_or(host);
    match Target::parse(host.strip_prefix('.').unwrap_or(host)).ok()? {
        Target::Name(name) => Some(Exemption::Name(name, port)),
        Target::Addr(address) => Some(Exemption::Block(Cidr::host(address), port)),
    }
}

impl ParentProxy {
    fn parse(setting: &str, text: &str) -> Result<Self, ParentError> {
        let setting = || setting.to_owned();
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(ParentError::Scheme { setting: setting() }),
            None => text,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
            _ => (place, None),
        };
        let port = port.map_or(Ok(80), |port| {
            port.parse()
                .map_err(|_| ParentError::Port { setting: setting() })
        })?;
        let host = Target::parse(host).map_err(|source| ParentError::Host {
            setting: setting(),
            source,
        })?;
        Ok(Self {
            host,
            port,
            login: user.map(Login::new),
        })
    }
}

impl Login {
    /// By `user:password` as in a URL.
    fn new(user: &str) -> Self {
        let plain: Vec<u8> = percent_decode_str(user).collect();
        let encoded = BASE64.encode(&plain);
        let login = String::from_utf8_lossy(&plain).into_owned();
        let password = login.split_once(':').map_or("", |(_, password)| password);
        Self(Arc::new(Known {
            authorization: format!("Basic {encoded}"),
            texts: [password.to_owned(), encoded, login],
            forms: OnceLock::new(),
        }))
    }

    /// The value of `Proxy-Authorization`.
    pub(crate) fn authorization(&self) -> &str {
        &self.0.authorization
    }

    /// What covers it in what the proxy says.
    pub(crate) fn cover(&self) -> Cover {
        let forms = self.0.forms.get_or_init(|| self.0.compile());
        Cover::of(Arc::clone(forms))
    }
}

impl Known {
    fn compile(&self) -> Arc<Forms> {
        let texts = self
            .texts
            .iter()
            .filter(|text| text.len() >= SHORTEST_HIDDEN);
        let hidden: Vec<Hidden<'_>> = texts
            .map(|value| Hidden {
                value,
                shown: REDACTED,
            })
            .collect();
        Arc::new(Forms::of_secrets(&hidden))
    }
}

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        self.authorization() == other.authorization()
    }
}

impl Eq for Login {}

// It is a secret of the host's user.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

/// Asks the proxy at the other end of `stream` for a tunnel.
pub(crate) async fn tunnel(
    stream: &mut TcpStream,
    proxy: &ParentProxy,
    target: &Target,
    port: u16,
) -> io::Result<()> {
    let authorization = proxy
        .login
        .as_ref()
        .map(|login| format!("Proxy-Authorization: {}\r\n", login.authorization()))
        .unwrap_or_default();
    let request =
        format!("CONNECT {target}:{port} HTTP/1.1\r\nHost: {target}:{port}\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    match status_of(&read_answer(stream).await?) {
        Some(200..=299) => Ok(()),
        Some(status) => Err(refused(&format!("the host's proxy answered {status}"))),
        None => Err(refused("the host's proxy does not speak HTTP")),
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, why)
}

/// Byte by byte, because what follows the answer belongs to the tunnel.
async fn read_answer(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut answer = Vec::with_capacity(256);
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == LONGEST_ANSWER {
            return Err(refused("the host's proxy answers at too great a length"));
        }
        answer.push(stream.read_u8().await?);
    }
    Ok(answer)
}

fn status_of(answer: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(answer.get(..12)?).ok()?;
    text.strip_prefix("HTTP/1.1 ")
        .or_else(|| text.strip_prefix("HTTP/1.0 "))?
        .parse()
        .ok()
}

#[cfg(test)]
mod lying;

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    #[test]
    fn credentials_are_decoded_and_never_shown() {
        let proxy = ParentProxy::parse("https_proxy", "http://me:p%40ss@proxy.test:3128/").unwrap();
        assert_eq!(
            proxy.login.as_ref().unwrap().authorization(),
            "Basic bWU6cEBzcw=="
        );
        assert_eq!(
            (proxy.host.to_string().as_str(), proxy.port),
            ("proxy.test", 3128)
        );
        assert!(!format!("{proxy:?}").contains("bWU6"));
    }

    #[test]
    fn other_schemes_and_broken_places_are_errors() {
        for text in [
            "socks5://a.test:1",
            "https://a.test",
            "http://a b",
            "http://a.test:99999",
        ] {
            assert!(ParentProxy::parse("http_proxy", text).is_err(), "{text}");
        }
        assert_eq!(
            ParentProxy::parse("http_proxy", "proxy.test").unwrap().port,
            80
        );
        assert_eq!(
            ParentProxy::parse("http_proxy", "[::1]:8080").unwrap().port,
            8080
        );
    }

    #[test]
    fn exemptions_cover_names_below_addresses_and_ports() {
        let list = "*.corp.test, .sub.test,10.0.0.0/8 plain.test:8443,[::2],192.0.2.1";
        let proxies =
            ParentProxies::new(None, Some(("https_proxy", "http://p.test")), Some(list)).unwrap();
        let direct = |text: &str, port| proxies.of(&target(text), port, Kind::Tunnel).is_none();
        for (text, port) in [
            ("a.corp.test", 1),
            ("corp.test", 1),
            ("x.sub.test", 1),
            ("10.2.3.4", 1),
            ("plain.test", 8443),
            ("[::2]", 1),
            ("192.0.2.1", 1),
            ("localhost", 1),
            ("127.0.0.1", 1),
            ("host.ringfence.internal", 1),
        ] {
            assert!(direct(text, port), "{text}:{port}");
        }
        for (text, port) in [("acorp.test", 1), ("plain.test", 443), ("11.0.0.1", 1)] {
            assert!(!direct(text, port), "{text}:{port}");
        }
        assert!(proxies.of(&target("a.test"), 80, Kind::Forward).is_none());
    }

    #[test]
    fn lower_case_variables_are_stronger_and_empty_ones_are_none() {
        let lookup = |name: &str| match name {
            "http_proxy" => Some("http://lower.test".to_owned()),
            "HTTP_PROXY" => Some("http://upper.test".to_owned()),
            "HTTPS_PROXY" => Some(String::new()),
            _ => None,
        };
        let proxies = ParentProxies::from_variables(lookup).unwrap();
        let http = proxies.of(&target("a.test"), 80, Kind::Forward).unwrap();
        assert_eq!(http.host.to_string(), "lower.test");
        assert!(proxies.of(&target("a.test"), 443, Kind::Tunnel).is_none());
        let intercepted = proxies.of(&target("a.test"), 80, Kind::Tunnel).unwrap();
        assert_eq!(intercepted.host.to_string(), "lower.test");
    }

    #[test]
    fn answers_of_a_proxy_are_read_strictly() {
        assert_eq!(status_of(b"HTTP/1.1 200 OK\r\n\r\n"), Some(200));
        assert_eq!(status_of(b"HTTP/1.0 407 no\r\n\r\n"), Some(407));
        assert_eq!(status_of(b"SSH-2.0-x\r\n\r\n"), None);
        assert_eq!(status_of(b"HTTP/1.1"), None);
    }
}
