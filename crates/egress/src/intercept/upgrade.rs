//! WebSocket: the one protocol a connection may switch to, because what passes
//! over it can still be looked into.

pub(crate) mod frames;
mod relay;

use std::rc::Rc;

use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue, SEC_WEBSOCKET_EXTENSIONS, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use thiserror::Error;

use self::relay::{Downward, Relay, Upward};
use super::answer::Answer;
use super::body::{LocalBody, ResponseBody};
use super::fields::drop_hops;
use super::flight::Flight;
use super::request::Alarm;
use super::response::{Looking, scrub_head};
use super::server_body::ServerBody;
use crate::http::fields::tokens;
use crate::secrets::Watch;

const WEBSOCKET: &[u8] = b"websocket";

/// What the connection is to speak after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Http,
    WebSocket,
}

/// A wish that is not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum BadWish {
    #[error("the connection may only switch to WebSocket")]
    Protocol,
    #[error("only a GET request without a body may switch to WebSocket")]
    Form,
}

impl BadWish {
    pub(super) const CODE: &'static str = "upgrade-not-allowed";

    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Protocol => StatusCode::FORBIDDEN,
            Self::Form => StatusCode::BAD_REQUEST,
        }
    }
}

/// What a request wishes for. `Upgrade` without a word in `Connection` is for
/// nobody.
pub(super) fn wish(parts: &Parts) -> Result<Wish, BadWish> {
    let headers = &parts.headers;
    let asks = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| tokens(value.as_bytes()))
        .any(|token| token.eq_ignore_ascii_case(b"upgrade"));
    if !asks || parts.version != Version::HTTP_11 || !headers.contains_key(UPGRADE) {
        return Ok(Wish::Http);
    }
    if !is_websocket(headers) {
        return Err(BadWish::Protocol);
    }
    let length = headers.get(CONTENT_LENGTH);
    let has_body =
        headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0");
    if parts.method != Method::GET || has_body {
        return Err(BadWish::Form);
    }
    Ok(Wish::WebSocket)
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(UPGRADE).iter();
    let only = values.next().filter(|_| values.next().is_none());
    only.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(WEBSOCKET))
}

impl Wish {
    /// Puts in what is said of it between two neighbours.
    pub(super) fn write(self, headers: &mut HeaderMap) {
        match self {
            Self::WebSocket => {
                headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            }
            Self::Http if headers.contains_key(TE) => {
                headers.insert(CONNECTION, HeaderValue::from_static("TE"));
            }
            Self::Http => {}
        }
    }
}

/// What watches the frames of a client.
pub(super) struct Watching {
    /// For messages, and for what comes between their parts.
    pub(super) watches: [Watch; 2],
    pub(super) alarm: Rc<Alarm>,
}

/// Both ends of what is to become a WebSocket.
pub(super) struct Switch {
    pub(super) wish: Wish,
    pub(super) client: OnUpgrade,
    pub(super) response: Response<ServerBody>,
    pub(super) looking: Looking,
    pub(super) watching: Option<Watching>,
    /// Lasts until both ends are done.
    pub(super) flight: Rc<Flight>,
}

impl Switch {
    /// Passes the server's consent on, and then everything that follows.
    pub(super) fn make(mut self) -> Result<Response<ResponseBody>, Answer> {
        self.check()?;
        let server = hyper::upgrade::on(&mut self.response);
        let (mut parts, body) = self.response.into_parts();
        drop_hops(&mut parts.headers);
        if self.looking.is_on() {
            scrub_head(&mut parts, &self.looking);
        }
        self.wish.write(&mut parts.headers);
        let downward = self.looking.is_on().then(|| Downward::new(self.looking));
        let relay = Relay {
            upward: self.watching.map(Upward::new),
            downward,
        };
        let flight = self.flight;
        flight.has_switched();
        tokio::task::spawn_local(async move {
            relay.run(self.client, server, body).await;
            drop(flight);
        });
        Ok(Response::from_parts(parts, LocalBody::empty()))
    }

    /// A server may agree to what was asked, and to nothing else.
    fn check(&self) -> Result<(), Answer> {
        let headers = self.response.headers();
        let extended = headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) && self.is_looked_into();
        if self.wish == Wish::WebSocket && is_websocket(headers) && !extended {
            return Ok(());
        }
        let phrase = "the server switches to a protocol that nobody asked for";
        Err(Answer::failed(StatusCode::BAD_GATEWAY, phrase))
    }

    fn is_looked_into(&self) -> bool {
        self.looking.is_on() || self.watching.is_some()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn wished(method: &str, headers: &[(&str, &str)]) -> Result<Wish, BadWish> {
        let mut request = Request::builder().method(method).uri("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        wish(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_websocket_is_granted() {
        let asks = ("connection", "keep-alive, Upgrade");
        let socket = ("upgrade", "WebSocket");
        assert_eq!(wished("GET", &[asks, socket]), Ok(Wish::WebSocket));
        assert_eq!(wished("GET", &[socket]), Ok(Wish::Http));
        assert_eq!(wished("GET", &[asks]), Ok(Wish::Http));
        for other in ["h2c", "TLS/1.0", "websocket, h2c", "foo"] {
            let other = ("upgrade", other);
            assert_eq!(wished("GET", &[asks, other]), Err(BadWish::Protocol));
            assert_eq!(
                wished("GET", &[asks, socket, other]),
                Err(BadWish::Protocol)
            );
        }
        assert_eq!(wished("POST", &[asks, socket]), Err(BadWish::Form));
        let body = ("content-length", "1");
        assert_eq!(wished("GET", &[asks, socket, body]), Err(BadWish::Form));
    }
}
