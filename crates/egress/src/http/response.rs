//! The head of a response: where the message ends and what it makes of the
//! connection.
//!
//! Less strict than requests are read: a server that was admitted may be sloppy,
//! as long as it is plain where its message ends.

use httparse::Header;
use thiserror::Error;

use super::body::Framing;
use super::fields::{ConnectionOptions, Persistence, content_length, tokens};
use super::head::{HeaderRoom, Version};

/// A response's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) kind: Kind,
    pub(crate) framing: Framing,
    version: Version,
    options: ConnectionOptions,
}

/// What comes after the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Another response to the same request (1xx).
    Interim,
    /// Another protocol (101).
    Switching,
    /// The body, and then the next exchange.
    Final,
}

/// What the request was, as far as it decides about the response's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// HEAD: the response has no body whatever it says.
    Head,
    Other,
}

impl Asked {
    pub(crate) fn by(method: &str) -> Self {
        match method {
            "HEAD" => Self::Head,
            _ => Self::Other,
        }
    }
}

/// Why a response is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BadResponse {
    #[error("the response is malformed")]
    Malformed,
    #[error("the head of the response is too long")]
    LongHead,
    #[error("the length of the response is malformed, or given in two ways")]
    Length,
    #[error("the server changed the protocol without being asked")]
    Switch,
}

/// Reads a whole head, its empty line included.
pub(crate) fn parse<'b>(
    head: &'b [u8],
    room: &mut HeaderRoom<'b>,
    asked: Asked,
) -> Result<Response, BadResponse> {
    let mut raw = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let status = config
        .parse_response_with_uninit_headers(&mut raw, head, room)
        .map_err(|_| BadResponse::Malformed)?;
    let (Some(code), Some(version)) = (raw.code, raw.version) else {
        return Err(BadResponse::Malformed);
    };
    if status != httparse::Status::Complete(head.len()) {
        return Err(BadResponse::Malformed);
    }
    let fields = Fields::read(raw.headers)?;
    let version = match version {
        0 => Version::Http10,
        _ => Version::Http11,
    };
    Ok(Response {
        kind: kind(code)?,
        framing: fields.framing(code, version, asked)?,
        version,
        options: fields.options,
    })
}

fn kind(code: u16) -> Result<Kind, BadResponse> {
    match code {
        101 => Ok(Kind::Switching),
        100..200 => Ok(Kind::Interim),
        200..1000 => Ok(Kind::Final),
        _ => Err(BadResponse::Malformed),
    }
}

/// The headers that matter here.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    coding: Coding,
    options: ConnectionOptions,
}

/// What the last transfer coding is.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Coding {
    #[default]
    None,
    Chunked,
    Other,
}

impl Fields {
    fn read(headers: &[Header<'_>]) -> Result<Self, BadResponse> {
        let mut fields = Self::default();
        for header in headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            match header.name.len() {
                10 if is("connection") => {
                    tokens(header.value).for_each(|token| fields.options.read(token));
                }
                14 if is("content-length") => fields.read_length(header.value)?,
                17 if is("transfer-encoding") => fields.read_coding(header.value),
                _ => {}
            }
        }
        Ok(fields)
    }

    /// The same length twice is sloppy, two lengths are malformed.
    fn read_length(&mut self, value: &[u8]) -> Result<(), BadResponse> {
        let length = content_length(value).ok_or(BadResponse::Length)?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(BadResponse::Length),
            _ => Ok(()),
        }
    }

    fn read_coding(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.coding = match self.coding {
                // Chunks in chunks have no end that all readers agree about.
                Coding::Chunked => Coding::Other,
                _ if token.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
                _ => Coding::Other,
            };
        }
    }

    fn framing(&self, code: u16, version: Version, asked: Asked) -> Result<Framing, BadResponse> {
        let both = self.coding != Coding::None && self.length.is_some();
        if both || (self.coding == Coding::Chunked && version == Version::Http10) {
            return Err(BadResponse::Length);
        }
        if asked == Asked::Head || matches!(code, 100..200 | 204 | 304) {
            return Ok(Framing::Empty);
        }
        Ok(match (self.coding, self.length) {
            (Coding::Chunked, _) => Framing::Chunked,
            (Coding::None, Some(0)) => Framing::Empty,
            (Coding::None, Some(length)) => Framing::Length(length),
            (Coding::Other, _) | (Coding::None, None) => Framing::UntilClose,
        })
    }
}

impl Response {
    /// Whether the server keeps its connection.
    pub(crate) fn persistence(&self) -> Persistence {
        match self.framing {
            Framing::UntilClose => Persistence::Close,
            _ => self.options.persistence(self.version),
        }
    }

