//! The last look at credentials: each goes to an allowed host, no two fill one place of the same
//! request, and no variable that holds a secret outside is taken in.

use super::error::PolicyError;
use super::merge::{Draft, append};
use crate::credential::{Binding, Credential};
use crate::host::{HOST_ALIAS, HostPattern};
use crate::origin::Sourced;
use crate::port::PortSet;
use crate::rule::{DenyScope, Destination, NetworkMode};

pub(super) fn settle(draft: &mut Draft) -> Result<(), PolicyError> {
    // Stronger layers first: where two would fill one place, the first counts.
    draft
        .credentials
        .sort_by_key(|own| std::cmp::Reverse(own.origin.layer));
    refuse_loose(draft)?;
    refuse_clashes(&draft.credentials)?;
    hide_masked(draft);
    keep_variables_out(draft);
    Ok(())
}

fn refuse_loose(draft: &Draft) -> Result<(), PolicyError> {
    for credential in &draft.credentials {
        let loose = |binding: &&Binding| !is_reachable(draft, binding);
        if let Some(binding) = credential.bindings.iter().find(loose) {
            return Err(PolicyError::CredentialHost {
                service: credential.service.clone(),
                host: format!("{}:{}", binding.host, binding.ports),
                origin: credential.origin.clone(),
            });
        }
    }
    Ok(())
}

/// True when every request of the binding could be allowed, its method and path aside.
fn is_reachable(draft: &Draft, binding: &Binding) -> bool {
    let wanted = Destination::Host(binding.host.clone());
    let denied = draft.deny.iter().any(|deny| {
        deny.scope == DenyScope::Always
            && deny.destination.covers(&wanted)
            && !deny.ports.is_disjoint(&binding.ports)
    });
    if denied {
        return false;
    }
    match draft.mode.value {
        NetworkMode::Deny => false,
        _ if is_alias(&binding.host) => binding.ports.is_subset(&host_ports(draft)),
        NetworkMode::Open => true,
        NetworkMode::Allowlist => binding.ports.is_subset(&allowed_ports(draft, &wanted)),
    }
}

fn is_alias(host: &HostPattern) -> bool {
    host.name().as_str() == HOST_ALIAS
}

fn host_ports(draft: &Draft) -> PortSet {
    let ports = draft.host_ports.iter();
    PortSet::from_ranges(ports.map(|port| (port.value, port.value)))
}

/// The ports on which some rule allows all of `wanted`.
fn allowed_ports(draft: &Draft, wanted: &Destination) -> PortSet {
    let rules = draft.allow.iter();
    let covering = rules.filter(|rule| rule.destination.covers(wanted));
    covering.fold(PortSet::from_ranges([]), |ports, rule| {
        ports.union(&rule.ports)
    })
}

/// Two credentials for one place of the same request are an error where text can tell; where it
/// cannot (two lists of paths), the first in order counts.
fn refuse_clashes(credentials: &[Sourced<Credential>]) -> Result<(), PolicyError> {
    for (index, credential) in credentials.iter().enumerate() {
        for other in &credentials[index + 1..] {
            if let Some(binding) = clash(credential, other) {
                return Err(PolicyError::CredentialClash {
                    service: other.service.clone(),
                    origin: other.origin.clone(),
                    other: format!("{} of {}", credential.service, credential.origin),
                    place: binding.to_string(),
                });
            }
        }
    }
    Ok(())
}

fn clash<'a>(one: &'a Credential, other: &Credential) -> Option<&'a Binding> {
    let meets = |own: &&Binding| other.bindings.iter().any(|binding| own.meets(binding));
    one.bindings.iter().find(meets)
}

/// A masked file whose credential is withheld shows nothing at all.
fn hide_masked(draft: &mut Draft) {
    let known = |service: &str| draft.credentials.iter().any(|own| own.service == service);
    let masked = std::mem::take(&mut draft.masked);
    let (shown, hidden): (Vec<_>, Vec<_>) =
        masked.into_iter().partition(|file| known(&file.service));
    draft.masked = shown;
    let places = hidden
        .into_iter()
        .map(|file| Sourced::new(crate::path::PathRule::Literal(file.value.path), file.origin));
    append(&mut draft.read_deny, places);
}

/// Inside, a credential's variables hold its placeholder, whatever else sets them; a withheld
/// one's hold nothing.
fn keep_variables_out(draft: &mut Draft) {
    let named =
        |name: &str, own: &Sourced<Credential>| Sourced::new(name.to_owned(), own.origin.clone());
    let mut managed = Vec::new();
    let mut withhold = Vec::new();
    for own in &draft.credentials {
        managed.extend(own.variables.iter().map(|name| named(name, own)));
        let outside = own.outer_variables();
        let outside = outside.filter(|name| !own.variables.iter().any(|inside| inside == name));
        withhold.extend(outside.map(|name| named(name, own)));
    }
    for own in &draft.withheld {
        withhold.extend(own.withheld_variables().map(|name| named(name, own)));
    }
    for name in &managed {
        draft.set.remove(&name.value);
    }
    append(&mut draft.managed, managed);
    append(&mut draft.withhold, withhold);
}
