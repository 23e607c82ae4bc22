//! Addresses as `inet_aton(3)` and `inet_pton(3)` read them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads every spelling of an address that C libraries and browsers accept, without brackets.
///
/// IPv4-mapped IPv6 addresses come out as IPv4.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        let address: Ipv6Addr = text.parse().ok()?;
        return Some(address.to_canonical());
    }
    parse_v4(text).map(IpAddr::V4)
}

/// WHATWG "ends in a number": the last label is decimal digits or a `0x` number.
pub(super) fn ends_in_number(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    let decimal = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    decimal || hex_digits(last).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// One to four numbers; the last one fills the remaining bytes (`127.1`, `2130706433`).
fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, front) = parts.split_last()?;
    if front.len() > 3 {
        return None;
    }
    let mut value: u32 = 0;
    for part in front {
        let byte = u8::try_from(number(part)?).ok()?;
        value = (value << 8) | u32::from(byte);
    }
    let bits = 32 - 8 * u32::try_from(front.len()).ok()?;
    let tail = number(last)?;
    if tail >> bits != 0 {
        return None;
    }
    let shifted = if bits == 32 { 0 } else { value << bits };
    Some(Ipv4Addr::from(shifted | u32::try_from(tail).ok()?))
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match hex_digits(text) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let digits_only = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    digits_only.then(|| u64::from_str_radix(digits, radix).ok())?
}

fn hex_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling_of_loopback() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "017700000001",
            "0x7f.0.0.0x1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:1",
        ] {
            assert_eq!(parse(text), Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in [
            "",
            ".",
            "256.1.1.1",
            "1.2.3.4.5",
            "1..2",
            "a.1",
            "08",
            "4294967296",
            "1.16777216",
            "-1",
            "+1",
            "0xg",
            "::g",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
