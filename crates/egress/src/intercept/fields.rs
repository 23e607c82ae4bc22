//! Headers that concern one connection only, and what is asked of a server
//! whose answers are looked into.

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, Entry, HOST, HeaderMap, HeaderName,
    HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};

use crate::http::fields::tokens;
use crate::secrets::ACCEPTED;

/// Headers of one hop (RFC 9110, 7.6.1). `Proxy-` ones go by their beginning.
const OWN: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("http2-settings"),
];
/// Headers that `Connection` cannot take away, because the message would mean
/// something else without them.
const KEPT: [HeaderName; 6] = [
    HOST,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    TRAILER,
    http::header::CONTENT_ENCODING,
    http::header::EXPECT,
];
/// Headers that ask for a part of the content, also by the names that old and
/// proprietary servers know.
const RANGES: [&str; 5] = [
    "range",
    "if-range",
    "request-range",
    "x-range",
    "x-ms-range",
];
const TRAILERS: &[u8] = b"trailers";
/// Codings that every client knows who asked for any.
const IDENTITY: &str = "identity";

/// Takes away what is meant for this hop.
pub(crate) fn drop_hops(headers: &mut HeaderMap) {
    for name in listed(headers) {
        headers.remove(name);
    }
    for name in &OWN {
        headers.remove(name);
    }
    let proxy: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("proxy-"))
        .cloned()
        .collect();
    for name in proxy {
        headers.remove(name);
    }
}

/// The headers that `Connection` names.
fn listed(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| tokens(value.as_bytes()))
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| !KEPT.contains(name) && *name != TE)
        .collect()
}

/// Of what a client takes, only trailers are passed on.
pub(crate) fn narrow_transfer(headers: &mut HeaderMap) {
    let takes_trailers = headers
        .get_all(TE)
        .iter()
        .flat_map(|value| tokens(value.as_bytes()))
        .any(|token| token.eq_ignore_ascii_case(TRAILERS));
    headers.remove(TE);
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Asks for content in codings that can be looked into.
pub(crate) fn narrow_codings(headers: &mut HeaderMap) {
    let kept: Vec<String> = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|member| is_accepted(member))
        .map(str::to_owned)
        .collect();
    let Entry::Occupied(mut entry) = headers.entry(ACCEPT_ENCODING) else {
        // Without the header a server may choose any coding.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(IDENTITY));
        return;
    };
    let value = HeaderValue::try_from(kept.join(", ")).ok();
    let value = value.filter(|value| !value.is_empty());
    entry.insert(value.unwrap_or(HeaderValue::from_static(IDENTITY)));
}

fn is_accepted(member: &str) -> bool {
    let coding = member.split(';').next().unwrap_or_default().trim();
    let mut accepted = ACCEPTED.split(',').map(str::trim);
    coding.eq_ignore_ascii_case(IDENTITY) || accepted.any(|own| coding.eq_ignore_ascii_case(own))
}

/// A secret could be fetched in pieces that are none of its forms.
pub(crate) fn drop_ranges(headers: &mut HeaderMap) {
    let of_ranges: Vec<HeaderName> = headers
        .keys()
        .filter(|name| RANGES.contains(&name.as_str().replace('_', "-").as_str()))
        .cloned()
        .collect();
    for name in of_ranges {
        headers.remove(name);
    }
}

/// Whether a name in `headers` is `name` with `_` for some `-`: some servers
/// take the two for the same.
pub(crate) fn has_twin_of(headers: &HeaderMap, name: &str) -> bool {
    headers.keys().any(|own| {
        let own = own.as_str();
        own != name && own.len() == name.len() && own.replace('_', "-") == name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = lines.iter().map(|(name, value)| {
            let value = HeaderValue::from_static(value);
            (HeaderName::from_static(name), value)
        });
        pairs.collect::<Vec<_>>().into_iter().fold(
            HeaderMap::new(),
            |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            },
        )
    }

    #[test]
    fn what_is_meant_for_this_hop_ends_here() {
        let mut found = headers(&[
            ("host", "a.test"),
            ("connection", "close, x-own, Host, te"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eDp5"),
            ("proxy-anything", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("x-own", "1"),
            ("te", "gzip, Trailers"),
            ("cookie", "a"),
            ("cookie", "b"),
        ]);
        drop_hops(&mut found);
        narrow_transfer(&mut found);
        let kept = headers(&[
            ("host", "a.test"),
            ("cookie", "a"),
            ("cookie", "b"),
            ("te", "trailers"),
        ]);
        assert_eq!(found, kept);
    }

    #[test]
    fn only_codings_that_can_be_read_are_asked_for() {
        for (asked, want) in [
            ("gzip, deflate, br", "gzip, deflate"),
            ("gzip;q=0.5, compress, dcb, *", "gzip;q=0.5"),
            ("compress", "identity"),
            ("", "identity"),
            ("identity;q=0.1", "identity;q=0.1"),
        ] {
            let mut found = headers(&[("accept-encoding", asked)]);
            narrow_codings(&mut found);
            assert_eq!(found[ACCEPT_ENCODING], want, "{asked}");
        }
        let mut none = HeaderMap::new();
        narrow_codings(&mut none);
        assert_eq!(none[ACCEPT_ENCODING], "identity");
    }

    #[test]
    fn g5_no_header_asks_for_a_part() {
        let mut found = headers(&[
            ("range", "bytes=0-3"),
            ("if-range", "x"),
            ("request-range", "bytes=0-3"),
            ("request_range", "bytes=0-3"),
            ("x-ms-range", "bytes=0-3"),
            ("accept", "*/*"),
        ]);
        drop_ranges(&mut found);
        assert_eq!(found, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn twins_are_noticed() {
        let found = headers(&[("content_length", "3"), ("x_y", "1")]);
        assert!(has_twin_of(&found, "content-length"));
        assert!(!has_twin_of(&found, "transfer-encoding"));
        let own = headers(&[("content-length", "3")]);
        assert!(!has_twin_of(&own, "content-length"));
    }
}
