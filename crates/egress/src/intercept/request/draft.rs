//! A request as it is to leave, and how a secret gets into it.

use std::borrow::Cow;

use bytes::Bytes;
use data_encoding::BASE64;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ringfence_policy::{Attach, Attachment, HeaderFormat};
use thiserror::Error;

use super::finder::Finder;
use crate::secret::Secret;
use crate::secrets::{Context, Misplaced};

/// Everything but what has no meaning of its own in a URL (RFC 3986, 2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What of a request may be changed.
#[derive(Clone)]
pub(super) struct Draft {
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    /// The body, where it was read as a whole.
    pub(super) body: Option<Bytes>,
}

/// Why a secret cannot be put where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Unfit {
    #[error("the secret has characters that cannot stand in a header")]
    Header,
    #[error("the header's name is none")]
    Name,
    #[error(transparent)]
    Place(#[from] Misplaced),
}

impl Draft {
    /// Whether the attachment has something to do here: its place is free, is
    /// held by the placeholder, or is taken from whatever is there.
    pub(super) fn wants(&self, attachment: &Attachment<'_>, finder: &Finder) -> bool {
        let service = attachment.credential.service.as_str();
        let holds = |bytes: &[u8]| finder.finds(service, bytes);
        let replace = attachment.binding.replace;
        match &attachment.binding.attach {
            Attach::Header { name, .. } => self.wants_header(name, replace, holds),
            Attach::Basic { .. } => self.wants_header(AUTHORIZATION.as_str(), replace, holds),
            Attach::Query { name } => self.wants_parameter(name, replace, holds),
            Attach::Placeholder { body } => {
                let mut values = self.headers.values();
                finder.can_replace(service, self.target.as_bytes())
                    || values.any(|value| finder.can_replace_in_header(service, value.as_bytes()))
                    || *body
                        && self
                            .body
                            .as_ref()
                            .is_some_and(|body| finder.can_replace(service, body))
            }
        }
    }

    fn wants_header(&self, name: &str, replace: bool, holds: impl Fn(&[u8]) -> bool) -> bool {
        let mut values = self.headers.get_all(name).iter().peekable();
        values.peek().is_none() || replace || values.any(|value| holds(value.as_bytes()))
    }

    fn wants_parameter(&self, name: &str, replace: bool, holds: impl Fn(&[u8]) -> bool) -> bool {
        let mut values = parameters(&self.target)
            .filter(|text| is_named(text, name))
            .peekable();
        values.peek().is_none() || replace || values.any(|text| holds(text.as_bytes()))
    }

    /// Puts the secret where it belongs.
    pub(super) fn put(
        &mut self,
        attachment: &Attachment<'_>,
        secret: &Secret,
        finder: &Finder,
    ) -> Result<(), Unfit> {
        match &attachment.binding.attach {
            Attach::Header { name, format } => self.put_header(name, format, secret),
            Attach::Basic { username } => self.put_basic(username, secret),
            Attach::Query { name } => {
                self.target = with_parameter(&self.target, name, &encoded(secret));
                Ok(())
            }
            Attach::Placeholder { body } => {
                let service = attachment.credential.service.as_str();
                self.put_in_place(service, secret, finder, *body)
            }
        }
    }

    fn put_header(
        &mut self,
        name: &str,
        format: &HeaderFormat,
        secret: &Secret,
    ) -> Result<(), Unfit> {
        let (before, after) = format.around();
        let text = [before, check_visible(secret)?, after].concat();
        let name = HeaderName::try_from(name).map_err(|_| Unfit::Name)?;
        self.headers.insert(name, sensitive(text.into())?);
        Ok(())
    }

    fn put_basic(&mut self, username: &str, secret: &Secret) -> Result<(), Unfit> {
        let pair = [username, ":", check_visible(secret)?].concat();
        let text = format!("Basic {}", BASE64.encode(pair.as_bytes()));
        self.headers.insert(AUTHORIZATION, sensitive(text.into())?);
        Ok(())
    }

