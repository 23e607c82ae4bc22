//! From a kit to its layer.

use super::{Kit, KitEntryOf};
use crate::layer::{Layer, NetworkLayer};
use crate::note::{Note, NoteKind};
use crate::rule::{AllowRule, DenyRule};

impl Kit {
    /// The kit's layer. It has the word of the operator, who named the kit: allows add, denies
    /// hold everywhere. Credentials of a kit are withheld until they are approved.
    pub fn layer(&self) -> Layer {
        let mut layer = Layer::empty(self.origin.clone());
        let (dead, allow) = self.allow.iter().partition(|entry| self.is_denied(entry));
        let dead: Vec<&KitEntryOf<AllowRule>> = dead;
        layer.network = self.network(allow);
        layer.environment.set.clone_from(&self.variables);
        layer.credentials = (!self.credentials.is_empty()).then(|| self.credentials.clone());
        layer.notes.clone_from(&self.notes);
        layer.notes.extend(dead.into_iter().map(dead_note));
        layer
    }

    fn network(&self, allow: Vec<&KitEntryOf<AllowRule>>) -> NetworkLayer {
        let allow: Vec<_> = allow.into_iter().map(|entry| entry.rule.clone()).collect();
        NetworkLayer {
            allow: (!allow.is_empty()).then_some(allow),
            deny: self.deny.iter().map(|entry| entry.rule.clone()).collect(),
            ..NetworkLayer::default()
        }
    }

    /// A kit's lists may overlap, which other formats take for a mistake.
    fn is_denied(&self, entry: &KitEntryOf<AllowRule>) -> bool {
        let denies = |deny: &DenyRule| {
            deny.destination.covers(&entry.rule.destination)
                && entry.rule.ports.is_subset(&deny.ports)
        };
        self.deny.iter().any(|deny| denies(&deny.rule))
    }
}

fn dead_note(entry: &KitEntryOf<AllowRule>) -> Note {
    let message = format!("{}: the kit itself denies all of it", entry.text);
    Note::new(
        NoteKind::NoEffect,
        "kit-denied-allow",
        message,
        &entry.rule.origin,
    )
}
