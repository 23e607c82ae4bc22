//! Properties of names and addresses.

use std::net::IpAddr;

use proptest::prelude::*;
use ringfence_policy::{AddressClass, Dialect, HostName, HostPattern, HttpPath, Target, judged};

proptest! {
    #[test]
    fn g3_canonicalising_is_idempotent(text in "\\PC{0,40}") {
        if let Ok(name) = HostName::parse(&text) {
            prop_assert_eq!(HostName::parse(name.as_str()), Ok(name.clone()));
            prop_assert_eq!(Target::parse(&text), Ok(Target::Name(name)));
        }
        if let Ok(target) = Target::parse(&text) {
            prop_assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
    }

    #[test]
    fn g3_a_name_holds_only_what_dns_can_carry(text in "[a-zA-Z0-9.\\-_%@:/ \0ßüａ。]{0,30}") {
        if let Ok(name) = HostName::parse(&text) {
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
            prop_assert!(name.as_str().bytes().all(plain));
            prop_assert!(name.as_str().len() <= 253);
            prop_assert!(name.as_str().split('.').all(|label| (1..=63).contains(&label.len())));
        }
    }

    #[test]
    fn g3_numbers_with_dots_are_addresses_or_nothing(text in "(0x)?[0-9a-f]{1,10}(\\.(0x)?[0-9]{1,4}){0,4}") {
        if let Ok(Target::Name(name)) = Target::parse(&text) {
            let last = name.as_str().rsplit('.').next().unwrap_or_default();
            prop_assert!(!last.bytes().all(|b| b.is_ascii_digit()));
            prop_assert!(!last.starts_with("0x") || last.bytes().skip(2).any(|b| !b.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn every_ipv4_is_read_back_from_every_spelling(bits in any::<u32>()) {
        let address = std::net::Ipv4Addr::from(bits);
        let [a, b, c, d] = address.octets();
        let tail = u32::from(b) << 16 | u32::from(c) << 8 | u32::from(d);
        for text in [
            address.to_string(),
            bits.to_string(),
            format!("{bits:#x}"),
            format!("0{bits:o}"),
            format!("{a}.{tail}"),
            format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
            format!("[::ffff:{address}]"),
        ] {
            prop_assert_eq!(Target::parse(&text), Ok(Target::Addr(IpAddr::V4(address))), "{}", text);
        }
    }

    #[test]
    fn an_embedded_address_is_judged_with_its_carrier(bits in any::<u32>()) {
        let inner = std::net::Ipv4Addr::from(bits);
        for text in [format!("64:ff9b::{inner}"), format!("64:ff9b:1::{inner}"), format!("::ffff:{inner}")] {
            let all = judged(text.parse::<IpAddr>().unwrap());
            prop_assert!(all.contains(&IpAddr::V4(inner)), "{}", text);
            prop_assert_eq!(AddressClass::of(*all.last().unwrap()), AddressClass::of(IpAddr::V4(inner)));
        }
    }

    #[test]
    fn covering_agrees_with_matching(wide in 0..4_usize, narrow in 0..4_usize, depth in 0..3_usize) {
        let names = ["example.org", "a.example.org", "b.a.example.org"];
        let pattern = |kind: usize, name: &str| {
            let name = HostName::parse(name).unwrap();
            match kind {
                0 => HostPattern::Exact(name),
                1 => HostPattern::Below(name),
                2 => HostPattern::OneLabel(name),
                _ => HostPattern::Subtree(name),
            }
        };
        for base in names {
            let (wide, narrow) = (pattern(wide, base), pattern(narrow, names[depth]));
            if wide.covers(&narrow) {
                for text in ["example.org", "a.example.org", "x.example.org", "b.a.example.org", "c.b.a.example.org", "y.x.example.org"] {
                    let name = HostName::parse(text).unwrap();
                    prop_assert!(!narrow.matches(&name) || wide.matches(&name), "{} {} {}", wide, narrow, text);
                }
            }
        }
    }

    #[test]
    fn a_normal_path_is_normal(text in "/[a-z.%2efF;/?]{0,20}") {
        if let Ok(path) = HttpPath::normalise(&text) {
            prop_assert!(!path.as_str().split('/').any(|part| matches!(part, "." | "..")));
            prop_assert!(!path.as_str().contains("//"));
        }
    }

    #[test]
    fn a_pattern_that_parses_shows_itself_and_parses_again(text in "(\\*\\.|\\*\\*\\.)?[a-z]{1,5}(\\.[a-z]{2,5}){1,2}") {
        let pattern = HostPattern::parse(&text, Dialect::Native).unwrap();
        prop_assert_eq!(HostPattern::parse(&pattern.to_string(), Dialect::Native), Ok(pattern));
    }
}
