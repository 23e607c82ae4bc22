//! The pages of a web server. Those that are not named here tell what the
//! request was.

use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use data_encoding::BASE64;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::answer::{Answer, add_header, streamed, text, whole};
use super::events::Gates;
use super::{coding, repository, socket};
use crate::internet::log::Visit;

/// How much of a body is shown; the rest is only counted.
const SHOWN: usize = 64 * 1024;

/// One connection's view of the server.
pub(super) struct Room {
    pub(super) visit: Visit,
    pub(super) sni: String,
    pub(super) files: PathBuf,
    pub(super) gates: Gates,
    pub(super) wants: Option<String>,
}

/// A request that was read to its end.
pub(super) struct Asked {
    pub(super) parts: Parts,
    pub(super) body: Bytes,
    trailers: HeaderMap,
}

impl Asked {
    pub(super) fn authorization(&self) -> &str {
        authorization(&self.parts)
    }

    fn shown_body(&self) -> String {
        let shown = &self.body[..self.body.len().min(SHOWN)];
        String::from_utf8_lossy(shown).into_owned()
    }
}

impl Room {
    pub(super) async fn answer(&self, mut request: Request<Incoming>) -> Answer {
        self.visit.saw(head(&request));
        if self.is_refused(&request) {
            let mut answer = text(StatusCode::UNAUTHORIZED, "who are you?");
            add_header(&mut answer, "www-authenticate", "Basic realm=\"test\"");
            return answer;
        }
        let path = request.uri().path().to_owned();
        match path.trim_start_matches('/').split_once('/') {
            Some(("early", status)) => return early(number_of(status), request.into_body()),
            Some(("socket", _)) => return socket::answer(&mut request, self.visit.clone()),
            _ => {}
        }
        match self.read(request).await {
            Ok(asked) => self.page(&asked).await,
            Err(error) => text(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }

    fn is_refused(&self, request: &Request<Incoming>) -> bool {
        let came = request.headers().get(AUTHORIZATION);
        let wanted = self.wants.as_ref().map(String::as_bytes);
        wanted.is_some_and(|wanted| came.is_none_or(|came| came.as_bytes() != wanted))
    }

    async fn read(&self, request: Request<Incoming>) -> hyper::Result<Asked> {
        let (parts, mut body) = request.into_parts();
        let mut bytes = BytesMut::new();
        let mut trailers = HeaderMap::new();
        let mut heard = self.visit.hear();
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(data) => {
                    heard.add(&data);
                    bytes.extend_from_slice(&data);
                }
                Err(other) => trailers = other.into_trailers().unwrap_or_default(),
            }
        }
        Ok(Asked {
            parts,
            body: bytes.freeze(),
            trailers,
        })
    }

    async fn page(&self, asked: &Asked) -> Answer {
        let uri = asked.parts.uri.clone();
        let path = uri.path().trim_start_matches('/');
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match first {
            "bytes" => filling(rest.parse().unwrap_or(0)),
            "status" => with_status(number_of(rest)),
            "redirect" => redirect(uri.query().unwrap_or_default()),
            "encoded" => self.encoded(asked, rest),
            "claims" => self.claims(asked, rest),
            "split" => self.split(asked, rest.parse().unwrap_or(1)),
            "trailers" => self.with_trailers(asked),
            "forms" => forms(asked),
            "events" => self.events(asked, rest),
            "git" => repository::answer(asked, &self.files).await,
            _ => whole(StatusCode::OK, "application/json", self.echo(asked)),
        }
    }

    /// What the request was, as JSON.
    fn echo(&self, asked: &Asked) -> String {
        let uri = &asked.parts.uri;
        let own_host = uri.authority().map(ToString::to_string);
        let headers = &asked.parts.headers;
        let told = json!({
            "method": asked.parts.method.as_str(),
            "target": uri.path_and_query().map(PathAndQuery::as_str),
            "version": format!("{:?}", asked.parts.version),
            "host": own_host.or_else(|| headers.get(HOST).map(shown)),
            "headers": pairs(headers),
            "trailers": pairs(&asked.trailers),
            "body_bytes": asked.body.len(),
            "body": asked.shown_body(),
            "from": self.visit.from,
            "to": self.visit.to,
            "sni": self.sni,
        });
        format!("{told}\n")
    }

    /// The echo in codings, which the header tells.
    fn encoded(&self, asked: &Asked, codings: &str) -> Answer {
        let Some(bytes) = coding::encode(&self.echo(asked), codings) else {
            return text(StatusCode::NOT_FOUND, "no such coding");
        };
        let mut answer = whole(StatusCode::OK, "application/json", bytes);
        let told = codings.replace("deflate-raw", "deflate");
        let told = told.replace("gzip-filled", "gzip");
        add_header(&mut answer, "content-encoding", &told);
        answer
    }

