//! Which requests may be followed by others over one connection to a server.
//!
//! A server that leaves a body unread takes it for the next request, which
//! nobody judged. Python's `http.server` does so with every body that its
//! handler does not ask for. So a request whose body could be taken for a
//! request is the last one of its connection, and says so: what comes after
//! `Connection: close` is read by nobody.

use super::body::Framing;
use super::fields::is_one_of;
use crate::speech::{Guess, Speech, heard, heard_in_all, is_blank, is_token};

/// No server knows a longer method.
const LONGEST_METHOD: usize = 32;

/// Headers about the connection, to be replaced by the word that it ends.
const OF_CONNECTION: [&str; 5] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "upgrade",
    "http2-settings",
];

/// Whether another request may follow over the same connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    Shared,
    Alone,
}

/// What is known of a body before any of it is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Beginning<'a> {
    /// As much of it as has come.
    Part(&'a [u8]),
    Whole(&'a [u8]),
}

impl Sharing {
    /// What goes for a request with a body that may be looked at, or for one
    /// without; `None` if it depends on what the body begins with.
    pub(crate) fn by_head(method: &str, framing: Framing, expects: bool) -> Option<Self> {
        match framing {
            Framing::Empty => Some(Self::Shared),
            // The body is not sent before the head, and the head cannot be
            // changed any more.
            _ if expects || !has_body_by_nature(method) => Some(Self::Alone),
            // It begins with the size of a chunk, which is no request.
            Framing::Chunked => Some(Self::Shared),
            Framing::Length(_) => None,
            Framing::UntilClose => Some(Self::Alone),
        }
    }

    /// What goes for a body that begins like this; `None` if more of it has to
    /// be seen.
    pub(crate) fn by_body(beginning: Beginning<'_>) -> Option<Self> {
        let (Beginning::Part(bytes) | Beginning::Whole(bytes)) = beginning;
        if !begins_with_method(bytes) {
            return Some(Self::Shared);
        }
        let speech = match beginning {
            Beginning::Part(_) => heard(bytes),
            Beginning::Whole(_) => heard_in_all(bytes),
        };
        match speech {
            Speech::Unclear(Guess::Nothing | Guess::Text) => None,
            Speech::Http | Speech::Endless => Some(Self::Alone),
            Speech::Raw | Speech::Tls(_) | Speech::BadTls | Speech::Unclear(Guess::Tls) => {
                Some(Self::Shared)
            }
        }
    }
}

/// Methods whose bodies every server reads, as far as one can know.
fn has_body_by_nature(method: &str) -> bool {
    ["POST", "PUT", "PATCH"].contains(&method)
}

/// Whether the first word could be a method, as far as it is there.
fn begins_with_method(body: &[u8]) -> bool {
    let blanks = body.iter().take_while(|byte| is_blank(**byte)).count();
    let word = body[blanks..].split(|byte| is_blank(*byte)).next();
    let word = word.unwrap_or_default();
    word.len() <= LONGEST_METHOD && word.iter().all(|byte| is_token(*byte))
}

/// Makes a head that was checked say that its connection ends after it. Some
/// servers know that word only if it stands alone.
pub(crate) fn say_last(head: &mut Vec<u8>) {
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    let mut last = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if line == b"\r\n" {
            last.extend_from_slice(b"Connection: close\r\n\r\n");
        } else if !is_one_of(name, &OF_CONNECTION) {
            last.extend_from_slice(line);
        }
    }
    *head = last;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_taken_for_a_request_goes_alone() {
        use Sharing::{Alone, Shared};
        for (method, framing, expects, want) in [
            ("GET", Framing::Empty, false, Some(Shared)),
            ("POST", Framing::Empty, true, Some(Shared)),
            ("GET", Framing::Length(1), false, Some(Alone)),
            ("DELETE", Framing::Chunked, false, Some(Alone)),
            ("X-ODD", Framing::Length(1), false, Some(Alone)),
            ("post", Framing::Length(1), false, Some(Alone)),
            ("POST", Framing::Length(1), true, Some(Alone)),
            ("POST", Framing::Chunked, false, Some(Shared)),
            ("PUT", Framing::Length(1), false, None),
        ] {
            let found = Sharing::by_head(method, framing, expects);
            assert_eq!(found, want, "{method} {framing:?} {expects}");
        }
        for (body, part, whole) in [
            ("{\"a\": 1}", Some(Shared), Some(Shared)),
            ("GET /x HTTP/1.1\r\n", Some(Alone), Some(Alone)),
            ("\r\n\r\nGET /x HTTP/1.1\r\n", Some(Alone), Some(Alone)),
            ("GET /x", None, Some(Alone)),
            ("a=b&c=d", Some(Shared), Some(Shared)),
            ("text", None, Some(Shared)),
            (
                "0123456789012345678901234567890123",
                Some(Shared),
                Some(Shared),
            ),
            ("x=y\r\nGET /x HTTP/1.1\r\n", Some(Shared), Some(Shared)),
            ("a=b\r\n", Some(Shared), Some(Shared)),
        ] {
            let bytes = body.as_bytes();
            assert_eq!(Sharing::by_body(Beginning::Part(bytes)), part, "{body}");
            assert_eq!(Sharing::by_body(Beginning::Whole(bytes)), whole, "{body}");
        }
    }

    #[test]
    fn a_last_request_says_so_in_one_word() {
        let mut head = b"GET / HTTP/1.1\r\nHost: a\r\nconnection: keep-alive, TE\r\nX:  odd \r\n\
                         Connection: x\r\nKeep-Alive: 5\r\nUpgrade: websocket\r\n\r\n"
            .to_vec();
        say_last(&mut head);
        let want = "GET / HTTP/1.1\r\nHost: a\r\nX:  odd \r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(head).unwrap(), want);
    }
}
