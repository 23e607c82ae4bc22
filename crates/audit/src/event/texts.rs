//! Every text of an event that others chose: where a named secret may be.

use super::argument::{ArgumentText, Arguments};
use super::call::{Call, Paths};
use super::group::{Group, Summary};
use super::kind::{Closed, Decided, Process};
use super::run::{LimitReached, RunStarted};
use super::{Event, EventKind};
use crate::redact::{Redact, Secrets};

impl Redact for Event {
    fn redact(&mut self, secrets: &Secrets) {
        self.sandbox.redact(secrets);
        self.kind.redact(secrets);
    }
}

impl Redact for EventKind {
    fn redact(&mut self, secrets: &Secrets) {
        match self {
            Self::RunStarted(started) => started.redact(secrets),
            Self::Decision(decided) => decided.redact(secrets),
            Self::Closed(closed) => closed.redact(secrets),
            Self::Call(call) => call.redact(secrets),
            Self::Summary(summary) => summary.redact(secrets),
            Self::LimitHit(hit) => hit.redact(secrets),
            // All of their words are ours.
            Self::Calls(_) | Self::RunEnded(_) | Self::Sealed(_) | Self::ChainBroken(_) => {}
        }
    }
}

/// The fields to go through.
macro_rules! redact_fields {
    ($($type:ty { $($field:ident),+ })+) => {$(
        impl Redact for $type {
            fn redact(&mut self, secrets: &Secrets) {
                $(self.$field.redact(secrets);)+
            }
        }
    )+};
}

redact_fields! {
    RunStarted { command, working_folder }
    Process { executable }
    Decided { process, host, method, path, rule, source, credential }
    Closed { host }
    Call { call, paths, argv, rule }
    Summary { group }
    Group { call, place, host, rule, source, credential }
    LimitReached { evidence }
}

impl Redact for Arguments {
    fn redact(&mut self, secrets: &Secrets) {
        self.words().redact(secrets);
    }
}

impl Redact for ArgumentText {
    fn redact(&mut self, secrets: &Secrets) {
        self.text().redact(secrets);
    }
}

impl Redact for Paths {
    fn redact(&mut self, secrets: &Secrets) {
        self.texts().redact(secrets);
    }
}
