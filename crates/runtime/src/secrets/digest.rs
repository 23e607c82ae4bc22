//! [`ContentDigest`]: by what an approved file or kit is known again.

use std::fmt;

use ringfence_audit::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 sum of a content; 64 hexadecimal digits as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentDigest(Digest);

impl ContentDigest {
    /// Of one file.
    pub fn of(bytes: &[u8]) -> Self {
        Self(<[u8; 32]>::from(Sha256::digest(bytes)).into())
    }

    /// Of several files with their names, in the order given. No other list of
    /// files has the same sum: each part goes in with its length.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut sum = Sha256::new();
        for (name, bytes) in parts {
            for part in [name.as_bytes(), bytes] {
                sum.update((part.len() as u64).to_le_bytes());
                sum.update(part);
            }
        }
        Self(<[u8; 32]>::from(sum.finalize()).into())
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_content_changes_its_sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(ContentDigest::of(b"").to_string(), empty);
        let lists: [&[(&str, &[u8])]; 6] = [
            &[],
            &[("a", b"b")],
            &[("ab", b"")],
            &[("", b"ab")],
            &[("a", b"b"), ("", b"")],
            &[("a", b"c")],
        ];
        for (at, one) in lists.iter().enumerate() {
            for other in &lists[at + 1..] {
                let sum = |list: &[(&'static str, &'static [u8])]| {
                    ContentDigest::of_parts(list.iter().copied())
                };
                assert_ne!(sum(one), sum(other), "{one:?} {other:?}");
            }
        }
    }
}