    /// Whether a client that spoke `version` keeps its connection, too: an old
    /// one waits for the word.
    pub(crate) fn persistence_for(&self, version: Version) -> Persistence {
        match (self.persistence(), version) {
            (Persistence::Keep, Version::Http10) => self.options.persistence(Version::Http10),
            (persistence, _) => persistence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::header_room;

    fn read(head: &str, asked: Asked) -> Result<Response, BadResponse> {
        parse(head.as_bytes(), &mut header_room(), asked)
    }

    fn framing(lines: &str) -> Result<Framing, BadResponse> {
        let head = format!("HTTP/1.1 {lines}\r\n\r\n");
        read(&head, Asked::Other).map(|response| response.framing)
    }

    #[test]
    fn ends_of_responses() {
        for (lines, want) in [
            ("200 OK", Framing::UntilClose),
            ("200", Framing::UntilClose),
            ("200 OK\r\nContent-Length: 0", Framing::Empty),
            ("200 OK\r\nContent-Length: 7", Framing::Length(7)),
            (
                "200 OK\r\nContent-Length: 7\r\nContent-Length: 7",
                Framing::Length(7),
            ),
            ("200 OK\r\nTransfer-Encoding: Chunked", Framing::Chunked),
            (
                "200 OK\r\nTransfer-Encoding: gzip, chunked",
                Framing::Chunked,
            ),
            (
                "200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
                Framing::Chunked,
            ),
            ("200 OK\r\nTransfer-Encoding: gzip", Framing::UntilClose),
            (
                "200 OK\r\nTransfer-Encoding: chunked, gzip",
                Framing::UntilClose,
            ),
            (
                "200 OK\r\nTransfer-Encoding: chunked, chunked",
                Framing::UntilClose,
            ),
            ("204 No Content\r\nContent-Length: 7", Framing::Empty),
            ("304 Not Modified\r\nContent-Length: 7", Framing::Empty),
            ("100 Continue", Framing::Empty),
            ("418 \u{e9}", Framing::UntilClose),
        ] {
            assert_eq!(framing(lines), Ok(want), "{lines}");
        }
        let head = read("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", Asked::Head).unwrap();
        assert_eq!(head.framing, Framing::Empty);
        assert_eq!(
            read("HTTP/1.1 200 OK\nA: b\n\n", Asked::Other)
                .unwrap()
                .kind,
            Kind::Final
        );
    }

    #[test]
    fn responses_without_a_plain_end_are_refused() {
        for (lines, want) in [
            (
                "200 OK\r\nContent-Length: 7\r\nContent-Length: 8",
                BadResponse::Length,
            ),
            ("200 OK\r\nContent-Length: 7, 7", BadResponse::Length),
            ("200 OK\r\nContent-Length: x", BadResponse::Length),
            (
                "200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked",
                BadResponse::Length,
            ),
            (
                "204 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked",
                BadResponse::Length,
            ),
            ("099 Odd", BadResponse::Malformed),
            ("20 OK", BadResponse::Malformed),
            ("200 OK\r\nA : b", BadResponse::Malformed),
            ("200 OK\r\nA: b\r\n folded", BadResponse::Malformed),
        ] {
            assert_eq!(framing(lines), Err(want), "{lines}");
        }
        for head in [
            "",
            "HTTP/2.0 200 OK\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
        ] {
            assert_eq!(
                read(head, Asked::Other),
                Err(BadResponse::Malformed),
                "{head}"
            );
        }
        let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(old, Asked::Other), Err(BadResponse::Length));
    }

    #[test]
    fn kinds() {
        let kind = |code: &str| {
            read(&format!("HTTP/1.1 {code} X\r\n\r\n"), Asked::Other)
                .unwrap()
                .kind
        };
        assert_eq!(kind("100"), Kind::Interim);
        assert_eq!(kind("103"), Kind::Interim);
        assert_eq!(kind("101"), Kind::Switching);
        assert_eq!(kind("200"), Kind::Final);
        assert_eq!(kind("999"), Kind::Final);
    }

    #[test]
    fn connections_end_where_either_side_says() {
        for (head, for_new, for_old) in [
            (
                "1.1 200 X\r\nContent-Length: 0",
                Persistence::Keep,
                Persistence::Close,
            ),
            (
                "1.1 200 X\r\nContent-Length: 0\r\nConnection: keep-alive",
                Persistence::Keep,
                Persistence::Keep,
            ),
            (
                "1.1 200 X\r\nContent-Length: 0\r\nConnection: close",
                Persistence::Close,
                Persistence::Close,
            ),
            ("1.1 200 X", Persistence::Close, Persistence::Close),
            (
                "1.0 200 X\r\nContent-Length: 0",
                Persistence::Close,
                Persistence::Close,
            ),
            (
                "1.0 200 X\r\nContent-Length: 0\r\nConnection: keep-alive",
                Persistence::Keep,
                Persistence::Keep,
            ),
        ] {
            let response = read(&format!("HTTP/{head}\r\n\r\n"), Asked::Other).unwrap();
            assert_eq!(response.persistence_for(Version::Http11), for_new, "{head}");
            assert_eq!(response.persistence_for(Version::Http10), for_old, "{head}");
        }
    }
}
