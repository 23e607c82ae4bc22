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
    /// Network decisions.
    Network,
    /// Network decisions and security-relevant system calls.
    Security,
    /// Everything that can be seen.
    All,
}

impl AuditLevel {
    /// The word used in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Network => "network",
            Self::Security => "security",
            Self::All => "all",
        }
    }
}
