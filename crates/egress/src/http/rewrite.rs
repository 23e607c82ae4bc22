//! The head of a proxy request as the next server is to see it.
//!
//! What concerns only the client's connection to us stays here (RFC 9110,
//! 7.6.1); everything else is copied as it is.

use httparse::Header;

use super::fields::{Persistence, is_one_of};
use super::head::{Request, Upgrade, Version};

/// Headers between a client and its proxy.
const OWN: [&str; 9] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "te",
    "proxy-authorization",
    "upgrade",
    "http2-settings",
    "host",
    // A proxy behind us that is to answer itself (RFC 9110, 7.6.2) would show
    // what we added for it.
    "max-forwards",
];

/// What an offer to speak HTTP/2 consists of.
const OFFER: [&str; 3] = ["connection", "upgrade", "http2-settings"];

/// Writes the head in origin form, for `authority`, into `to`.
pub(crate) fn to_origin(request: &Request<'_, '_>, authority: &str, to: &mut Vec<u8>) {
    let path = request.path();
    to.clear();
    for part in [request.method, " ", path.slash, path.path] {
        to.extend_from_slice(part.as_bytes());
    }
    to.extend_from_slice(match request.version {
        Version::Http10 => b" HTTP/1.0\r\nHost: ",
        Version::Http11 => b" HTTP/1.1\r\nHost: ",
    });
    to.extend_from_slice(authority.as_bytes());
    to.extend_from_slice(b"\r\n");
    for header in request.headers {
        if passes(header, request) {
            add(to, header.name, header.value);
        }
    }
    if let Some(option) = connection_option(request) {
        add(to, "Connection", option);
    }
    to.extend_from_slice(b"\r\n");
}

/// Writes the head as it came, without the offer to speak HTTP/2, into `to`.
pub(crate) fn without_offer(request: &Request<'_, '_>, head: &[u8], to: &mut Vec<u8>) {
    let line = head
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    to.clear();
    to.extend_from_slice(&head[..line]);
    for header in request.headers {
        if !is_one_of(header.name.as_bytes(), &OFFER) {
            add(to, header.name, header.value);
        }
    }
    if let Some(option) = connection_option(request) {
        add(to, "Connection", option);
    }
    to.extend_from_slice(b"\r\n");
}

/// Turns a head that [`to_origin`] wrote into one for a further proxy.
pub(crate) fn to_absolute(head: &mut Vec<u8>, authority: &str, authorization: Option<&str>) {
    let Some(space) = head.iter().position(|byte| *byte == b' ') else {
        return;
    };
    let asterisk = head.get(space + 1) == Some(&b'*');
    let line_end = head.iter().position(|byte| *byte == b'\n').unwrap_or(space);
    let rest = head.split_off(line_end + 1);
    let after = head.split_off(space + 1);
    head.extend_from_slice(b"http://");
    head.extend_from_slice(authority.as_bytes());
    // The server itself is meant by a URL without a path.
    head.extend_from_slice(&after[usize::from(asterisk)..]);
    if let Some(value) = authorization {
        add(head, "Proxy-Authorization", value.as_bytes());
    }
    head.extend_from_slice(&rest);
}

fn add(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        to.extend_from_slice(part);
    }
}

fn passes(header: &Header<'_>, request: &Request<'_, '_>) -> bool {
    let name = header.name;
    if is_one_of(name.as_bytes(), &["upgrade"]) {
        return request.upgrade.is_offered();
    }
    !is_one_of(name.as_bytes(), &OWN) && !request.ends_here(name)
}

fn connection_option(request: &Request<'_, '_>) -> Option<&'static [u8]> {
    match (request.upgrade, request.persistence(), request.version) {
        (Upgrade::WebSocket | Upgrade::Other, ..) => Some(b"Upgrade"),
        (_, Persistence::Close, Version::Http11) => Some(b"close"),
        (_, Persistence::Keep, Version::Http10) => Some(b"keep-alive"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::{header_room, parse};

    fn rewritten(lines: &str) -> String {
        let head = format!("{lines}\r\n\r\n");
        let mut to = b"left over".to_vec();
        to_origin(
            &parse(head.as_bytes(), &mut header_room()).unwrap(),
            "A.test",
            &mut to,
        );
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn what_concerns_the_proxy_alone_stays_here() {
        assert_eq!(
            rewritten(
                "POST http://A.test/x?y HTTP/1.1\r\nAccept: a/b\r\nHost: a.test:80\r\n\
                 Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nTE: trailers\r\n\
                 Keep-Alive: 5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nx-hop: 2\r\nX-Hops: 3\r\n\
                 Transfer-Encoding: chunked\r\nUpgrade: websocket"
            ),
            "POST /x?y HTTP/1.1\r\nHost: A.test\r\nAccept: a/b\r\nX-Hops: 3\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        );
    }

    #[test]
    fn the_connection_lasts_as_long_as_the_client_says() {
        for (lines, want) in [
            (
                "GET http://a.test HTTP/1.1\r\nHost: a.test",
                "GET / HTTP/1.1\r\nHost: A.test\r\n\r\n",
            ),
            (
                "GET http://a.test?q HTTP/1.1\r\nHost: a.test\r\nConnection: close",
                "GET /?q HTTP/1.1\r\nHost: A.test\r\nConnection: close\r\n\r\n",
            ),
            (
                "GET http://a.test/ HTTP/1.0",
                "GET / HTTP/1.0\r\nHost: A.test\r\n\r\n",
            ),
            (
                "GET http://a.test/ HTTP/1.0\r\nConnection: Keep-Alive",
                "GET / HTTP/1.0\r\nHost: A.test\r\nConnection: keep-alive\r\n\r\n",
            ),
            (
                "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade",
                "GET / HTTP/1.1\r\nHost: A.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
            ),
            (
                "OPTIONS http://a.test HTTP/1.1\r\nHost: a.test",
                "OPTIONS * HTTP/1.1\r\nHost: A.test\r\n\r\n",
            ),
        ] {
            assert_eq!(rewritten(lines), want, "{lines}");
        }
    }

    #[test]
    fn an_offer_to_speak_http2_is_not_passed_on() {
        let head = "GET /x HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                    Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\nAccept:  */*\r\n\r\n";
        let mut to = Vec::new();
        let mut room = header_room();
        let request = parse(head.as_bytes(), &mut room).unwrap();
        assert_eq!(request.upgrade, Upgrade::Dropped);
        without_offer(&request, head.as_bytes(), &mut to);
        let want = "GET /x HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\n\r\n";
        assert_eq!(String::from_utf8(to).unwrap(), want);
        let forwarded = rewritten(
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nUpgrade: h2c\r\n\
             Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQ",
        );
        assert_eq!(forwarded, "GET / HTTP/1.1\r\nHost: A.test\r\n\r\n");
    }

    #[test]
    fn a_further_proxy_sees_the_whole_address() {
        for (line, want) in [
            ("GET http://a.test/x?y", "GET http://a.test:80/x?y"),
            ("OPTIONS http://a.test", "OPTIONS http://a.test:80"),
        ] {
            let mut head =
                rewritten(&format!("{line} HTTP/1.1\r\nHost: a.test\r\nA: b")).into_bytes();
            to_absolute(&mut head, "a.test:80", Some("Basic eDp5"));
            assert_eq!(
                String::from_utf8(head).unwrap(),
                format!(
                    "{want} HTTP/1.1\r\nProxy-Authorization: Basic eDp5\r\nHost: A.test\r\nA: b\r\n\r\n"
                )
            );
        }
    }
}
