//! [`TimeSpan`]: `10m`, `2h30m`, `500ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// A year: more is a typing error.
const MAX_MILLIS: u64 = 366 * 24 * 3600 * 1000;

/// Longest unit first: the order in which parts are written.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// A length of time in milliseconds, at least 1 ms, at most 366 days.
///
/// Written as whole numbers with units, longest first: `2h30m`. The unit is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(u64);

impl TimeSpan {
    /// Takes milliseconds within bounds.
    pub fn from_millis(millis: u64) -> Option<Self> {
        (1..=MAX_MILLIS).contains(&millis).then_some(Self(millis))
    }

    /// As the standard library's type.
    pub fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for TimeSpan {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || SpanError::Malformed(text.to_owned());
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .ok_or_else(malformed)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail
                .find(|c: char| c.is_ascii_digit())
                .unwrap_or(tail.len());
            let (unit, next) = tail.split_at(letters);
            let (_, factor) = units
                .find(|(name, _)| *name == unit)
                .ok_or_else(malformed)?;
            let part = number
                .parse::<u64>()
                .ok()
                .and_then(|n| n.checked_mul(*factor));
            total = part
                .and_then(|part| total.checked_add(part))
                .ok_or_else(malformed)?;
            rest = next;
        }
        Self::from_millis(total).ok_or_else(|| SpanError::Range(text.to_owned()))
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for (unit, factor) in UNITS {
            if rest >= factor {
                write!(f, "{}{unit}", rest / factor)?;
                rest %= factor;
            }
        }
        Ok(())
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for TimeSpan {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeSpan".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A length of time with units d, h, m, s, ms: 10m, 2h30m, 500ms.",
            "examples": ["10m", "2h30m"]
        })
    }
}

/// Why a text is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpanError {
    /// Not numbers with units.
    #[error("{0:?} is not a length of time such as 10m, 2h30m or 500ms")]
    Malformed(String),
    /// Zero, empty or more than a year.
    #[error("{0:?} is not within 1ms and 366d")]
    Range(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        for (text, want) in [
            ("10m", 600_000),
            ("2h30m", 9_000_000),
            ("500ms", 500),
            ("1d", 86_400_000),
            ("90s", 90_000),
        ] {
            assert_eq!(text.parse::<TimeSpan>().unwrap().0, want, "{text}");
        }
        for text in [
            "",
            "10",
            "0s",
            "-1s",
            "30m2h",
            "1m1m",
            "1y",
            "s",
            "1.5h",
            "400d",
            "99999999999999999999s",
            "1 m",
            "5é",
        ] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
        assert_eq!("90s".parse::<TimeSpan>().unwrap().to_string(), "1m30s");
    }
}
