//! Codings of an answer: those of its content are taken off, and what is in any
//! other cannot be looked into.

use http::StatusCode;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};

use crate::http::fields::tokens;
use crate::intercept::answer::Answer;
use crate::secrets::Decoder;

/// Headers that tell of a coding of each message within a body (gRPC, Connect).
/// A server may answer in the one that the request was in, whatever it was
/// asked for.
const OF_MESSAGES: [HeaderName; 2] = [
    HeaderName::from_static("grpc-encoding"),
    HeaderName::from_static("connect-content-encoding"),
];

/// What undoes the codings of the content.
pub(super) fn decoder_for(headers: &HeaderMap) -> Result<Option<Decoder>, Answer> {
    check_messages(headers)?;
    let codings: Result<Vec<&str>, _> = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .map(HeaderValue::to_str)
        .collect();
    let codings = codings.map_err(|_| unknown())?.join(", ");
    if codings.is_empty() {
        return Ok(None);
    }
    Decoder::new(&codings).map_err(|_| unknown())
}

/// Refuses codings of the transfer that nobody asked for and nobody takes off.
pub(super) fn check_transfer(headers: &HeaderMap) -> Result<(), Answer> {
    check(headers, &TRANSFER_ENCODING, b"chunked")
}

fn check_messages(headers: &HeaderMap) -> Result<(), Answer> {
    let mut names = OF_MESSAGES.into_iter();
    names.try_for_each(|name| check(headers, &name, b"identity"))
}

/// Refuses a header that names anything but the one coding that may be there.
fn check(headers: &HeaderMap, name: &HeaderName, only: &[u8]) -> Result<(), Answer> {
    let values = headers.get_all(name).iter();
    let mut codings = values.flat_map(|value| tokens(value.as_bytes()));
    if codings.all(|coding| coding.eq_ignore_ascii_case(only)) {
        Ok(())
    } else {
        Err(unknown())
    }
}

fn unknown() -> Answer {
    let phrase = "the response is in a coding that cannot be looked into";
    Answer::failed(StatusCode::BAD_GATEWAY, phrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        let pair = (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        HeaderMap::from_iter([pair])
    }

    #[test]
    fn a_coding_that_nobody_knows_is_not_let_in() {
        let coded = |coding| decoder_for(&headers("content-encoding", coding));
        assert!(coded("dcb").is_err());
        assert!(coded("gzip").unwrap().is_some());
        assert!(coded("identity").unwrap().is_none());
        assert!(decoder_for(&HeaderMap::new()).unwrap().is_none());
    }

    #[test]
    fn g5_codings_of_messages_and_transfers_are_not_let_in() {
        for name in ["grpc-encoding", "connect-content-encoding"] {
            assert!(decoder_for(&headers(name, "gzip")).is_err(), "{name}");
            assert!(decoder_for(&headers(name, "Identity")).is_ok(), "{name}");
        }
        let transfer = |value| check_transfer(&headers("transfer-encoding", value));
        for value in ["gzip, chunked", "gzip", "chunked, gzip", ""] {
            assert!(transfer(value).is_err(), "{value}");
        }
        assert!(transfer("Chunked").is_ok());
        assert!(check_transfer(&HeaderMap::new()).is_ok());
    }
}
