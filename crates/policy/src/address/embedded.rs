//! IPv4 addresses carried inside IPv6 ones: a translator or tunnel would reach the inner address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every address that dialling `address` could reach: itself in canonical form, then embedded IPv4.
pub fn judged(address: IpAddr) -> Vec<IpAddr> {
    let canonical = address.to_canonical();
    let mut all = vec![canonical];
    if let IpAddr::V6(v6) = canonical {
        all.extend(embedded_v4(v6).into_iter().map(IpAddr::V4));
    }
    all
}

/// IPv4 addresses embedded in `address`: mapped, compatible, NAT64 (both prefixes), 6to4, Teredo
/// (client and server) and ISATAP.
pub fn embedded_v4(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let segments = address.segments();
    let low = [segments[6], segments[7]];
    let mut found = match segments {
        [0, 0, 0, 0, 0 | 0xffff, 0 | 0xffff, ..] if u128::from(address) > 1 => vec![joined(low)],
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![joined(low)],
        [0x64, 0xff9b, 1, ..] => local_nat64(address),
        [0x2002, a, b, ..] => vec![joined([a, b])],
        [0x2001, 0, a, b, ..] => vec![joined([a, b]), joined([!low[0], !low[1]])],
        _ => vec![],
    };
    // ISATAP is about the last half only, so it can come on top of any prefix.
    if matches!(segments, [_, _, _, _, 0 | 0x200, 0x5efe, ..]) {
        found.push(joined(low));
    }
    found
}

/// RFC 8215 space is cut into prefixes of any RFC 6052 length, so every placement is judged.
fn local_nat64(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let octets = address.octets();
    let at = |indices: [usize; 4]| Ipv4Addr::from(indices.map(|index| octets[index]));
    // RFC 6052 section 2.2: octet 8 is reserved and skipped. A placement that reads as 0.x is
    // padding of another prefix length, not an address somebody could reach.
    let placements = [at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12])];
    let real = placements.into_iter().filter(|v4| v4.octets()[0] != 0);
    real.chain([at([12, 13, 14, 15])]).collect()
}

fn joined([high, low]: [u16; 2]) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_hidden_ipv4_is_found() {
        for text in [
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:a9fe:a9fe::1",
            "2001:0:a9fe:a9fe::1",
            "2001:0:102:304:0:0:5601:5601",
            "2606:4700::5efe:a9fe:a9fe",
            "2002:a9fe:a9fe::5efe:102:304",
            "::ffff:0:a9fe:a9fe",
        ] {
            let all = judged(text.parse().unwrap());
            assert!(
                all.contains(&"169.254.169.254".parse().unwrap()),
                "{text}: {all:?}"
            );
        }
        assert_eq!(judged("::1".parse().unwrap()).len(), 1);
        assert_eq!(
            judged("::ffff:1.2.3.4".parse().unwrap()),
            ["1.2.3.4".parse::<IpAddr>().unwrap()]
        );
        assert_eq!(judged("2606:4700::1".parse().unwrap()).len(), 1);
    }
}
