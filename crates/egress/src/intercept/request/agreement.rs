//! Every name in a request must be the one its connection was admitted for.
//!
//! The connection's name was asked for by SNI and is what the server's
//! certificate is verified against, so a request that agrees with it goes
//! where its credential belongs, whatever its headers say.

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Version};
use ringfence_policy::{HostPort, Scheme, Target};
use thiserror::Error;

use crate::attempt::Attempt;

/// How a request does not agree with its connection.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Disagreement {
    #[error("the request names no host")]
    NoHost,
    #[error("the request names more than one host")]
    TwoHosts,
    #[error("the host of the request cannot be read")]
    Unreadable,
    #[error("the request is for another scheme than its connection")]
    Scheme,
    #[error("the request names another host than its connection")]
    Other(HostPort),
}

impl Disagreement {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoHost => StatusCode::BAD_REQUEST,
            _ => StatusCode::MISDIRECTED_REQUEST,
        }
    }

    /// The attempt as the client seems to mean it.
    pub(super) fn meant(&self, attempt: &Attempt) -> Attempt {
        let mut meant = attempt.clone();
        if let Self::Other(HostPort { target, port }) = self {
            meant.target = target.clone();
            meant.port = port.unwrap_or(attempt.port);
        }
        meant
    }
}

/// The host of a request that agrees with its connection, as it is to be
/// written to the server.
pub(super) fn agreed_host(
    parts: &Parts,
    attempt: &Attempt,
    scheme: Scheme,
) -> Result<String, Disagreement> {
    check_scheme(parts, scheme)?;
    let url = parts.uri.authority().map(http::uri::Authority::as_str);
    let header = host_header(parts)?;
    if header.is_none() && parts.version == Version::HTTP_11 {
        return Err(Disagreement::NoHost);
    }
    let mut written_port = None;
    for text in [header, url].into_iter().flatten() {
        let authority = HostPort::parse(text).map_err(|_| Disagreement::Unreadable)?;
        if !authority.means(&attempt.target, attempt.port) {
            return Err(Disagreement::Other(authority));
        }
        written_port = authority.port;
    }
    let is_named = header.or(url).is_some() || parts.version == Version::HTTP_10;
    if !is_named {
        return Err(Disagreement::NoHost);
    }
    Ok(host_text(&attempt.target, written_port))
}

fn check_scheme(parts: &Parts, scheme: Scheme) -> Result<(), Disagreement> {
    match parts.uri.scheme_str() {
        Some(own) if own != scheme.as_str() => Err(Disagreement::Scheme),
        _ => Ok(()),
    }
}

/// The only `Host` header.
fn host_header(parts: &Parts) -> Result<Option<&str>, Disagreement> {
    let mut all = parts.headers.get_all(HOST).iter();
    let first = all.next();
    if all.next().is_some() {
        return Err(Disagreement::TwoHosts);
    }
    let text = first.map(|value| value.to_str());
    text.transpose().map_err(|_| Disagreement::Unreadable)
}

fn host_text(target: &Target, port: Option<u16>) -> String {
    match port {
        Some(port) => format!("{target}:{port}"),
        None => target.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use ringfence_audit::{ConnectionId, Protocol, Via};

    use super::*;

    fn attempt(port: u16) -> Attempt {
        Attempt {
            connection: ConnectionId(1),
            via: Via::Transparent,
            process: None,
            target: Target::parse("a.test").unwrap(),
            port,
            spoken: Protocol::Tls,
            http: None,
        }
    }

    fn agreed(
        version: Version,
        uri: &str,
        hosts: &[&str],
        port: u16,
    ) -> Result<String, Disagreement> {
        let mut request = Request::builder().version(version).uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        agreed_host(&parts, &attempt(port), Scheme::Https)
    }

    #[test]
    fn the_connections_own_name_is_agreed_in_every_spelling() {
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        for (version, uri, hosts, port, want) in [
            (one, "/x", &["a.test"][..], 443, "a.test"),
            (one, "/x", &["A.Test."], 443, "a.test"),
            (one, "/x", &["a.test:8443"], 8443, "a.test:8443"),
            (one, "https://a.test/x", &["a.test"], 443, "a.test"),
            (Version::HTTP_10, "/x", &[], 443, "a.test"),
            (two, "https://a.test/x", &[], 443, "a.test"),
            (two, "https://a.test:443/x", &["a.test"], 443, "a.test:443"),
            (two, "/x", &["a.test"], 443, "a.test"),
        ] {
            let found = agreed(version, uri, hosts, port);
            assert_eq!(found.unwrap(), want, "{version:?} {uri} {hosts:?}");
        }
    }

    #[test]
    fn g5_any_other_name_is_a_disagreement() {
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        for (version, uri, hosts) in [
            (one, "/x", &[][..]),
            (one, "https://a.test/x", &[]),
            (one, "/x", &["b.test"]),
            (one, "/x", &["a.test", "a.test"]),
            (one, "/x", &["a.test", "b.test"]),
            (one, "/x", &["a.test:444"]),
            (one, "/x", &["me@a.test"]),
            (one, "/x", &["a.test,b.test"]),
            (one, "/x", &["a.test/"]),
            (one, "/x", &[""]),
            (one, "https://b.test/x", &["a.test"]),
            (one, "https://me@a.test/x", &["a.test"]),
            (one, "http://a.test/x", &["a.test"]),
            (two, "https://b.test/x", &[]),
            (two, "https://a.test/x", &["b.test"]),
            (two, "https://b.test/x", &["a.test"]),
            (two, "https://me@a.test/x", &[]),
            (two, "https://a.test:444/x", &[]),
            (two, "http://a.test/x", &[]),
            (two, "/x", &[]),
        ] {
            let found = agreed(version, uri, hosts, 443);
            assert!(found.is_err(), "{version:?} {uri} {hosts:?} {found:?}");
        }
    }
}
