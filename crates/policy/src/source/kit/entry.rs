//! Entries of a kit's lists: what [`Endpoint`] reads, and ranges of ports, any port and blocks.

use super::super::error::Fault;
use crate::address::{AddressClass, Cidr};
use crate::host::Dialect;
use crate::port::{PortSet, parse_range};
use crate::rule::{AllowRule, DenyRule, Destination, Endpoint, EntryError, Side};

/// A destination, and the ports if some were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KitEntry {
    pub(super) destination: Destination,
    pub(super) ports: Option<PortSet>,
}

impl KitEntry {
    pub(super) fn parse(text: &str, side: Side) -> Result<Self, Fault> {
        if text.contains('/') && !text.contains("://") {
            return block(text);
        }
        if let Some(host) = text.strip_suffix(":*") {
            return Self::with_ports(host, side, PortSet::any());
        }
        if let Some((host, low, high)) = range(text) {
            let port = parse_range(&format!("{low}-{high}"));
            let port = port.map_err(|source| EntryError::Port {
                entry: text.to_owned(),
                source,
            })?;
            return Self::with_ports(host, side, PortSet::from_ranges([port]));
        }
        let endpoint = Endpoint::parse(text, Dialect::Kit, side)?;
        Ok(Self {
            destination: endpoint.destination,
            ports: endpoint.port.map(PortSet::single),
        })
    }

    fn with_ports(host: &str, side: Side, ports: PortSet) -> Result<Self, Fault> {
        let endpoint = Endpoint::parse(host, Dialect::Kit, side)?;
        let ports = endpoint.port.is_none().then_some(ports);
        // A second port is none.
        let ports = ports.ok_or_else(|| EntryError::BareV6(host.to_owned()))?;
        Ok(Self {
            destination: endpoint.destination,
            ports: Some(ports),
        })
    }

    /// No port is any port.
    pub(super) fn allow(self) -> AllowRule {
        AllowRule::plain(self.destination, self.ports.unwrap_or(PortSet::any()))
    }

    /// No port is any port.
    pub(super) fn deny(self) -> DenyRule {
        DenyRule::plain(self.destination, self.ports.unwrap_or(PortSet::any()))
    }

    /// An address that tells a machine its own keys: nobody but the operator opens it.
    pub(super) fn is_metadata(&self) -> bool {
        matches!(&self.destination, Destination::Block(block)
            if block.is_single()
                && AddressClass::of(block.net().addr()) == AddressClass::Metadata)
    }
}

fn block(text: &str) -> Result<KitEntry, Fault> {
    let block = Cidr::parse(text).map_err(|error| Fault::Entry(error.into()))?;
    if block.net().prefix_len() == 0 {
        return Err(Fault::EveryAddress(text.to_owned()));
    }
    Ok(KitEntry {
        destination: Destination::Block(block),
        ports: None,
    })
}

/// `host:80-443`, taken apart.
fn range(text: &str) -> Option<(&str, &str, &str)> {
    let (host, ports) = text.rsplit_once(':')?;
    let (low, high) = ports.split_once('-')?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (is_number(low) && is_number(high)).then_some((host, low, high))
}

/// True for the sandbox's own loopback, which is always open inside.
pub(super) fn is_loopback(text: &str) -> bool {
    let host = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => text,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Result<String, Fault> {
        KitEntry::parse(text, Side::Allow).map(|entry| entry.allow().to_string())
    }

    #[test]
    fn entries_mean_what_the_format_says() {
        for (text, meaning) in [
            ("api.example.org", "api.example.org:*"),
            ("api.example.org:8443", "api.example.org:8443"),
            ("api.example.org:80-443", "api.example.org:80-443"),
            ("api.example.org:*", "api.example.org:*"),
            ("*.example.org", "*.example.org (one label):*"),
            ("**.example.org:443", "**.example.org:443"),
            ("10.1.0.0/16", "10.1.0.0/16:*"),
            ("192.0.2.7:5432", "192.0.2.7:5432"),
        ] {
            assert_eq!(allowed(text).unwrap(), meaning);
        }
        for text in [
            "*",
            "**",
            "*.com",
            "https://example.org",
            "example.org:443-80",
            "example.org:0-80",
            "example.org:80:90-99",
            "example.org:80:*",
            "0.0.0.0/0",
            "10.1.0.0/16:443",
            "example.org:99999",
            "a b.example.org",
            "",
        ] {
            assert!(allowed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_and_metadata_are_recognised() {
        for text in [
            "localhost",
            "localhost:8080",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_loopback(text), "{text}");
        }
        assert!(!is_loopback("localhost.example.org"));
        let metadata = KitEntry::parse("169.254.169.254", Side::Allow).unwrap();
        assert!(metadata.is_metadata());
        let other = KitEntry::parse("192.0.2.1", Side::Allow).unwrap();
        assert!(!other.is_metadata());
    }
}
