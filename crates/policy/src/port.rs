//! Ports and sets of ports.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use thiserror::Error;

/// A TCP port, 1–65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Port(NonZeroU16);

impl Port {
    /// Takes a number; 0 is no port.
    pub fn new(number: u16) -> Option<Self> {
        NonZeroU16::new(number).map(Self)
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0.get()
    }
}

impl FromStr for Port {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
        let number = plain.then(|| text.parse().ok()).flatten();
        number
            .and_then(Self::new)
            .ok_or_else(|| PortError::Number(text.to_owned()))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of ports, held as sorted ranges that neither overlap nor touch.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PortSet(Vec<(u16, u16)>);

impl PortSet {
    /// Every port.
    pub fn any() -> Self {
        Self(vec![(1, u16::MAX)])
    }

    /// 80 and 443: what an entry of ours means that names no port.
    pub fn web() -> Self {
        Self(vec![(80, 80), (443, 443)])
    }

    /// 443: where a credential goes that names no port.
    pub fn https() -> Self {
        Self(vec![(443, 443)])
    }

    /// The ports of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let ranges = self.ranges().chain(other.ranges());
        Self::from_ranges(ranges.filter_map(|(low, high)| Port::new(low).zip(Port::new(high))))
    }

    /// True when no port is in both.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        let apart = |a: (u16, u16), b: (u16, u16)| a.1 < b.0 || b.1 < a.0;
        self.ranges().all(|a| other.ranges().all(|b| apart(a, b)))
    }

    /// One port.
    pub fn single(port: Port) -> Self {
        Self(vec![(port.get(), port.get())])
    }

    /// The union of `ranges`, ends included.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (Port, Port)>) -> Self {
        let mut sorted: Vec<(u16, u16)> = ranges
            .into_iter()
            .map(|(a, b)| (a.get(), b.get()))
            .collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::with_capacity(sorted.len());
        for (low, high) in sorted {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    /// True when `port` is in the set.
    pub fn contains(&self, port: u16) -> bool {
        let next = self.0.partition_point(|(low, _)| *low <= port);
        next > 0 && self.0[next - 1].1 >= port
    }

    /// True for the set of all ports.
    pub fn is_any(&self) -> bool {
        self.0 == [(1, u16::MAX)]
    }

    /// True when every port of `self` is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0
            .iter()
            .all(|(low, high)| other.0.iter().any(|(a, b)| a <= low && high <= b))
    }

    /// The ranges, ends included, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = (u16, u16)> {
        self.0.iter().copied()
    }
}

/// Parses `5432` or `8000-8999`.
pub(crate) fn parse_range(text: &str) -> Result<(Port, Port), PortError> {
    let Some((low, high)) = text.split_once('-') else {
        let port = text.parse()?;
        return Ok((port, port));
    };
    let (low, high): (Port, Port) = (low.parse()?, high.parse()?);
    if low > high {
        return Err(PortError::Backwards(text.to_owned()));
    }
    Ok((low, high))
}

impl fmt::Display for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("*");
        }
        for (index, (low, high)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if low == high {
                write!(f, "{comma}{low}")?;
            } else {
                write!(f, "{comma}{low}-{high}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PortSet({self})")
    }
}

impl Serialize for PortSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Why a text is no port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortError {
    /// Not 1–65535 in plain decimal.
    #[error("{0:?} is not a port (1-65535, no leading zero)")]
    Number(String),
    /// A range whose end is before its start.
    #[error("port range {0:?} runs backwards")]
    Backwards(String),
    /// A port in the host and a list of ports.
    #[error("{0:?} has a port beside a list of ports")]
    Twice(String),
    /// A list without ports.
    #[error("the list of ports is empty and could never match")]
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_plain_decimal() {
        for text in [
            "",
            "0",
            "080",
            "65536",
            "+1",
            "-1",
            " 1",
            "1x",
            "99999999999",
        ] {
            assert!(text.parse::<Port>().is_err(), "{text:?}");
        }
        assert_eq!("65535".parse::<Port>().unwrap().get(), 65535);
    }

    #[test]
    fn sets_merge_and_answer() {
        let ranges = ["8000-8999", "9000", "443"].map(|text| parse_range(text).unwrap());
        let set = PortSet::from_ranges(ranges);
        assert_eq!(set.to_string(), "443,8000-9000");
        for (port, want) in [
            (442, false),
            (443, true),
            (7999, false),
            (8500, true),
            (9001, false),
        ] {
            assert_eq!(set.contains(port), want, "{port}");
        }
        assert!(PortSet::single(Port::new(8001).unwrap()).is_subset(&set));
        assert!(!PortSet::web().is_subset(&set));
        assert!(parse_range("9-8").is_err());
        assert!(!PortSet::any().contains(0));
    }
}
