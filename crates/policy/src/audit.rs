//! How much is recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the audit log records, least first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum AuditLevel {
    /// Network decisions are still made, none is kept.
    Off,
    /// Network decisions, programs and sockets.
    Network,
    /// The same, and every file name that is made, changed or refused: what is
    /// seen without making anybody wait who could be interrupted.
    Standard,
    /// The same, and attempts: opens of hidden places, every refused system
    /// call, programs before they start. Calls take longer, and may fail with
    /// `EINTR` that do not outside.
    Security,
    /// The same, and every other call, counted.
    All,
}

impl AuditLevel {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Network => "network",
            Self::Standard => "standard",
            Self::Security => "security",
            Self::All => "all",
        }
    }
}
