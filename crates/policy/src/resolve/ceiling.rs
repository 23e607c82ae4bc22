//! The ceiling: effective = layers ∩ ceiling. A section that it does not state does not narrow.

use std::fmt::Display;
use std::path::PathBuf;

use super::error::PolicyError;
use super::merge::{Draft, append, restate};
use crate::credential::{Binding, Credential};
use crate::environment::covers_name;
use crate::home::HomeRule;
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
        if let Some(bound) = ceiling.credentials {
            self.cap_credentials(&bound);
        }
        if let Some(bound) = &ceiling.network.authorities {
            self.cap_authorities(bound);
        }
        if let Some(audit) = ceiling.audit.filter(|audit| audit.value > self.audit.value) {
            self.audit = audit;
        }
        self.ceiling = Some((ceiling.origin, ceiling.network));
        Ok(())
    }

    fn cap_filesystem(&mut self, ceiling: FilesystemLayer) {
        restate(&mut self.read_deny, &ceiling.read_deny);
        append(&mut self.read_deny, ceiling.read_deny);
        append(&mut self.write_deny, ceiling.write_deny);
        append(&mut self.protect, ceiling.protect);
        if let Some(scope) = ceiling.scope.filter(|scope| scope.value < self.scope.value) {
            self.scope = scope;
        }
        if let Some(guard) = ceiling.guard.filter(|guard| guard.value < self.guard.value) {
            self.guard = guard;
        }
        self.cap_home(ceiling.home);
        if let Some(bound) = ceiling.write_allow {
            let own = std::mem::take(&mut self.write_allow);
            self.write_allow = self.cap_paths("filesystem.write.allow", own, &bound);
        }
        if let Some(bound) = ceiling.read_allow {
            let own = std::mem::take(&mut self.read_allow);
            self.read_allow = self.cap_paths("filesystem.read.allow", own, &bound);
        }
    }

    fn cap_home(&mut self, bound: Option<Sourced<HomeRule>>) {
        if let Some(bound) = bound.filter(|bound| bound.width() < self.home.width()) {
            let asked = std::mem::replace(&mut self.home, bound);
            if asked.width() > HomeRule::Private.width() {
                self.notes
                    .push(capped("filesystem.home", &asked.value, &asked.origin));
            }
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

    /// Only listed services stay, each with the bindings that its entry covers.
    fn cap_credentials(&mut self, bound: &[Sourced<Credential>]) {
        for mut credential in std::mem::take(&mut self.credentials) {
            let whole = credential.clone();
            let limit = bound.iter().find(|limit| permits(limit, &whole));
            let Some(limit) = limit else {
                self.cut(whole);
                continue;
            };
            let bindings = &mut credential.value.bindings;
            bindings.retain(|own| reaches(limit, own));
            if bindings.len() == whole.bindings.len() {
                self.credentials.push(credential);
            } else if bindings.is_empty() {
                self.cut(whole);
            } else {
                self.notes
                    .push(capped("credentials", &whole.service, &whole.origin));
                self.credentials.push(credential);
            }
        }
    }

    fn cut(&mut self, credential: Sourced<Credential>) {
        let note = capped("credentials", &credential.service, &credential.origin);
        self.notes.push(note);
        self.withheld.push(credential);
    }

    fn cap_authorities(&mut self, bound: &[Sourced<PathBuf>]) {
        let listed = |file: &PathBuf| bound.iter().any(|limit| limit.value == *file);
        for file in std::mem::take(&mut self.authorities) {
            if listed(&file) {
                self.authorities.push(file);
            } else {
                let name = file.value.display();
                self.notes
                    .push(capped("network.authorities", &name, &file.origin));
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

/// A ceiling's entry is about the same service, and lets its sources be used; none listed is any.
fn permits(limit: &Credential, credential: &Credential) -> bool {
    let source_permitted = |source| limit.sources.is_empty() || limit.sources.contains(source);
    limit.service == credential.service && credential.sources.iter().all(source_permitted)
}

/// A ceiling's entry lets the secret go where its bindings go; none listed is anywhere. How it is
/// put into the request is not bounded.
fn reaches(limit: &Credential, binding: &Binding) -> bool {
    limit.bindings.is_empty() || limit.bindings.iter().any(|own| own.covers(binding))
}

fn capped(place: &str, entry: &dyn Display, origin: &Origin) -> Note {
    let message = format!("{place} entry {entry} is beyond the ceiling");
    Note::new(NoteKind::Ceiling, "beyond-ceiling", message, origin)
}
