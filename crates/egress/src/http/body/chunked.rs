//! The chunked coding, read strictly and passed on as it is.
//!
//! Only what the grammar of RFC 9112 has is accepted: sizes in plain
//! hexadecimal, CRLF at every end of line, no control characters in extensions
//! and trailers, and no trailer that would change the message itself.

use thiserror::Error;

/// The longest line with a chunk's size, extensions included.
const LONGEST_SIZE_LINE: u16 = 1024;
/// All trailers together.
const LONGEST_TRAILERS: u16 = 8 * 1024;
/// Fifteen digits never overflow.
const MOST_DIGITS: u8 = 15;
/// Trailers that some servers would read as if they were headers, to other ends
/// than the judged ones: of framing, of hosts, and of who asks.
const FORBIDDEN_TRAILERS: [&str; 11] = [
    "content-length",
    "transfer-encoding",
    "host",
    "connection",
    "upgrade",
    "trailer",
    "expect",
    "max-forwards",
    "cookie",
    "authorization",
    "proxy-authorization",
];
const LONGEST_FORBIDDEN: usize = 19;

/// Why a body is not validly chunked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum BadChunk {
    #[error("the size of a chunk is not a hexadecimal number")]
    Size,
    #[error("the size of a chunk is too large")]
    TooLarge,
    #[error("the line with a chunk's size is malformed")]
    SizeLine,
    #[error("the line with a chunk's size is too long")]
    LongSizeLine,
    #[error("a chunk does not end where its size says")]
    End,
    #[error("a trailer is malformed")]
    Trailer,
    #[error("a trailer is not allowed")]
    ForbiddenTrailer,
    #[error("the trailers are too long")]
    LongTrailers,
}

/// A chunked body that is on its way.
#[derive(Debug, Clone)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes of the current size line, or of all trailers.
    length: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size {
        value: u64,
        digits: u8,
    },
    /// Blanks after the size, which only an extension may follow.
    Blank {
        value: u64,
    },
    Extension {
        value: u64,
    },
    SizeLineFeed {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName(Name),
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
    Done,
}

