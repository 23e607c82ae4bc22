//! Request layers: files of the working folder and of skills.
//!
//! They narrow freely. What they ask for beyond the operator's rules becomes a pending note. A
//! credential of theirs, or of a kit, counts only once the operator approved it.

use std::cmp::Ordering;
use std::fmt::Display;

use super::error::PolicyError;
use super::merge::{Draft, append, restate};
use crate::address::{AddressClass, special_range};
use crate::credential::Credential;
use crate::environment::covers_name;
use crate::layer::{EnvironmentLayer, FilesystemLayer, Layer, NetworkLayer};
use crate::note::{Note, NoteKind};
use crate::origin::{Authority, LayerKind, Origin, Sourced};
use crate::path::PathRule;
use crate::rule::{AllowRule, Destination, NetworkMode, Reach};

/// Takes from a request layer what no permission of the operator covers: metadata addresses,
/// protected names, root certificates and the permission itself.
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
    for file in layer.network.authorities.take().into_iter().flatten() {
        notes.push(pending(
            "network.authorities",
            &file.value.display(),
            &file.origin,
        ));
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
        let told = self.notes.len();
        self.narrow_network(layer.network);
        self.narrow_filesystem(layer.filesystem);
        self.narrow_environment(layer.environment);
        self.ask_presets(&layer.presets, told);
        let limits = std::mem::take(&mut self.limits);
        self.limits = limits.lowered_by(layer.limits);
        for credential in layer.credentials.into_iter().flatten() {
            // The operator's own word about a service is stronger than an approved request.
            if !self.knows_service(&credential.service) {
                self.credentials.push(credential);
            }
        }
        if let Some(audit) = layer.audit.filter(|audit| audit.value > self.audit.value) {
            self.audit = audit;
        }
        Ok(())
    }

    /// One note for each preset that the operator did not name, in place of those about its rules,
    /// which come after the first `told`.
    fn ask_presets(&mut self, presets: &[Sourced<String>], told: usize) {
        let new = self.notes.split_off(told);
        let own = |note: &Note| note.origin.layer != LayerKind::Preset;
        self.notes.extend(new.into_iter().filter(own));
        for preset in presets {
            if !self.presets.iter().any(|own| own.value == preset.value) {
                self.notes
                    .push(pending("presets", &preset.value, &preset.origin));
            }
        }
    }

    /// Sets aside what `layer` asks for and nobody approved. To be called once the operator's own
    /// credentials are known.
    pub(super) fn withhold(&mut self, credentials: Vec<Sourced<Credential>>) {
        for credential in credentials {
            if self
                .credentials
                .iter()
                .any(|own| own.value == credential.value)
            {
                continue;
            }
            self.notes.push(withheld(&credential));
            self.withheld.push(credential);
        }
    }

    fn knows_service(&self, service: &str) -> bool {
        self.credentials.iter().any(|own| own.service == service)
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
        restate(&mut self.read_deny, &filesystem.read_deny);
        append(&mut self.read_deny, filesystem.read_deny);
        append(&mut self.write_deny, filesystem.write_deny);
        append(&mut self.protect, filesystem.protect);
        append(&mut self.masked, filesystem.masked);
        if let Some(scope) = filesystem
            .scope
            .filter(|scope| scope.value < self.scope.value)
        {
            self.scope = scope;
        }
        if let Some(guard) = filesystem
            .guard
            .filter(|guard| guard.value < self.guard.value)
        {
            self.guard = guard;
        }
        if let Some(home) = filesystem.home {
            match home.width().cmp(&self.home.width()) {
                Ordering::Less => self.home = home,
                Ordering::Equal => {}
                Ordering::Greater => {
                    let note = pending("filesystem.home", &home.value, &home.origin);
                    self.notes.push(note);
                }
            }
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
        append(&mut self.withhold, environment.withhold);
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

/// Takes from a layer the credentials that need an approval and have none.
pub(super) fn unapproved(layer: &mut Layer) -> Vec<Sourced<Credential>> {
    if !layer.asks_for_credentials() {
        return Vec::new();
    }
    let approved = &layer.approved;
    // A masked file is shown apart from its secret, so it is a widening of its own.
    let masked = &mut layer.filesystem.masked;
    let hidden = masked.extract_if(.., |file| !approved.contains(&file.service));
    let hidden = hidden.map(|file| Sourced::new(PathRule::Literal(file.value.path), file.origin));
    layer.filesystem.read_deny.extend(hidden);
    let credentials = layer.credentials.iter_mut();
    credentials
        .flat_map(|list| list.extract_if(.., |own| !approved.contains(&own.service)))
        .collect()
}

fn withheld(credential: &Sourced<Credential>) -> Note {
    let hosts: Vec<String> = credential
        .bindings
        .iter()
        .map(|binding| binding.host.to_string())
        .collect();
    let message = format!(
        "credential {} for {} is asked for and not approved: requests go without it",
        credential.service,
        hosts.join(", ")
    );
    Note::new(
        NoteKind::Pending,
        "credential-withheld",
        message,
        &credential.origin,
    )
}

fn pending(place: &str, entry: &dyn Display, origin: &Origin) -> Note {
    let message = format!("{place} entry {entry} is asked for and not granted");
    Note::new(NoteKind::Pending, "pending-request", message, origin)
}
