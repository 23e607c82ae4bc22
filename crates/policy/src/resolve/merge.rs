//! [`Draft`]: the policy while it is being merged.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use crate::audit::AuditLevel;
use crate::credential::Credential;
use crate::filesystem::{GuardMode, MaskedFile, ProtectedName, ReadScope};
use crate::home::HomeRule;
use crate::layer::{EnvironmentLayer, FilesystemLayer, Layer, NetworkLayer};
use crate::limits::Limits;
use crate::note::{Note, NoteKind};
use crate::origin::{LayerKind, Origin, Sourced};
use crate::path::PathRule;
use crate::port::Port;
use crate::rule::{AllowRule, DenyRule, NetworkMode};

pub(super) struct Draft {
    pub(super) presets: Vec<Sourced<String>>,
    pub(super) mode: Sourced<NetworkMode>,
    pub(super) allow: Vec<Sourced<AllowRule>>,
    /// What request layers left of a network that the operator opened.
    pub(super) kept_open: Vec<Sourced<AllowRule>>,
    pub(super) deny: Vec<Sourced<DenyRule>>,
    pub(super) host_ports: Vec<Sourced<Port>>,
    pub(super) ceiling: Option<(Origin, NetworkLayer)>,
    pub(super) scope: Sourced<ReadScope>,
    pub(super) home: Sourced<HomeRule>,
    pub(super) read_deny: Vec<Sourced<PathRule>>,
    pub(super) read_allow: Vec<Sourced<PathRule>>,
    pub(super) write_allow: Vec<Sourced<PathRule>>,
    pub(super) write_deny: Vec<Sourced<PathRule>>,
    pub(super) protect: Vec<Sourced<ProtectedName>>,
    pub(super) unprotect: Vec<Sourced<String>>,
    pub(super) limits: Limits,
    pub(super) pass: Vec<Sourced<String>>,
    pub(super) pass_all: bool,
    pub(super) set: BTreeMap<String, Sourced<String>>,
    pub(super) managed: Vec<Sourced<String>>,
    pub(super) withhold: Vec<Sourced<String>>,
    /// Weakest layer first, until the end.
    pub(super) credentials: Vec<Sourced<Credential>>,
    pub(super) withheld: Vec<Sourced<Credential>>,
    pub(super) authorities: Vec<Sourced<PathBuf>>,
    pub(super) masked: Vec<Sourced<MaskedFile>>,
    pub(super) guard: Sourced<GuardMode>,
    pub(super) audit: Sourced<AuditLevel>,
    pub(super) notes: Vec<Note>,
}

impl Draft {
    /// Nothing allowed, nothing writable: what holds where no layer speaks.
    pub(super) fn new() -> Self {
        let origin = Origin::new(LayerKind::Default, "built-in");
        Self {
            presets: Vec::new(),
            mode: Sourced::new(NetworkMode::Deny, origin.clone()),
            allow: Vec::new(),
            kept_open: Vec::new(),
            deny: Vec::new(),
            host_ports: Vec::new(),
            ceiling: None,
            scope: Sourced::new(ReadScope::Host, origin.clone()),
            home: Sourced::new(HomeRule::None, origin.clone()),
            read_deny: Vec::new(),
            read_allow: Vec::new(),
            write_allow: Vec::new(),
            write_deny: Vec::new(),
            protect: Vec::new(),
            unprotect: Vec::new(),
            guard: Sourced::new(GuardMode::Live, origin.clone()),
            limits: Limits::default(),
            pass: Vec::new(),
            pass_all: false,
            set: BTreeMap::new(),
            managed: Vec::new(),
            withhold: Vec::new(),
            credentials: Vec::new(),
            withheld: Vec::new(),
            authorities: Vec::new(),
            masked: Vec::new(),
            audit: Sourced::new(AuditLevel::Standard, origin),
            notes: Vec::new(),
        }
    }

    /// Adds a layer that is stronger than all before it.
    pub(super) fn add(&mut self, layer: Layer) {
        append(&mut self.presets, layer.presets);
        self.add_network(layer.network, &layer.origin);
        self.add_filesystem(layer.filesystem);
        self.add_environment(layer.environment);
        let limits = std::mem::take(&mut self.limits);
        self.limits = limits.overridden_by(layer.limits);
        self.add_credentials(layer.credentials.into_iter().flatten());
        if let Some(audit) = layer.audit {
            self.audit = audit;
        }
        self.notes.extend(layer.notes);
    }

    /// A stronger layer's credential takes the place of a weaker one for the same service, whole:
    /// a mixture would send one's secret to the other's hosts.
    fn add_credentials(&mut self, credentials: impl IntoIterator<Item = Sourced<Credential>>) {
        for credential in credentials {
            let same = |own: &mut Sourced<Credential>| own.service == credential.service;
            for weaker in self.credentials.extract_if(.., same) {
                if weaker.value != credential.value {
                    self.notes.push(replaced(&weaker, &credential.origin));
                }
            }
            self.credentials.push(credential);
        }
    }

