//! A server's answer on its way into the sandbox: what belongs to the
//! connection ends here, and secrets that left are hidden in everything else.

mod codings;
mod scrubbed;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue,
};
use http::response::Parts;
use http::{Method, Response, StatusCode};
use http_body::Body;
use ringfence_policy::{Request, attachments};

use self::codings::{check_transfer, decoder_for};
pub(crate) use self::scrubbed::Hider;
use self::scrubbed::Scrubbed;
use super::Intercepted;
use super::answer::Answer;
use super::body::{LocalBody, ResponseBody};
use super::fields::drop_hops;
use super::flight::Flight;
use super::server_body::ServerBody;
use crate::attempt::Attempt;
use crate::exit::Exit;
use crate::intercept::keeper::{GUESSED, Keeper};
use crate::memory::{Spent, Use};
use crate::secrets::{Decoder, Findings, Forms};

/// Headers about the very bytes of a body that was decoded.
const OF_BYTES: [HeaderName; 4] = [
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// How closely the answers to a request are looked at.
#[derive(Clone)]
pub(crate) enum Looking {
    /// No secret could be in them.
    Away,
    /// Secrets are hidden in them.
    At {
        exit: Rc<Exit>,
        /// The server gets secrets itself.
        close: bool,
        returns: Rc<Returns>,
    },
    /// These are.
    For(Arc<Forms>),
}

/// The secrets that were found in one answer.
pub(crate) struct Returns {
    attempt: Attempt,
    values: RefCell<BTreeSet<usize>>,
}

/// What becomes of a secret that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hiding {
    /// Its placeholder is put there.
    Placeholder,
    /// It is covered, so that the bytes around it stay where they are.
    Covering,
}

impl Looking {
    /// In a sandbox with secrets everything that comes is looked at: one that
    /// went to one server may come back from another.
    pub(super) fn at(attempt: &Attempt, connection: &Intercepted) -> Self {
        let exit = &connection.exit;
        let Some(keeper) = exit.keeper() else {
            return Self::Away;
        };
        let place = Request::connect(&attempt.target, attempt.port);
        let close = keeper.sent_to(attempt)
            || !attachments(&exit.policy(), &place, connection.scheme).is_empty();
        Self::returns_to(exit, attempt, close)
    }

    /// At everything that the host behind `attempt` says, where a secret may
    /// have gone to it.
    pub(crate) fn at_host(exit: &Rc<Exit>, attempt: &Attempt) -> Option<Self> {
        exit.guards_host(attempt)
            .then(|| Self::returns_to(exit, attempt, false))
    }

    fn returns_to(exit: &Rc<Exit>, attempt: &Attempt, close: bool) -> Self {
        let returns = Rc::new(Returns {
            attempt: attempt.clone(),
            values: RefCell::default(),
        });
        let exit = Rc::clone(exit);
        Self::At {
            exit,
            close,
            returns,
        }
    }

    /// Records what was found: whole values once for an answer, and every part.
    fn note(&self, found: Findings) {
        let Self::At { exit, returns, .. } = self else {
            return;
        };
        if let Some(keeper) = exit.keeper() {
            keeper.came_near(found.near);
        }
        for find in found.finds {
            if !find.is_whole || returns.values.borrow_mut().insert(find.value) {
                exit.note_returned(&returns.attempt, find);
            }
        }
    }

    /// Whether nothing more may be let in, because somebody is guessing.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::At { exit, .. } => exit.keeper().is_some_and(Keeper::is_guessed_at),
            Self::Away | Self::For(_) => false,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        !matches!(self, Self::Away)
    }

    pub(super) fn is_close(&self) -> bool {
        matches!(self, Self::At { close: true, .. })
    }

    /// Whether answers must be whole. In parts a secret could come back from
    /// any server that may have it, once one has left.
    pub(super) fn wants_wholes(&self) -> bool {
        self.is_close() || self.forms().is_some()
    }

    /// The secrets that are hidden at this moment.
    pub(super) fn forms(&self) -> Option<Arc<Forms>> {
        match self {
            Self::Away => None,
            Self::At { exit, .. } => exit.keeper()?.forms(),
            Self::For(forms) => Some(Arc::clone(forms)),
        }
    }
}

