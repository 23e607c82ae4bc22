//! Request layers: files of the working folder and of skills.
//!
//! They narrow freely. What they ask for beyond the operator's rules becomes a pending note.

use std::fmt::Display;

use super::error::PolicyError;
use super::merge::{Draft, append};
use crate::address::{AddressClass, special_range};
use crate::environment::covers_name;
use crate::layer::{EnvironmentLayer, FilesystemLayer, Layer, NetworkLayer};
use crate::note::{Note, NoteKind};
use crate::origin::{Authority, Origin, Sourced};
use crate::path::PathRule;
use crate::rule::{AllowRule, Destination, NetworkMode, Reach};

/// Takes from a request layer what no permission of the operator covers: metadata addresses,
/// protected names and the permission itself.
pub(super) fn without_privileges(mut layer: Layer) -> Result<Layer, PolicyError> {
    if layer.authority == Authority::Operator {
        return Ok(layer);
    }
    if let Some(requests) = &layer.requests {
        return Err(PolicyError::RequestsByRequest(requests.origin.clone()));
    }
    let mut notes = Vec::new();
    for entry in layer.filesystem.unprotect.drain(..) {
        notes.push(pending("unprotect", &entry.value, &entry.origin));
    }
    if let Some(allow) = &mut layer.network.allow {
        for rule in allow.extract_if(.., |rule| names_metadata(rule)) {
            notes.push(pending("network.allow", &rule.value, &rule.origin));
        }
    }
    layer.notes.extend(notes);
    Ok(layer)
}

fn names_metadata(rule: &AllowRule) -> bool {
    let Destination::Block(block) = rule.destination else {
        return false;
    };
    block.is_single() && AddressClass::of(block.net().addr()) == AddressClass::Metadata
}

impl Draft {
    /// Applies a request layer that the operator gave no permission.
    pub(super) fn narrow(&mut self, layer: Layer) -> Result<(), PolicyError> {
        let layer = without_privileges(layer)?;
        self.notes.extend(layer.notes);
        self.narrow_network(layer.network);
        self.narrow_filesystem(layer.filesystem);
        self.narrow_environment(layer.environment);
        let limits = std::mem::take(&mut self.limits);
        self.limits = limits.lowered_by(layer.limits);
        for binding in layer.credentials.into_iter().flatten() {
            if !self
                .credentials
                .iter()
                .any(|own| own.value == binding.value)
            {
                self.notes
                    .push(pending("credentials", &binding.service, &binding.origin));
            }
        }
        if let Some(audit) = layer.audit.filter(|audit| audit.value > self.audit.value) {
            self.audit = audit;
        }
        Ok(())
    }

    fn narrow_network(&mut self, network: NetworkLayer) {
        let open = self.mode.value == NetworkMode::Open;
        let narrows = network
            .mode
            .as_ref()
            .is_some_and(|mode| mode.value == NetworkMode::Allowlist);
        let wanted = network.allow.unwrap_or_default();
        if narrows {
            // What an earlier request kept of an open network stays only as
            // far as this one wants it too.
            self.kept_open
                .retain(|own| wanted.iter().any(|rule| rule.covers(own)));
        }
        for rule in wanted {
            let mut granted = self.allow.iter().chain(&self.kept_open);
            let is_granted = granted.any(|own| own.covers(&rule));
            match openness_covers(&rule) && open {
                _ if is_granted => {}
                true if narrows => append(&mut self.kept_open, [within_public(rule)]),
                true => {}
                false => self
                    .notes
                    .push(pending("network.allow", &rule.value, &rule.origin)),
            }
        }
        for port in network.host_ports.into_iter().flatten() {
            if !self.host_ports.iter().any(|own| own.value == port.value) {
                self.notes
                    .push(pending("network.hostPorts", &port.value, &port.origin));
            }
        }
        append(&mut self.deny, network.deny);
        if let Some(mode) = network.mode.filter(|mode| mode.value < self.mode.value) {
            self.mode = mode;
        }
    }

    fn narrow_filesystem(&mut self, filesystem: FilesystemLayer) {
        append(&mut self.read_deny, filesystem.read_deny);
        append(&mut self.write_deny, filesystem.write_deny);
        append(&mut self.protect, filesystem.protect);
        if let Some(scope) = filesystem
            .scope
            .filter(|scope| scope.value < self.scope.value)
        {
            self.scope = scope;
        }
        self.ask_paths("filesystem.read.allow", filesystem.read_allow, |draft| {
            &draft.read_allow
        });
        self.ask_paths("filesystem.write.allow", filesystem.write_allow, |draft| {
            &draft.write_allow
        });
    }

    /// What the operator's list covers is granted already; the rest is pending.
    fn ask_paths(
        &mut self,
        place: &str,
        wanted: Option<Vec<Sourced<PathRule>>>,
        granted: impl Fn(&Self) -> &[Sourced<PathRule>],
    ) {
        for rule in wanted.into_iter().flatten() {
            if !granted(self).iter().any(|own| own.covers(&rule)) {
                self.notes.push(pending(place, &rule.value, &rule.origin));
            }
        }
    }

    /// Setting a variable gives the inside nothing it could not do itself; passing one does.
    fn narrow_environment(&mut self, environment: EnvironmentLayer) {
        if let Some(all) = environment
            .pass_all
            .filter(|all| all.value && !self.pass_all)
        {
            self.notes
                .push(pending("environment.pass", &"*", &all.origin));
        }
        for name in environment.pass.into_iter().flatten() {
            if !self.pass_all && !self.pass.iter().any(|own| covers_name(own, &name)) {
                self.notes
                    .push(pending("environment.pass", &name.value, &name.origin));
            }
        }
        append(&mut self.managed, environment.managed);
        for (name, value) in environment.set {
            self.set.entry(name).or_insert(value);
        }
    }
}

/// True when an open network allows all of `rule` already.
fn openness_covers(rule: &AllowRule) -> bool {
    match &rule.destination {
        Destination::Any => false,
        Destination::Host(pattern) => !pattern.name().is_localhost(),
        Destination::Block(block) => {
            block.is_single() && special_range(block.net().addr()).is_none()
        }
    }
}

fn within_public(rule: Sourced<AllowRule>) -> Sourced<AllowRule> {
    let public = AllowRule {
        reach: Reach::Public,
        ..rule.value
    };
    Sourced::new(public, rule.origin)
}

fn pending(place: &str, entry: &dyn Display, origin: &Origin) -> Note {
    let message = format!("{place} entry {entry} is asked for and not granted");
    Note::new(NoteKind::Pending, "pending-request", message, origin)
}
