//! From the settings to the model.

use std::path::PathBuf;

use super::credentials;
use super::error::SrtFault;
use super::settings::{SrtFilesystem, SrtNetwork, SrtPath, SrtSettings};
use crate::address::Cidr;
use crate::filesystem::{ProtectedName, ReadScope};
use crate::home::HomeRule;
use crate::host::Dialect;
use crate::layer::{FilesystemLayer, Layer, NetworkLayer};
use crate::origin::{Origin, Sourced};
use crate::path::{Form, PathContext, PathRule, literal, readings};
use crate::port::PortSet;
use crate::rule::{DenyRule, DenyScope, Destination, Endpoint, EntryError, NetworkMode, Side};

pub(super) fn translate(
    settings: &SrtSettings,
    origin: &Origin,
    context: &PathContext,
) -> Result<Layer, SrtFault> {
    let mut layer = Layer::empty(origin.clone());
    layer.network = network(&settings.network, &layer)?;
    layer.filesystem = filesystem(&settings.filesystem, &layer, context)?;
    // srt hands every variable through.
    layer.environment.pass_all = Some(layer.sourced(true));
    credentials::add(settings, &mut layer, context)?;
    Ok(layer)
}

fn network(part: &SrtNetwork, layer: &Layer) -> Result<NetworkLayer, SrtFault> {
    let entry = |text: &String, side, field| {
        Endpoint::parse(text, Dialect::Srt, side)
            .map_err(|source: EntryError| SrtFault::Domain { field, source })
    };
    let allow = part.allowed_domains.iter().map(|text| {
        let endpoint = entry(text, Side::Allow, "network.allowedDomains")?;
        Ok(layer.sourced(endpoint.allow(Dialect::Srt)))
    });
    let deny = part.denied_domains.iter().map(|text| {
        let rule = entry(text, Side::Deny, "network.deniedDomains")?.deny();
        let message = part.denied_domain_reasons.get(text).cloned();
        Ok(layer.sourced(DenyRule { message, ..rule }))
    });
    let resolved = part
        .denied_resolved_addresses
        .iter()
        .map(|text| resolved_deny(text, layer));
    Ok(NetworkLayer {
        mode: Some(layer.sourced(NetworkMode::Allowlist)),
        allow: Some(allow.collect::<Result<_, SrtFault>>()?),
        deny: deny.chain(resolved).collect::<Result<_, _>>()?,
        ..NetworkLayer::default()
    })
}

fn resolved_deny(text: &str, layer: &Layer) -> Result<Sourced<DenyRule>, SrtFault> {
    let block = Destination::Block(Cidr::parse(text)?);
    Ok(layer.sourced(DenyRule {
        scope: DenyScope::Resolved,
        ..DenyRule::plain(block, PortSet::any())
    }))
}

fn filesystem(
    part: &SrtFilesystem,
    layer: &Layer,
    context: &PathContext,
) -> Result<FilesystemLayer, SrtFault> {
    let unprotect = part
        .allow_git_config
        .unwrap_or(false)
        .then(|| layer.sourced(".git/config".to_owned()));
    let list = |paths: &[SrtPath], field, form| paths_of(paths, field, form, layer, context);
    let write_allow = list(&part.allow_write, "filesystem.allowWrite", Form::Literal)?;
    let mut read_allow = list(&part.allow_read, "filesystem.allowRead", Form::Glob)?;
    // What may be written in a hidden region can be read there.
    read_allow.extend(write_allow.iter().cloned());
    Ok(FilesystemLayer {
        scope: Some(layer.sourced(ReadScope::Host)),
        // srt refuses what its settings do not name; it never lets a write pass for show.
        home: Some(layer.sourced(HomeRule::None)),
        read_deny: list(&part.deny_read, "filesystem.denyRead", Form::Deny)?,
        read_allow: Some(read_allow),
        write_allow: Some(write_allow),
        write_deny: list(&part.deny_write, "filesystem.denyWrite", Form::Deny)?,
        // One of srt's own, beyond the built-in names.
        protect: vec![layer.sourced(ProtectedName::Components(".gitmodules".into()))],
        unprotect: unprotect.into_iter().collect(),
        ..FilesystemLayer::default()
    })
}

fn paths_of(
    paths: &[SrtPath],
    field: &'static str,
    form: Form,
    layer: &Layer,
    context: &PathContext,
) -> Result<Vec<Sourced<PathRule>>, SrtFault> {
    let rule = |path: &SrtPath| {
        let (text, form) = match path {
            SrtPath::Text(text) => (text, form),
            SrtPath::Literal(literal) => (&literal.path, Form::Verbatim),
        };
        let (rest, context) = climbed(text, context);
        let parsed = readings(rest, &context, form);
        parsed.map_err(|source| SrtFault::Path { field, source })
    };
    let rules: Result<Vec<_>, _> = paths.iter().map(rule).collect();
    let rules = rules?.into_iter().flatten();
    Ok(rules.map(|rule| layer.sourced(rule)).collect())
}

/// One file whose characters mean themselves.
pub(super) fn file(
    text: &str,
    field: &'static str,
    context: &PathContext,
) -> Result<PathBuf, SrtFault> {
    let (rest, context) = climbed(text, context);
    literal(rest, &context).map_err(|source| SrtFault::Path { field, source })
}

/// Leading `..` climb from the folder the command runs in, whose path has no links. Further into a
/// path their meaning depends on links.
fn climbed<'a>(text: &'a str, context: &PathContext) -> (&'a str, PathContext) {
    let mut context = context.clone();
    let mut rest = text;
    loop {
        rest = match rest.strip_prefix("..") {
            Some("") => ".",
            Some(after) if after.starts_with('/') => after.trim_start_matches('/'),
            _ => return (rest, context),
        };
        context.base.pop();
        if rest.is_empty() {
            return (".", context);
        }
    }
}
