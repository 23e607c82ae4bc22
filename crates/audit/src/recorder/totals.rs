//! [`Totals`]: what a report of the run needs, bounded.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Group, Verdict, Via};
use crate::log::LogError;
use crate::refusal::{RefusalKind, Refusals};

/// The most destinations that are kept apart.
const MOST_DESTINATIONS: usize = 1024;

/// What was tried at a destination.
const CONNECT: &str = "connect";
/// What was tried with a name.
const LOOK_UP: &str = "look-up";

/// What went to and came from one destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Traffic {
    /// Connections that were allowed and have ended.
    pub connections: u64,
    /// Bytes that left.
    pub bytes_up: u64,
    /// Bytes that came.
    pub bytes_down: u64,
}

/// What happened in a run so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    allowed: u64,
    refused: u64,
    unrecorded: u64,
    refusals: Refusals,
    traffic: BTreeMap<String, Traffic>,
    more_traffic: Traffic,
}

impl Totals {
    /// Decisions that were yes.
    pub fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Decisions that were no.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Decisions that took no effect because they could not be recorded.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// What was refused: `look-up` and the name, or `connect`, the destination as `host:port`, and as the
    /// rule the code of the reason, followed by `: ` and the rule, or the address
    /// that the name was refused for, if there is one.
    pub fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// By destination, as `host:port`, what went and came.
    pub fn traffic(&self) -> impl Iterator<Item = (&str, Traffic)> {
        self.traffic.iter().map(|(to, sum)| (to.as_str(), *sum))
    }

    /// What went to and came from destinations that are not told apart.
    pub fn more_traffic(&self) -> Traffic {
        self.more_traffic
    }

    /// Notes a decision, and what kept it from being recorded: it is a refusal
    /// then, whatever it was before.
    pub(super) fn note_decision(&mut self, group: &Group, unrecorded: Option<&LogError>) {
        self.unrecorded += u64::from(unrecorded.is_some());
        match (group.verdict, unrecorded) {
            (Verdict::Allowed, None) => self.allowed += 1,
            (Verdict::Allowed, Some(error)) => self.note_refusal(group, error.code()),
            (Verdict::Refused, _) => self.note_refusal(group, &why(group)),
        }
    }

    fn note_refusal(&mut self, group: &Group, rule: &str) {
        self.refused += 1;
        let to = group.destination().unwrap_or_default();
        let tried = match group.via {
            Some(Via::Dns) => LOOK_UP,
            _ => CONNECT,
        };
        self.refusals
            .count(RefusalKind::Network, tried, &to, rule, 1);
    }

    pub(super) fn note_closed(&mut self, group: &Group, (up, down): (u64, u64)) {
        let to = group.destination().unwrap_or_default();
        let is_known = self.traffic.contains_key(&to);
        let sum = if is_known || self.traffic.len() < MOST_DESTINATIONS {
            self.traffic.entry(to).or_default()
        } else {
            &mut self.more_traffic
        };
        sum.connections += 1;
        sum.bytes_up = sum.bytes_up.saturating_add(up);
        sum.bytes_down = sum.bytes_down.saturating_add(down);
    }
}

fn why(group: &Group) -> String {
    let reason = group.reason.as_ref().map_or("", |reason| reason.as_str());
    let address = group.address.filter(|_| group.host.is_some());
    match (&group.rule, address) {
        (Some(rule), _) => format!("{reason}: {rule}"),
        (None, Some(address)) => format!("{reason}: {address}"),
        (None, None) => reason.to_owned(),
    }
}
