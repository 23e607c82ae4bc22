//! [`Count`]: processes, open files.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

/// The kernel's own ceiling for process ids; more is a typing error.
const MAX: u32 = 4_194_304;

/// A count, 1 to 4 194 304.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Count(#[schemars(range(min = 1, max = 4_194_304))] u32);

impl Count {
    /// Takes a number within bounds.
    pub fn new(number: u64) -> Result<Self, CountError> {
        u32::try_from(number)
            .ok()
            .filter(|count| (1..=MAX).contains(count))
            .map(Self)
            .ok_or_else(|| CountError::Range(number.to_string()))
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Count {
    type Err = CountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text
            .parse()
            .map_err(|_| CountError::Range(text.to_owned()))?;
        Self::new(number)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a number is no count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CountError {
    /// Zero, negative or beyond the kernel's limit.
    #[error("{0} is not within 1 and {MAX}")]
    Range(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!("128".parse::<Count>().unwrap().get(), 128);
        for text in ["0", "-1", "1.5", "5000000", "", "x"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }
}
