//! How much of everything one sandbox may have.

use std::time::Duration;

use crate::budget::BudgetSettings;

/// Limits on connections, in number and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections from the sandbox that are served at once; more wait to be
    /// accepted.
    pub connections: usize,
    /// For a client to send the first bytes, a request head, or a greeting.
    pub head_time: Duration,
    /// For a destination to answer a connection attempt, once its addresses are
    /// known.
    pub connect_time: Duration,
    /// Without a byte in either direction.
    pub idle_time: Option<Duration>,
    /// From the first byte to the last.
    pub total_time: Option<Duration>,
    /// Upstream lookups below a wildcard.
    pub names: BudgetSettings,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            head_time: Duration::from_secs(30),
            connect_time: Duration::from_secs(20),
            idle_time: Some(Duration::from_mins(15)),
            total_time: None,
            names: BudgetSettings::default(),
        }
    }
}
