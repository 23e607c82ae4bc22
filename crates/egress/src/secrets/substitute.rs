//! Puts secrets in the place of their placeholders.
//!
//! Where a place has escapes, every character is written as one: then nothing
//! that stands before it can take it for a part of its own.

use std::borrow::Cow;
use std::sync::LazyLock;

use data_encoding::{BASE64, Encoding, Specification};
use percent_encoding::percent_encode_byte;
use zeroize::Zeroizing;

use super::watch::Placeholders;

/// Longer than any credentials.
const LONGEST_BASIC: usize = 128 * 1024;

/// Base64 as lenient readers take it, in the usual alphabet.
static LENIENT: LazyLock<Option<Encoding>> = LazyLock::new(|| {
    let mut specification = Specification::new();
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    specification.symbols.push_str(alphabet);
    specification.translate.from.push_str("-_");
    specification.translate.to.push_str("+/");
    specification.check_trailing_bits = false;
    specification.encoding().ok()
});

/// What a placeholder stands in, and so how its secret has to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    Plain,
    Json,
    /// A form, or a URL.
    Form,
}

impl Context {
    /// By the value of `Content-Type`.
    pub(crate) fn of(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        match essence.split_once('/') {
            Some((_, "json" | "x-ndjson" | "json-seq")) => Self::Json,
            Some((_, subtype)) if subtype.ends_with("+json") => Self::Json,
            Some(("application", "x-www-form-urlencoded")) => Self::Form,
            _ => Self::Plain,
        }
    }

    pub(super) fn write(self, secret: &str, out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(secret.as_bytes()),
            Self::Form => {
                for byte in secret.bytes() {
                    out.extend_from_slice(percent_encode_byte(byte).as_bytes());
                }
            }
            Self::Json => {
                for unit in secret.encode_utf16() {
                    out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                }
            }
        }
    }
}

impl Placeholders {
    /// `text` with the secrets that `secret_of` has for their services;
    /// placeholders of others stay. Borrowed if nothing changed.
    pub(crate) fn substitute<'t, 's>(
        &self,
        text: &'t [u8],
        context: Context,
        secret_of: &dyn Fn(&str) -> Option<&'s str>,
    ) -> Cow<'t, [u8]> {
        let mut out = Vec::new();
        let mut copied = 0;
        for found in self.texts.find_iter(text) {
            let service = &self.all[found.pattern()].service;
            if let Some(secret) = secret_of(service) {
                out.extend_from_slice(&text[copied..found.start()]);
                context.write(secret, &mut out);
                copied = found.end();
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.extend_from_slice(&text[copied..]);
        Cow::Owned(out)
    }

    /// The same for the value of a header, also within credentials of the
    /// scheme `Basic`.
    pub(crate) fn substitute_header<'t, 's>(
        &self,
        value: &'t [u8],
        secret_of: &dyn Fn(&str) -> Option<&'s str>,
    ) -> Cow<'t, [u8]> {
        let Some((scheme, pair)) = self.basic(value) else {
            return self.substitute(value, Context::Plain, secret_of);
        };
        match self.substitute(&pair, Context::Plain, secret_of) {
            Cow::Borrowed(_) => Cow::Borrowed(value),
            Cow::Owned(pair) => {
                let pair = Zeroizing::new(pair);
                Cow::Owned([scheme, BASE64.encode(&pair).as_bytes()].concat())
            }
        }
    }

    /// The text of a header's value in which placeholders are replaced.
    pub(super) fn opened<'t>(&self, value: &'t [u8]) -> Cow<'t, [u8]> {
        match self.basic(value) {
            Some((_, pair)) => Cow::Owned(pair),
            None => Cow::Borrowed(value),
        }
    }

    /// The scheme with its blank, and name and password, where a placeholder
    /// is in them.
    fn basic<'t>(&self, value: &'t [u8]) -> Option<(&'t [u8], Vec<u8>)> {
        let (scheme, pair) = basic(value)?;
        self.texts.is_match(&pair).then_some((scheme, pair))
    }
}

