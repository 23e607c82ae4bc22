//! [`Cores`]: CPU cores, with fractions.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// CPU cores in thousandths: at least 0.01, at most 4096.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cores(u32);

impl Cores {
    /// Takes thousandths of a core.
    pub fn from_millis(millis: u32) -> Result<Self, CoresError> {
        match millis {
            10..=4_096_000 => Ok(Self(millis)),
            _ => Err(CoresError::Range(format!("{}", f64::from(millis) / 1000.0))),
        }
    }

    /// Takes a number of cores; more than three decimals are refused.
    pub fn from_number(number: f64) -> Result<Self, CoresError> {
        number.to_string().parse()
    }

    /// Thousandths of a core.
    pub fn millis(self) -> u32 {
        self.0
    }
}

impl FromStr for Cores {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
            return Err(CoresError::Number(text.to_owned()));
        }
        let joined = format!("{whole}{fraction:0<3}");
        let millis = joined
            .parse()
            .map_err(|_| CoresError::Range(text.to_owned()))?;
        Self::from_millis(millis)
    }
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl Serialize for Cores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1000.0)
    }
}

impl JsonSchema for Cores {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cores".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0.01, "maximum": 4096, "description": "CPU cores, such as 1.5."})
    }
}

/// Why a number is no count of cores.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CoresError {
    /// Not a number with at most three decimals.
    #[error("{0:?} is not a number of cores such as 1.5")]
    Number(String),
    /// Too small to run, or beyond any machine.
    #[error("{0} cores is not within 0.01 and 4096")]
    Range(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores() {
        for (text, want) in [
            ("1.5", 1500),
            ("2", 2000),
            ("0.5", 500),
            ("0.01", 10),
            ("0.125", 125),
        ] {
            assert_eq!(text.parse::<Cores>().unwrap().millis(), want);
        }
        for text in [
            "", "0", "-1", "0.001", "1.2345", "5000", "1,5", "inf", "1.", ".5",
        ] {
            assert!(text.parse::<Cores>().is_err(), "{text}");
        }
        assert!(Cores::from_number(f64::NAN).is_err());
        assert_eq!(Cores::from_number(1.5).unwrap().to_string(), "1.5");
    }
}