/// As much of a trailer's name as is needed to know the forbidden ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    text: [u8; LONGEST_FORBIDDEN],
    length: u8,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self {
            state: State::size(),
            length: 0,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// How many of `bytes` belong to the body. `show` is shown the content of
    /// chunks.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut show: impl FnMut(&[u8]),
    ) -> Result<usize, BadChunk> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let State::Data { left } = &mut self.state {
                let here = bytes.len() - at;
                let passed = usize::try_from(*left).map_or(here, |left| left.min(here));
                *left -= passed as u64;
                show(&bytes[at..at + passed]);
                at += passed;
                if *left == 0 {
                    self.state = State::DataReturn;
                }
            } else {
                self.count()?;
                self.state = self.state.after(bytes[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// Holds lines to their limits.
    fn count(&mut self) -> Result<(), BadChunk> {
        let (most, error) = match self.state {
            State::DataReturn | State::DataLineFeed => {
                self.length = 0;
                return Ok(());
            }
            State::Size { .. }
            | State::Blank { .. }
            | State::Extension { .. }
            | State::SizeLineFeed { .. } => (LONGEST_SIZE_LINE, BadChunk::LongSizeLine),
            _ => (LONGEST_TRAILERS, BadChunk::LongTrailers),
        };
        self.length += 1;
        if self.length > most {
            Err(error)
        } else {
            Ok(())
        }
    }
}

impl State {
    fn size() -> Self {
        Self::Size {
            value: 0,
            digits: 0,
        }
    }

    fn after(self, byte: u8) -> Result<Self, BadChunk> {
        match self {
            Self::Size { value, digits } => after_digit(value, digits, byte),
            Self::Blank { value } => match byte {
                b' ' | b'\t' => Ok(self),
                b';' => Ok(Self::Extension { value }),
                _ => Err(BadChunk::SizeLine),
            },
            Self::Extension { value } => match byte {
                b'\r' => Ok(Self::SizeLineFeed { value }),
                // With blanks in it, the line could be taken for a request.
                byte if is_text(byte) && !matches!(byte, b' ' | b'\t') => Ok(self),
                _ => Err(BadChunk::SizeLine),
            },
            Self::SizeLineFeed { value } => match (byte, value) {
                (b'\n', 0) => Ok(Self::TrailerStart),
                (b'\n', left) => Ok(Self::Data { left }),
                _ => Err(BadChunk::SizeLine),
            },
            Self::DataReturn if byte == b'\r' => Ok(Self::DataLineFeed),
            Self::DataLineFeed if byte == b'\n' => Ok(Self::size()),
            Self::LastLineFeed if byte == b'\n' => Ok(Self::Done),
            Self::Data { .. } | Self::DataReturn | Self::DataLineFeed => Err(BadChunk::End),
            _ => self.after_in_trailers(byte),
        }
    }

    fn after_in_trailers(self, byte: u8) -> Result<Self, BadChunk> {
        match (self, byte) {
            (Self::TrailerStart, b'\r') => Ok(Self::LastLineFeed),
            (Self::TrailerStart, _) => Name::new().and(byte),
            (Self::TrailerName(name), b':') => name.end(),
            (Self::TrailerName(name), _) => name.and(byte),
            (Self::TrailerValue, b'\r') => Ok(Self::TrailerLineFeed),
            (Self::TrailerValue, byte) if is_text(byte) => Ok(self),
            (Self::TrailerLineFeed, b'\n') => Ok(Self::TrailerStart),
            _ => Err(BadChunk::Trailer),
        }
    }
}

fn after_digit(value: u64, digits: u8, byte: u8) -> Result<State, BadChunk> {
    let digit = match (byte, digits) {
        (b'0'..=b'9', _) => byte - b'0',
        (b'a'..=b'f', _) => byte - b'a' + 10,
        (b'A'..=b'F', _) => byte - b'A' + 10,
        (b'\r', 1..) => return Ok(State::SizeLineFeed { value }),
        (b';', 1..) => return Ok(State::Extension { value }),
        (b' ' | b'\t', 1..) => return Ok(State::Blank { value }),
        _ => return Err(BadChunk::Size),
    };
    if digits == MOST_DIGITS {
        return Err(BadChunk::TooLarge);
    }
    Ok(State::Size {
        value: value * 16 + u64::from(digit),
        digits: digits + 1,
    })
}

/// Anything but control characters; tabs are blanks.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

impl Name {
    fn new() -> Self {
        Self {
            text: [0; LONGEST_FORBIDDEN],
            length: 0,
        }
    }

    fn and(mut self, byte: u8) -> Result<State, BadChunk> {
        if !byte.is_ascii_alphanumeric() && !b"!#$%&'*+-.^_`|~".contains(&byte) {
            return Err(BadChunk::Trailer);
        }
        // Some servers know no difference between the two.
        let byte = if byte == b'_' { b'-' } else { byte };
        if let Some(place) = self.text.get_mut(usize::from(self.length)) {
            *place = byte.to_ascii_lowercase();
        }
        self.length = self.length.saturating_add(1);
        Ok(State::TrailerName(self))
    }

    fn end(self) -> Result<State, BadChunk> {
        let text = self.text.get(..usize::from(self.length));
        let forbidden = text.is_some_and(|text| {
            FORBIDDEN_TRAILERS
                .iter()
                .any(|name| name.as_bytes() == text)
        });
        if forbidden {
            Err(BadChunk::ForbiddenTrailer)
        } else {
            Ok(State::TrailerValue)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How many bytes belong to the body, and whether it is done.
    fn read(bytes: &[u8]) -> Result<(usize, bool), BadChunk> {
        let mut chunked = Chunked::new();
        let taken = chunked.take(bytes, |_| {})?;
        Ok((taken, chunked.is_done()))
    }

    #[test]
    fn whole_bodies_end_where_they_end() {
        for body in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "A\r\n0123456789\r\n00\r\n\r\n",
            "a;x=\"y-z\";q\r\n0123456789\r\n0;last\r\n\r\n",
            "1 \t;x\r\na\r\n0\r\n\r\n",
            "1\r\n\r\r\n2\r\n\r\n\r\n0\r\n\r\n",
            "0\r\nX-Sum: 1\r\nY:\r\n\r\n",
            "0000000000000a1\r\n",
        ] {
            let done = body.ends_with("\r\n\r\n") && !body.ends_with("a1\r\n");
            let next = if done { "GET / HTTP/1.1\r\n" } else { "" };
            let bytes = format!("{body}{next}");
            assert_eq!(read(bytes.as_bytes()), Ok((body.len(), done)), "{body:?}");
        }
    }

    #[test]
    fn g1_bodies_that_two_readers_could_end_differently_are_refused() {
        for (body, want) in [
            ("\r\n", BadChunk::Size),
            ("\n", BadChunk::Size),
            (" 5\r\n", BadChunk::Size),
            ("5;x /y HTTP/1.1\r\n", BadChunk::SizeLine),
            ("5;\tx\r\n", BadChunk::SizeLine),
            ("+5\r\n", BadChunk::Size),
            ("-1\r\n", BadChunk::Size),
            ("0x5\r\n", BadChunk::Size),
            ("g\r\n", BadChunk::Size),
            (";x\r\n", BadChunk::Size),
            ("5_0\r\n", BadChunk::Size),
            ("5\n", BadChunk::Size),
            ("5\0\r\n", BadChunk::Size),
            ("5, 5\r\n", BadChunk::Size),
            ("5 \r\n", BadChunk::SizeLine),
            ("5 5\r\n", BadChunk::SizeLine),
            ("5\rx", BadChunk::SizeLine),
            ("5\r\r\n", BadChunk::SizeLine),
            ("5;x\n", BadChunk::SizeLine),
            ("5;x\rhello", BadChunk::SizeLine),
            ("5;\0\r\n", BadChunk::SizeLine),
            ("0;\n\r\n", BadChunk::SizeLine),
            ("ffffffffffffffff\r\n", BadChunk::TooLarge),
            ("0000000000000001\r\n", BadChunk::TooLarge),
            ("5\r\nhello0\r\n", BadChunk::End),
            ("5\r\nhello\n0\r\n", BadChunk::End),
            ("5\r\nhello\r0\r\n", BadChunk::End),
            ("5\r\nhelloworld\r\n", BadChunk::End),
            ("0\r\n\n", BadChunk::Trailer),
            ("0\r\n\rx", BadChunk::Trailer),
            ("0\r\nGET / HTTP/1.1\r\n", BadChunk::Trailer),
            ("0\r\nX : 1\r\n", BadChunk::Trailer),
            ("0\r\n X: 1\r\n", BadChunk::Trailer),
            ("0\r\n: 1\r\n", BadChunk::Trailer),
            ("0\r\nX: 1\n", BadChunk::Trailer),
            ("0\r\nX: a\rb\r\n", BadChunk::Trailer),
            ("0\r\nX: a\r\n b\r\n", BadChunk::Trailer),
            ("0\r\nX: a\0\r\n", BadChunk::Trailer),
            ("0\r\nContent-Length: 5\r\n", BadChunk::ForbiddenTrailer),
            ("0\r\nCONTENT_LENGTH: 5\r\n", BadChunk::ForbiddenTrailer),
            (
                "0\r\ntransfer-encoding: chunked\r\n",
                BadChunk::ForbiddenTrailer,
            ),
            ("0\r\nHost: b.test\r\n", BadChunk::ForbiddenTrailer),
        ] {
            assert_eq!(read(body.as_bytes()), Err(want), "{body:?}");
        }
    }

    #[test]
    fn lines_have_limits() {
        let extension = format!("5;{}\r\n", "x".repeat(LONGEST_SIZE_LINE.into()));
        assert_eq!(read(extension.as_bytes()), Err(BadChunk::LongSizeLine));
        let trailers = "X: 1\r\n".repeat(LONGEST_TRAILERS.into());
        let body = format!("0\r\n{trailers}");
        assert_eq!(read(body.as_bytes()), Err(BadChunk::LongTrailers));
        let many = "1;abcdefgh\r\nx\r\n".repeat(10_000);
        assert_eq!(read(many.as_bytes()), Ok((many.len(), false)));
    }

    /// The same by another way: line by line, over the whole input.
    fn reference(mut rest: &[u8]) -> Option<(Vec<u8>, usize)> {
        let whole = rest.len();
        let mut content = Vec::new();
        loop {
            let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
            let line = std::str::from_utf8(&rest[..end]).ok()?;
            let size = usize::from_str_radix(line.split(';').next()?, 16).ok()?;
            rest = &rest[end + 2..];
            if size == 0 {
                break;
            }
            content.extend_from_slice(rest.get(..size)?);
            rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
        }
        while !rest.starts_with(b"\r\n") {
            let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
            rest = &rest[end + 2..];
        }
        Some((content, whole - (rest.len() - 2)))
    }

    fn encoded() -> impl Strategy<Value = Vec<u8>> {
        let chunk = (
            prop::collection::vec(any::<u8>(), 1..40),
            "(;[a-z]{1,4}(=[a-z0-9]{1,4})?){0,2}",
        );
        let trailers = "([A-Z][a-z]{0,5}: ?[a-z ]{0,9}\r\n){0,3}";
        (prop::collection::vec(chunk, 0..6), trailers).prop_map(|(chunks, trailers)| {
            let mut body = Vec::new();
            for (content, extension) in chunks {
                body.extend(format!("{:x}{extension}\r\n", content.len()).bytes());
                body.extend(&content);
                body.extend(b"\r\n");
            }
            body.extend(format!("0\r\n{trailers}\r\n").bytes());
            body
        })
    }

    proptest! {
        #[test]
        fn valid_bodies_end_where_another_reader_says(body in encoded(), next in "[A-Z]{0,9}") {
            let bytes = [&body[..], next.as_bytes()].concat();
            let (_, length) = reference(&bytes).unwrap();
            prop_assert_eq!(read(&bytes), Ok((length, true)));
        }

        #[test]
        fn any_split_gives_the_same(
            body in prop_oneof![
                encoded(),
                prop::collection::vec(prop::sample::select(&b"0123af;\r\n :xX\0"[..]), 0..60),
            ],
            cuts in prop::collection::vec(1usize..20, 1..60),
        ) {
            let whole = read(&body);
            let mut chunked = Chunked::new();
            let mut rest = &body[..];
            let mut taken = 0;
            let mut error = None;
            for cut in cuts.iter().cycle() {
                let (part, after) = rest.split_at((*cut).min(rest.len()));
                match chunked.take(part, |_| {}) {
                    Ok(count) => taken += count,
                    Err(bad) => error = Some(bad),
                }
                rest = after;
                if rest.is_empty() || error.is_some() || chunked.is_done() {
                    break;
                }
            }
            let parts = error.map_or(Ok((taken, chunked.is_done())), Err);
            prop_assert_eq!(parts, whole);
        }
    }
}
