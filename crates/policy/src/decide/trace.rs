//! What an evaluation looked at.

use std::fmt::Display;

use serde::Serialize;

use crate::origin::Origin;

/// Which way a rule points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It allows.
    Allow,
    /// It denies.
    Deny,
}

/// Whose rules were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ListName {
    /// The layers together.
    Policy,
    /// The operator's ceiling.
    Ceiling,
}

/// What came of looking at a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It fits the request.
    Matched,
    /// It is about this destination on other ports.
    OtherPort,
    /// It is about this destination with other methods.
    OtherMethod,
    /// It is about this destination with other paths.
    OtherPath,
    /// It lifts the guard on a special address.
    Lifted,
    /// It covers a special address without being as narrow as lifting needs.
    TooBroadToLift,
}

/// One rule that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Considered {
    /// Whose rule.
    pub list: ListName,
    /// Which way it points.
    pub effect: Effect,
    /// The rule as text.
    pub rule: String,
    /// Where it was written.
    pub origin: Origin,
    /// What came of it.
    pub outcome: Outcome,
}

/// Takes note of what an evaluation looks at.
pub(super) trait Trace {
    fn consider(
        &mut self,
        list: ListName,
        effect: Effect,
        rule: &dyn Display,
        origin: &Origin,
        outcome: Outcome,
    );
}

/// Keeps nothing.
pub(super) struct Silent;

impl Trace for Silent {
    fn consider(&mut self, _: ListName, _: Effect, _: &dyn Display, _: &Origin, _: Outcome) {}
}

impl Trace for Vec<Considered> {
    fn consider(
        &mut self,
        list: ListName,
        effect: Effect,
        rule: &dyn Display,
        origin: &Origin,
        outcome: Outcome,
    ) {
        let seen = Considered {
            list,
            effect,
            rule: rule.to_string(),
            origin: origin.clone(),
            outcome,
        };
        if !self.contains(&seen) {
            self.push(seen);
        }
    }
}
