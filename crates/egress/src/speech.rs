//! What a client speaks, told by its first bytes.
//!
//! A server may be more generous than any parser of ours, so everything that
//! one could take for a request line counts as HTTP, and everything that looks
//! like a TLS record as TLS: the parsers then refuse what is bent.

use crate::tls::{self, Hello, Wanted};

/// No first line is longer than that, which is as long as a head may be.
const LONGEST_LINE: usize = 64 * 1024;
/// What a request line has in it, whatever else it has: the protocols that
/// servers for HTTP are known to serve.
const MARKS: [&[u8]; 3] = [b"http/", b"rtsp/", b"ice/"];

/// What proxies say of whom they speak for, before the request itself; a
/// server that believes it would read on behind it.
const PREFACES: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];

/// What the bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speech {
    /// More bytes are needed.
    Unclear(Guess),
    /// A whole TLS hello.
    Tls(Wanted),
    /// TLS that is malformed.
    BadTls,
    /// A request, or what some server would take for one.
    Http,
    /// Something else.
    Raw,
    /// A line without end.
    Endless,
}

/// What it could become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guess {
    /// Nothing was said.
    Nothing,
    /// The beginning of a TLS record.
    Tls,
    /// The beginning of a line, which may become a request line.
    Text,
}

/// Tells what `bytes`, the first of a client, are. More bytes change nothing
/// but [`Speech::Unclear`].
pub(crate) fn heard(bytes: &[u8]) -> Speech {
    if bytes.is_empty() {
        return Speech::Unclear(Guess::Nothing);
    }
    match tls::read_hello(bytes) {
        Hello::NeedMore => Speech::Unclear(Guess::Tls),
        Hello::Malformed => Speech::BadTls,
        Hello::Complete(wanted) => Speech::Tls(wanted),
        Hello::NotTls => line(bytes),
    }
}

/// The first line that is not empty, as far as it is there.
fn line(bytes: &[u8]) -> Speech {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    let rest = &bytes[blanks..];
    let may_be_preface = PREFACES.iter().any(|preface| preface.starts_with(bytes));
    match rest.first() {
        None => return unclear(bytes),
        Some(_) if may_be_preface => return unclear(bytes),
        Some(byte) if !is_token(*byte) && !is_preface(bytes) => return Speech::Raw,
        Some(_) => {}
    }
    let end = rest.iter().position(|byte| *byte == b'\n');
    let line = &rest[..end.unwrap_or(rest.len())];
    if is_preface(bytes) {
        return Speech::Http;
    }
    match (is_marked(line), end) {
        (true, _) => Speech::Http,
        (false, Some(_)) if has_target(line) => Speech::Http,
        (false, Some(_)) => Speech::Raw,
        (false, None) => unclear(bytes),
    }
}

/// What a client that says nothing more has said. Servers exist that act on a
/// line that was not ended.
pub(crate) fn heard_in_all(bytes: &[u8]) -> Speech {
    match heard(bytes) {
        Speech::Unclear(Guess::Text) => heard(&[bytes, b"\n"].concat()),
        other => other,
    }
}

/// A method, blanks, and what names a resource: a request of HTTP/0.9, or of
/// a version that only some server knows.
fn has_target(line: &[u8]) -> bool {
    let is_method = |byte: &&u8| byte.is_ascii_uppercase() || b"-_".contains(byte);
    let (method, after) = line.split_at(line.iter().take_while(is_method).count());
    let blanks = after.iter().take_while(|byte| is_blank(**byte)).count();
    let word = after[blanks..].split(|byte| is_blank(*byte)).next();
    let word = word.unwrap_or_default();
    let is_url = || {
        let scheme = word.iter().take_while(|byte| byte.is_ascii_alphanumeric());
        let scheme = scheme.count();
        scheme > 0 && word[scheme..].starts_with(b"://")
    };
    let is_target = |word: &[u8]| {
        word.starts_with(b"/") || word.starts_with(b"*") || method == b"CONNECT" || is_url()
    };
    !method.is_empty() && blanks > 0 && is_target(word)
}

fn is_preface(bytes: &[u8]) -> bool {
    PREFACES.iter().any(|preface| bytes.starts_with(preface))
}

