//! Requests after which a connection to a server is not used again, because
//! the server could take their bodies for further requests.

use std::time::Duration;

use bytes::Bytes;
use http::Version;
use http::request::Parts;
use http_body::Body;

use super::expectation::Expectation;
use crate::http::body::Framing;
use crate::http::sharing::{Beginning, Sharing};
use crate::intercept::body::Kept;

/// For a client to send the beginning of a body.
const FIRST_WORDS: Duration = Duration::from_millis(200);

/// Whether the request that `parts` begin is the last of its connection. Its
/// body is at hand or still to come.
pub(super) async fn is_last(
    parts: &Parts,
    expectation: Expectation,
    at_hand: Option<&Bytes>,
    coming: Option<&Kept>,
) -> bool {
    if parts.version == Version::HTTP_2 {
        // Frames say where a body ends.
        return false;
    }
    let expects = expectation != Expectation::Nothing;
    let framing = framing(at_hand, coming);
    let sharing = match Sharing::by_head(parts.method.as_str(), framing, expects) {
        Some(sharing) => Some(sharing),
        None => by_body(at_hand, coming).await,
    };
    sharing != Some(Sharing::Shared)
}

fn framing(at_hand: Option<&Bytes>, coming: Option<&Kept>) -> Framing {
    let length = match (at_hand, coming) {
        (Some(bytes), _) => Some(bytes.len() as u64),
        (None, Some(body)) if !body.is_end_stream() => body.size_hint().exact(),
        (None, _) => Some(0),
    };
    match length {
        Some(0) => Framing::Empty,
        Some(length) => Framing::Length(length),
        None => Framing::Chunked,
    }
}

async fn by_body(at_hand: Option<&Bytes>, coming: Option<&Kept>) -> Option<Sharing> {
    if let Some(bytes) = at_hand {
        return Sharing::by_body(Beginning::Whole(bytes));
    }
    let body = coming?;
    let length = body.size_hint().exact();
    let beginning = tokio::time::timeout(FIRST_WORDS, body.beginning()).await;
    let beginning = beginning.ok()?;
    let is_whole = length == Some(beginning.len() as u64);
    Sharing::by_body(if is_whole {
        Beginning::Whole(&beginning)
    } else {
        Beginning::Part(&beginning)
    })
}
