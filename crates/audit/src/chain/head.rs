//! [`Head`]: where the log ends, so that the next writer need not read it, and
//! what is cut off or added is noticed.

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::version::FormatVersion;
use crate::event::Digest;

/// Bytes of its file, always: it is written in place.
pub(crate) const HEAD_SIZE: usize = 768;

/// The end of the log at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct End {
    /// The number of the last record; 0 before the first.
    pub(crate) seq: u64,
    /// The sum of its line; zeros before the first.
    pub(crate) hash: Digest,
    /// Bytes of the newest file.
    pub(crate) length: u64,
}

impl End {
    /// The end of a log that has no records.
    pub(crate) const NOTHING: Self = Self {
        seq: 0,
        hash: Digest::ZEROS,
        length: 0,
    };
}

/// Where the log begins and ends. While records are being appended there are
/// two ends: before and after. Whichever fits the file holds, so that a writer
/// that is killed between two steps leaves nothing that looks altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    version: FormatVersion,
    /// The number of the oldest record that must still be there.
    pub(crate) first: u64,
    pub(crate) end: End,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<End>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    head: Head,
    mac: Digest,
}

impl Head {
    pub(crate) fn new(first: u64, end: End, next: Option<End>) -> Self {
        Self {
            version: FormatVersion,
            first,
            end,
            next,
        }
    }

    /// The bytes of the file: JSON, a fill of spaces, a newline.
    pub(crate) fn encode(&self, key: &Key) -> Option<Vec<u8>> {
        let signed = Signed {
            head: self.clone(),
            mac: key.of_head(self.first, [Some(&self.end), self.next.as_ref()]),
        };
        let mut bytes = serde_json::to_vec(&signed).ok()?;
        bytes.resize(HEAD_SIZE - 1, b' ');
        bytes.push(b'\n');
        Some(bytes)
    }

    /// Reads the file; none if it is not exactly what `key` wrote.
    pub(crate) fn decode(bytes: &[u8], key: &Key) -> Option<Self> {
        if bytes.len() != HEAD_SIZE {
            return None;
        }
        let signed: Signed = serde_json::from_slice(bytes).ok()?;
        let is_ours = signed.head.encode(key)? == bytes;
        is_ours.then_some(signed.head)
    }

    /// The end that a newest file of `size` bytes has.
    pub(crate) fn end_at(&self, size: u64) -> Option<End> {
        let next = self.next.filter(|next| next.length == size);
        next.or(Some(self.end).filter(|end| end.length == size))
    }

    /// The furthest end.
    pub(crate) fn last(&self) -> End {
        self.next.unwrap_or(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_it_can_be_changed_without_the_key() {
        let key = Key::new(&[7; 32]);
        let end = End {
            seq: u64::MAX,
            hash: Digest::from([9; 32]),
            length: u64::MAX,
        };
        let head = Head::new(u64::MAX, end, Some(end));
        let bytes = head.encode(&key).unwrap();
        assert_eq!(bytes.len(), HEAD_SIZE);
        assert_eq!(Head::decode(&bytes, &key), Some(head));
        assert_eq!(Head::decode(&bytes, &Key::new(&[8; 32])), None);
        for at in 0..bytes.len() {
            for flip in [1, 2, 0x2a, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                assert_eq!(Head::decode(&changed, &key), None, "{at}");
            }
        }
    }
}