    /// A layer that lists destinations without naming a mode opens a closed network as far as
    /// its list; it never closes an open one.
    fn add_network(&mut self, network: NetworkLayer, origin: &Origin) {
        let lists = |len: Option<usize>| len.is_some_and(|len| len > 0);
        let allows = lists(network.allow.as_ref().map(Vec::len))
            || lists(network.host_ports.as_ref().map(Vec::len));
        match network.mode {
            Some(mode) => self.mode = mode,
            None if allows && self.mode.value == NetworkMode::Deny => {
                self.mode = Sourced::new(NetworkMode::Allowlist, origin.clone());
            }
            None => {}
        }
        append(&mut self.allow, network.allow.into_iter().flatten());
        append(&mut self.deny, network.deny);
        append(
            &mut self.host_ports,
            network.host_ports.into_iter().flatten(),
        );
        append(
            &mut self.authorities,
            network.authorities.into_iter().flatten(),
        );
    }

    fn add_filesystem(&mut self, filesystem: FilesystemLayer) {
        if let Some(scope) = filesystem.scope {
            self.scope = scope;
        }
        if let Some(guard) = filesystem.guard {
            self.guard = guard;
        }
        // As strong as where it was written: a preset's is only a default.
        let is_weaker = |home: &Sourced<HomeRule>| home.origin.layer < self.home.origin.layer;
        if let Some(home) = filesystem.home.filter(|home| !is_weaker(home)) {
            self.home = home;
        }
        restate(&mut self.read_deny, &filesystem.read_deny);
        append(&mut self.read_deny, filesystem.read_deny);
        append(
            &mut self.read_allow,
            filesystem.read_allow.into_iter().flatten(),
        );
        append(
            &mut self.write_allow,
            filesystem.write_allow.into_iter().flatten(),
        );
        append(&mut self.write_deny, filesystem.write_deny);
        append(&mut self.protect, filesystem.protect);
        append(&mut self.unprotect, filesystem.unprotect);
        append(&mut self.masked, filesystem.masked);
    }

    fn add_environment(&mut self, environment: EnvironmentLayer) {
        if let Some(pass_all) = environment.pass_all {
            self.pass_all = pass_all.value;
        }
        append(&mut self.pass, environment.pass.into_iter().flatten());
        append(&mut self.managed, environment.managed);
        append(&mut self.withhold, environment.withhold);
        for (name, value) in environment.set {
            // As strong as where it was written: a preset's is only a default.
            let own = self.set.get(&name).map(|own| own.origin.layer);
            if own.is_none_or(|own| own <= value.origin.layer) {
                self.set.insert(name, value);
            }
        }
    }
}

fn replaced(weaker: &Sourced<Credential>, by: &Origin) -> Note {
    let message = format!("credential {}: {by} takes its place", weaker.service);
    Note::new(
        NoteKind::NoEffect,
        "credential-replaced",
        message,
        &weaker.origin,
    )
}

/// As many as are quicker to find one by one.
const FEW: usize = 4;

/// What is hidden by default, and is named by somebody too, is hidden for that reason: by default it
/// may be shown in parts.
pub(super) fn restate<T: Eq>(list: &mut [Sourced<T>], more: &[Sourced<T>]) {
    let named = more
        .iter()
        .filter(|item| item.origin.layer != LayerKind::Default);
    for item in named {
        let mut known = list.iter_mut();
        if let Some(known) = known.find(|known| known.value == item.value) {
            known.origin = item.origin.clone();
        }
    }
}

/// Appends what is not there yet; the first to say something is its source.
pub(super) fn append<T>(list: &mut Vec<Sourced<T>>, more: impl IntoIterator<Item = Sourced<T>>)
where
    T: std::hash::Hash + Eq + Clone,
{
    let mut more = more.into_iter().peekable();
    // Most layers add to few lists, and every run merges all of them.
    if more.peek().is_none() {
        return;
    }
    // The built-in tables have no duplicates, and every run merges them.
    let is_built_in = |item: &Sourced<T>| item.origin.layer == LayerKind::Default;
    let is_table = more.size_hint().0 > FEW && more.peek().is_some_and(is_built_in);
    if is_table && list.last().is_none_or(is_built_in) {
        list.extend(more);
        return;
    }
    // A few are looked for one by one before all others are sorted for it.
    let few: Vec<Sourced<T>> = more.by_ref().take(FEW).collect();
    for item in few {
        if !list.iter().any(|known| known.value == item.value) {
            list.push(item);
        }
    }
    if more.peek().is_none() {
        return;
    }
    let mut known: HashSet<T> = list.iter().map(|item| item.value.clone()).collect();
    list.extend(more.filter(|item| known.insert(item.value.clone())));
}
