//! [`Timestamp`]: a moment in UTC, to the microsecond.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The last second that RFC 3339 can write, in its year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// Microseconds since 1970, within the years 1970 to 9999. Written as
/// `2026-01-02T03:04:05.000006Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The present.
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Takes microseconds since 1970; the last moment of 9999 if there are more.
    pub fn from_micros(micros: u64) -> Self {
        Self(micros.min(LAST_SECOND * 1_000_000 + 999_999))
    }

    /// Microseconds since 1970.
    pub fn as_micros(self) -> u64 {
        self.0
    }

    /// The moment `span` before this one, not before 1970.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// The moment `span` after this one, not after 9999.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(micros(span)))
    }

    fn to_system(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.0)
    }

    /// As people read it, to the second: `2026-01-02 03:04:05Z`.
    pub fn to_seconds(self) -> String {
        let text = humantime::format_rfc3339_seconds(self.to_system()).to_string();
        text.replacen('T', " ", 1)
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

impl From<SystemTime> for Timestamp {
    /// A clock before 1970 counts as 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        Self::from_micros(micros(since.unwrap_or_default()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_micros(self.to_system()).fmt(f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let time = humantime::parse_rfc3339(text);
        time.map(Self::from).map_err(|_| TimestampError)
    }
}

/// A text is no moment in UTC as RFC 3339 writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time such as 2026-01-02T03:04:05.000006Z")]
pub struct TimestampError;

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A moment in UTC, to the microsecond.",
            "examples": ["2026-01-02T03:04:05.000006Z"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_to_the_microsecond_and_read_back() {
        let moment = Timestamp::from_micros(1_767_323_045_000_006);
        assert_eq!(moment.to_string(), "2026-01-02T03:04:05.000006Z");
        assert_eq!(moment.to_string().parse(), Ok(moment));
        assert_eq!(moment.to_seconds(), "2026-01-02 03:04:05Z");
    }

    #[test]
    fn the_ends_of_time_can_be_written() {
        for moment in [
            Timestamp::from_micros(0),
            Timestamp::from_micros(u64::MAX),
            Timestamp::from_micros(0).minus(Duration::MAX),
            Timestamp::from_micros(u64::MAX).plus(Duration::MAX),
        ] {
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
        assert_eq!(
            Timestamp::from(SystemTime::UNIX_EPOCH - Duration::from_secs(1)),
            Timestamp::from_micros(0)
        );
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "now",
            "2026-01-02",
            "2026-13-02T03:04:05Z",
            "1767323045",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
        }
    }
}
