//! From the document to the model.

mod credential;

use super::super::document::Located;
use super::super::error::{Fault, Position, SourceError};
use super::super::preset::Preset;
use super::document::{
    AllowDocument, AllowRuleDocument, EnvironmentDocument, FilesystemDocument, NetworkDocument,
    PolicyDocument, PortDocument, ResourcesDocument,
};
use crate::address::Cidr;
use crate::environment::{check_name, check_pass, check_value};
use crate::host::Dialect;
use crate::http::{Method, MethodError, PathPattern, PathPatternError};
use crate::layer::{EnvironmentLayer, FilesystemLayer, Layer, NetworkLayer};
use crate::limits::{Cores, Count, Limits};
use crate::origin::{Origin, Sourced};
use crate::path::{Form, PathContext, PathRule, literal, readings};
use crate::port::{Port, PortError, PortSet, parse_range};
use crate::rule::{AllowRule, DenyRule, Destination, Endpoint, NetworkMode, Side};
use crate::source::builtin::protected_names;

const VERSION: u32 = 1;

pub(super) fn translate(
    document: PolicyDocument,
    origin: &Origin,
    context: &PathContext,
) -> Result<Layer, SourceError> {
    let reader = Reader { origin, context };
    reader.version(&document.version)?;
    let mut layer = Layer::empty(origin.clone());
    layer.requests = document.requests.map(|rule| reader.keep(rule));
    layer.network = document
        .network
        .map(|part| reader.network(part))
        .transpose()?
        .unwrap_or_default();
    layer.filesystem = document
        .filesystem
        .map(|part| reader.filesystem(part))
        .transpose()?
        .unwrap_or_default();
    layer.limits = document
        .resources
        .map(|part| reader.limits(&part))
        .transpose()?
        .unwrap_or_default();
    layer.environment = document
        .environment
        .map(|part| reader.environment(part))
        .transpose()?
        .unwrap_or_default();
    let credentials = document.credentials.map(|list| reader.credentials(&list));
    layer.credentials = credentials.transpose()?;
    layer.audit = document.audit.map(|part| reader.keep(part.level));
    reader.presets(&document.presets, &mut layer)?;
    Ok(layer)
}

struct Reader<'a> {
    origin: &'a Origin,
    context: &'a PathContext,
}

