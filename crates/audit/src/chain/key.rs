//! [`Key`]: what vouches for the end of the log and of each run.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::head::End;
use crate::event::{Digest, RunId};

/// Bytes of a key.
pub(crate) const KEY_SIZE: usize = 32;

/// What a sum is for: none can stand for another.
const OF_HEAD: &[u8] = b"ringfence audit head\0";
const OF_SEAL: &[u8] = b"ringfence audit seal\0";

/// The key of a log.
#[derive(Clone)]
pub(crate) struct Key(Hmac<Sha256>);

impl Key {
    /// Takes the bytes of a key.
    pub(crate) fn new(bytes: &[u8; KEY_SIZE]) -> Self {
        // A key of any length makes one; the other arm is never taken.
        match Hmac::new_from_slice(bytes) {
            Ok(keyed) => Self(keyed),
            Err(_) => Self(Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default())),
        }
    }

    /// Vouches for the end of the log.
    pub(super) fn of_head(&self, first: u64, ends: [Option<&End>; 2]) -> Digest {
        let mut mac = self.0.clone();
        mac.update(OF_HEAD);
        mac.update(&first.to_be_bytes());
        for end in ends {
            mac.update(&[u8::from(end.is_some())]);
            if let Some(end) = end {
                mac.update(&end.seq.to_be_bytes());
                mac.update(end.hash.as_bytes());
                mac.update(&end.length.to_be_bytes());
            }
        }
        finish(mac)
    }

    /// Vouches for the records of a run: how many, and the sum of the last.
    pub(crate) fn of_seal(&self, run: RunId, records: u64, last: Digest) -> Digest {
        let mut mac = self.0.clone();
        mac.update(OF_SEAL);
        mac.update(&run.to_bits().to_be_bytes());
        mac.update(&records.to_be_bytes());
        mac.update(last.as_bytes());
        finish(mac)
    }
}

fn finish(mac: Hmac<Sha256>) -> Digest {
    <[u8; 32]>::from(mac.finalize().into_bytes()).into()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}
