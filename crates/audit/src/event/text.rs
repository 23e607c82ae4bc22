//! Texts of an event, each with a bound and without what must not be kept.

use std::borrow::Cow;
use std::fmt;

use ringfence_policy::Reason;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::redact::{Redact, Secrets};

/// What a text that was cut ends with.
pub(crate) const CUT: &str = "…";

/// The name of a sandbox.
pub type SandboxText = Text<128>;
/// The method of an HTTP request.
pub type MethodText = Text<32>;

/// A text of at most `MOST` bytes; a longer one is cut and ends in `…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Text<const MOST: usize>(String);

impl<const MOST: usize> Text<MOST> {
    /// Takes as much of `text` as there is room for.
    pub fn new(text: &str) -> Self {
        let text = without_unseen(text);
        if text.len() <= MOST {
            return Self(text.into_owned());
        }
        let kept = text.floor_char_boundary(MOST - CUT.len());
        Self([&text[..kept], CUT].concat())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MOST: usize> Redact for Text<MOST> {
    fn redact(&mut self, secrets: &Secrets) {
        if let Some(text) = secrets.redact(&self.0) {
            *self = Self::new(&text);
        }
    }
}

impl<const MOST: usize> fmt::Display for Text<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const MOST: usize> From<&str> for Text<MOST> {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Text<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(&Cow::<str>::deserialize(deserializer)?))
    }
}

impl<const MOST: usize> JsonSchema for Text<MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Text{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MOST })
    }
}

/// Whether a character drives a terminal, or changes how others are shown.
fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// Each such character replaced.
pub(crate) fn without_unseen(text: &str) -> Cow<'_, str> {
    if text.contains(is_unseen) {
        text.replace(is_unseen, "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Makes a newtype of [`Text`] whose constructor leaves something out.
macro_rules! text_without {
    ($(#[$doc:meta])* $name:ident, $most:literal, $clean:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(Text<$most>);

        impl $name {
            /// Takes what may be kept of `text`, as much as there is room for.
            pub fn new(text: &str) -> Self {
                Self(Text::new($clean(text)))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl Redact for $name {
            fn redact(&mut self, secrets: &Secrets) {
                self.0.redact(secrets);
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self::new(&Cow::<str>::deserialize(deserializer)?))
            }
        }
    };
}

text_without! {
    /// The name that a client used, well-formed or not, without user and password.
    HostText, 255, without_user
}

text_without! {
    /// The path of a request, without its query, where secrets are often put, and
    /// without the scheme, user and host that a proxy request has before it.
    PathText, 1024, path_only
}

fn without_user(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

fn path_only(target: &str) -> &str {
    let end = target.find(['?', '#']).unwrap_or(target.len());
    let target = &target[..end];
    // A path starts with a slash. Anything else has an authority in front of
    // its path, and that may hold a password; so may what follows two slashes.
    let rest = match target.strip_prefix("//") {
        Some(rest) if rest.contains('@') => rest,
        _ if target.starts_with('/') => return target,
        _ => target.split_once("://").map_or(target, |(_, rest)| rest),
    };
    match rest.find('/') {
        // What is left may look the same again.
        Some(at) => path_only(&rest[at..]),
        None if target == "*" => target,
        None => "",
    }
}

/// Why, as a stable code: one of [`Reason`] or of the part that refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ReasonCode(#[schemars(length(max = 64))] Cow<'static, str>);

impl ReasonCode {
    /// A code that is no decision of the policy, such as `tls-without-name`.
    pub const fn new(code: &'static str) -> Self {
        Self(Cow::Borrowed(code))
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Reason> for ReasonCode {
    fn from(reason: Reason) -> Self {
        Self::new(reason.code())
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ReasonCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::<64>::deserialize(deserializer)?;
        Ok(Self(Cow::Owned(text.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(Text::<8>::new("12345678").as_str(), "12345678");
        assert_eq!(Text::<8>::new("123456789").as_str(), "12345…");
        assert_eq!(Text::<8>::new("1234éééé").as_str(), "1234…");
    }

    #[test]
    fn queries_and_passwords_are_not_kept() {
        for (sent, kept) in [
            ("/v1/items?token=s3cret", "/v1/items"),
            ("/v1#token=s3cret", "/v1"),
            ("http://me:s3cret@a.example.org/x?y", "/x"),
            ("http://me:s3cret@a.example.org", ""),
            ("me:s3cret@a.example.org:443", ""),
            ("//me:s3cret@a.example.org/x", "/x"),
            ("//a/b", "//a/b"),
            ("//a//me:s3cret@b/x", "/x"),
            ("////a@b/@x", "/@x"),
            ("/@scope/name", "/@scope/name"),
            ("*", "*"),
            ("", ""),
            ("?s3cret", ""),
        ] {
            assert_eq!(PathText::new(sent).as_str(), kept, "{sent}");
        }
        assert_eq!(
            HostText::new("me:s3cret@a.example.org").as_str(),
            "a.example.org"
        );
    }

    #[test]
    fn reasons_keep_their_code() {
        for reason in Reason::ALL {
            assert_eq!(ReasonCode::from(reason).as_str(), reason.code());
        }
    }
}
