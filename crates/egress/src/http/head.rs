//! The head of a request, read so strictly that no server can read another one.
//!
//! `httparse` splits it; the checks here refuse everything about which two
//! readers are known to disagree: where the message ends, which host is meant,
//! and whether the connection turns into something else.

use std::mem::MaybeUninit;

use httparse::Header;
use ringfence_policy::is_misspelt;
use thiserror::Error;

use super::body::Framing;
use super::fields::{ConnectionOptions, Persistence, content_length, is_one_of, tokens};

/// The longest head, its empty line included.
pub(crate) const LONGEST_HEAD: usize = 64 * 1024;
/// The longest request line.
pub(crate) const LONGEST_LINE: usize = 16 * 1024;
const MOST_HEADERS: usize = 100;

/// Headers without which a message would mean something else; `Connection` must
/// not have a proxy on the way remove them.
const NEVER_LISTED: [&str; 7] = [
    "content-length",
    "transfer-encoding",
    "host",
    "expect",
    "trailer",
    "content-encoding",
    "content-type",
];
/// Headers that some servers obey instead of the request line.
pub(crate) const OVERRIDES: [&str; 6] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-original-uri",
];

/// Room for the headers of a head while it is looked at.
pub(crate) type HeaderRoom<'b> = [MaybeUninit<Header<'b>>; MOST_HEADERS];

/// Room for the headers of one head.
pub(crate) fn header_room<'b>() -> HeaderRoom<'b> {
    [const { MaybeUninit::uninit() }; MOST_HEADERS]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// What the request line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form<'b> {
    /// `/path?query`.
    Origin(&'b str),
    /// `http://authority/path?query`; the path may be empty.
    Absolute { authority: &'b str, path: &'b str },
    /// `host:port`, of CONNECT.
    Authority(&'b str),
    /// `*`, of OPTIONS.
    Asterisk,
}

/// What a request wants the connection to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upgrade {
    No,
    /// HTTP/2, over which a client would go on unseen. The offer is not passed
    /// on, as if the server did not know it.
    Dropped,
    WebSocket,
    Other,
}

impl Upgrade {
    /// Whether the server may take it up.
    pub(crate) fn is_offered(self) -> bool {
        matches!(self, Self::WebSocket | Self::Other)
    }
}

/// A request's head.
#[derive(Debug)]
pub(crate) struct Request<'b, 'h> {
    pub(crate) method: &'b str,
    pub(crate) form: Form<'b>,
    pub(crate) version: Version,
    pub(crate) headers: &'h [Header<'b>],
    /// The value of `Host`. Missing in HTTP/1.0 and CONNECT only.
    pub(crate) host: Option<&'b str>,
    pub(crate) framing: Framing,
    pub(crate) upgrade: Upgrade,
    pub(crate) proxy_authorization: Option<&'b [u8]>,
    /// Has a header that some servers obey instead of method or path.
    pub(crate) overrides: bool,
    /// The client waits to be told that its body is wanted.
    pub(crate) expects: bool,
    options: ConnectionOptions,
}

/// Why a request is not read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BadRequest {
    #[error("the request is malformed")]
    Malformed,
    #[error("a line of the request does not end in CRLF")]
    LineEnd,
    #[error("the request line is too long")]
    LongLine,
    #[error("the head of the request is too long")]
    LongHead,
    #[error("the request has too many headers")]
    ManyHeaders,
    #[error("only HTTP/1.0 and HTTP/1.1 are served here")]
    Version,
    #[error("the request does not name what it wants in a valid form")]
    Target,
    #[error("only http:// may be asked for like this; use CONNECT for anything else")]
    Scheme,
    #[error("this is a proxy; it serves nothing by itself")]
    NotForProxy,
    #[error("the host of the request is malformed")]
    Authority,
    #[error("the request has user or password in front of the host")]
    UserInfo,
    #[error("the request has no port")]
    NoPort,
    #[error("the request has no Host header, or several")]
    Host,
    #[error("the request names two different hosts")]
    TwoHosts,
    #[error("the length of the body is malformed, or given twice")]
    Length,
    #[error("the coding of the body is not 'chunked' alone")]
    Coding,
    #[error("the request has a body where none may be")]
    Body,
    #[error("the Connection header names a header that must stay")]
    Connection,
    #[error("a change to this protocol is not allowed")]
    Upgrade,
    #[error("the expectation is unknown")]
    Expectation,
}

impl BadRequest {
    /// The status to answer with.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::LongLine => 414,
            Self::Expectation => 417,
            Self::LongHead | Self::ManyHeaders => 431,
            Self::Coding | Self::Upgrade => 501,
            Self::Version => 505,
            _ => 400,
        }
    }

    /// Stable code for the record.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Authority | Self::UserInfo => "malformed-host",
            Self::Host | Self::TwoHosts => "host-mismatch",
            Self::Upgrade => "upgrade-not-allowed",
            Self::Version => "http-version",
            _ => "malformed-request",
        }
    }
}

