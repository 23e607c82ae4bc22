//! A policy as rows of a table, in a stable order, for front ends that decide nothing.

use std::fmt::Display;

use serde::Serialize;

use crate::credential::Credential;
use crate::limits::Limits;
use crate::origin::{Origin, Sourced};
use crate::policy::{Network, Policy, Resolved};

/// One line of `policy show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Where the entry belongs: `network.allow`.
    pub section: &'static str,
    /// The entry as text.
    pub entry: String,
    /// Where it was written.
    pub origin: Origin,
}

/// Every entry of the policy, section by section.
pub fn rows(policy: &Resolved<Policy>) -> Vec<Row> {
    let mut rows = Vec::new();
    each_row(policy, |section, entry, origin| {
        rows.push(Row {
            section,
            entry: entry.to_string(),
            origin: origin.clone(),
        });
    });
    rows
}

/// Calls `see` with the section, text and origin of each of [`rows`].
pub fn each_row(
    policy: &Resolved<Policy>,
    mut see: impl FnMut(&'static str, &dyn Display, &Origin),
) {
    let mut table = Table(&mut see);
    table.list("presets", policy.presets());
    table.network(policy.network());
    for file in policy.authorities() {
        table.push("network.authorities", file.value.display(), &file.origin);
    }
    if let Some(ceiling) = policy.ceiling_network() {
        table.ceiling(ceiling);
    }
    table.filesystem(policy);
    table.limits(policy.limits());
    table.environment(policy);
    table.credentials("credentials", policy.credentials());
    table.credentials("credentials.withheld", policy.withheld());
    table.push(
        "audit.level",
        policy.audit().as_str(),
        &policy.audit().origin,
    );
}

struct Table<'a>(&'a mut dyn FnMut(&'static str, &dyn Display, &Origin));

impl Table<'_> {
    fn push(&mut self, section: &'static str, entry: impl Display, origin: &Origin) {
        (self.0)(section, &entry, origin);
    }

    fn list<T: Display>(&mut self, section: &'static str, items: &[Sourced<T>]) {
        for item in items {
            self.push(section, &item.value, &item.origin);
        }
    }

    fn one<T: Display>(&mut self, section: &'static str, item: Option<&Sourced<T>>) {
        if let Some(item) = item {
            self.push(section, &item.value, &item.origin);
        }
    }

    fn network(&mut self, network: &Network) {
        if let Some(mode) = &network.mode {
            self.push("network.mode", mode.as_str(), &mode.origin);
        }
        self.list("network.allow", network.allow());
        self.list("network.deny", network.deny());
        self.list("network.hostPorts", network.host_ports());
    }

    fn ceiling(&mut self, network: &Network) {
        if let Some(mode) = &network.mode {
            self.push("ceiling.network.mode", mode.as_str(), &mode.origin);
        }
        self.list("ceiling.network.allow", network.allow());
        self.list("ceiling.network.deny", network.deny());
        self.list("ceiling.network.hostPorts", network.host_ports());
    }

    fn filesystem(&mut self, policy: &Resolved<Policy>) {
        let filesystem = policy.filesystem();
        self.push(
            "filesystem.read.scope",
            filesystem.scope.as_str(),
            &filesystem.scope.origin,
        );
        self.push(
            "filesystem.guard",
            filesystem.guard.as_str(),
            &filesystem.guard.origin,
        );
        self.push(
            "filesystem.home",
            &filesystem.home.value,
            &filesystem.home.origin,
        );
        self.list("filesystem.read.deny", &filesystem.read_deny);
        self.list("filesystem.read.allow", &filesystem.read_allow);
        self.list("filesystem.write.allow", &filesystem.write_allow);
        self.list("filesystem.write.deny", &filesystem.write_deny);
        self.list("filesystem.protect", &filesystem.protect);
        self.list("filesystem.write.unprotect", &filesystem.unprotect);
        self.list("filesystem.masked", &filesystem.masked);
    }

    /// One row for each binding: the sources, and how and where the secret goes.
    fn credentials(&mut self, section: &'static str, credentials: &[Sourced<Credential>]) {
        for credential in credentials {
            let sources: Vec<String> = credential.sources.iter().map(ToString::to_string).collect();
            let from = sources.join(", then ");
            if credential.bindings.is_empty() {
                let entry = format!("{}: {from}, nowhere", credential.service);
                self.push(section, entry, &credential.origin);
            }
            for binding in &credential.bindings {
                let entry = format!("{}: {from}, {binding}", credential.service);
                self.push(section, entry, &credential.origin);
            }
        }
    }

    fn limits(&mut self, limits: &Limits) {
        self.one("resources.cpu", limits.cpu.as_ref());
        self.one("resources.memory", limits.memory.as_ref());
        self.one("resources.pids", limits.pids.as_ref());
        self.one("resources.disk", limits.disk.as_ref());
        self.one("resources.time", limits.time.as_ref());
        self.one("resources.cpuTime", limits.cpu_time.as_ref());
        self.one("resources.output", limits.output.as_ref());
        self.one("resources.openFiles", limits.open_files.as_ref());
        self.one("resources.fileSize", limits.file_size.as_ref());
        self.one("resources.connections", limits.connections.as_ref());
        self.one("resources.connectionIdle", limits.connection_idle.as_ref());
        self.one("resources.connectionTime", limits.connection_time.as_ref());
        self.one("resources.wildcardNames", limits.wildcard_names.as_ref());
        self.one("resources.required", limits.required.as_ref());
    }

    fn environment(&mut self, policy: &Resolved<Policy>) {
        let environment = policy.environment();
        self.list("environment.pass", &environment.pass);
        for (name, value) in &environment.set {
            self.push(
                "environment.set",
                format_args!("{name}={}", value.value),
                &value.origin,
            );
        }
        self.list("environment.managed", &environment.managed);
        self.list("environment.withheld", &environment.withheld);
    }
}
