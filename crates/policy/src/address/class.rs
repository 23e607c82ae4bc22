//! The special ranges of IANA's registries, and what a sandbox must never reach by accident.

use std::net::IpAddr;
use std::sync::LazyLock;

use serde::Serialize;

use super::block::Cidr;

/// What kind of address this is. Everything but [`Public`](Self::Public) needs an address rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressClass {
    /// Globally reachable.
    Public,
    /// RFC 1918, shared address space (CGNAT) and IPv6 unique local.
    Private,
    /// `127.0.0.0/8` and `::1`.
    Loopback,
    /// `0.0.0.0/8` and `::`, which the kernel dials as loopback.
    Unspecified,
    /// `169.254.0.0/16`, `fe80::/10` and the deprecated site-local range.
    LinkLocal,
    /// An endpoint where clouds serve credentials.
    Metadata,
    /// Multicast and broadcast.
    Multicast,
    /// Benchmarking, documentation, protocol assignments and what is reserved for later.
    Reserved,
}

impl AddressClass {
    /// Classifies one address; the most specific range wins. Embedded IPv4 is not looked at here.
    pub fn of(address: IpAddr) -> Self {
        special_range(address).map_or(Self::Public, |(_, class)| class)
    }
}

/// The special range that holds `address`, the narrowest when several do.
pub fn special_range(address: IpAddr) -> Option<(Cidr, AddressClass)> {
    let canonical = address.to_canonical();
    RANGES
        .iter()
        .find(|(block, _)| block.contains(canonical))
        .copied()
}

/// Narrowest first, so that the first hit decides.
static RANGES: LazyLock<Vec<(Cidr, AddressClass)>> = LazyLock::new(|| {
    let mut ranges: Vec<_> = TABLE
        .iter()
        .filter_map(|(text, class)| Some((Cidr::parse(text).ok()?, *class)))
        .collect();
    ranges.sort_by_key(|(block, _)| std::cmp::Reverse(block.net().prefix_len()));
    ranges
});

const TABLE: &[(&str, AddressClass)] = &[
    ("0.0.0.0/8", AddressClass::Unspecified),
    ("10.0.0.0/8", AddressClass::Private),
    ("100.64.0.0/10", AddressClass::Private),
    ("127.0.0.0/8", AddressClass::Loopback),
    ("169.254.0.0/16", AddressClass::LinkLocal),
    ("172.16.0.0/12", AddressClass::Private),
    ("192.0.0.0/24", AddressClass::Reserved),
    ("192.0.2.0/24", AddressClass::Reserved),
    ("192.88.99.0/24", AddressClass::Reserved),
    ("192.168.0.0/16", AddressClass::Private),
    ("198.18.0.0/15", AddressClass::Reserved),
    ("198.51.100.0/24", AddressClass::Reserved),
    ("203.0.113.0/24", AddressClass::Reserved),
    ("224.0.0.0/4", AddressClass::Multicast),
    ("240.0.0.0/4", AddressClass::Reserved),
    ("255.255.255.255/32", AddressClass::Multicast),
    // Instance metadata: the common one, ECS tasks, EKS pod identity, Alibaba, Oracle classic, Azure's wire server.
    ("169.254.169.254/32", AddressClass::Metadata),
    ("169.254.169.253/32", AddressClass::Metadata),
    ("169.254.170.2/32", AddressClass::Metadata),
    ("169.254.170.23/32", AddressClass::Metadata),
    ("100.100.100.200/32", AddressClass::Metadata),
    ("192.0.0.192/32", AddressClass::Metadata),
    ("168.63.129.16/32", AddressClass::Metadata),
    ("fd00:ec2::254/128", AddressClass::Metadata),
    ("fd00:ec2::23/128", AddressClass::Metadata),
    ("fd20:ce::254/128", AddressClass::Metadata),
    ("fe80::a9fe:a9fe/128", AddressClass::Metadata),
    ("::/128", AddressClass::Unspecified),
    ("::1/128", AddressClass::Loopback),
    ("100::/64", AddressClass::Reserved),
    ("2001:2::/48", AddressClass::Reserved),
    ("2001:10::/28", AddressClass::Reserved),
    ("2001:20::/28", AddressClass::Reserved),
    ("2001:db8::/32", AddressClass::Reserved),
    ("3fff::/20", AddressClass::Reserved),
    ("5f00::/16", AddressClass::Reserved),
    ("fc00::/7", AddressClass::Private),
    ("fe80::/10", AddressClass::LinkLocal),
    ("fec0::/10", AddressClass::LinkLocal),
    ("ff00::/8", AddressClass::Multicast),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_parses() {
        assert_eq!(RANGES.len(), TABLE.len());
    }

    #[test]
    fn g3_special_ranges_are_known() {
        for (text, want) in [
            ("93.184.216.34", AddressClass::Public),
            ("2606:4700::1", AddressClass::Public),
            ("0.0.0.0", AddressClass::Unspecified),
            ("0.1.2.3", AddressClass::Unspecified),
            ("::", AddressClass::Unspecified),
            ("127.9.9.9", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("169.254.169.254", AddressClass::Metadata),
            ("fd00:ec2::254", AddressClass::Metadata),
            ("169.254.1.1", AddressClass::LinkLocal),
            ("fe80::1", AddressClass::LinkLocal),
            ("10.0.0.1", AddressClass::Private),
            ("172.31.255.255", AddressClass::Private),
            ("172.32.0.0", AddressClass::Public),
            ("100.64.0.1", AddressClass::Private),
            ("fd12::1", AddressClass::Private),
            ("198.19.0.1", AddressClass::Reserved),
            ("203.0.113.9", AddressClass::Reserved),
            ("240.0.0.1", AddressClass::Reserved),
            ("224.0.0.251", AddressClass::Multicast),
            ("255.255.255.255", AddressClass::Multicast),
            ("ff02::1", AddressClass::Multicast),
            ("::ffff:10.0.0.1", AddressClass::Private),
        ] {
            assert_eq!(AddressClass::of(text.parse().unwrap()), want, "{text}");
        }
    }
}
