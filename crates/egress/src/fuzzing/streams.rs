//! Doors to the parsers of what TCP clients and servers send.

use crate::http::fuzzing as http;
use crate::secrets::fuzzing as secrets;
use crate::socks::fuzzing as socks;
use crate::speech::{Speech, heard};
use crate::tls::{Hello, read_hello};

pub use http::{Head, body_end, request, response};
pub use secrets::{Scrubbing, Watching, decoded, substituted};
pub use socks::messages as socks_messages;

/// What the first bytes of a client are, as text; `None` if more are needed.
pub fn first_bytes(bytes: &[u8]) -> Option<String> {
    match heard(bytes) {
        Speech::Unclear(_) => None,
        clear => Some(format!("{clear:?}")),
    }
}

/// What a TLS hello is, as text; `None` if more bytes are needed.
pub fn tls_hello(bytes: &[u8]) -> Option<String> {
    match read_hello(bytes) {
        Hello::NeedMore => None,
        clear => Some(format!("{clear:?}")),
    }
}