impl From<httparse::Error> for BadRequest {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::TooManyHeaders => Self::ManyHeaders,
            httparse::Error::Version => Self::Version,
            _ => Self::Malformed,
        }
    }
}

/// Reads a whole head, its empty line included.
pub(crate) fn parse<'b, 'h>(
    head: &'b [u8],
    room: &'h mut HeaderRoom<'b>,
) -> Result<Request<'b, 'h>, BadRequest> {
    // httparse would skip empty lines.
    if head.first().is_none_or(u8::is_ascii_whitespace) {
        return Err(BadRequest::Malformed);
    }
    let mut raw = httparse::Request::new(&mut []);
    let status = raw.parse_with_uninit_headers(head, room)?;
    let (Some(method), Some(target), Some(version)) = (raw.method, raw.path, raw.version) else {
        return Err(BadRequest::Malformed);
    };
    if status != httparse::Status::Complete(head.len()) {
        return Err(BadRequest::Malformed);
    }
    let version = match version {
        0 => Version::Http10,
        _ => Version::Http11,
    };
    let mut request = Request {
        method,
        form: form(method, target)?,
        version,
        headers: raw.headers,
        host: None,
        framing: Framing::Empty,
        upgrade: Upgrade::No,
        proxy_authorization: None,
        overrides: false,
        expects: false,
        options: ConnectionOptions::default(),
    };
    request.read_headers()?;
    request.check()?;
    Ok(request)
}

/// Whether a whole first line, of a head that may not be whole yet, is one that
/// [`parse`] will take.
pub(crate) fn check_line(line: &[u8]) -> Result<(), BadRequest> {
    let mut raw = httparse::Request::new(&mut []);
    raw.parse(line)?;
    match (raw.method, raw.path, raw.version) {
        (Some(method), Some(target), Some(_)) => form(method, target).map(drop),
        _ => Err(BadRequest::Malformed),
    }
}

fn form<'b>(method: &str, target: &'b str) -> Result<Form<'b>, BadRequest> {
    if is_misspelt(method) {
        return Err(BadRequest::Malformed);
    }
    if method == "CONNECT" {
        return Ok(Form::Authority(target));
    }
    if target.contains('#') {
        return Err(BadRequest::Target);
    }
    if target.starts_with('/') {
        return Ok(Form::Origin(target));
    }
    if target == "*" && method == "OPTIONS" {
        return Ok(Form::Asterisk);
    }
    absolute(target)
}

fn absolute(target: &str) -> Result<Form<'_>, BadRequest> {
    let (scheme, rest) = target.split_once("://").ok_or(BadRequest::Target)?;
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(BadRequest::Scheme);
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Ok(Form::Absolute { authority, path })
}

