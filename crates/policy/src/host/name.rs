//! [`HostName`]: the one canonical form of a DNS name.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use super::inet;

/// Everything ASCII but letters, digits, hyphen, underscore and the dot.
const FORBIDDEN: AsciiDenyList = AsciiDenyList::new(true, "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~");

/// A DNS name in canonical form: ASCII lower case, A-labels, no trailing dot.
///
/// Never an address: text that `inet_aton` or `inet_pton` would read as an address, and names
/// whose last label is a number, do not parse. Use [`Target::parse`](super::Target::parse) where
/// either may appear.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct HostName(String);

impl HostName {
    /// Parses and canonicalises `text`. One trailing dot is removed; parsing is idempotent.
    pub fn parse(text: &str) -> Result<Self, HostNameError> {
        let ascii = canonical_ascii(text)?;
        if inet::parse(&ascii).is_some() {
            return Err(HostNameError::Address(text.to_owned()));
        }
        if inet::ends_in_number(&ascii) {
            return Err(HostNameError::NumericEnd(text.to_owned()));
        }
        Ok(Self(ascii))
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Labels from the top-level domain down: `a.example.org` gives `org`, `example`, `a`.
    pub fn labels_from_top(&self) -> impl Iterator<Item = &str> {
        self.0.rsplit('.')
    }

    /// Number of labels, at least one.
    pub fn label_count(&self) -> usize {
        self.0.split('.').count()
    }

    /// True for names strictly below `parent`, at any depth.
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0
            .strip_suffix(parent.as_str())
            .is_some_and(|rest| rest.ends_with('.'))
    }

    /// True for `localhost` and every name below it, which always mean loopback (RFC 6761).
    pub fn is_localhost(&self) -> bool {
        self.labels_from_top().next() == Some("localhost")
    }
}

/// UTS 46 mapping, length limits and one trailing dot, without the name-or-address question.
pub(super) fn canonical_ascii(text: &str) -> Result<String, HostNameError> {
    if text.is_empty() {
        return Err(HostNameError::Empty);
    }
    let mapped = Uts46::new()
        .to_ascii(
            text.as_bytes(),
            FORBIDDEN,
            Hyphens::CheckFirstLast,
            DnsLength::VerifyAllowRootDot,
        )
        .map_err(|_| HostNameError::Malformed(text.to_owned()))?;
    let name = mapped.strip_suffix('.').unwrap_or(&mapped);
    if name.is_empty() || name.split('.').any(str::is_empty) {
        return Err(HostNameError::Malformed(text.to_owned()));
    }
    Ok(name.to_owned())
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for HostName {
    type Error = HostNameError;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

impl TryFrom<String> for HostName {
    type Error = HostNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for HostName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostName({})", self.0)
    }
}

/// Why a text is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostNameError {
    /// No text at all.
    #[error("the host name is empty")]
    Empty,
    /// A forbidden character, an empty, too long or badly hyphenated label, or an invalid IDN.
    #[error("{0:?} is not a host name")]
    Malformed(String),
    /// The text is an address, in some spelling.
    #[error("{0:?} is an address, not a host name")]
    Address(String),
    /// The last label is a number, so some programs would read an address.
    #[error("{0:?} ends in a number but is not an address")]
    NumericEnd(String),
}

impl HostNameError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty-host",
            Self::Malformed(_) => "malformed-host",
            Self::Address(_) => "address-not-name",
            Self::NumericEnd(_) => "numeric-host",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::Malformed(_) => {
                "write a DNS name such as api.example.org: letters, digits, '-', '_' and dots"
            }
            Self::Address(_) => "use an address rule for addresses",
            Self::NumericEnd(_) => "write the address as four decimal numbers, or a real name",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, want) in [
            ("Example.ORG", "example.org"),
            ("example.org.", "example.org"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
            ("ｅｘａｍｐｌｅ．org", "example.org"),
            ("example。org", "example.org"),
            ("example.org。", "example.org"),
            ("_dmarc.example.org", "_dmarc.example.org"),
            ("r3---sn-abc.example.org", "r3---sn-abc.example.org"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(HostName::parse(text).unwrap().as_str(), want, "{text}");
        }
    }

    #[test]
    fn g3_spellings_that_two_readers_could_split_are_refused() {
        for text in [
            "",
            ".",
            "..",
            ".example.org",
            "example..org",
            "example.org..",
            "evil.test\0.example.org",
            "evil.test%00.example.org",
            "user@example.org",
            "exa mple.org",
            " example.org",
            "example.org\n",
            "example.org/x",
            "example.org:443",
            "example.org\\x",
            "-.example.org",
            "-a.example.org",
            "a-.example.org",
            "xn--a.example.org",
            "[::1]",
            "*.example.org",
            "a#b.test",
        ] {
            assert!(HostName::parse(text).is_err(), "{text:?}");
        }
        assert!(HostName::parse(&format!("{}.test", "a".repeat(64))).is_err());
        assert!(HostName::parse(&["abcdefgh"; 30].join(".")).is_err());
    }

    #[test]
    fn addresses_and_numeric_ends_are_not_names() {
        for text in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "0x7f000001",
            "127.0.0.1.",
            "１２７.0.0.1",
            "0",
            "foo.123",
            "1.2.3.0x4z1.0x",
            "1.2.3.08",
            "1.2.3.4.5",
            "4294967296",
            "256.1.1.1",
        ] {
            assert!(HostName::parse(text).is_err(), "{text:?}");
        }
        assert!(HostName::parse("1password.test").is_ok());
        assert!(HostName::parse("0x7f.test").is_ok());
    }

    #[test]
    fn below_is_by_label() {
        let parent = HostName::parse("example.org").unwrap();
        assert!(
            HostName::parse("a.b.example.org")
                .unwrap()
                .is_below(&parent)
        );
        assert!(!HostName::parse("example.org").unwrap().is_below(&parent));
        assert!(!HostName::parse("badexample.org").unwrap().is_below(&parent));
    }
}