    /// The echo as it is, with a header that claims a coding.
    fn claims(&self, asked: &Asked, coding: &str) -> Answer {
        let mut answer = whole(StatusCode::OK, "application/json", self.echo(asked));
        add_header(&mut answer, "content-encoding", coding);
        answer
    }

    /// The echo in pieces of `length` bytes.
    fn split(&self, asked: &Asked, length: usize) -> Answer {
        let echo = Bytes::from(self.echo(asked));
        streamed("application/json", async move |mut pieces| {
            for piece in echo.chunks(length.max(1)) {
                pieces.send(echo.slice_ref(piece)).await?;
            }
            Some(())
        })
    }

    /// The echo, then what came as `Authorization`.
    fn with_trailers(&self, asked: &Asked) -> Answer {
        let echo = self.echo(asked);
        let mut trailers = HeaderMap::new();
        if let Some(value) = asked.parts.headers.get(AUTHORIZATION) {
            trailers.insert("x-came", value.clone());
        }
        trailers.insert("x-end", "yes".parse().expect("a value"));
        let mut answer = streamed("application/json", async move |mut pieces| {
            pieces.send(echo).await?;
            pieces.end_with(trailers).await
        });
        add_header(&mut answer, "trailer", "x-came, x-end");
        answer
    }

    fn events(&self, asked: &Asked, rest: &str) -> Answer {
        if let Some(name) = rest.strip_suffix("/next") {
            self.gates.open(name);
            return text(StatusCode::OK, "opened");
        }
        self.gates.stream(rest, 3, asked.authorization().to_owned())
    }
}

/// The head of a request, as text.
fn head(request: &Request<Incoming>) -> String {
    let first = format!(
        "{} {} {:?}",
        request.method(),
        request.uri(),
        request.version()
    );
    let headers = pairs(request.headers()).into_iter();
    let lines = headers.map(|(name, value)| format!("\r\n{name}: {value}"));
    first + &lines.collect::<String>()
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair = |(name, value): (&hyper::header::HeaderName, _)| (name.to_string(), shown(value));
    headers.iter().map(pair).collect()
}

fn shown(value: &hyper::header::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

fn authorization(parts: &Parts) -> &str {
    let value = parts.headers.get(AUTHORIZATION);
    value.and_then(|value| value.to_str().ok()).unwrap_or("-")
}

fn number_of(text: &str) -> StatusCode {
    let number = text.parse().ok();
    let status = number.and_then(|number| StatusCode::from_u16(number).ok());
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// An answer before the body was read. The body lives as long as the answer,
/// or the stream would be reset before that is sent.
fn early(status: StatusCode, unread: Incoming) -> Answer {
    let mut answer = streamed("text/plain", async move |mut pieces| {
        pieces.send("before the body\n").await?;
        drop(unread);
        Some(())
    });
    *answer.status_mut() = status;
    answer
}

fn with_status(status: StatusCode) -> Answer {
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => {
            whole(status, "text/plain", Bytes::new())
        }
        _ => text(status, status.as_str()),
    }
}

fn filling(count: usize) -> Answer {
    const PIECE: usize = 64 * 1024;
    static FILLING: [u8; PIECE] = [b'x'; PIECE];
    streamed("application/octet-stream", async move |mut pieces| {
        let mut left = count;
        while left > 0 {
            let length = left.min(PIECE);
            pieces.send(&FILLING[..length]).await?;
            left -= length;
        }
        Some(())
    })
}

fn redirect(query: &str) -> Answer {
    let to = query.strip_prefix("to=").unwrap_or_default();
    let to = percent_decode_str(to).decode_utf8_lossy().into_owned();
    // The method and the body are kept.
    let mut answer = text(StatusCode::TEMPORARY_REDIRECT, "elsewhere");
    add_header(&mut answer, "location", &to);
    answer
}

/// What came as `Authorization`, in every form, in a body and in headers.
fn forms(asked: &Asked) -> Answer {
    let value = asked.authorization();
    let value = value.rsplit(' ').next().unwrap_or(value);
    let forms = coding::forms(value);
    let lines = forms.iter().map(|(name, form)| format!("{name} {form}\n"));
    let mut answer = whole(StatusCode::OK, "text/plain", lines.collect::<String>());
    add_header(&mut answer, "x-raw", value);
    add_header(&mut answer, "x-base64", &BASE64.encode(value.as_bytes()));
    add_header(&mut answer, "set-cookie", &format!("seen={value}; Secure"));
    answer
}
