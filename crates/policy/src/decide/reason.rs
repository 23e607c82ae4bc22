//! [`Reason`]: why a request was allowed or refused.

use std::fmt;

use serde::Serialize;

use crate::address::AddressClass;

/// Why, with a stable code for logs, headers and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A rule allows it.
    AllowedByRule,
    /// The network is open and the destination is public.
    AllowedOpen,
    /// A listed port of the host's own loopback.
    AllowedHostPort,
    /// The network is closed.
    NetworkClosed,
    /// A deny rule names the host.
    DeniedByRule,
    /// A deny rule names the address.
    AddressDenied,
    /// No rule names it.
    NotInAllowlist,
    /// A rule names it, on other ports.
    PortNotAllowed,
    /// A rule names it, with other methods.
    MethodNotAllowed,
    /// A rule names it, with other paths; or the path has no single reading.
    PathNotAllowed,
    /// A private address without an address rule.
    PrivateAddress,
    /// A loopback address without an address rule.
    LoopbackAddress,
    /// An unspecified address, which the kernel would dial as loopback.
    UnspecifiedAddress,
    /// A link-local address without an address rule.
    LinkLocalAddress,
    /// A metadata endpoint without the operator's exact address rule.
    MetadataAddress,
    /// Multicast or broadcast.
    MulticastAddress,
    /// A reserved range without an address rule.
    ReservedAddress,
    /// An address of this host without an exact address rule.
    HostOwnAddress,
    /// A port of the host's own loopback that is not listed.
    HostPortNotAllowed,
    /// The layers allow it, the operator's ceiling does not.
    Ceiling,
    /// Neither a name nor an address was given.
    MalformedHost,
}

impl Reason {
    /// Every reason, for documentation and tests.
    pub const ALL: [Self; 21] = [
        Self::AllowedByRule,
        Self::AllowedOpen,
        Self::AllowedHostPort,
        Self::NetworkClosed,
        Self::DeniedByRule,
        Self::AddressDenied,
        Self::NotInAllowlist,
        Self::PortNotAllowed,
        Self::MethodNotAllowed,
        Self::PathNotAllowed,
        Self::PrivateAddress,
        Self::LoopbackAddress,
        Self::UnspecifiedAddress,
        Self::LinkLocalAddress,
        Self::MetadataAddress,
        Self::MulticastAddress,
        Self::ReservedAddress,
        Self::HostOwnAddress,
        Self::HostPortNotAllowed,
        Self::Ceiling,
        Self::MalformedHost,
    ];

    /// Stable code for machines.
    pub fn code(self) -> &'static str {
        match self {
            Self::AllowedByRule => "allowed-by-rule",
            Self::AllowedOpen => "allowed-open",
            Self::AllowedHostPort => "allowed-host-port",
            Self::NetworkClosed => "network-closed",
            Self::DeniedByRule => "denied-by-rule",
            Self::AddressDenied => "address-denied",
            Self::NotInAllowlist => "not-in-allowlist",
            Self::PortNotAllowed => "port-not-allowed",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::PathNotAllowed => "path-not-allowed",
            Self::PrivateAddress => "private-address",
            Self::LoopbackAddress => "loopback-address",
            Self::UnspecifiedAddress => "unspecified-address",
            Self::LinkLocalAddress => "link-local-address",
            Self::MetadataAddress => "metadata-address",
            Self::MulticastAddress => "multicast-address",
            Self::ReservedAddress => "reserved-address",
            Self::HostOwnAddress => "host-own-address",
            Self::HostPortNotAllowed => "host-port-not-allowed",
            Self::Ceiling => "ceiling",
            Self::MalformedHost => "malformed-host",
        }
    }

    /// One clause for people.
    pub fn text(self) -> &'static str {
        match self {
            Self::AllowedByRule => "a rule allows it",
            Self::AllowedOpen => "the network is open for public addresses",
            Self::AllowedHostPort => "the port of the host's loopback is listed in hostPorts",
            Self::NetworkClosed => "the network is closed",
            Self::DeniedByRule => "a deny rule names the host",
            Self::AddressDenied => "a deny rule names the address",
            Self::NotInAllowlist => "host is not on the allow list",
            Self::PortNotAllowed => "the host is allowed on other ports only",
            Self::MethodNotAllowed => "the host is allowed with other methods only",
            Self::PathNotAllowed => "the host is allowed with other paths only",
            Self::PrivateAddress => "the address is private",
            Self::LoopbackAddress => "the address is loopback",
            Self::UnspecifiedAddress => "the address is unspecified",
            Self::LinkLocalAddress => "the address is link-local",
            Self::MetadataAddress => "the address is a cloud metadata endpoint",
            Self::MulticastAddress => "the address is multicast or broadcast",
            Self::ReservedAddress => "the address is in a reserved range",
            Self::HostOwnAddress => "the address belongs to this host",
            Self::HostPortNotAllowed => {
                "the port of the host's loopback is not listed in hostPorts"
            }
            Self::Ceiling => "the operator's ceiling does not allow it",
            Self::MalformedHost => "the destination is neither a name nor an address",
        }
    }

    /// Whether it is the address that is refused, whatever its name is.
    pub fn is_about_address(self) -> bool {
        matches!(
            self,
            Self::AddressDenied
                | Self::PrivateAddress
                | Self::LoopbackAddress
                | Self::UnspecifiedAddress
                | Self::LinkLocalAddress
                | Self::MetadataAddress
                | Self::MulticastAddress
                | Self::ReservedAddress
                | Self::HostOwnAddress
        )
    }

    /// The refusal for an address of `class`; `None` for public ones.
    pub(super) fn for_class(class: AddressClass) -> Option<Self> {
        Some(match class {
            AddressClass::Public => return None,
            AddressClass::Private => Self::PrivateAddress,
            AddressClass::Loopback => Self::LoopbackAddress,
            AddressClass::Unspecified => Self::UnspecifiedAddress,
            AddressClass::LinkLocal => Self::LinkLocalAddress,
            AddressClass::Metadata => Self::MetadataAddress,
            AddressClass::Multicast => Self::MulticastAddress,
            AddressClass::Reserved => Self::ReservedAddress,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_what_json_shows() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.code());
        }
    }
}
