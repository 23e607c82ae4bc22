//! What a client is told when its request goes no further, over HTTP/1 and
//! HTTP/2 alike.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};

use super::body::{LocalBody, ResponseBody};
use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::memory::SPENT;
use crate::refusal::{self, Refused};

const PROXY_ERROR: HeaderName = HeaderName::from_static("x-proxy-error");
const REASON: HeaderName = HeaderName::from_static("x-ringfence-reason");

/// The last word about a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Refused by the policy, or for what is in it.
    Refused(Refused),
    /// It cannot be served.
    Failed(Failure),
}

/// Why a request cannot be served.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    /// A stable reason code, where there is one.
    pub(crate) code: Option<&'static str>,
    /// One line for people.
    pub(crate) phrase: String,
}

impl From<Refused> for Answer {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Answer {
    /// A failure without a code.
    pub(crate) fn failed(status: StatusCode, phrase: impl Into<String>) -> Self {
        Self::Failed(Failure {
            status,
            code: None,
            phrase: phrase.into(),
        })
    }

    /// Something that was refused, and is told with another status than 403.
    pub(crate) fn refused_as(status: StatusCode, refused: &Refused) -> Self {
        Self::Failed(Failure {
            status,
            code: Some(refused.code),
            phrase: refused.phrase.clone(),
        })
    }

    /// Something for which there was no memory for too long; written down.
    pub(crate) fn spent(exit: &Exit, attempt: &Attempt) -> Self {
        let refused = exit.refuse(attempt, SPENT.0, SPENT.1);
        Self::refused_as(StatusCode::SERVICE_UNAVAILABLE, &refused)
    }

    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        match self {
            Self::Refused(refused) => {
                let mut page = page(
                    StatusCode::FORBIDDEN,
                    Some(refused.code),
                    refusal::text(&refused),
                );
                let blocked = HeaderValue::from_static(refused.error);
                page.headers_mut().insert(PROXY_ERROR, blocked);
                page
            }
            Self::Failed(failure) => {
                let text = format!("{}\n", refusal::one_line(&failure.phrase));
                page(failure.status, failure.code, text)
            }
        }
    }
}

fn page(status: StatusCode, code: Option<&'static str>, text: String) -> Response<ResponseBody> {
    let mut page = Response::new(LocalBody::full(text));
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(code) = code {
        headers.insert(REASON, HeaderValue::from_static(code));
    }
    page
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::testing::run;

    #[test]
    fn refusals_and_failures_are_told_apart() {
        run(async {
            let refused = Refused::of_form("not-in-allowlist", "host is not on the allow list");
            let page = Answer::from(refused).into_response();
            assert_eq!(page.status(), 403);
            assert_eq!(page.headers()["x-proxy-error"], "blocked-by-allowlist");
            assert_eq!(page.headers()["x-ringfence-reason"], "not-in-allowlist");
            let body = page.into_body().collect().await.unwrap().to_bytes();
            assert!(body.starts_with(b"Connection blocked by network allowlist: host"));

            let page = Answer::failed(StatusCode::BAD_GATEWAY, "no\r\nanswer").into_response();
            assert_eq!(page.status(), 502);
            assert!(!page.headers().contains_key("x-proxy-error"));
            let body = page.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "no??answer\n");
        });
    }
}