impl Reader<'_> {
    fn version(&self, version: &Located<u32>) -> Result<(), SourceError> {
        match version.value {
            VERSION => Ok(()),
            other => Err(self.fail(version.at, Fault::Version(other))),
        }
    }

    fn network(&self, part: NetworkDocument) -> Result<NetworkLayer, SourceError> {
        let closed = part
            .mode
            .as_ref()
            .is_some_and(|mode| mode.value == NetworkMode::Deny);
        let allow = part
            .allow
            .map(|list| self.all(&list, allow_rule))
            .transpose()?;
        if let Some(dead) = allow.iter().flatten().next().filter(|_| closed) {
            let fault = Fault::AllowUnderDeny(dead.value.to_string());
            return Err(SourceError::new(&dead.origin, fault));
        }
        Ok(NetworkLayer {
            mode: part.mode.map(|mode| self.keep(mode)),
            allow,
            deny: self.all(&part.deny, |text| deny_rule(text))?,
            host_ports: part
                .host_ports
                .map(|list| self.all(&list, |port| host_port(*port)))
                .transpose()?,
            authorities: part
                .authorities
                .map(|list| self.all(&list, |text| Ok(literal(text, self.context)?)))
                .transpose()?,
        })
    }

    /// To be called last: what the file itself says is stronger.
    fn presets(&self, names: &[Located<String>], layer: &mut Layer) -> Result<(), SourceError> {
        let mode = layer.network.mode.as_deref();
        let is_closed = mode == Some(&NetworkMode::Deny);
        for preset in self.all(names, |name| Ok(Preset::named(name)?))? {
            if is_closed {
                let fault = Fault::AllowUnderDeny(format!("preset {}", preset.name));
                return Err(SourceError::new(&preset.origin, fault));
            }
            preset.add_to(layer, &preset.origin);
        }
        Ok(())
    }

    fn filesystem(&self, part: FilesystemDocument) -> Result<FilesystemLayer, SourceError> {
        let mut layer = FilesystemLayer {
            guard: part.guard.map(|guard| self.keep(guard)),
            ..FilesystemLayer::default()
        };
        if let Some(read) = part.read {
            layer.scope = read.scope.map(|scope| self.keep(scope));
            layer.read_deny = self.paths(&read.deny, Form::Deny)?;
            layer.read_allow = read
                .allow
                .map(|list| self.paths(&list, Form::Glob))
                .transpose()?;
        }
        if let Some(write) = part.write {
            layer.write_allow = write
                .allow
                .map(|list| self.paths(&list, Form::Literal))
                .transpose()?;
            layer.write_deny = self.paths(&write.deny, Form::Deny)?;
            let protect = self.all(&write.protect, |text| protected_names(text))?;
            layer.protect = protect.into_iter().flat_map(Sourced::spread).collect();
            layer.unprotect = write
                .unprotect
                .into_iter()
                .map(|name| self.keep(name))
                .collect();
        }
        layer.home = self.maybe(part.home.as_ref(), |text| Ok(text.parse()?))?;
        Ok(layer)
    }

    fn paths(
        &self,
        list: &[Located<String>],
        form: Form,
    ) -> Result<Vec<Sourced<PathRule>>, SourceError> {
        let rules = self.all(list, |text| Ok(readings(text, self.context, form)?))?;
        Ok(rules.into_iter().flat_map(Sourced::spread).collect())
    }

    fn limits(&self, part: &ResourcesDocument) -> Result<Limits, SourceError> {
        Ok(Limits {
            cpu: self.maybe(part.cpu.as_ref(), |number| Ok(Cores::from_number(*number)?))?,
            memory: self.text(part.memory.as_ref())?,
            pids: self.count(part.pids.as_ref())?,
            disk: self.text(part.disk.as_ref())?,
            time: self.text(part.time.as_ref())?,
            cpu_time: self.text(part.cpu_time.as_ref())?,
            output: self.text(part.output.as_ref())?,
            open_files: self.count(part.open_files.as_ref())?,
            file_size: self.text(part.file_size.as_ref())?,
            connections: self.count(part.connections.as_ref())?,
            connection_idle: self.text(part.connection_idle.as_ref())?,
            connection_time: self.text(part.connection_time.as_ref())?,
            wildcard_names: self.count(part.wildcard_names.as_ref())?,
            required: self.maybe(part.required.as_ref(), |required| Ok(*required))?,
        })
    }

    fn count(&self, part: Option<&Located<u64>>) -> Result<Option<Sourced<Count>>, SourceError> {
        self.maybe(part, |number| Ok(Count::new(*number)?))
    }

    fn environment(&self, part: EnvironmentDocument) -> Result<EnvironmentLayer, SourceError> {
        let mut layer = EnvironmentLayer::default();
        if let Some(list) = part.pass {
            let (all, names): (Vec<_>, Vec<_>) =
                list.into_iter().partition(|name| name.value == "*");
            layer.pass_all = all
                .into_iter()
                .next()
                .map(|name| Sourced::new(true, self.origin_at(name.at)));
            layer.pass =
                Some(self.all(&names, |name| Ok(check_pass(name).map(|()| name.clone())?))?);
        }
        layer.managed = self.all(&part.managed, |name| {
            Ok(check_name(name).map(|()| name.clone())?)
        })?;
        for (name, value) in part.set {
            let checked = check_name(&name).and_then(|()| check_value(&name, &value));
            checked.map_err(|error| self.fail(value.at, error.into()))?;
            layer.set.insert(name, self.keep(value));
        }
        Ok(layer)
    }

    /// Translates every item of a list, each with its own place.
    fn all<T, U>(
        &self,
        list: &[Located<T>],
        translate: impl Fn(&T) -> Result<U, Fault>,
    ) -> Result<Vec<Sourced<U>>, SourceError> {
        list.iter().map(|item| self.one(item, &translate)).collect()
    }

    fn maybe<T, U>(
        &self,
        item: Option<&Located<T>>,
        translate: impl Fn(&T) -> Result<U, Fault>,
    ) -> Result<Option<Sourced<U>>, SourceError> {
        item.map(|item| self.one(item, translate)).transpose()
    }

    fn text<U>(&self, item: Option<&Located<String>>) -> Result<Option<Sourced<U>>, SourceError>
    where
        U: std::str::FromStr,
        Fault: From<U::Err>,
    {
        self.maybe(item, |text| Ok(text.parse()?))
    }

    fn one<T, U>(
        &self,
        item: &Located<T>,
        translate: impl Fn(&T) -> Result<U, Fault>,
    ) -> Result<Sourced<U>, SourceError> {
        let value = translate(&item.value).map_err(|fault| self.fail(item.at, fault))?;
        Ok(Sourced::new(value, self.origin_at(item.at)))
    }

    fn keep<T>(&self, item: Located<T>) -> Sourced<T> {
        let origin = self.origin_at(item.at);
        Sourced::new(item.value, origin)
    }

    fn origin_at(&self, at: Position) -> Origin {
        self.origin.at_line(at.line)
    }

    fn fail(&self, at: Position, fault: Fault) -> SourceError {
        SourceError::at(self.origin, at, fault)
    }
}