impl<'b> Request<'b, '_> {
    fn read_headers(&mut self) -> Result<(), BadRequest> {
        let mut length = None;
        let mut coding = None;
        let mut upgrades = None;
        let mut settings = None;
        for header in self.headers {
            // Most headers have another length than the ones that matter.
            match header.name.len() {
                4 if is(header, "host") => once(&mut self.host, text(header)?, BadRequest::Host)?,
                6 if is(header, "expect") => {
                    read_expectation(header)?;
                    self.expects = true;
                }
                7 if is(header, "upgrade") => {
                    once(&mut upgrades, header.value, BadRequest::Upgrade)?;
                }
                10 if is(header, "connection") => self.read_connection(header.value)?,
                14 if is(header, "content-length") => {
                    once(&mut length, header.value, BadRequest::Length)?;
                }
                14 if is(header, "http2-settings") => {
                    once(&mut settings, header.value, BadRequest::Upgrade)?;
                }
                17 if is(header, "transfer-encoding") => {
                    once(&mut coding, header.value, BadRequest::Coding)?;
                }
                19 if is(header, "proxy-authorization") => {
                    self.proxy_authorization = Some(header.value);
                }
                13 | 14 | 17 | 22 => self.read_rare(header)?,
                _ => {}
            }
        }
        self.read_framing(length, coding)?;
        if settings.is_some() || upgrades.is_some_and(|value| value.eq_ignore_ascii_case(b"h2c")) {
            self.upgrade = Upgrade::Dropped;
        }
        match upgrades {
            Some(value) if !value.eq_ignore_ascii_case(b"h2c") => self.read_upgrade(value),
            _ => Ok(()),
        }
    }

    fn read_rare(&mut self, header: &Header<'_>) -> Result<(), BadRequest> {
        // Some servers take `_` for `-`.
        let alike = |name: &str| {
            let pairs = header.name.bytes().zip(name.bytes());
            header.name.len() == name.len()
                && pairs
                    .into_iter()
                    .all(|(own, other)| own.eq_ignore_ascii_case(&other) || own == b'_')
        };
        if alike("content-length") || alike("transfer-encoding") {
            return Err(BadRequest::Length);
        }
        self.overrides |= OVERRIDES.into_iter().any(alike);
        Ok(())
    }

    fn read_connection(&mut self, value: &[u8]) -> Result<(), BadRequest> {
        for token in tokens(value) {
            if is_one_of(token, &NEVER_LISTED) {
                return Err(BadRequest::Connection);
            }
            self.options.read(token);
        }
        Ok(())
    }

    fn read_framing(
        &mut self,
        length: Option<&[u8]>,
        coding: Option<&[u8]>,
    ) -> Result<(), BadRequest> {
        self.framing = match (length, coding) {
            (None, None) => Framing::Empty,
            (Some(value), None) => match content_length(value).ok_or(BadRequest::Length)? {
                0 => Framing::Empty,
                length => Framing::Length(length),
            },
            // Any other spelling is a coding that some server does not know and
            // then takes the body for the next request.
            (None, Some(b"chunked")) if self.version == Version::Http11 => Framing::Chunked,
            (None, Some(b"chunked")) | (Some(_), Some(_)) => return Err(BadRequest::Length),
            (None, Some(_)) => return Err(BadRequest::Coding),
        };
        Ok(())
    }

    fn read_upgrade(&mut self, value: &[u8]) -> Result<(), BadRequest> {
        if self.upgrade == Upgrade::Dropped {
            return Err(BadRequest::Upgrade);
        }
        for protocol in tokens(value) {
            let name = protocol.split(|byte| *byte == b'/').next();
            let hides = name.is_some_and(|name| is_one_of(name, &["h2", "h2c", "http", "tls"]));
            if hides || protocol.is_empty() {
                return Err(BadRequest::Upgrade);
            }
        }
        if self.options.upgrade {
            let is_web_socket = value.eq_ignore_ascii_case(b"websocket");
            self.upgrade = if is_web_socket {
                Upgrade::WebSocket
            } else {
                Upgrade::Other
            };
        }
        Ok(())
    }

    /// Whether the client wants to keep its connection.
    pub(crate) fn persistence(&self) -> Persistence {
        self.options.persistence(self.version)
    }

    /// Whether `Connection` has the header end at the next hop.
    pub(crate) fn ends_here(&self, name: &str) -> bool {
        let is_connection = |header: &&Header<'_>| is(header, "connection");
        let is_name = |token: &[u8]| token.eq_ignore_ascii_case(name.as_bytes());
        self.options.names_headers
            && self
                .headers
                .iter()
                .filter(is_connection)
                .any(|header| tokens(header.value).any(is_name))
    }

    fn check(&self) -> Result<(), BadRequest> {
        let is_connect = matches!(self.form, Form::Authority(_));
        if self.host.is_none() && self.version == Version::Http11 && !is_connect {
            return Err(BadRequest::Host);
        }
        if self.framing != Framing::Empty && (is_connect || self.method == "TRACE") {
            return Err(BadRequest::Body);
        }
        if self.upgrade != Upgrade::No && (is_connect || self.version == Version::Http10) {
            return Err(BadRequest::Upgrade);
        }
        Ok(())
    }

    /// The path in origin form; `*` for a question about the server itself.
    pub(crate) fn path(&self) -> Path<'b> {
        match self.form {
            Form::Origin(path) => Path { slash: "", path },
            Form::Asterisk | Form::Authority(_) => Path {
                slash: "",
                path: "*",
            },
            Form::Absolute { path: "", .. } if self.method == "OPTIONS" => Path {
                slash: "",
                path: "*",
            },
            Form::Absolute { path, .. } if path.starts_with('/') => Path { slash: "", path },
            Form::Absolute { path, .. } => Path { slash: "/", path },
        }
    }
}

/// A path in two pieces: a URL may leave its first slash out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Path<'b> {
    pub(crate) slash: &'static str,
    pub(crate) path: &'b str,
}

fn read_expectation(header: &Header<'_>) -> Result<(), BadRequest> {
    if header.value.eq_ignore_ascii_case(b"100-continue") {
        Ok(())
    } else {
        Err(BadRequest::Expectation)
    }
}

fn is(header: &Header<'_>, name: &str) -> bool {
    header.name.eq_ignore_ascii_case(name)
}

fn text<'b>(header: &Header<'b>) -> Result<&'b str, BadRequest> {
    std::str::from_utf8(header.value).map_err(|_| BadRequest::Authority)
}

/// Takes the only value; a second one is refused even where it is the same.
fn once<T>(place: &mut Option<T>, value: T, error: BadRequest) -> Result<(), BadRequest> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(error),
    }
}

#[cfg(test)]
mod tests;
