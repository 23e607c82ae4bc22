//! [`HostPort`] and [`HttpUrl`]: a destination as requests and people write it.

use std::net::IpAddr;

use thiserror::Error;

use super::Target;
use crate::port::Port;

/// `host` or `host:port`, as it stands in a URL, a `Host` header or a CONNECT line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// The host.
    pub target: Target,
    /// `None` where none is written.
    pub port: Option<u16>,
}

/// Why a text is no [`HostPort`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HostPortError {
    /// With user or password in front of the host.
    #[error("there is a user or password in front of the host")]
    UserInfo,
    /// No host, or one that two readers could read differently.
    #[error("the host is malformed")]
    Host,
    /// Not a port, or one in another spelling than the usual.
    #[error("the port is malformed")]
    Port,
}

impl HostPort {
    /// Parses ASCII only, because the next reader may map Unicode differently.
    pub fn parse(text: &str) -> Result<Self, HostPortError> {
        if text.contains('@') {
            return Err(HostPortError::UserInfo);
        }
        let (host, port) = split(text)?;
        if !host.is_ascii() {
            return Err(HostPortError::Host);
        }
        let target = Target::parse(host).map_err(|_| HostPortError::Host)?;
        Ok(Self { target, port })
    }

    /// The port, or the one that plain HTTP has.
    pub fn http_port(&self) -> u16 {
        self.port.unwrap_or(80)
    }

    /// Whether a client that means `target` and `port` may write this.
    pub fn means(&self, target: &Target, port: u16) -> bool {
        self.target == *target && self.port.is_none_or(|own| own == port)
    }
}

/// Host and port; IPv6 stands in brackets.
fn split(text: &str) -> Result<(&str, Option<u16>), HostPortError> {
    let colon = match text.rfind(']') {
        Some(end) => {
            let after = end + 1;
            match text.as_bytes().get(after) {
                None => None,
                Some(b':') => Some(after),
                Some(_) => return Err(HostPortError::Host),
            }
        }
        None => text.find(':'),
    };
    let Some(colon) = colon else {
        return Ok((text, None));
    };
    let port: Port = text[colon + 1..].parse().map_err(|_| HostPortError::Port)?;
    Ok((&text[..colon], Some(port.get())))
}

/// A URL of HTTP, or the host and port of one, as far as a request says it. What the proxies call
/// malformed is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// The host.
    pub target: Target,
    /// The port that is written, or that of the scheme; without a scheme that of HTTPS.
    pub port: u16,
    /// Path and query, if any are written.
    pub path: Option<String>,
}

/// Why a text is no [`HttpUrl`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpUrlError {
    /// Something other than `http` and `https`.
    #[error("the scheme {0} is not http or https")]
    Scheme(String),
    /// The part in front of the path.
    #[error(transparent)]
    HostPort(#[from] HostPortError),
    /// The path or the query.
    #[error("{0:?} has to be encoded in a path")]
    Path(char),
}

impl HttpUrl {
    /// Parses `host`, `host:port` or a URL; an IPv6 address may stand without brackets where it is
    /// all there is.
    pub fn parse(text: &str) -> Result<Self, HttpUrlError> {
        let is_address = text.parse::<IpAddr>().is_ok();
        if let (true, Ok(target)) = (is_address, Target::parse(text)) {
            return Ok(Self {
                target,
                port: 443,
                path: None,
            });
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let own_port = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return Err(HttpUrlError::Scheme(scheme.to_owned())),
        };
        // What clients keep to themselves.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        check_path(path)?;
        let HostPort { target, port } = HostPort::parse(place)?;
        let slash = if path.starts_with('?') { "/" } else { "" };
        Ok(Self {
            target,
            port: port.unwrap_or(own_port),
            path: (!path.is_empty()).then(|| [slash, path].concat()),
        })
    }
}

/// Whether a request could have this as its path and query: the rest has to be encoded by whoever
/// sends it.
pub fn check_path(path: &str) -> Result<(), HttpUrlError> {
    let is_bad = |one: &char| !one.is_ascii_graphic() || *one == '#';
    match path.chars().find(is_bad) {
        Some(one) => Err(HttpUrlError::Path(one)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        for (text, target, port) in [
            ("a.example.org", "a.example.org", None),
            ("A.example.org.:8080", "a.example.org", Some(8080)),
            ("127.1:80", "127.0.0.1", Some(80)),
            ("[::1]", "[::1]", None),
            ("[::1]:443", "[::1]", Some(443)),
            ("[::ffff:127.0.0.1]", "127.0.0.1", None),
        ] {
            let authority = HostPort::parse(text).unwrap();
            assert_eq!(authority.target.to_string(), target, "{text}");
            assert_eq!(authority.port, port, "{text}");
        }
    }

    #[test]
    fn g3_what_has_two_readings_is_refused() {
        for (text, want) in [
            ("", HostPortError::Host),
            (":80", HostPortError::Host),
            ("a.example.org:", HostPortError::Port),
            ("a.example.org:0", HostPortError::Port),
            ("a.example.org:080", HostPortError::Port),
            ("a.example.org:+80", HostPortError::Port),
            ("a.example.org:65536", HostPortError::Port),
            ("a.example.org:80:80", HostPortError::Port),
            ("a.example.org:80 ", HostPortError::Port),
            ("a.example.org/", HostPortError::Host),
            ("a.example.org\\", HostPortError::Host),
            ("a.example.org,b.example.org", HostPortError::Host),
            ("a.example.org b.example.org", HostPortError::Host),
            ("a%2eexample.org", HostPortError::Host),
            ("::1", HostPortError::Port),
            ("::1:80", HostPortError::Port),
            ("[::1", HostPortError::Port),
            ("[::1]x", HostPortError::Host),
            ("[::1]]", HostPortError::Host),
            ("[a.example.org]", HostPortError::Host),
            ("x[::1]", HostPortError::Host),
            ("[fe80::1%25eth0]", HostPortError::Host),
            ("bücher.example", HostPortError::Host),
            ("a\0.example.org", HostPortError::Host),
            ("a..example.org", HostPortError::Host),
            ("*", HostPortError::Host),
            ("me@a.example.org", HostPortError::UserInfo),
            ("me:pw@a.example.org:80", HostPortError::UserInfo),
            ("@a.example.org", HostPortError::UserInfo),
            ("a@b@c", HostPortError::UserInfo),
        ] {
            assert_eq!(HostPort::parse(text), Err(want), "{text:?}");
        }
    }

    #[test]
    fn urls_say_what_a_request_says() {
        for (text, target, port, path) in [
            ("a.example.org", "a.example.org", 443, None),
            ("A.example.org.:8443", "a.example.org", 8443, None),
            ("HTTP://a.example.org/x#y", "a.example.org", 80, Some("/x")),
            ("https://a.example.org?x", "a.example.org", 443, Some("/?x")),
            ("2130706433:80", "127.0.0.1", 80, None),
            ("[::1]:9", "[::1]", 9, None),
            ("::1", "[::1]", 443, None),
        ] {
            let url = HttpUrl::parse(text).unwrap();
            let found = (url.target.to_string(), url.port, url.path);
            let want = (target.to_owned(), port, path.map(str::to_owned));
            assert_eq!(found, want, "{text}");
        }
        for text in [
            "",
            "ftp://a.example.org",
            "a.example.org:x",
            "a.example.org:080",
            "http://me@a.example.org/",
            "http://bücher.example/",
            "http://a.example.org/ä",
            "http://a.example.org/a b",
            "http://a.example.org?\t",
        ] {
            assert!(HttpUrl::parse(text).is_err(), "{text}");
        }
    }
}
