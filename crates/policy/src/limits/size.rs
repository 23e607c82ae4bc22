//! [`ByteSize`]: `512MiB`, `1g`.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// 1 PiB: more is a typing error.
const MAX: u64 = 1 << 50;

/// A number of bytes, at least 1.
///
/// Units: `B`; `k m g t` and `KiB MiB GiB TiB` (also `Ki`…) are powers of 1024; `KB MB GB TB` are
/// powers of 1000. Case does not matter. The unit is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// A size in bytes, within 1 B and 1 PiB.
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        (1..=MAX).contains(&bytes).then_some(Self(bytes))
    }

    /// The number of bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = factor(unit).ok_or_else(|| SizeError::Unit(text.to_owned()))?;
        let bytes = scaled(number, factor).ok_or_else(|| SizeError::Number(text.to_owned()))?;
        Self::from_bytes(bytes).ok_or_else(|| SizeError::Range(text.to_owned()))
    }
}

fn factor(unit: &str) -> Option<u64> {
    let unit = unit.trim_start().to_ascii_lowercase();
    let (prefix, base): (&str, u64) = match unit.as_str() {
        "b" => ("", 1024),
        "k" | "ki" | "kib" => ("k", 1024),
        "m" | "mi" | "mib" => ("m", 1024),
        "g" | "gi" | "gib" => ("g", 1024),
        "t" | "ti" | "tib" => ("t", 1024),
        "kb" => ("k", 1000),
        "mb" => ("m", 1000),
        "gb" => ("g", 1000),
        "tb" => ("t", 1000),
        _ => return None,
    };
    let power = "kmgt".find(prefix).map_or(0, |at| at + 1);
    let power = if prefix.is_empty() { 0 } else { power };
    base.checked_pow(u32::try_from(power).ok()?)
}

/// `number` is digits with at most one dot, at most three digits after it; exact arithmetic.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 3 || fraction.contains('.') {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = fraction.parse::<u64>().ok()?.checked_mul(factor)? / scale;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(factor)?
        .checked_add(part)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let fits = units
            .iter()
            .find(|(bits, _)| self.0.trailing_zeros() >= *bits);
        match fits {
            Some((bits, unit)) => write!(f, "{}{unit}", self.0 >> bits),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A size with its unit: 512MiB, 1g, 100MB.",
            "examples": ["512MiB", "1g"]
        })
    }
}

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SizeError {
    /// No or an unknown unit.
    #[error("{0:?} has no unit that is known (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB, k, m, g, t)")]
    Unit(String),
    /// Not a positive number.
    #[error("{0:?} does not start with a number")]
    Number(String),
    /// Zero, or beyond any machine.
    #[error("{0:?} is zero or more than 1 PiB")]
    Range(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, want) in [
            ("512MiB", 512 << 20),
            ("1g", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("256MB", 256_000_000),
            ("64 KiB", 64 << 10),
            ("10b", 10),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().bytes(), want, "{text}");
        }
        for text in [
            "",
            "512",
            "0MiB",
            "-1g",
            "1x",
            "g",
            "1.2.3g",
            "1.g",
            "99999999999999999999g",
            "2000TiB",
            "1e9b",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!("1024MiB".parse::<ByteSize>().unwrap().to_string(), "1GiB");
    }
}
