//! Masked and withheld secrets, and TLS termination.
//!
//! A masked secret goes where srt would put it: over TLS, in place of its stand-in, in headers and
//! bodies. Different on purpose: an expression that finds nothing is never passed over.

use std::collections::HashSet;

use super::error::SrtFault;
use super::settings::{
    SrtCredential, SrtCredentialMode, SrtCredentials, SrtNoMatch, SrtSettings, SrtTlsTerminate,
};
use super::translate::file;
use crate::credential::{
    Attach, Binding, Credential, CredentialError, Extract, SecretSource, Unmatched,
};
use crate::environment::check_name;
use crate::filesystem::MaskedFile;
use crate::host::{Dialect, HostPattern};
use crate::layer::Layer;
use crate::origin::Sourced;
use crate::path::{PathContext, PathRule};
use crate::port::PortSet;
use crate::rule::{AllowRule, Destination, Endpoint, Side};

/// Adds to `layer`, whose network is translated already, what the settings say about secrets.
pub(super) fn add(
    settings: &SrtSettings,
    layer: &mut Layer,
    context: &PathContext,
) -> Result<(), SrtFault> {
    let Some(tls) = &settings.network.tls_terminate else {
        return add_credentials(settings.credentials.as_ref(), &[], layer, context);
    };
    let excluded = excluded(tls)?;
    let files = tls.extra_ca_cert_paths.iter();
    let files = files.map(|text| {
        let path = file(text, "network.tlsTerminate.extraCaCertPaths", context)?;
        Ok(layer.sourced(path))
    });
    layer.network.authorities = Some(files.collect::<Result<_, SrtFault>>()?);
    add_credentials(settings.credentials.as_ref(), &excluded, layer, context)?;
    inspect(layer, &excluded);
    Ok(())
}

fn excluded(tls: &SrtTlsTerminate) -> Result<Vec<HostPattern>, SrtFault> {
    let field = "network.tlsTerminate.excludeDomains";
    let pattern = |text: &String| {
        HostPattern::parse(text, Dialect::Srt).map_err(|source| SrtFault::Domain {
            field,
            source: source.into(),
        })
    };
    tls.exclude_domains.iter().map(pattern).collect()
}

/// TLS to every allowed name is looked into: on the stated port, or on that of HTTPS, so that other
/// protocols on other ports keep working.
fn inspect(layer: &mut Layer, excluded: &[HostPattern]) {
    let rules = layer.network.allow.take().unwrap_or_default();
    let looked_into = rules.into_iter().flat_map(|rule| {
        let Some(place) = tls_place(&rule, excluded) else {
            return vec![rule];
        };
        let whole = place.ports == rule.ports;
        let inspected = AllowRule {
            ports: place.ports,
            inspect: true,
            except: place.except,
            ..rule.value.clone()
        };
        let inspected = Sourced::new(inspected, rule.origin.clone());
        if whole {
            vec![inspected]
        } else {
            vec![rule, inspected]
        }
    });
    layer.network.allow = Some(looked_into.collect());
}

/// An allowed name with the ports and exceptions of its TLS.
struct TlsPlace {
    host: HostPattern,
    ports: PortSet,
    except: Vec<HostPattern>,
}

fn tls_place(rule: &AllowRule, excluded: &[HostPattern]) -> Option<TlsPlace> {
    let Destination::Host(host) = &rule.destination else {
        return None;
    };
    if excluded.iter().any(|own| own.covers(host)) {
        return None;
    }
    let inside = excluded.iter().filter(|own| host.covers(own)).cloned();
    Some(TlsPlace {
        host: host.clone(),
        ports: tls_ports(&rule.ports),
        except: inside.collect(),
    })
}

fn tls_ports(ports: &PortSet) -> PortSet {
    if ports.is_any() {
        PortSet::https()
    } else {
        ports.clone()
    }
}

fn add_credentials(
    part: Option<&SrtCredentials>,
    excluded: &[HostPattern],
    layer: &mut Layer,
    context: &PathContext,
) -> Result<(), SrtFault> {
    let Some(part) = part else { return Ok(()) };
    let mut reader = Reader {
        excluded,
        context,
        services: HashSet::new(),
        layer,
    };
    for item in &part.env_vars {
        reader.variable(item)?;
    }
    for item in &part.files {
        reader.file(item)?;
    }
    Ok(())
}

struct Reader<'a> {
    excluded: &'a [HostPattern],
    context: &'a PathContext,
    services: HashSet<String>,
    layer: &'a mut Layer,
}

