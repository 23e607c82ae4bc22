//! [`Target`]: what a client named, a host name or an address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::Serialize;
use thiserror::Error;

use super::inet;
use super::name::{HostName, HostNameError, canonical_ascii};

/// A destination as named by a client: a host name, or an address in any spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A DNS name.
    Name(HostName),
    /// An address; IPv4-mapped IPv6 is held as IPv4.
    Addr(IpAddr),
}

impl Target {
    /// Parses a host as it stands in a URL, a CONNECT line or a SOCKS request, without port.
    ///
    /// `2130706433`, `0x7f.1` and `[::ffff:127.0.0.1]` all give `127.0.0.1`. IPv6 may be
    /// bracketed or bare; zone identifiers are refused.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if let Some(inner) = text.strip_prefix('[') {
            return bracketed(text, inner);
        }
        if text.contains(':') {
            return match inet::parse(text) {
                Some(address) => Ok(Self::Addr(address)),
                None => Err(TargetError::Address(text.to_owned())),
            };
        }
        let ascii = canonical_ascii(text)?;
        match inet::parse(&ascii) {
            Some(address) => Ok(Self::Addr(address)),
            None => Ok(Self::Name(HostName::parse(&ascii)?)),
        }
    }

    /// The name, when it is one.
    pub fn name(&self) -> Option<&HostName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Addr(_) => None,
        }
    }

    /// The address, when it is one.
    pub fn addr(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Addr(address) => Some(*address),
        }
    }
}

fn bracketed(text: &str, inner: &str) -> Result<Target, TargetError> {
    inner
        .strip_suffix(']')
        .and_then(|inside| inside.parse::<Ipv6Addr>().ok())
        .map(|address| Target::Addr(address.to_canonical()))
        .ok_or_else(|| TargetError::Address(text.to_owned()))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Addr(IpAddr::V4(address)) => address.fmt(f),
            Self::Addr(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Why a text names no destination.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither an address nor a host name.
    #[error(transparent)]
    Name(#[from] HostNameError),
    /// Looks like an IPv6 address and is none.
    #[error("{0:?} is not an IPv6 address")]
    Address(String),
}

impl TargetError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name(error) => error.code(),
            Self::Address(_) => "malformed-address",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Name(error) => error.hint(),
            Self::Address(_) => "write an address such as [2001:db8::1], without zone",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_every_spelling_of_an_address_is_that_address() {
        for text in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7F.1",
            "0177.1",
            "127.0.0.1.",
            "[::ffff:127.0.0.1]",
            "::ffff:7f00:1",
            "１２７。0。0。1",
        ] {
            assert_eq!(
                Target::parse(text).unwrap().to_string(),
                "127.0.0.1",
                "{text}"
            );
        }
        assert_eq!(Target::parse("[FE80::1]").unwrap().to_string(), "[fe80::1]");
    }

    #[test]
    fn refuses_what_is_neither() {
        for text in [
            "",
            "[::1",
            "[127.0.0.1]",
            "::1%eth0",
            "[fe80::1%25eth0]",
            "a:b",
            "1.2.3.999",
            "foo.0x1",
            "a\0.example.org",
        ] {
            assert!(Target::parse(text).is_err(), "{text:?}");
        }
    }
}
