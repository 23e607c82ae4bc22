//! [`Builder`]: what both versions of the schema are translated with.

use super::super::document::Located;
use super::super::error::{Fault, Position, SourceError};
use super::entry::{KitEntry, is_loopback};
use super::fault::KitFault;
use super::place::KitPath;
use super::shared::{FileDocument, InstallDocument, SecurityDocument, StartupDocument, Variables};
use super::word::Word;
use super::{Existing, InstallStep, Kit, KitEntryOf, KitFile, KitKind, StartupStep};
use crate::credential::{Attach, Binding, Credential, CredentialError, SecretSource};
use crate::environment::{check_name, check_value};
use crate::note::{Note, NoteKind};
use crate::origin::{Origin, Sourced};
use crate::rule::{AllowRule, Destination, Side};

/// The mode of a file whose mode is not written.
const USUAL_MODE: u32 = 0o644;
/// Beginning of the names that we keep for our own.
const OWN_PREFIX: &str = "RINGFENCE";
/// What stands in the place of a secret where the format has no better text.
pub(super) const PROXY_MANAGED: &str = "proxy-managed";

/// A kit while it is read.
pub(super) struct Builder<'a> {
    pub(super) origin: &'a Origin,
    pub(super) kit: Kit,
}

/// A credential as far as the document says it.
pub(super) struct Secret<'a> {
    pub(super) service: &'a str,
    pub(super) sources: Vec<SecretSource>,
    pub(super) variables: Vec<String>,
    pub(super) bindings: Vec<Binding>,
    pub(super) required: bool,
}

