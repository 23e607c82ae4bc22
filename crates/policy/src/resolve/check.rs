//! The last step: what only the whole can tell, then compiling.

use super::credentials;
use super::error::PolicyError;
use super::merge::Draft;
use crate::environment::Environment;
use crate::filesystem::{Filesystem, ProtectedName};
use crate::index::{BindingIndex, RuleIndex};
use crate::layer::NetworkLayer;
use crate::origin::{LayerKind, Origin, Sourced};
use crate::policy::{Network, Policy};
use crate::rule::{AllowRule, DenyRule, DenyScope, Destination, NetworkMode};

/// Parts of git's folder that `unprotect` may name although the table holds git as a whole.
const GIT_PARTS: [&str; 2] = [".git/config", ".git/hooks"];

pub(super) fn finish(mut draft: Draft) -> Result<Policy, PolicyError> {
    let kept_open = std::mem::take(&mut draft.kept_open);
    super::merge::append(&mut draft.allow, kept_open);
    refuse_dead_allows(&draft)?;
    unprotect(&mut draft)?;
    credentials::settle(&mut draft)?;
    Ok(build(draft))
}

fn build(draft: Draft) -> Policy {
    let network = Network {
        mode: Some(draft.mode),
        allow: RuleIndex::new(draft.allow),
        deny: RuleIndex::new(draft.deny),
        host_ports: draft.host_ports,
        origin: Origin::new(LayerKind::Default, "layers"),
    };
    let filesystem = Filesystem {
        scope: draft.scope,
        home: draft.home,
        read_deny: draft.read_deny,
        read_allow: draft.read_allow,
        write_allow: draft.write_allow,
        write_deny: draft.write_deny,
        protect: draft.protect,
        unprotect: draft.unprotect,
        masked: draft.masked,
        guard: draft.guard,
    };
    let environment = Environment {
        pass: draft.pass,
        set: draft.set,
        managed: draft.managed,
        withheld: draft.withhold,
        pass_all: draft.pass_all,
    };
    Policy {
        presets: draft.presets,
        network,
        ceiling: draft
            .ceiling
            .map(|(origin, network)| ceiling(origin, network)),
        filesystem,
        limits: draft.limits,
        environment,
        bindings: BindingIndex::new(&draft.credentials),
        credentials: draft.credentials,
        withheld: draft.withheld,
        authorities: draft.authorities,
        audit: draft.audit,
        notes: draft.notes,
        host_addresses: std::collections::BTreeSet::new(),
    }
}

/// A ceiling that lists what is allowed bounds by that list; one that only denies does not.
fn ceiling(origin: Origin, network: NetworkLayer) -> Network {
    let lists = network.allow.is_some() || network.host_ports.is_some();
    let implied = lists.then(|| Sourced::new(NetworkMode::Allowlist, origin.clone()));
    Network {
        mode: network.mode.or(implied),
        allow: RuleIndex::new(network.allow.unwrap_or_default()),
        deny: RuleIndex::new(network.deny),
        host_ports: network.host_ports.unwrap_or_default(),
        origin,
    }
}

/// An entry that can never match is an error that shows the entry. Two layers may disagree, so
/// only entries of one and the same file are held against each other; srt's users write
/// `deniedDomains: ["*"]` beside allows to close the network, so its lists may disagree too.
fn refuse_dead_allows(draft: &Draft) -> Result<(), PolicyError> {
    let index = RuleIndex::new(draft.deny.clone());
    let foreign = |origin: &Origin| {
        matches!(
            origin.layer,
            LayerKind::SrtSettings | LayerKind::Environment
        )
    };
    for rule in draft.allow.iter().filter(|rule| !foreign(&rule.origin)) {
        let same_file = |deny: &&Sourced<DenyRule>| {
            deny.origin.layer == rule.origin.layer && deny.origin.name == rule.origin.name
        };
        let denies = candidates(&index, rule)
            .into_iter()
            .filter(same_file)
            .collect::<Vec<_>>();
        if let Some(deny) = denies.iter().find(|deny| denies_all(deny, rule)) {
            return Err(PolicyError::NeverMatches {
                entry: rule.value.to_string(),
                origin: rule.origin.clone(),
                denied_by: deny.origin.clone(),
            });
        }
    }
    Ok(())
}

/// Denies that could cover all of `rule`: those found for its name or its first address.
fn candidates<'a>(index: &'a RuleIndex<DenyRule>, rule: &AllowRule) -> Vec<&'a Sourced<DenyRule>> {
    match &rule.destination {
        Destination::Any => Vec::new(),
        Destination::Host(pattern) => index.about_name(pattern.name()),
        Destination::Block(block) => index.for_address(block.net().network()),
    }
}

fn denies_all(deny: &DenyRule, rule: &AllowRule) -> bool {
    deny.scope == DenyScope::Always
        && deny.destination.covers(&rule.destination)
        && rule.ports.is_subset(&deny.ports)
}

/// Takes out of the table what operator layers name by exact text.
fn unprotect(draft: &mut Draft) -> Result<(), PolicyError> {
    for entry in &draft.unprotect {
        let named = |name: &Sourced<ProtectedName>| name.value.to_string() == entry.value;
        if !GIT_PARTS.contains(&entry.value.as_str()) && !draft.protect.iter().any(named) {
            return Err(PolicyError::Unprotect {
                entry: entry.value.clone(),
                origin: entry.origin.clone(),
            });
        }
    }
    let kept = |name: &Sourced<ProtectedName>| {
        !draft
            .unprotect
            .iter()
            .any(|entry| entry.value == name.value.to_string())
    };
    let protect = std::mem::take(&mut draft.protect);
    draft.protect = protect.into_iter().filter(kept).collect();
    Ok(())
}
