//! Requests that are refused for their form, whatever they ask for.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, StatusCode};
use ringfence_policy::is_misspelt;
use thiserror::Error;

use crate::http::head::OVERRIDES;
use crate::intercept::fields::has_twin_of;

/// What is wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum BadForm {
    #[error("a tunnel inside a connection is not allowed")]
    Connect,
    #[error("TRACE would show what is attached to the request")]
    Trace,
    #[error("a header would replace the method or path that was judged")]
    Override,
    #[error("a header could be taken for the length of the body")]
    Twin,
    #[error("the method is misspelt")]
    Method,
}

impl BadForm {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Connect => "nested-connect",
            Self::Trace => "trace-not-allowed",
            Self::Override => "method-override",
            Self::Twin | Self::Method => "malformed-request",
        }
    }

    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Connect | Self::Trace => StatusCode::METHOD_NOT_ALLOWED,
            Self::Override => StatusCode::FORBIDDEN,
            Self::Twin | Self::Method => StatusCode::BAD_REQUEST,
        }
    }
}

pub(super) fn check(parts: &Parts) -> Result<(), BadForm> {
    match &parts.method {
        method if *method == Method::CONNECT => return Err(BadForm::Connect),
        method if method.as_str().eq_ignore_ascii_case("TRACE") => return Err(BadForm::Trace),
        method if is_misspelt(method.as_str()) => return Err(BadForm::Method),
        _ => {}
    }
    let headers = &parts.headers;
    let overrides = |name: &str| headers.contains_key(name) || has_twin_of(headers, name);
    if OVERRIDES.into_iter().any(overrides) {
        return Err(BadForm::Override);
    }
    let framing = [CONTENT_LENGTH, TRANSFER_ENCODING];
    if framing
        .iter()
        .any(|name| has_twin_of(headers, name.as_str()))
    {
        return Err(BadForm::Twin);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn what_cannot_be_judged_is_refused() {
        for (method, header, want) in [
            ("CONNECT", None, BadForm::Connect),
            ("TRACE", None, BadForm::Trace),
            ("trace", None, BadForm::Trace),
            ("head", None, BadForm::Method),
            ("GET", Some("x-http-method-override"), BadForm::Override),
            ("GET", Some("x_original-url"), BadForm::Override),
            ("POST", Some("content_length"), BadForm::Twin),
            ("POST", Some("transfer_encoding"), BadForm::Twin),
        ] {
            let mut request = Request::builder().method(method).uri("/");
            if let Some(header) = header {
                request = request.header(header, "x");
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(check(&parts), Err(want), "{method} {header:?}");
        }
        let request = Request::post("/").header("content-length", "3");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(check(&parts), Ok(()));
    }
}