fn is_marked(line: &[u8]) -> bool {
    MARKS.iter().any(|mark| {
        line.windows(mark.len())
            .any(|part| part.eq_ignore_ascii_case(mark))
    })
}

/// What some server skips before a request or takes for the end of a word:
/// Python's are those of Latin-1.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

fn unclear(bytes: &[u8]) -> Speech {
    if bytes.len() > LONGEST_LINE {
        Speech::Endless
    } else {
        Speech::Unclear(Guess::Text)
    }
}

/// What a method is made of.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_server_could_take_for_a_request_is_http() {
        for text in [
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/",
            "\r\n\r\n GET / HTTP/1.1\r\n",
            "get / http/1.1\n",
            "X-ODD\t/\tHttP/9",
            "PRI * HTTP/2.0\r\n",
            "GET http://a.test/",
            "GET  /x\0y  HTTP/1.1",
            "CONNECT a.test:443 HTTP/1.1",
            "GET http://b.test/x\n",
            "GET /x\r\nHost: b.test\r\n\r\n",
            "GET  /x\n",
            "POST /x\r\n",
            "SOURCE /a ICE/1.0\r\n",
            "DESCRIBE /a RTSP/1.0\r\n",
            "\u{b}GET / HTTP/1.1\r\n",
            "GET\u{b}/ HTTP/1.1\r\n",
            "GET\r/ HTTP/1.1\r\n",
            "GET\u{1c}/x\n",
            "M-SEARCH /\r\n",
            "OPTIONS *\r\n",
            "CONNECT b.test:443\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            "\r\n\r\n\0\r\nQUIT\n\u{21}",
        ] {
            let want = if text.starts_with("GET http:") && !text.ends_with('\n') {
                Speech::Unclear(Guess::Text)
            } else {
                Speech::Http
            };
            assert_eq!(heard(text.as_bytes()), want, "{text:?}");
        }
        assert_eq!(heard(b"GET\xa0/x\xa0HTTP/1.1\r\n"), Speech::Http);
        assert_eq!(heard_in_all(b"GET http://b.test/x"), Speech::Http);
        assert_eq!(heard_in_all(b"GET key"), Speech::Raw);
    }

    #[test]
    fn other_first_words() {
        for (bytes, want) in [
            (&b""[..], Speech::Unclear(Guess::Nothing)),
            (b"G", Speech::Unclear(Guess::Text)),
            (b"hello", Speech::Unclear(Guess::Text)),
            (b"SSH-2.0-x\r\n", Speech::Raw),
            (b"PING\r\n", Speech::Raw),
            (b"get key\r\n", Speech::Raw),
            (b"get /key\r\n", Speech::Raw),
            (b"*2\r\n$3\r\nGET\r\n$4\r\n/key\r\n", Speech::Raw),
            (b"USER me 0 * :http://me.test/\r\n", Speech::Raw),
            (b"\x16\x01\x00\x00\x07\x00\x00\x00", Speech::Raw),
            (b"\x16\x04\x05\x00\x05\x01", Speech::BadTls),
            (b"\x15\x04\x05\x00\x02\x01\x00", Speech::BadTls),
            (b"{\"a\": 1}", Speech::Raw),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", Speech::Raw),
            (b"\x16", Speech::Unclear(Guess::Tls)),
            (b"\x16\x03\x01", Speech::Unclear(Guess::Tls)),
            (b"\x15\x03\x01\x00\x02\x01\x00", Speech::BadTls),
        ] {
            assert_eq!(heard(bytes), want, "{bytes:?}");
        }
        assert_eq!(heard(&vec![b'a'; LONGEST_LINE + 1]), Speech::Endless);
    }

    proptest! {
        #[test]
        fn more_bytes_change_nothing_that_was_clear(
            bytes in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "[ \r\nGETX]{0,4}[GET]{0,3}[ \t/hHtTpP.1]{0,20}[\r\n]{0,2}".prop_map(String::into_bytes),
            ],
            more in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let first = heard(&bytes);
            let longer = heard(&[&bytes[..], &more].concat());
            prop_assert!(matches!(first, Speech::Unclear(_)) || first == longer);
        }
    }
}
