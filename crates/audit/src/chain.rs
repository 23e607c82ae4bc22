//! How records are tied together: each names the sum of the one before, and a
//! key that only the writers have vouches for the last one.

mod head;
mod header;
mod key;
mod record;
mod version;

pub(crate) use head::{End, HEAD_SIZE, Head};
pub(crate) use header::{Header, write_header};
pub(crate) use key::{KEY_SIZE, Key};
pub use record::{Record, event_schema};
pub use version::FormatVersion;

use sha2::{Digest as _, Sha256};

use crate::event::Digest;

/// The sum of a line with its newline.
pub(crate) fn sum(line: &[u8]) -> Digest {
    <[u8; 32]>::from(Sha256::digest(line)).into()
}
