//! [`Cidr`]: an address block in canonical form.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::host::Target;

/// A block of addresses. IPv4-mapped IPv6 blocks are held as IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr(IpNet);

impl Cidr {
    /// The block that holds only `address`.
    pub fn host(address: IpAddr) -> Self {
        Self(IpNet::from(address.to_canonical()))
    }

    /// Parses `10.0.0.0/8`, `fd00::/8`, or a single address in any spelling.
    pub fn parse(text: &str) -> Result<Self, CidrError> {
        if !text.contains('/') {
            return single(text);
        }
        let net: IpNet = text
            .parse()
            .map_err(|_| CidrError::Malformed(text.to_owned()))?;
        if net.addr() != net.network() {
            return Err(CidrError::HostBits {
                entry: text.to_owned(),
                network: net.trunc().to_string(),
            });
        }
        Ok(Self(unmapped(net)))
    }

    /// True when `address` is in the block.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// True when every address of `other` is in the block.
    pub fn covers(&self, other: &Self) -> bool {
        self.0.contains(&other.0)
    }

    /// True for a block of one address.
    pub fn is_single(&self) -> bool {
        self.0.prefix_len() == self.0.max_prefix_len()
    }

    /// The block as `ipnet` holds it.
    pub fn net(&self) -> IpNet {
        self.0
    }
}

fn single(text: &str) -> Result<Cidr, CidrError> {
    let target = Target::parse(text).ok().and_then(|target| target.addr());
    target
        .map(Cidr::host)
        .ok_or_else(|| CidrError::Malformed(text.to_owned()))
}

/// `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
fn unmapped(net: IpNet) -> IpNet {
    let IpNet::V6(v6) = net else { return net };
    let bits = v6.prefix_len();
    let v4 = Ipv6Addr::to_ipv4_mapped(&v6.network()).filter(|_| bits >= 96);
    match v4.and_then(|address| Ipv4Net::new(address, bits - 96).ok()) {
        Some(v4) => IpNet::V4(v4),
        None => net,
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_single(), self.0.addr()) {
            (true, IpAddr::V6(address)) => write!(f, "[{address}]"),
            (true, IpAddr::V4(address)) => address.fmt(f),
            (false, _) => self.0.fmt(f),
        }
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Cidr {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cidr".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "An address block, 10.0.0.0/8, or one address."})
    }
}

/// Why a text is no address block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CidrError {
    /// Not a block.
    #[error("{0:?} is not an address block")]
    Malformed(String),
    /// Bits set beyond the prefix.
    #[error("{entry:?} has bits beyond its prefix; the block is {network}")]
    HostBits {
        /// The entry as written.
        entry: String,
        /// The block it probably means.
        network: String,
    },
}

impl CidrError {
    /// Stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed-cidr",
            Self::HostBits { .. } => "cidr-host-bits",
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "write 10.1.0.0/16, fd00::/8 or one address",
            Self::HostBits { .. } => {
                "write the block's first address, or /32 (/128) for one address"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_canonicalises() {
        for (text, want) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3"),
            ("0x7f.1", "127.0.0.1"),
            ("fd00::/8", "fd00::/8"),
            ("::1", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(Cidr::parse(text).unwrap().to_string(), want);
        }
        for text in [
            "",
            "10.1.2.3/8",
            "10.0.0.0/33",
            "example.org",
            "10.0.0.0/",
            "/8",
            "10.0.0.0/8 ",
        ] {
            assert!(Cidr::parse(text).is_err(), "{text}");
        }
    }
}
