//! [`attachments`]: which credentials an allowed request gets.
//!
//! Asked anew for each request; the host that is asked about must be the one whose certificate was
//! verified.

use serde::Serialize;

use super::Request;
use crate::credential::{Binding, Credential, Scheme};
use crate::origin::{Origin, Sourced};
use crate::policy::{Policy, Resolved};

/// What a request gets, if the request itself is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// The credential.
    pub credential: &'a Sourced<Credential>,
    /// How it is put in.
    pub binding: &'a Binding,
}

/// The credentials of `request`, travelling by `scheme`. One place of a request (a header, a
/// parameter) is filled once, by the first in order; so is each placeholder.
pub fn attachments<'a>(
    policy: &'a Resolved<Policy>,
    request: &Request<'_>,
    scheme: Scheme,
) -> Vec<Attachment<'a>> {
    let mut chosen: Vec<Attachment<'a>> = Vec::new();
    for (credential, binding) in about(policy.inner(), request) {
        let next = Attachment {
            credential,
            binding,
        };
        if binding.fits(request, scheme) && !chosen.iter().any(|own| own.collides(&next)) {
            chosen.push(next);
        }
    }
    chosen
}

impl Attachment<'_> {
    fn collides(&self, other: &Self) -> bool {
        match (self.binding.attach.slot(), other.binding.attach.slot()) {
            (None, None) => self.credential.service == other.credential.service,
            (own, slot) => own == slot,
        }
    }
}

/// True when a rule or a credential about the request's host and port names paths. What is judged
/// by its path must be sent in that path's normal form; see [`HttpPath`](crate::HttpPath).
pub fn judges_paths(policy: &Resolved<Policy>, request: &Request<'_>) -> bool {
    let policy = policy.inner();
    let sides = [Some(&policy.network), policy.ceiling.as_ref()];
    let ruled = sides.into_iter().flatten().any(|network| {
        let named = request.host.map(|name| network.allow.for_name(name));
        let numbered = request.addr.map(|addr| network.allow.for_address(addr));
        let mut rules = named.into_iter().chain(numbered).flatten();
        rules.any(|rule| rule.paths.is_some() && rule.ports.contains(request.port))
    });
    ruled || about(policy, request).any(|(_, binding)| binding.paths.is_some())
}

/// True when some credential is bound to the request's host and port for what travels by `scheme`,
/// whatever its method and path.
pub fn binds(policy: &Resolved<Policy>, request: &Request<'_>, scheme: Scheme) -> bool {
    about(policy.inner(), request).any(|(_, binding)| binding.scheme == scheme)
}

/// True when some credential is bound to the request's host, at whatever port. What it was sent
/// there may come back from any of them.
pub fn binds_host(policy: &Resolved<Policy>, request: &Request<'_>) -> bool {
    let policy = policy.inner();
    let bound = request
        .host
        .map(|name| policy.bindings.for_name(&policy.credentials, name));
    bound.is_some_and(|bound| !bound.is_empty())
}

/// The services whose credentials are bound to the request's host, at whatever port, each once.
pub fn services_of_host<'a>(policy: &'a Resolved<Policy>, request: &Request<'_>) -> Vec<&'a str> {
    let policy = policy.inner();
    let bound = request
        .host
        .map(|name| policy.bindings.for_name(&policy.credentials, name));
    let services = bound.into_iter().flatten();
    let mut services: Vec<&str> = services.map(|(one, _)| one.service.as_str()).collect();
    services.sort_unstable();
    services.dedup();
    services
}

/// True when some credential is bound to the request's host and port.
pub(super) fn is_bound(policy: &Policy, request: &Request<'_>) -> bool {
    about(policy, request).next().is_some()
}

fn about<'a>(
    policy: &'a Policy,
    request: &Request<'_>,
) -> impl Iterator<Item = (&'a Sourced<Credential>, &'a Binding)> {
    let found = request
        .host
        .map(|name| policy.bindings.for_name(&policy.credentials, name));
    let request = *request;
    let bindings = found.into_iter().flatten();
    bindings.filter(move |(_, binding)| binding.is_about(&request))
}

/// A credential as an explanation shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CredentialView {
    /// Name of the service.
    pub service: String,
    /// How and where it goes, as text.
    pub binding: String,
    /// Where it was written.
    pub origin: Origin,
}

impl From<Attachment<'_>> for CredentialView {
    fn from(attachment: Attachment<'_>) -> Self {
        Self {
            service: attachment.credential.service.clone(),
            binding: attachment.binding.to_string(),
            origin: attachment.credential.origin.clone(),
        }
    }
}
