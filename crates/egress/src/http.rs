//! HTTP/1 in clear: every request is read, judged by itself and only then
//! passed on.
//!
//! [`pinned`] serves a connection that leads to one place, as it came;
//! [`forward`] serves a client that uses us as its proxy, wherever each of its
//! requests goes. Parsers are strict, because what a server could read
//! differently is a request that nobody judged.

pub(crate) mod authority;
pub(crate) mod body;
mod exchange;
#[cfg(test)]
mod explained;
pub(crate) mod fields;
pub(crate) mod forward;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod head;
mod next_head;
pub(crate) mod normal;
mod order;
pub(crate) mod peer;
pub(crate) mod pinned;
mod pool;
mod response;
mod rewrite;
mod scan;
mod session;
pub(crate) mod sharing;
#[cfg(test)]
mod unjudged;

use crate::attempt::HttpSeen;

/// Whether a request that begins like this may still become one that is served.
pub(crate) fn awaits_more(bytes: &[u8]) -> bool {
    let mut scan = scan::HeadScan::new(scan::LineEnds::Strict);
    matches!(next_head::request_in(&mut scan, bytes), Ok(None))
}

/// Method and path of the request that `bytes` begin with, if its whole head is
/// there and in order.
pub(crate) fn seen(bytes: &[u8]) -> Option<HttpSeen> {
    let mut scan = scan::HeadScan::new(scan::LineEnds::Strict);
    let length = next_head::request_in(&mut scan, bytes).ok().flatten()?;
    let mut room = head::header_room();
    let request = head::parse(&bytes[..length], &mut room).ok()?;
    Some(session::seen_in(&request))
}
