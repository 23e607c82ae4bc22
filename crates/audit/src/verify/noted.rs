//! [`Noted`]: a record that somebody has noted elsewhere.

use std::fmt;
use std::str::FromStr;

use crate::event::Digest;

/// The number of a record and the sum of its line, as `SEQ:SUM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    /// The number.
    pub seq: u64,
    /// The sum of its line, with the line's end.
    pub sum: Digest,
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.sum)
    }
}

impl FromStr for Noted {
    type Err = NotedError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.trim().split_once(':').and_then(|(seq, sum)| {
            let sum = Digest::from_hex(sum.to_ascii_lowercase().as_bytes())?;
            Some(Self {
                seq: seq.parse().ok()?,
                sum,
            })
        });
        parsed.ok_or_else(|| NotedError(text.to_owned()))
    }
}

/// A text does not name a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the number of a record, a colon and the 64 hexadecimal digits of its sum")]
pub struct NotedError(String);

/// What has been found of a noted record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search {
    pub(super) noted: Noted,
    pub(super) is_found: bool,
}

impl Search {
    pub(super) fn new(noted: Noted) -> Self {
        Self {
            noted,
            is_found: false,
        }
    }

    /// Looks at a record. Is told whether it stands in the place of the noted
    /// one and is another.
    pub(super) fn is_another(&mut self, seq: u64, sum: Digest) -> bool {
        let is_it = sum == self.noted.sum && seq == self.noted.seq;
        self.is_found |= is_it;
        seq == self.noted.seq && !is_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back() {
        let noted = Noted {
            seq: 12,
            sum: Digest::from([0xab; 32]),
        };
        assert_eq!(noted.to_string().parse(), Ok(noted));
        assert_eq!(noted.to_string().to_uppercase().parse(), Ok(noted));
        let sum = noted.sum.to_string();
        for text in ["", "12", ":", &sum, &format!("x:{sum}"), "12:abc"] {
            assert!(text.parse::<Noted>().is_err(), "{text}");
        }
    }
}
