//! The ceiling: effective = layers ∩ ceiling. A section that it does not state does not narrow.

use std::fmt::Display;

use super::error::PolicyError;
use super::merge::{Draft, append};
use crate::credential::CredentialBinding;
use crate::environment::covers_name;
use crate::layer::{EnvironmentLayer, FilesystemLayer, Layer};
use crate::note::{Note, NoteKind};
use crate::origin::{Origin, Sourced};
use crate::path::PathRule;

impl Draft {
    /// Applies the ceiling. Its network rules are kept apart and judged by `decide`.
    pub(super) fn cap(&mut self, ceiling: Layer) -> Result<(), PolicyError> {
        refuse_widening(&ceiling)?;
        self.notes.extend(ceiling.notes);
        self.cap_filesystem(ceiling.filesystem);
        self.cap_environment(ceiling.environment);
        let limits = std::mem::take(&mut self.limits);
        self.limits = limits.lowered_by(ceiling.limits);
        if let Some(bindings) = ceiling.credentials {
            self.cap_credentials(&bindings);
        }
        if let Some(audit) = ceiling.audit.filter(|audit| audit.value > self.audit.value) {
            self.audit = audit;
        }
        self.ceiling = Some((ceiling.origin, ceiling.network));
        Ok(())
    }

    fn cap_filesystem(&mut self, ceiling: FilesystemLayer) {
        append(&mut self.read_deny, ceiling.read_deny);
        append(&mut self.write_deny, ceiling.write_deny);
        append(&mut self.protect, ceiling.protect);
        if let Some(scope) = ceiling.scope.filter(|scope| scope.value < self.scope.value) {
            self.scope = scope;
        }
        if let Some(bound) = ceiling.write_allow {
            let own = std::mem::take(&mut self.write_allow);
            self.write_allow = self.cap_paths("filesystem.write.allow", own, &bound);
        }
        if let Some(bound) = ceiling.read_allow {
            let own = std::mem::take(&mut self.read_allow);
            self.read_allow = self.cap_paths("filesystem.read.allow", own, &bound);
        }
    }

    /// The intersection: an entry inside the bound stays, a wider one shrinks to the bound.
    fn cap_paths(
        &mut self,
        place: &str,
        own: Vec<Sourced<PathRule>>,
        bound: &[Sourced<PathRule>],
    ) -> Vec<Sourced<PathRule>> {
        let mut kept = Vec::new();
        for rule in own {
            if bound.iter().any(|limit| limit.covers(&rule)) {
                append(&mut kept, [rule]);
                continue;
            }
            self.notes.push(capped(place, &rule.value, &rule.origin));
            append(
                &mut kept,
                bound.iter().filter(|limit| rule.covers(limit)).cloned(),
            );
        }
        kept
    }

    fn cap_environment(&mut self, ceiling: EnvironmentLayer) {
        append(&mut self.managed, ceiling.managed);
        let Some(bound) = ceiling.pass else { return };
        if ceiling.pass_all.is_some_and(|all| all.value) {
            return;
        }
        let listed = |name: &str| bound.iter().any(|limit| covers_name(limit, name));
        if std::mem::take(&mut self.pass_all) {
            append(&mut self.pass, bound.iter().cloned());
        }
        let own = std::mem::take(&mut self.pass);
        for name in own {
            if listed(&name) {
                append(&mut self.pass, [name]);
            } else {
                self.notes
                    .push(capped("environment.pass", &name.value, &name.origin));
                let inside = bound
                    .iter()
                    .filter(|limit| covers_name(&name, limit))
                    .cloned();
                append(&mut self.pass, inside);
            }
        }
        let set = std::mem::take(&mut self.set);
        for (name, value) in set {
            if listed(&name) || ceiling.set.contains_key(&name) {
                self.set.insert(name, value);
            } else {
                self.notes
                    .push(capped("environment.set", &name, &value.origin));
            }
        }
    }

    fn cap_credentials(&mut self, bound: &[Sourced<CredentialBinding>]) {
        for binding in std::mem::take(&mut self.credentials) {
            if bound.iter().any(|limit| permits(limit, &binding)) {
                self.credentials.push(binding);
            } else {
                self.notes
                    .push(capped("credentials", &binding.service, &binding.origin));
            }
        }
    }
}

fn refuse_widening(ceiling: &Layer) -> Result<(), PolicyError> {
    let unprotect = ceiling.filesystem.unprotect.first();
    let requests = ceiling
        .requests
        .as_ref()
        .map(|rule| ("requests", &rule.origin));
    let unprotect = unprotect.map(|entry| ("filesystem.write.unprotect", &entry.origin));
    let set = ceiling.environment.set.values().next();
    let set = set.map(|value| ("environment.set", &value.origin));
    match requests.or(unprotect).or(set) {
        Some((key, origin)) => Err(PolicyError::CeilingWidens {
            key,
            origin: origin.clone(),
        }),
        None => Ok(()),
    }
}

/// A ceiling's binding lets the same secret go to the same hosts or fewer.
fn permits(limit: &CredentialBinding, binding: &CredentialBinding) -> bool {
    let host_permitted = |host| limit.hosts.iter().any(|own| own.covers(host));
    limit.service == binding.service
        && limit.env == binding.env
        && binding.hosts.iter().all(host_permitted)
}

fn capped(place: &str, entry: &dyn Display, origin: &Origin) -> Note {
    let message = format!("{place} entry {entry} is beyond the ceiling");
    Note::new(NoteKind::Ceiling, "beyond-ceiling", message, origin)
}
