//! Refusals, counted by what was refused.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most different refusals that are kept apart.
const MOST_DISTINCT: usize = 1024;

/// The kind of thing refused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// Making, changing or removing a file.
    File,
    /// Reaching an address.
    Network,
    /// Reaching a socket of the host.
    Socket,
    /// A sandbox of a program's own: namespaces and mounts.
    Namespace,
    /// Another call to the kernel that nothing inside may make.
    Call,
}

/// One thing that was refused, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Files, network, sockets of the host, namespaces, or other calls to the
    /// kernel.
    pub kind: RefusalKind,
    /// What was tried, such as `create` or `connect`.
    pub operation: String,
    /// The path or the address.
    pub subject: String,
    /// What refused it.
    pub rule: String,
    /// How often.
    pub count: u64,
}

type Key = (RefusalKind, String, String, String);

/// Refusals in the order of their kind and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    counts: BTreeMap<Key, u64>,
    more: u64,
}

impl Refusals {
    /// Learns that something was refused at all.
    pub fn add(&mut self, kind: RefusalKind, operation: &str, subject: &str, rule: &str) {
        self.set_at_least(kind, operation, subject, rule, 1);
    }

    /// Learns that something was refused `total` times in all.
    pub fn set_at_least(
        &mut self,
        kind: RefusalKind,
        operation: &str,
        subject: &str,
        rule: &str,
        total: u64,
    ) {
        match self.slot(kind, operation, subject, rule) {
            Some(count) => *count = total.max(*count),
            None => self.more += total,
        }
    }

    /// Counts `times` more.
    pub fn count(
        &mut self,
        kind: RefusalKind,
        operation: &str,
        subject: &str,
        rule: &str,
        times: u64,
    ) {
        match self.slot(kind, operation, subject, rule) {
            Some(count) => *count = count.saturating_add(times),
            None => self.more = self.more.saturating_add(times),
        }
    }

    /// The count of a refusal, if it is told apart.
    fn slot(
        &mut self,
        kind: RefusalKind,
        operation: &str,
        subject: &str,
        rule: &str,
    ) -> Option<&mut u64> {
        let key = (
            kind,
            operation.to_owned(),
            subject.to_owned(),
            rule.to_owned(),
        );
        if self.counts.len() >= MOST_DISTINCT && !self.counts.contains_key(&key) {
            return None;
        }
        Some(self.counts.entry(key).or_default())
    }

    /// Counts refusals that are not told apart.
    pub fn add_more(&mut self, count: u64) {
        self.more += count;
    }

    /// Takes in what others counted.
    pub fn merge(&mut self, other: &Self) {
        for refusal in other.iter() {
            let (operation, subject, rule) = (&refusal.operation, &refusal.subject, &refusal.rule);
            self.count(refusal.kind, operation, subject, rule, refusal.count);
        }
        self.add_more(other.more);
    }

    /// How many were not told apart.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.more == 0
    }

    /// All that were told apart.
    pub fn iter(&self) -> impl Iterator<Item = Refusal> {
        self.counts
            .iter()
            .map(|((kind, operation, subject, rule), count)| Refusal {
                kind: *kind,
                operation: operation.clone(),
                subject: subject.clone(),
                rule: rule.clone(),
                count: *count,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_replace_first_sightings() {
        let mut refusals = Refusals::default();
        refusals.add(RefusalKind::File, "create", "/w/.bashrc", "protected");
        refusals.set_at_least(RefusalKind::File, "create", "/w/.bashrc", "protected", 7);
        let all: Vec<_> = refusals.iter().collect();
        assert_eq!((all.len(), all[0].count), (1, 7));
    }

    #[test]
    fn counts_add_up() {
        let mut refusals = Refusals::default();
        for times in [1, 2] {
            refusals.count(RefusalKind::Network, "connect", "a:1", "closed", times);
        }
        assert_eq!(
            refusals.iter().map(|one| one.count).collect::<Vec<_>>(),
            [3]
        );
    }

    #[test]
    fn a_flood_is_bounded_and_still_counted() {
        let mut refusals = Refusals::default();
        for n in 0..3 * MOST_DISTINCT {
            refusals.add(RefusalKind::Network, "connect", &n.to_string(), "closed");
        }
        assert_eq!(refusals.iter().count(), MOST_DISTINCT);
        assert_eq!(refusals.more(), 2 * MOST_DISTINCT as u64);
    }

    #[test]
    fn a_refusal_reads_back_from_its_own_json() {
        let refusal = Refusal {
            kind: RefusalKind::Socket,
            operation: "connect".into(),
            subject: "/x".into(),
            rule: "socket of the host".into(),
            count: 2,
        };
        let text = serde_json::to_string(&refusal).unwrap();
        assert_eq!(serde_json::from_str::<Refusal>(&text).unwrap(), refusal);
    }
}
