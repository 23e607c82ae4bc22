//! [`RunId`]: which run an event belongs to.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use rustix::rand::{GetRandomFlags, getrandom};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::hex_digit;

/// Hexadecimal digits of an id.
const DIGITS: usize = 32;

/// 128 random bits that name one run; 32 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

impl RunId {
    /// A new id from the kernel's random numbers.
    pub fn random() -> Result<Self, RunIdError> {
        let mut bytes = [0; size_of::<u128>()];
        let filled = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(RunIdError::Random)?;
        if filled < bytes.len() {
            return Err(RunIdError::TooFew);
        }
        Ok(Self(u128::from_ne_bytes(bytes)))
    }

    /// An id from a number, for tests and for ids made elsewhere.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) fn to_bits(self) -> u128 {
        self.0
    }

    /// Reads 32 hexadecimal digits as they are written, in lower case.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Self> {
        let add = |bits: u128, digit: &u8| Some(bits << 4 | u128::from(hex_digit(*digit)?));
        let bits = digits.iter().try_fold(0, add)?;
        (digits.len() == DIGITS).then_some(Self(bits))
    }
}

/// Why there is no new id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunIdError {
    /// The kernel gave no random numbers.
    #[error("the kernel gives no random numbers: {0}")]
    Random(rustix::io::Errno),
    /// It gave fewer than asked for.
    #[error("the kernel gives too few random numbers")]
    TooFew,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

/// The beginning of an id, or all of it, by which people name a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPrefix(String);

impl RunPrefix {
    /// Whether `run` begins like this.
    pub fn matches(&self, run: RunId) -> bool {
        run.to_string().starts_with(&self.0)
    }
}

impl FromStr for RunPrefix {
    type Err = RunPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || text.is_empty() || text.len() > DIGITS {
            return Err(RunPrefixError(text.to_owned()));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// A text is no beginning of an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not 1 to {DIGITS} hexadecimal digits")]
pub struct RunPrefixError(String);

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::from_hex(text.as_bytes())
            .ok_or_else(|| serde::de::Error::custom("not 32 hexadecimal digits"))
    }
}

impl JsonSchema for RunId {
    fn schema_name() -> Cow<'static, str> {
        "RunId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9a-f]{32}$",
            "description": "128 random bits that name one run."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_have_32_digits() {
        let (one, other) = (RunId::random().unwrap(), RunId::random().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.to_string().len(), DIGITS);
        assert_eq!(RunId::from_bits(1).to_string(), format!("{:0>32}", 1));
    }

    #[test]
    fn a_run_is_named_by_the_beginning_of_its_id() {
        let run = RunId::from_bits(0xabc << 116);
        for (text, want) in [("0", false), ("a", true), ("ABC0", true), ("abd", false)] {
            assert_eq!(
                text.parse::<RunPrefix>().unwrap().matches(run),
                want,
                "{text}"
            );
        }
        for text in ["", "xyz", "-1", &"0".repeat(33)] {
            assert!(text.parse::<RunPrefix>().is_err(), "{text}");
        }
    }
}