impl Builder<'_> {
    pub(super) fn fail(&self, at: Position, fault: impl Into<Fault>) -> SourceError {
        SourceError::at(self.origin, at, fault)
    }

    pub(super) fn identity(
        &mut self,
        name: &Located<String>,
        kind: &Located<String>,
    ) -> Result<(), SourceError> {
        if !is_kit_name(name) {
            return Err(self.fail(name.at, KitFault::Name(name.value.clone())));
        }
        self.kit.name.clone_from(&name.value);
        self.kit.kind = match kind.as_str() {
            "mixin" => KitKind::Mixin,
            "sandbox" | "agent" => KitKind::Sandbox,
            other => return Err(self.fail(kind.at, KitFault::Kind(other.to_owned()))),
        };
        Ok(())
    }

    pub(super) fn describe(
        &mut self,
        title: Option<String>,
        description: Option<String>,
        version: Option<String>,
    ) {
        self.kit.title = title;
        self.kit.description = description;
        self.kit.version = version;
    }

    /// A kit of kind sandbox is an image with a command in it: without the image it is nothing.
    pub(super) fn image(
        &mut self,
        block: Option<Position>,
        kind: Position,
    ) -> Result<(), SourceError> {
        self.only_in_sandbox(block, "sandbox")?;
        if self.kit.kind == KitKind::Sandbox {
            let at = block.unwrap_or(kind);
            self.refuse(
                at,
                "kit-image",
                "sandbox: a kit with an image of its own is not supported",
            );
        }
        Ok(())
    }

    pub(super) fn only_in_sandbox(
        &self,
        block: Option<Position>,
        key: &'static str,
    ) -> Result<(), SourceError> {
        match block {
            Some(at) if self.kit.kind == KitKind::Mixin => Err(self.misplaced(at, key)),
            _ => Ok(()),
        }
    }

    pub(super) fn only_in_mixin(&self, at: Position, key: &'static str) -> Result<(), SourceError> {
        match self.kit.kind {
            KitKind::Sandbox => Err(self.misplaced(at, key)),
            KitKind::Mixin => Ok(()),
        }
    }

    fn misplaced(&self, at: Position, block: &'static str) -> SourceError {
        let kind = self.kit.kind.as_str();
        self.fail(at, KitFault::Block { kind, block })
    }

    pub(super) fn allow(&mut self, list: &[Located<String>]) -> Result<(), SourceError> {
        for item in list {
            if is_loopback(item) {
                let message = format!(
                    "{}: the sandbox's own loopback is always open inside",
                    item.value
                );
                self.remark(item.at, "kit-loopback", message);
                continue;
            }
            let entry =
                KitEntry::parse(item, Side::Allow).map_err(|fault| self.fail(item.at, fault))?;
            if entry.is_metadata() {
                let message = format!(
                    "{}: only the operator can open a metadata address",
                    item.value
                );
                self.refuse(item.at, "kit-metadata-address", message);
            }
            let rule = self.sourced(item.at, entry.allow());
            self.kit.allow.push(KitEntryOf {
                text: item.value.clone(),
                rule,
            });
        }
        Ok(())
    }

    pub(super) fn deny(&mut self, list: &[Located<String>]) -> Result<(), SourceError> {
        for item in list {
            let entry =
                KitEntry::parse(item, Side::Deny).map_err(|fault| self.fail(item.at, fault))?;
            let rule = self.sourced(item.at, entry.deny());
            self.kit.deny.push(KitEntryOf {
                text: item.value.clone(),
                rule,
            });
        }
        Ok(())
    }

    /// A secret goes to port 443 unless a port is written. What a client made of a placeholder is
    /// replaced: kits count on it.
    pub(super) fn binding(
        &mut self,
        at: Position,
        domain: &str,
        attach: Attach,
    ) -> Result<Binding, SourceError> {
        let entry = KitEntry::parse(domain, Side::Allow).map_err(|fault| self.fail(at, fault))?;
        let Destination::Host(host) = entry.destination else {
            return Err(self.fail(at, KitFault::ServiceDomain(domain.to_owned())));
        };
        let mut binding = Binding::new(host, attach);
        binding.replace = true;
        if let Some(ports) = entry.ports {
            binding.ports = ports;
        }
        self.open_bound(at, domain, &binding);
        Ok(binding)
    }

    /// The host of a credential is allowed where the secret goes, also if no list has it.
    fn open_bound(&mut self, at: Position, domain: &str, binding: &Binding) {
        let host = Destination::Host(binding.host.clone());
        let rule = AllowRule::plain(host, binding.ports.clone());
        let mut allowed = self.kit.allow.iter();
        if !is_loopback(domain) && !allowed.any(|own| own.rule.covers(&rule)) {
            let has_port = domain.contains(':');
            let text = if has_port {
                domain.to_owned()
            } else {
                format!("{domain}:{}", rule.ports)
            };
            let rule = self.sourced(at, rule);
            self.kit.allow.push(KitEntryOf { text, rule });
        }
    }

    /// Adds a credential. The store of secrets is asked last, under the service's name.
    pub(super) fn credential(
        &mut self,
        at: Position,
        secret: Secret<'_>,
    ) -> Result<(), SourceError> {
        if self.has_credential(secret.service) {
            let twice = CredentialError::Twice(secret.service.to_owned());
            return Err(self.fail(at, twice));
        }
        let stored = SecretSource::store(secret.service).map_err(|error| self.fail(at, error))?;
        let mut sources = secret.sources;
        sources.push(stored);
        let made = Credential::new(secret.service, sources, secret.variables, secret.bindings);
        let mut credential = made.map_err(|error| self.fail(at, error))?;
        credential.required = secret.required;
        let credential = self.sourced(at, credential);
        self.kit.credentials.push(credential);
        Ok(())
    }

    pub(super) fn has_credential(&self, service: &str) -> bool {
        let mut own = self.kit.credentials.iter();
        own.any(|credential| credential.service == service)
    }

    pub(super) fn stands_for_credential(&self, name: &str) -> bool {
        let mut own = self.kit.credentials.iter();
        own.any(|credential| credential.variables.iter().any(|variable| variable == name))
    }

    pub(super) fn unused_credential(&mut self, at: Position, service: &str) {
        let message = format!("credential {service} goes to no host and is left out");
        self.remark(at, "kit-unused-credential", message);
    }

    /// Tokens are not fetched: what only they could open stays closed, and is refused when it is
    /// required.
    pub(super) fn oauth(
        &mut self,
        at: Position,
        service: &str,
        passthrough: bool,
        is_only_way: bool,
    ) -> Result<(), SourceError> {
        if passthrough {
            return Err(self.fail(at, KitFault::Passthrough(service.to_owned())));
        }
        let message = format!("oauth of {service}: tokens are not fetched");
        if is_only_way && !self.has_credential(service) {
            self.refuse(at, "kit-oauth", message);
        } else {
            self.remark(at, "kit-oauth", message);
        }
        Ok(())
    }

    pub(super) fn variables(
        &mut self,
        variables: &Variables,
        reserved: &[&str],
    ) -> Result<(), SourceError> {
        for (name, value) in variables {
            let mut reserved = reserved.iter().chain(&[OWN_PREFIX]);
            if reserved.any(|prefix| name.starts_with(prefix)) {
                return Err(self.fail(value.at, KitFault::ReservedVariable(name.clone())));
            }
            if value.0 == PROXY_MANAGED && self.show_placeholder(name) {
                continue;
            }
            self.hide_placeholder(name);
            self.variable(value.at, name, &value.0)?;
        }
        Ok(())
    }

    /// Lets a variable from which a credential is read outside hold its placeholder inside. False
    /// when it is no credential's.
    fn show_placeholder(&mut self, name: &str) -> bool {
        let mut own = self.kit.credentials.iter_mut();
        let read_from = own.find(|own| own.value.outer_variables().any(|outer| outer == name));
        if let Some(credential) = read_from
            && !credential.variables.iter().any(|inside| inside == name)
        {
            credential.value.variables.push(name.to_owned());
        }
        self.stands_for_credential(name)
    }

    /// A text that the kit has for a credential's variable stands there instead of ours: tools look
    /// at the form of a token, and what is sent is replaced in any case.
    fn hide_placeholder(&mut self, name: &str) {
        for credential in &mut self.kit.credentials {
            credential.value.variables.retain(|own| own != name);
        }
    }

    pub(super) fn variable(
        &mut self,
        at: Position,
        name: &str,
        value: &str,
    ) -> Result<(), SourceError> {
        let checked = check_name(name).and_then(|()| check_value(name, value));
        checked.map_err(|error| self.fail(at, error))?;
        let value = self.sourced(at, value.to_owned());
        self.kit.variables.insert(name.to_owned(), value);
        Ok(())
    }

    pub(super) fn install(&mut self, list: &[InstallDocument]) -> Result<(), SourceError> {
        for step in list {
            self.command(step.command.at, [step.command.as_str()])?;
            // Root is the usual one there.
            if step.user.as_ref().is_none_or(is_root) {
                self.no_root(step.command.at);
            }
            self.kit.install.push(InstallStep {
                command: step.command.value.clone(),
                description: step.description.clone(),
            });
        }
        Ok(())
    }

    pub(super) fn startup(&mut self, list: &[StartupDocument]) -> Result<(), SourceError> {
        for step in list {
            let argv: Vec<String> = step.command.iter().map(|word| word.0.clone()).collect();
            self.command(step.command.at, argv.iter().map(String::as_str).take(1))?;
            if argv.iter().any(|word| word.contains('\0')) {
                return Err(self.fail(step.command.at, KitFault::Command));
            }
            if step.user.as_ref().is_some_and(is_root) {
                self.no_root(step.command.at);
            }
            self.kit.startup.push(StartupStep {
                argv,
                background: step.background,
                description: step.description.clone(),
            });
        }
        Ok(())
    }

    fn command<'t>(
        &self,
        at: Position,
        words: impl IntoIterator<Item = &'t str>,
    ) -> Result<(), SourceError> {
        let mut words = words.into_iter().peekable();
        let is_good = |word: &str| !word.trim().is_empty() && !word.contains('\0');
        if words.peek().is_none() || !words.all(is_good) {
            return Err(self.fail(at, KitFault::Command));
        }
        Ok(())
    }

    /// Told once for all steps.
    fn no_root(&mut self, at: Position) {
        let code = "kit-root";
        if !self.kit.notes.iter().any(|note| note.code == code) {
            self.remark(at, code, "commands for root run as the sandbox's own user");
        }
    }

    pub(super) fn files(&mut self, list: &[FileDocument]) -> Result<(), SourceError> {
        for file in list {
            let at = file.path.at;
            let path = KitPath::parse(&file.path).map_err(|fault| self.fail(at, fault))?;
            let Some(path) = path else {
                let message = format!(
                    "{}: only the home folder, the working folder and /tmp are writable",
                    file.path.value
                );
                self.refuse(at, "kit-file-place", message);
                continue;
            };
            let mode = file.mode.as_ref().map(|mode| {
                file_mode(&mode.0).ok_or_else(|| self.fail(mode.at, KitFault::Mode(mode.0.clone())))
            });
            self.kit.files.push(KitFile {
                path,
                content: file.content.clone(),
                mode: mode.transpose()?.unwrap_or(USUAL_MODE),
                existing: if file.only_if_missing {
                    Existing::Keep
                } else {
                    Existing::Replace
                },
            });
        }
        Ok(())
    }

    pub(super) fn privileges(&mut self, security: Option<&SecurityDocument>) {
        let privileged = security.and_then(|part| part.privileged.as_ref());
        if let Some(wanted) = privileged.filter(|wanted| wanted.value) {
            let message = "security.privileged: a sandbox has no privileges";
            self.refuse(wanted.at, "kit-privileged", message);
        }
    }

    /// What is private and writable anyway needs no volume; elsewhere there can be none.
    pub(super) fn volume(&mut self, at: Position, path: &str) -> Result<(), SourceError> {
        let trimmed = path.trim_end_matches('/');
        let is_root = ["/tmp", "/home/agent", "~"].contains(&trimmed);
        let known = KitPath::parse(path).map_err(|fault| self.fail(at, fault))?;
        if known.is_some() || is_root {
            let message =
                format!("volume {path}: private to the run, not kept, its size not limited");
            self.remark(at, "kit-volume", message);
        } else {
            let message =
                format!("volume {path}: only the home folder and /tmp are the sandbox's own");
            self.refuse(at, "kit-volume", message);
        }
        Ok(())
    }

    pub(super) fn ports(&mut self, at: Position) {
        self.remark(
            at,
            "kit-ports",
            "ports are served inside only, not published",
        );
    }

    pub(super) fn not_handed_on(&mut self, at: Position, key: &str) {
        self.remark(at, "kit-not-handed-on", format!("{key} has no effect"));
    }

    pub(super) fn made_for(&mut self, at: Position, agent: &str) {
        let message = format!("requires.agent: made for {agent:?}; the command is not checked");
        self.remark(at, "kit-agent", message);
    }

    fn remark(&mut self, at: Position, code: &'static str, message: impl Into<String>) {
        self.note(NoteKind::NoEffect, at, code, message);
    }

    fn refuse(&mut self, at: Position, code: &'static str, message: impl Into<String>) {
        self.note(NoteKind::Unsupported, at, code, message);
    }

    fn note(
        &mut self,
        kind: NoteKind,
        at: Position,
        code: &'static str,
        message: impl Into<String>,
    ) {
        let origin = self.origin.at_line(at.line);
        self.kit.notes.push(Note::new(kind, code, message, &origin));
    }

    fn sourced<T>(&self, at: Position, value: T) -> Sourced<T> {
        Sourced::new(value, self.origin.at_line(at.line))
    }
}

fn is_root(user: &Word) -> bool {
    ["", "0", "root"].contains(&user.0.split(':').next().unwrap_or_default())
}

fn file_mode(text: &str) -> Option<u32> {
    let is_octal =
        (3..=5).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
    let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal)?;
    // Bits that lend another's rights mean nothing inside.
    (mode <= 0o777).then_some(mode)
}

fn is_kit_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=64).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
