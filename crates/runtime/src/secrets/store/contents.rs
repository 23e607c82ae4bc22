//! What the store holds once it is open: names, when each was set, values.
//!
//! Written by hand and not as JSON, so that no value is copied into a buffer
//! that nobody zeroes. Numbers are little-endian.

use std::collections::BTreeMap;

use ringfence_audit::Timestamp;
use zeroize::Zeroizing;

use super::name::SecretName;
use crate::secrets::value;

/// The most secrets of a store.
const MOST: usize = 1000;
/// Bytes of an entry beside its name and value.
const ENTRY_HEAD: usize = 1 + 8 + 4;

/// One secret.
pub(super) struct Kept {
    pub(super) set: Timestamp,
    pub(super) value: Zeroizing<String>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Contents(BTreeMap<SecretName, Kept>);

impl Contents {
    pub(super) fn get(&self, name: &SecretName) -> Option<&Kept> {
        self.0.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&SecretName, &Kept)> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// False when there are too many.
    #[must_use]
    pub(super) fn set(&mut self, name: SecretName, kept: Kept) -> bool {
        self.0.insert(name, kept);
        self.0.len() <= MOST
    }

    /// False when there is none.
    #[must_use]
    pub(super) fn remove(&mut self, name: &SecretName) -> bool {
        self.0.remove(name).is_some()
    }

    /// All of it, with room for a tag, so that the buffer never moves.
    pub(super) fn encode(&self, room: usize) -> Zeroizing<Vec<u8>> {
        let sizes = self
            .iter()
            .map(|(name, kept)| ENTRY_HEAD + name.as_str().len() + kept.value.len());
        let size: usize = sizes.sum();
        let mut bytes = Zeroizing::new(Vec::with_capacity(size + room));
        for (name, kept) in self.iter() {
            let name = name.as_str().as_bytes();
            bytes.extend(u8::try_from(name.len()).unwrap_or(u8::MAX).to_le_bytes());
            bytes.extend(name);
            bytes.extend(kept.set.as_micros().to_le_bytes());
            let length = u32::try_from(kept.value.len()).unwrap_or(u32::MAX);
            bytes.extend(length.to_le_bytes());
            bytes.extend(kept.value.as_bytes());
        }
        bytes
    }

    /// `None` if it is not what [`encode`](Self::encode) writes.
    pub(super) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut contents = Self::default();
        while !bytes.is_empty() {
            let length = u8::from_le_bytes(take(&mut bytes)?);
            let name = text(&mut bytes, usize::from(length))?.parse().ok()?;
            let set = Timestamp::from_micros(u64::from_le_bytes(take(&mut bytes)?));
            let length = usize::try_from(u32::from_le_bytes(take(&mut bytes)?)).ok()?;
            if length > value::LARGEST {
                return None;
            }
            let value = Zeroizing::new(text(&mut bytes, length)?.to_owned());
            if !contents.set(name, Kept { set, value }) {
                return None;
            }
        }
        Some(contents)
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

fn text<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a str> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    std::str::from_utf8(head).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut contents = Contents::default();
        for (name, value) in [("a", "first-value"), ("b.c-d_e", "zweiter wärt")] {
            let kept = Kept {
                set: Timestamp::from_micros(7),
                value: Zeroizing::new(value.to_owned()),
            };
            assert!(contents.set(name.parse().unwrap(), kept));
        }
        let bytes = contents.encode(16);
        assert!(bytes.capacity() >= bytes.len() + 16);
        let read = Contents::decode(&bytes).unwrap();
        let kept = read.get(&"b.c-d_e".parse().unwrap()).unwrap();
        assert_eq!(kept.value.as_str(), "zweiter wärt");
        assert_eq!(kept.set.as_micros(), 7);
        assert_eq!(read.iter().count(), 2);
        let whole = [0, 1 + ENTRY_HEAD + "first-value".len(), bytes.len()];
        for end in 0..=bytes.len() {
            let cut = Contents::decode(&bytes[..end]).is_some();
            assert_eq!(cut, whole.contains(&end), "{end}");
        }
    }
}
