//! Entries of allow and deny lists written as one string: `host`, `host:port`, address, block.

use thiserror::Error;

use super::{AllowRule, DenyRule, Destination, Reach};
use crate::address::{Cidr, CidrError};
use crate::host::{Dialect, HOST_ALIAS, HostPattern, PatternError, Target};
use crate::port::{Port, PortError, PortSet};

/// Which list an entry stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Must not be broader than a domain.
    Allow,
    /// May be as broad as it likes.
    Deny,
}

/// A parsed entry: whom it is about, and the port if one was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Names or addresses.
    pub destination: Destination,
    /// The port as written.
    pub port: Option<Port>,
}

impl Endpoint {
    /// Parses an entry. IPv6 stands in brackets, because `::1` could end in a port; a block, which
    /// our own lists take, needs none.
    pub fn parse(text: &str, dialect: Dialect, side: Side) -> Result<Self, EntryError> {
        if dialect == Dialect::Native && is_block(text) {
            return Self::parse_block(text, side);
        }
        if text.matches(':').count() > 1 && !text.starts_with('[') && !text.contains("://") {
            return Err(EntryError::BareV6(text.to_owned()));
        }
        let (host, port) = split_port(text)?;
        let destination = destination(host, dialect, side)?;
        Ok(Self { destination, port })
    }

    /// `10.1.0.0/16`, `10.1.0.0/16:5432` or `fd00::/8:5432`.
    fn parse_block(text: &str, side: Side) -> Result<Self, EntryError> {
        let port_at = text.find('/').and_then(|slash| {
            let colon = text[slash..].find(':')?;
            Some(slash + colon)
        });
        let (block, port) = match port_at {
            Some(at) => (&text[..at], Some(port_of(text, &text[at + 1..])?)),
            None => (text, None),
        };
        let block = Cidr::parse(block)?;
        if side == Side::Allow && block.net().prefix_len() == 0 {
            return Err(PatternError::TooBroad(text.to_owned()).into());
        }
        Ok(Self {
            destination: Destination::Block(block),
            port,
        })
    }

    /// The allow rule this entry stands for in `dialect`: no port is 80 and 443 in ours, any port
    /// in the others.
    pub fn allow(self, dialect: Dialect) -> AllowRule {
        let unstated = match dialect {
            Dialect::Native => PortSet::web(),
            Dialect::Srt | Dialect::Kit => PortSet::any(),
        };
        let reach = reach(&self.destination, dialect);
        let ports = self.port.map_or(unstated, PortSet::single);
        AllowRule {
            reach,
            ..AllowRule::plain(self.destination, ports)
        }
    }

    /// The deny rule this entry stands for: no port is any port.
    pub fn deny(self) -> DenyRule {
        DenyRule::plain(
            self.destination,
            self.port.map_or(PortSet::any(), PortSet::single),
        )
    }
}

fn reach(destination: &Destination, dialect: Dialect) -> Reach {
    match destination {
        Destination::Host(pattern) if pattern.name().is_localhost() => Reach::Loopback,
        _ if dialect == Dialect::Srt => Reach::Private,
        _ => Reach::Public,
    }
}

/// An address and the length of a prefix; a path below a name is none.
fn is_block(text: &str) -> bool {
    let address = text.split_once('/').map(|(address, _)| address);
    address.is_some_and(|address| address.parse::<std::net::IpAddr>().is_ok())
}

fn port_of(entry: &str, port: &str) -> Result<Port, EntryError> {
    port.parse().map_err(|source| EntryError::Port {
        entry: entry.to_owned(),
        source,
    })
}

/// Splits at the last colon outside brackets.
fn split_port(text: &str) -> Result<(&str, Option<Port>), EntryError> {
    let after_bracket = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[after_bracket..].split_once(':') {
        Some((rest, port)) if !text.contains("://") => (&text[..after_bracket + rest.len()], port),
        _ => return Ok((text, None)),
    };
    Ok((host, Some(port_of(text, port)?)))
}

fn destination(host: &str, dialect: Dialect, side: Side) -> Result<Destination, EntryError> {
    if host == "*" && side == Side::Deny && dialect == Dialect::Srt {
        return Ok(Destination::Any);
    }
    if let Ok(Target::Addr(address)) = Target::parse(host) {
        return Ok(Destination::Block(Cidr::host(address)));
    }
    let pattern = HostPattern::parse(host, dialect)?;
    if pattern.name().as_str() == HOST_ALIAS && side == Side::Allow {
        return Err(PatternError::HostAlias(host.to_owned()).into());
    }
    if pattern.is_too_broad() && (side == Side::Allow || dialect == Dialect::Srt) {
        return Err(PatternError::TooBroad(host.to_owned()).into());
    }
    Ok(Destination::Host(pattern))
}

/// Why an entry of an allow or deny list is refused. Each message shows the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EntryError {
    /// Not a host.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Not a block.
    #[error(transparent)]
    Cidr(#[from] CidrError),
    /// A port that is none.
    #[error("entry {entry:?}: {source}")]
    Port {
        /// The entry as written.
        entry: String,
        /// What is wrong with the port.
        source: PortError,
    },
    /// IPv6 without brackets.
    #[error("entry {0:?} is an IPv6 address without brackets")]
    BareV6(String),
}

