//! Looks for the placeholders of one sandbox in parts of a request.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;

use crate::secrets::{Context, Found, Misplaced, Placeholders, Watch};

/// The placeholders, if the sandbox has any.
#[derive(Clone)]
pub(super) struct Finder(Option<Arc<Placeholders>>);

impl Finder {
    pub(super) fn new(placeholders: Option<Arc<Placeholders>>) -> Self {
        Self(placeholders)
    }

    /// Whether the placeholder of `service` is in `bytes`, in any form.
    pub(super) fn finds(&self, service: &str, bytes: &[u8]) -> bool {
        let Some(placeholders) = &self.0 else {
            return false;
        };
        placeholders.holds(service, bytes)
    }

    /// Watches what leaves for placeholders of other services than `bound`.
    pub(super) fn watch(&self, bound: &[&str]) -> Option<Watch> {
        let placeholders = self.0.as_ref()?;
        Some(Watch::new(Arc::clone(placeholders)).except(bound))
    }

    /// Looks through a head for placeholders of other services than `bound`.
    pub(super) fn check_head(
        &self,
        target: &str,
        headers: &HeaderMap,
        bound: &[&str],
    ) -> Result<(), Found> {
        let Some(mut watch) = self.watch(bound) else {
            return Ok(());
        };
        watch.feed(target.as_bytes())?;
        check_headers(&mut watch, headers)
    }

    /// `bytes` with the secret in place of its placeholder.
    pub(super) fn replace<'a>(
        &self,
        service: &str,
        bytes: &'a [u8],
        context: Context,
        secret: &str,
    ) -> Cow<'a, [u8]> {
        let secret_of = |own: &str| (own == service).then_some(secret);
        match &self.0 {
            Some(placeholders) => placeholders.substitute(bytes, context, &secret_of),
            None => Cow::Borrowed(bytes),
        }
    }

    /// Whether the secret of `service` may stand where `check` looks.
    pub(super) fn check_place(
        &self,
        check: impl FnOnce(&Placeholders) -> Result<(), Misplaced>,
    ) -> Result<(), Misplaced> {
        self.0.as_deref().map_or(Ok(()), check)
    }

    /// Whether [`Self::replace`] would change something.
    pub(super) fn can_replace(&self, service: &str, bytes: &[u8]) -> bool {
        let replaced = self.replace(service, bytes, Context::Plain, "");
        matches!(replaced, Cow::Owned(_))
    }

    /// Whether [`Self::replace_in_header`] would.
    pub(super) fn can_replace_in_header(&self, service: &str, value: &[u8]) -> bool {
        matches!(self.replace_in_header(service, value, ""), Cow::Owned(_))
    }

    /// As in [`Self::replace`]; also inside `Basic` credentials.
    pub(super) fn replace_in_header<'a>(
        &self,
        service: &str,
        value: &'a [u8],
        secret: &str,
    ) -> Cow<'a, [u8]> {
        let secret_of = |own: &str| (own == service).then_some(secret);
        match &self.0 {
            Some(placeholders) => placeholders.substitute_header(value, &secret_of),
            None => Cow::Borrowed(value),
        }
    }
}

/// Looks through names and values; what is in two headers is not in one piece.
pub(super) fn check_headers(watch: &mut Watch, headers: &HeaderMap) -> Result<(), Found> {
    for (name, value) in headers {
        let name = name.as_str().as_bytes();
        for part in [&b"\n"[..], name, b": ", value.as_bytes()] {
            watch.feed(part)?;
        }
    }
    Ok(())
}