    /// In place of its placeholder.
    fn put_in_place(
        &mut self,
        service: &str,
        secret: &Secret,
        finder: &Finder,
        in_body: bool,
    ) -> Result<(), Unfit> {
        for value in self.headers.values_mut() {
            if let Cow::Owned(text) =
                finder.replace_in_header(service, value.as_bytes(), secret.expose())
            {
                check_visible(secret)?;
                finder.check_place(|own| own.check_header(service, value.as_bytes()))?;
                *value = sensitive(text)?;
            }
        }
        let target = self.target.as_bytes();
        if let Cow::Owned(text) = finder.replace(service, target, Context::Form, secret.expose())
            && let Ok(text) = String::from_utf8(text)
        {
            finder.check_place(|own| own.check_target(service, target))?;
            self.target = text;
        }
        match self.body.clone().filter(|_| in_body) {
            Some(body) => self.put_in_body(service, secret, finder, &body),
            None => Ok(()),
        }
    }

    fn put_in_body(
        &mut self,
        service: &str,
        secret: &Secret,
        finder: &Finder,
        body: &[u8],
    ) -> Result<(), Unfit> {
        let kind = self.field(CONTENT_TYPE.as_str());
        let transfer = self.field("content-transfer-encoding");
        let replaced = finder.replace(service, body, Context::of(&kind), secret.expose());
        if let Cow::Owned(bytes) = replaced {
            finder.check_place(|own| own.check_body(service, body, (&kind, &transfer)))?;
            self.body = Some(bytes.into());
        }
        Ok(())
    }

    /// All values of a header, as far as they are text.
    pub(super) fn field(&self, name: &str) -> String {
        let values = self.headers.get_all(name).iter();
        let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
        values.collect::<Vec<_>>().join(", ")
    }
}

/// A secret with a line break would add headers of its own.
fn check_visible(secret: &Secret) -> Result<&str, Unfit> {
    let text = secret.expose();
    let visible = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if visible {
        Ok(text)
    } else {
        Err(Unfit::Header)
    }
}

/// Never put into a table of headers, never shown.
fn sensitive(text: Vec<u8>) -> Result<HeaderValue, Unfit> {
    let mut value = HeaderValue::try_from(text).map_err(|_| Unfit::Header)?;
    value.set_sensitive(true);
    Ok(value)
}

fn encoded(secret: &Secret) -> String {
    utf8_percent_encode(secret.expose(), &RESERVED).to_string()
}

/// The parameters of a target's query, as written.
fn parameters(target: &str) -> impl Iterator<Item = &str> {
    let query = target.split_once('?').map(|(_, query)| query);
    query.into_iter().flat_map(|query| query.split('&'))
}

fn is_named(parameter: &str, name: &str) -> bool {
    let own = parameter.split('=').next().unwrap_or_default();
    percent_decode_str(own).eq(name.bytes())
}

/// The target with one parameter `name`, where the first of that name was.
fn with_parameter(target: &str, name: &str, value: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let own = format!("{name}={value}");
    let mut placed = false;
    let mut query: Vec<&str> = Vec::new();
    for parameter in parameters(target) {
        match (is_named(parameter, name), placed) {
            (false, _) => query.push(parameter),
            (true, true) => {}
            (true, false) => {
                query.push(&own);
                placed = true;
            }
        }
    }
    if !placed {
        query.retain(|parameter| !parameter.is_empty());
        query.push(&own);
    }
    format!("{path}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_put_in_once() {
        for (target, want) in [
            ("/x", "/x?key=v"),
            ("/x?", "/x?key=v"),
            ("/x?a=1", "/x?a=1&key=v"),
            ("/x?key=old&a=1&key=older", "/x?key=v&a=1"),
            ("/x?a=1&%6bey=old", "/x?a=1&key=v"),
            ("/x?key", "/x?key=v"),
            ("/x?a=b?c&keys=1", "/x?a=b?c&keys=1&key=v"),
        ] {
            assert_eq!(with_parameter(target, "key", "v"), want, "{target}");
        }
    }

    #[test]
    fn g5_a_secret_with_a_line_break_goes_into_no_header() {
        for value in ["a\r\nX: y", "a\nb", "a\0b", "naïve", "a\tb", "\u{7f}"] {
            let secret = Secret::new(value.to_owned());
            assert_eq!(check_visible(&secret), Err(Unfit::Header), "{value:?}");
        }
        assert!(check_visible(&Secret::new("a-B_c/1= x".to_owned())).is_ok());
        assert_eq!(
            encoded(&Secret::new("a/b&c=d e\r\n".to_owned())),
            "a%2Fb%26c%3Dd%20e%0D%0A"
        );
    }
}