impl EntryError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Pattern(error) => error.code(),
            Self::Cidr(error) => error.code(),
            Self::Port { .. } => "malformed-port",
            Self::BareV6(_) => "bare-ipv6",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Pattern(error) => error.hint(),
            Self::Cidr(error) => error.hint(),
            Self::Port { .. } => "a port is 1-65535 without leading zero",
            Self::BareV6(_) => "write [::1] or [::1]:443",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str, dialect: Dialect) -> Result<String, EntryError> {
        Endpoint::parse(text, dialect, Side::Allow).map(|entry| entry.allow(dialect).to_string())
    }

    #[test]
    fn ports_by_dialect() {
        assert_eq!(
            allow("example.org", Dialect::Native).unwrap(),
            "example.org:80,443"
        );
        assert_eq!(allow("example.org", Dialect::Srt).unwrap(), "example.org:*");
        assert_eq!(
            allow("*.example.org:8443", Dialect::Native).unwrap(),
            "*.example.org:8443"
        );
        assert_eq!(allow("[::1]:22", Dialect::Native).unwrap(), "[::1]:22");
        assert_eq!(
            allow("[::ffff:10.0.0.1]", Dialect::Srt).unwrap(),
            "10.0.0.1:*"
        );
        assert_eq!(allow("127.1:80", Dialect::Srt).unwrap(), "127.0.0.1:80");
    }

    /// The accept and reject table of srt 0.0.83, with its inert entries made to work or refused.
    #[test]
    fn srt_entries() {
        for text in [
            "example.org",
            "*.example.org",
            "a.b.example.org:8443",
            "localhost",
            "localhost:3000",
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:443",
            "EXAMPLE.org",
            "_x.example.org",
            "bücher.example.org",
        ] {
            assert!(allow(text, Dialect::Srt).is_ok(), "{text}");
        }
        for text in [
            "https://example.org",
            "example.org/path",
            "*",
            "*.com",
            "a*.com",
            "intranet",
            ".example.org",
            "example.org.",
            "10.0.0.0/8",
            "::1",
            "*.localhost",
            "example.org:0",
            "example.org:080",
            "example.org:65536",
            "example.org:",
            "exa mple.org",
            "example.org ",
            "",
            "*:22",
            "**.example.org",
            "user@example.org",
        ] {
            assert!(allow(text, Dialect::Srt).is_err(), "{text}");
        }
        for text in ["*", "*:22"] {
            let deny = Endpoint::parse(text, Dialect::Srt, Side::Deny).unwrap();
            assert_eq!(deny.destination, Destination::Any);
        }
        assert_eq!(
            allow("bücher.example.org", Dialect::Srt).unwrap(),
            "xn--bcher-kva.example.org:*"
        );
    }

    #[test]
    fn native_lists() {
        let deny = |text| {
            Endpoint::parse(text, Dialect::Native, Side::Deny).map(|entry| entry.deny().to_string())
        };
        assert_eq!(deny("10.9.0.0/16").unwrap(), "10.9.0.0/16");
        assert_eq!(deny("fd00::/8").unwrap(), "fd00::/8");
        assert_eq!(deny("*.internal").unwrap(), "*.internal");
        assert_eq!(deny("t.example.org:443").unwrap(), "t.example.org:443");
        for text in ["*", "::1", "10.9.0.1/16", "https://x.example.org"] {
            assert!(deny(text).is_err(), "{text}");
        }
        assert_eq!(
            deny("10.9.0.0/16:5432").unwrap(),
            "10.9.0.0/16:5432",
            "a block with a port"
        );
        assert_eq!(
            allow("10.1.0.0/16", Dialect::Native).unwrap(),
            "10.1.0.0/16:80,443"
        );
        assert_eq!(
            allow("10.1.0.0/16:5432", Dialect::Native).unwrap(),
            "10.1.0.0/16:5432"
        );
        assert_eq!(
            allow("fd00::/8:5432", Dialect::Native).unwrap(),
            "fd00::/8:5432"
        );
        for (text, code) in [
            ("0.0.0.0/0", "pattern-too-broad"),
            ("::/0", "pattern-too-broad"),
            ("10.1.0.0/16:0", "malformed-port"),
            ("10.1.0.0/16:", "malformed-port"),
            ("example.org/8", "pattern-path"),
        ] {
            let refused = allow(text, Dialect::Native).unwrap_err();
            assert_eq!(refused.code(), code, "{text}");
        }
        assert_eq!(
            allow("*.com", Dialect::Native).unwrap_err().code(),
            "pattern-too-broad"
        );
        assert_eq!(
            allow(HOST_ALIAS, Dialect::Native).unwrap_err().code(),
            "pattern-host-alias"
        );
        assert_eq!(
            allow("::1", Dialect::Native).unwrap_err().code(),
            "bare-ipv6"
        );
    }
}