/// The answer as the client is to see it.
pub(super) async fn respond(
    response: Response<ServerBody>,
    method: &Method,
    looking: Looking,
    exit: &Exit,
    attempt: &Attempt,
    flight: &Flight,
) -> Result<Response<ResponseBody>, Answer> {
    let (mut parts, body) = response.into_parts();
    check_transfer(&parts.headers)?;
    drop_hops(&mut parts.headers);
    if looking.is_on() {
        scrub_head(&mut parts, &looking);
        if looking.is_cut() {
            return Err(Answer::failed(StatusCode::BAD_GATEWAY, GUESSED));
        }
    }
    if has_no_body(&parts, method) || body.is_end_stream() {
        return Ok(Response::from_parts(parts, LocalBody::empty()));
    }
    if !looking.is_on() {
        return Ok(Response::from_parts(parts, LocalBody::new(body)));
    }
    let decoder = decoder_for(&parts.headers)?;
    let hiding = hiding_in(&parts.headers);
    if decoder.is_some() {
        forget_coding(&mut parts.headers);
    } else if hiding == Hiding::Placeholder {
        parts.headers.remove(CONTENT_LENGTH);
    }
    let window = match decoder.as_ref().map_or(0, Decoder::window) {
        0 => None,
        bytes => {
            flight.holds_much();
            let taken = exit.memory().take_bytes_soon(Use::Answer, bytes).await;
            Some(taken.map_err(|Spent| Answer::spent(exit, attempt))?)
        }
    };
    let body = LocalBody::new(Scrubbed::new(body, decoder, hiding, looking));
    Ok(Response::from_parts(parts, body.holding(window)))
}

fn has_no_body(parts: &Parts, method: &Method) -> bool {
    let status = parts.status;
    method == Method::HEAD
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
        || status.is_informational()
}

/// Hides secrets in the headers, and drops what cannot be looked at: the
/// reason phrase and the original case of names.
pub(super) fn scrub_head(parts: &mut Parts, looking: &Looking) {
    parts.extensions.clear();
    if looking.wants_wholes() {
        parts.headers.remove(ACCEPT_RANGES);
    }
    scrub_headers(&mut parts.headers, looking);
}

/// Hides secrets in headers or trailers.
fn scrub_headers(headers: &mut HeaderMap, looking: &Looking) {
    let Some(forms) = looking.forms() else {
        return;
    };
    let mut found = Findings::default();
    let named: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            matches!(
                forms.scrub_noting(name.as_str().as_bytes(), &mut found),
                Cow::Owned(_)
            )
        })
        .cloned()
        .collect();
    for name in named {
        headers.remove(name);
    }
    for value in headers.values_mut() {
        let scrubbed = match forms.scrub_noting(value.as_bytes(), &mut found) {
            Cow::Borrowed(_) => continue,
            Cow::Owned(scrubbed) => HeaderValue::try_from(scrubbed),
        };
        *value = scrubbed.unwrap_or(HeaderValue::from_static(""));
    }
    looking.note(found);
}

/// Text takes a placeholder of any length; other contents would be broken by
/// one.
fn hiding_in(headers: &HeaderMap) -> Hiding {
    const TEXT: [&str; 6] = [
        "json",
        "xml",
        "javascript",
        "x-www-form-urlencoded",
        "yaml",
        "x-ndjson",
    ];
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    let essence = essence.unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = match essence.split_once('/') {
        Some(("text", _)) => true,
        Some((_, subtype)) => {
            let suffix = subtype.rsplit('+').next().unwrap_or(subtype);
            TEXT.contains(&suffix)
        }
        None => false,
    };
    if is_text {
        Hiding::Placeholder
    } else {
        Hiding::Covering
    }
}

/// The body is no longer what these headers say.
fn forget_coding(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    for name in OF_BYTES {
        headers.remove(name);
    }
    let strong = headers
        .get(ETAG)
        .filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    let weak = strong.and_then(|tag| HeaderValue::try_from([b"W/", tag.as_bytes()].concat()).ok());
    if let Some(weak) = weak {
        headers.insert(ETAG, weak);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(kind: Option<&'static str>) -> HeaderMap {
        let kind = kind.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind)));
        kind.into_iter().collect()
    }

    #[test]
    fn placeholders_go_into_text_only() {
        for (kind, want) in [
            (Some("text/event-stream"), Hiding::Placeholder),
            (Some("Application/JSON; charset=utf-8"), Hiding::Placeholder),
            (Some("application/problem+json"), Hiding::Placeholder),
            (Some("application/grpc"), Hiding::Covering),
            (Some("application/grpc+proto"), Hiding::Covering),
            (Some("application/octet-stream"), Hiding::Covering),
            (None, Hiding::Covering),
        ] {
            assert_eq!(hiding_in(&headers(kind)), want, "{kind:?}");
        }
    }

    #[test]
    fn headers_about_the_encoded_bytes_go() {
        let mut found: HeaderMap = [
            (CONTENT_ENCODING, "gzip"),
            (CONTENT_LENGTH, "12"),
            (ETAG, "\"x\""),
            (HeaderName::from_static("digest"), "sha-256=x"),
            (CONTENT_TYPE, "text/plain"),
        ]
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect();
        forget_coding(&mut found);
        assert_eq!(found.len(), 2);
        assert_eq!(found[ETAG], "W/\"x\"");
        forget_coding(&mut found);
        assert_eq!(found[ETAG], "W/\"x\"");
    }
}
