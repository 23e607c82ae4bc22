//! The first fields of a line, which have a fixed place, so that a million
//! lines are checked without reading JSON.

use super::version::FormatVersion;
use crate::event::{Digest, RunId};

/// Characters of a time.
const TIME_LENGTH: usize = 27;
/// More digits are no number of a record.
const MOST_DIGITS: usize = 20;

/// The first fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    pub(crate) seq: u64,
    pub(crate) prev: Digest,
    pub(crate) run: RunId,
    pub(crate) kind: &'a str,
}

/// Writes what comes before the first field of an event.
pub(crate) fn write_header(line: &mut Vec<u8>, seq: u64, prev: Digest) {
    let version = FormatVersion::NUMBER;
    line.extend_from_slice(
        format!("{{\"version\":{version},\"seq\":{seq},\"prev\":\"{prev}\",").as_bytes(),
    );
}

impl<'a> Header<'a> {
    /// Reads the beginning of a line; none if it does not begin as we write it.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        let mut rest = Rest(line);
        rest.skip(b"{\"version\":2,\"seq\":")?;
        let seq = rest.number()?;
        rest.skip(b",\"prev\":\"")?;
        let prev = Digest::from_hex(rest.take(64)?)?;
        rest.skip(b"\",\"time\":\"")?;
        rest.take(TIME_LENGTH)?;
        rest.skip(b"\",\"run\":\"")?;
        let run = RunId::from_hex(rest.take(32)?)?;
        rest.skip(b"\",\"kind\":\"")?;
        let kind = rest.word()?;
        Some(Self {
            seq,
            prev,
            run,
            kind,
        })
    }
}

/// What is left of a line.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number as it is written: without leading zeros.
    fn number(&mut self) -> Option<u64> {
        let length = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let digits = self.take(length.min(MOST_DIGITS))?;
        if digits.first() == Some(&b'0') && digits.len() > 1 {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Letters and dashes up to a quote.
    fn word(&mut self) -> Option<&'a str> {
        let is_of_word = |byte: &&u8| byte.is_ascii_lowercase() || **byte == b'-';
        let length = self.0.iter().take_while(is_of_word).count();
        let word = self.take(length)?;
        self.skip(b"\"")?;
        std::str::from_utf8(word).ok()
    }
}