fn allow_rule(item: &AllowDocument) -> Result<AllowRule, Fault> {
    match item {
        AllowDocument::Text(text) => {
            Ok(Endpoint::parse(text, Dialect::Native, Side::Allow)?.allow(Dialect::Native))
        }
        AllowDocument::Rule(rule) => Ok(AllowRule {
            methods: rule.methods.as_deref().map(methods).transpose()?,
            paths: rule.paths.as_deref().map(paths).transpose()?,
            inspect: rule.inspect,
            ..base_rule(rule)?
        }),
    }
}

/// Host or block, with its ports; a port in `host` and a list of ports are one too many.
fn base_rule(rule: &AllowRuleDocument) -> Result<AllowRule, Fault> {
    let ports = rule.ports.as_deref().map(ports).transpose()?;
    match (&rule.host, &rule.cidr) {
        (Some(host), None) => {
            let mut endpoint = Endpoint::parse(host, Dialect::Native, Side::Allow)?;
            if matches!(endpoint.destination, Destination::Block(_)) && host.contains('/') {
                return Err(Fault::HostOrCidr);
            }
            if ports.is_some() && endpoint.port.take().is_some() {
                return Err(PortError::Twice(host.clone()).into());
            }
            let plain = endpoint.allow(Dialect::Native);
            Ok(AllowRule {
                ports: ports.unwrap_or(plain.ports.clone()),
                ..plain
            })
        }
        (None, Some(text)) => {
            let destination = Destination::Block(block(text)?);
            Ok(AllowRule::plain(
                destination,
                ports.unwrap_or(PortSet::web()),
            ))
        }
        _ => Err(Fault::HostOrCidr),
    }
}

fn block(text: &str) -> Result<Cidr, Fault> {
    let block = Cidr::parse(text).map_err(|error| Fault::Entry(error.into()))?;
    match block.net().prefix_len() {
        0 => Err(Fault::EveryAddress(text.to_owned())),
        _ => Ok(block),
    }
}

fn ports(list: &[Located<PortDocument>]) -> Result<PortSet, Fault> {
    if list.is_empty() {
        return Err(PortError::Empty.into());
    }
    let ranges = list
        .iter()
        .map(|item| parse_range(&item.value.0))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(PortSet::from_ranges(ranges))
}

fn methods(list: &[Located<String>]) -> Result<std::collections::BTreeSet<Method>, Fault> {
    if list.is_empty() {
        return Err(MethodError::Empty.into());
    }
    Ok(list
        .iter()
        .map(|item| Method::parse(item))
        .collect::<Result<_, _>>()?)
}

fn paths(list: &[Located<String>]) -> Result<Vec<PathPattern>, Fault> {
    if list.is_empty() {
        return Err(PathPatternError::Empty.into());
    }
    Ok(list
        .iter()
        .map(|item| PathPattern::parse(item))
        .collect::<Result<_, _>>()?)
}

fn deny_rule(text: &str) -> Result<DenyRule, Fault> {
    Ok(Endpoint::parse(text, Dialect::Native, Side::Deny)?.deny())
}

fn host_port(number: u16) -> Result<Port, Fault> {
    Port::new(number).ok_or_else(|| PortError::Number(number.to_string()).into())
}

#[cfg(test)]
mod tests;
