//! [`Record`]: one line of the log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::version::FormatVersion;
use crate::event::{Digest, Event};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version of this format.
    pub version: FormatVersion,
    /// Its number. Records are counted from 1, over all files of the log; the
    /// number is their order, whatever the clock did.
    pub seq: u64,
    /// The sum of the line before, with its newline; zeros where there is none.
    pub prev: Digest,
    /// What it tells.
    #[serde(flatten)]
    pub event: Event,
}

/// The JSON Schema of [`Record`].
pub fn event_schema() -> serde_json::Value {
    schemars::schema_for!(Record).to_value()
}