impl Reader<'_> {
    fn variable(&mut self, item: &SrtCredential) -> Result<(), SrtFault> {
        let field = "credentials.envVars";
        let (Some(name), None) = (&item.name, &item.path) else {
            return Err(SrtFault::Subject { field, key: "name" });
        };
        let fail = |source: CredentialError| SrtFault::Credential { field, source };
        check_name(name).map_err(|_| fail(CredentialError::Env(name.clone())))?;
        if item.mode == SrtCredentialMode::Deny {
            let name = self.layer.sourced(name.clone());
            self.layer.environment.withhold.push(name);
            return Ok(());
        }
        if !self.services.insert(name.clone()) {
            return Err(fail(CredentialError::Twice(name.clone())));
        }
        let source = SecretSource::env(name).map_err(fail)?;
        self.mask(item, name.clone(), source, vec![name.clone()], field)
    }

    fn file(&mut self, item: &SrtCredential) -> Result<(), SrtFault> {
        let field = "credentials.files";
        let (Some(text), None) = (&item.path, &item.name) else {
            return Err(SrtFault::Subject { field, key: "path" });
        };
        let path = file(text, field, self.context)?;
        if item.mode == SrtCredentialMode::Deny {
            let rule = self.layer.sourced(PathRule::Literal(path));
            self.layer.filesystem.read_deny.push(rule);
            return Ok(());
        }
        let fail = |source: CredentialError| SrtFault::Credential { field, source };
        let text = path
            .to_str()
            .ok_or_else(|| fail(CredentialError::File(path.to_string_lossy().into_owned())))?;
        let source = SecretSource::file(text, None).map_err(fail)?;
        let service = self.service_of(text);
        let masked = MaskedFile {
            service: service.clone(),
            path: path.clone(),
        };
        let masked = self.layer.sourced(masked);
        self.layer.filesystem.masked.push(masked);
        self.mask(item, service, source, Vec::new(), field)
    }

    /// The file's own name as one word, with a number where another has it.
    fn service_of(&mut self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let word: String = name
            .chars()
            .map(|c| if plain(c) { c } else { '_' })
            .take(40)
            .collect();
        let numbered = (2..).map(|number| format!("{word}-{number}"));
        let mut names = std::iter::once(word.clone()).chain(numbered);
        names
            .find(|name| self.services.insert(name.clone()))
            .unwrap_or(word)
    }

    fn mask(
        &mut self,
        item: &SrtCredential,
        service: String,
        source: SecretSource,
        variables: Vec<String>,
        field: &'static str,
    ) -> Result<(), SrtFault> {
        let credential = Credential {
            service,
            sources: vec![source],
            extract: extract(item).map_err(|source| SrtFault::Credential { field, source })?,
            variables,
            bindings: self.bindings(item)?,
            required: false,
            // There is no way to say otherwise.
            weak: true,
        };
        let credential = self.layer.sourced(credential);
        let list = self.layer.credentials.get_or_insert_default();
        list.push(credential);
        Ok(())
    }

    /// Where the stand-in is replaced: at the listed hosts, or at every allowed one.
    fn bindings(&self, item: &SrtCredential) -> Result<Vec<Binding>, SrtFault> {
        let allowed: Vec<&AllowRule> = self
            .layer
            .network
            .allow
            .iter()
            .flatten()
            .map(|rule| &rule.value)
            .collect();
        let listed = match &item.inject_hosts {
            Some(hosts) => hosts
                .iter()
                .map(|text| inject_host(text, &allowed))
                .collect::<Result<Vec<_>, _>>()?,
            None => allowed.into_iter().cloned().collect(),
        };
        let places = listed
            .iter()
            .filter_map(|rule| tls_place(rule, self.excluded));
        let bindings = places.map(|place| Binding {
            ports: place.ports,
            except: place.except,
            ..Binding::new(place.host, Attach::Placeholder { body: true })
        });
        Ok(bindings.collect())
    }
}

/// An entry of `injectHosts`: a name that `allowedDomains` covers.
fn inject_host(text: &str, allowed: &[&AllowRule]) -> Result<AllowRule, SrtFault> {
    let field = "credentials.injectHosts";
    let endpoint = Endpoint::parse(text, Dialect::Srt, Side::Allow)
        .map_err(|source| SrtFault::Domain { field, source })?;
    let rule = endpoint.allow(Dialect::Srt);
    let bound = AllowRule {
        ports: tls_ports(&rule.ports),
        ..rule
    };
    let is_name = matches!(bound.destination, Destination::Host(_));
    if !is_name || !allowed.iter().any(|own| own.covers(&bound)) {
        return Err(SrtFault::InjectHost(text.to_owned()));
    }
    Ok(bound)
}

fn extract(item: &SrtCredential) -> Result<Option<Extract>, CredentialError> {
    let unmatched = match item.on_extract_no_match {
        Some(SrtNoMatch::Deny) => Unmatched::Hide,
        Some(SrtNoMatch::Error | SrtNoMatch::Warn) | None => Unmatched::Refuse,
    };
    let expression = item.extract.as_deref();
    expression
        .map(|text| Extract::parse(text, unmatched))
        .transpose()
}