/// The scheme with its blank, and name and password.
fn basic(value: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let (scheme, encoded) = value.split_at_checked(b"Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") || encoded.len() > LONGEST_BASIC {
        return None;
    }
    let mut encoded = encoded.trim_ascii();
    while let Some(rest) = encoded.strip_suffix(b"=") {
        encoded = rest;
    }
    let pair = LENIENT.as_ref()?.decode(encoded).ok()?;
    Some((scheme, pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Placeholder;

    const ONE: &str = "rf-0123456789abcdef0123456789abcdef";
    const TWO: &str = "rf-fedcba9876543210fedcba9876543210";

    fn placeholders() -> Placeholders {
        let all = [("one", ONE), ("two", TWO)].map(|(service, text)| Placeholder {
            service: service.to_owned(),
            text: text.to_owned(),
        });
        Placeholders::new(&all).unwrap()
    }

    fn secret_of(service: &str) -> Option<&'static str> {
        (service == "one").then_some("a\"b\\c d&é")
    }

    fn substituted(text: &str, context: Context) -> String {
        let placeholders = placeholders();
        let out = placeholders.substitute(text.as_bytes(), context, &secret_of);
        String::from_utf8(out.into_owned()).unwrap()
    }

    #[test]
    fn each_context_has_its_own_way_to_write_a_secret() {
        let text = format!("x={ONE}&y={TWO}&z={ONE}.");
        for (context, want) in [
            (Context::Plain, "a\"b\\c d&é"),
            (
                Context::Json,
                "\\u0061\\u0022\\u0062\\u005c\\u0063\\u0020\\u0064\\u0026\\u00e9",
            ),
            (Context::Form, "%61%22%62%5C%63%20%64%26%C3%A9"),
        ] {
            let want = format!("x={want}&y={TWO}&z={want}.");
            assert_eq!(substituted(&text, context), want);
        }
    }

    #[test]
    fn what_has_no_placeholder_of_a_known_service_is_not_copied() {
        let placeholders = placeholders();
        for text in ["", "rf-", TWO, "Basic dXNlcjpwYXNz"] {
            let out = placeholders.substitute(text.as_bytes(), Context::Plain, &secret_of);
            assert!(matches!(out, Cow::Borrowed(_)), "{text}");
            let out = placeholders.substitute_header(text.as_bytes(), &secret_of);
            assert!(matches!(out, Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn basic_credentials_are_opened() {
        let placeholders = placeholders();
        let value = format!("basic {}", BASE64.encode(format!("me:{ONE}").as_bytes()));
        let out = placeholders.substitute_header(value.as_bytes(), &secret_of);
        let want = BASE64.encode("me:a\"b\\c d&é".as_bytes());
        assert_eq!(out, format!("basic {want}").as_bytes());
        for unusual in [value.trim_end_matches('=').to_owned(), format!("{value}==")] {
            let out = placeholders.substitute_header(unusual.as_bytes(), &secret_of);
            assert_eq!(out, format!("basic {want}").as_bytes(), "{unusual}");
        }
        let whole = format!("Basic {ONE}");
        let out = placeholders.substitute_header(whole.as_bytes(), &secret_of);
        assert_eq!(out, "Basic a\"b\\c d&é".as_bytes());
        let value = format!("Bearer {ONE}");
        let out = placeholders.substitute_header(value.as_bytes(), &secret_of);
        assert_eq!(out, "Bearer a\"b\\c d&é".as_bytes());
    }

    #[test]
    fn the_context_is_told_by_the_type_of_the_content() {
        for (text, want) in [
            ("application/json; charset=utf-8", Context::Json),
            ("Application/JSON", Context::Json),
            ("application/vnd.api+json", Context::Json),
            ("application/x-www-form-urlencoded", Context::Form),
            ("text/plain", Context::Plain),
            ("json", Context::Plain),
            ("", Context::Plain),
        ] {
            assert_eq!(Context::of(text), want, "{text}");
        }
    }
}
