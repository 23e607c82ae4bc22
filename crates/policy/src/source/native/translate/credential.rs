//! Credentials from the document to the model.

use std::collections::HashSet;

use super::super::document::{
    BindingDocument, CommandDocument, CredentialDocument, SchemeDocument, SourceDocument,
};
use super::{Fault, Located, Position, Reader, SourceError};
use crate::credential::{
    Attach, Binding, Credential, CredentialError, SecretSource, check_service,
};
use crate::environment::check_name;
use crate::host::{Dialect, HostPattern};
use crate::limits::TimeSpan;
use crate::origin::{LayerKind, Sourced};

const AUTHORIZATION: &str = "authorization";

impl Reader<'_> {
    pub(super) fn credentials(
        &self,
        list: &[Located<CredentialDocument>],
    ) -> Result<Vec<Sourced<Credential>>, SourceError> {
        let mut known = HashSet::new();
        if let Some(twice) = list.iter().find(|item| !known.insert(&item.service.value)) {
            let fault = CredentialError::Twice(twice.service.value.clone());
            return Err(self.refuse(twice.at, fault));
        }
        list.iter().map(|item| self.credential(item)).collect()
    }

    fn credential(
        &self,
        item: &Located<CredentialDocument>,
    ) -> Result<Sourced<Credential>, SourceError> {
        check_service(&item.service).map_err(|fault| self.refuse(item.service.at, fault))?;
        let sources = self.sources(item)?;
        let bindings = self.bindings(item)?;
        let variables = self.variables(item, &sources)?;
        self.refuse_unheld(item, &variables, &bindings)?;
        let credential = if self.is_ceiling() {
            Ok(Credential::bound(&item.service, sources, bindings))
        } else {
            Credential::new(&item.service, sources, variables, bindings)
        };
        let credential = credential.map_err(|fault| self.refuse(item.at, fault))?;
        let credential = Credential {
            required: item.required,
            weak: item.weak,
            ..credential
        };
        Ok(Sourced::new(credential, self.origin_at(item.at)))
    }

    /// A ceiling says where a secret may come from and go to, and leaves out what it does not
    /// bound.
    fn is_ceiling(&self) -> bool {
        self.origin.layer == LayerKind::Ceiling
    }

    fn sources(
        &self,
        item: &Located<CredentialDocument>,
    ) -> Result<Vec<SecretSource>, SourceError> {
        let short = SourceRef {
            env: item.env.as_ref(),
            file: item.file.as_ref(),
            command: item.command.as_ref(),
            secret: item.secret.as_ref(),
        };
        let named = self.source(&short)?;
        let several = || CredentialError::Sources(item.service.value.clone());
        match &item.sources {
            None if named.len() > 1 => Err(self.refuse(item.at, several())),
            None => Ok(named),
            Some(_) if !named.is_empty() => Err(self.refuse(item.at, several())),
            Some(list) => list.iter().map(|one| self.one_source(one)).collect(),
        }
    }

    fn one_source(&self, item: &Located<SourceDocument>) -> Result<SecretSource, SourceError> {
        let named = self.source(&SourceRef {
            env: item.env.as_ref(),
            file: item.file.as_ref(),
            command: item.command.as_ref(),
            secret: item.secret.as_ref(),
        })?;
        let only: Result<[SecretSource; 1], _> = named.try_into();
        match only {
            Ok([source]) => Ok(source),
            Err(_) => Err(self.refuse(item.at, CredentialError::OneSource)),
        }
    }

    /// Every source that is named.
    fn source(&self, item: &SourceRef<'_>) -> Result<Vec<SecretSource>, SourceError> {
        let env = self.maybe(item.env, |name| Ok(SecretSource::env(name)?))?;
        let file = self.maybe(item.file, |file| {
            Ok(SecretSource::file(&file.path, file.key.as_deref())?)
        })?;
        let command = self.maybe(item.command, command)?;
        let secret = self.maybe(item.secret, |name| Ok(SecretSource::store(name)?))?;
        let all = [env, file, command, secret].into_iter().flatten();
        Ok(all.map(|source| source.value).collect())
    }

    fn variables(
        &self,
        item: &CredentialDocument,
        sources: &[SecretSource],
    ) -> Result<Vec<String>, SourceError> {
        let names = match &item.variables {
            Some(list) => self.all(list, |name| Ok(check_name(name).map(|()| name.clone())?))?,
            None => return Ok(env_names(sources)),
        };
        Ok(names.into_iter().map(|name| name.value).collect())
    }

    fn bindings(&self, item: &Located<CredentialDocument>) -> Result<Vec<Binding>, SourceError> {
        let service = &item.service.value;
        let short = item.binding();
        match (&short, &item.bindings) {
            (None, None) => Ok(Vec::new()),
            (Some(own), None) => self.places(own, item.at, service),
            (None, Some(list)) => {
                let places = list.iter().map(|one| self.places(one, one.at, service));
                Ok(places.collect::<Result<Vec<_>, _>>()?.concat())
            }
            (Some(_), Some(_)) => {
                let fault = CredentialError::BesideBindings(service.clone());
                Err(self.refuse(item.at, fault))
            }
        }
    }

    /// A placeholder that nothing inside holds would never be replaced.
    fn refuse_unheld(
        &self,
        item: &Located<CredentialDocument>,
        variables: &[String],
        bindings: &[Binding],
    ) -> Result<(), SourceError> {
        let substitutes = |own: &Binding| matches!(own.attach, Attach::Placeholder { .. });
        if self.is_ceiling() || !variables.is_empty() || !bindings.iter().any(substitutes) {
            return Ok(());
        }
        let fault = CredentialError::NoVariable(item.service.value.clone());
        Err(self.refuse(item.at, fault))
    }

    /// One binding for each host.
    fn places(
        &self,
        item: &BindingDocument,
        at: Position,
        service: &str,
    ) -> Result<Vec<Binding>, SourceError> {
        let hosts = item.hosts.as_deref().unwrap_or_default();
        if hosts.is_empty() {
            return Err(self.refuse(at, CredentialError::NoHosts(service.to_owned())));
        }
        let attach = self.attach(item, at, service)?;
        hosts
            .iter()
            .map(|host| self.place(item, host, &attach))
            .collect()
    }

    fn place(
        &self,
        item: &BindingDocument,
        host: &Located<String>,
        attach: &Attach,
    ) -> Result<Binding, SourceError> {
        let pattern: Sourced<HostPattern> =
            self.one(host, |text| Ok(Binding::parse_host(text, Dialect::Native)?))?;
        let plain = Binding::new(pattern.value, attach.clone());
        let ports = item.ports.as_deref().map(super::ports).transpose();
        let methods = item.methods.as_deref().map(super::methods).transpose();
        let paths = item.paths.as_deref().map(super::paths).transpose();
        let fail = |fault: Fault| self.fail(host.at, fault);
        let binding = Binding {
            ports: ports.map_err(fail)?.unwrap_or(plain.ports.clone()),
            methods: methods.map_err(fail)?,
            paths: paths.map_err(fail)?,
            replace: item.replace.unwrap_or(false),
            ..plain
        };
        match item.scheme.as_deref() {
            Some(SchemeDocument::Http) => binding
                .in_clear()
                .map_err(|fault| self.refuse(host.at, fault)),
            Some(SchemeDocument::Https) | None => Ok(binding),
        }
    }

    /// The one way that is written.
    fn attach(
        &self,
        item: &BindingDocument,
        at: Position,
        service: &str,
    ) -> Result<Attach, SourceError> {
        let header = self.header(item)?;
        let bearer = item
            .bearer
            .filter(|bearer| *bearer)
            .map(|_| Attach::bearer());
        let basic = self.maybe(item.basic.as_ref(), |basic| {
            Ok(Attach::basic(&basic.username)?)
        })?;
        let query = self.maybe(item.query.as_ref(), |name| Ok(Attach::query(name)?))?;
        let substitute = item.substitute.as_ref().map(|own| Attach::Placeholder {
            body: own.value.body,
        });
        let value = |own: Sourced<Attach>| own.value;
        let ways = [
            header,
            bearer,
            basic.map(value),
            query.map(value),
            substitute,
        ];
        let mut ways = ways.into_iter().flatten();
        match (ways.next(), ways.next()) {
            (Some(_), Some(_)) => Err(CredentialError::Kinds(service.to_owned())),
            (Some(way), None) => Ok(way),
            (None, _) if self.is_ceiling() => Ok(Attach::Placeholder { body: true }),
            (None, _) => Err(CredentialError::NoKind(service.to_owned())),
        }
        .map_err(|fault| self.refuse(at, fault))
    }

    fn header(&self, item: &BindingDocument) -> Result<Option<Attach>, SourceError> {
        let Some(name) = &item.header else {
            return match &item.format {
                Some(alone) => Err(self.refuse(alone.at, CredentialError::FormatAlone)),
                None => Ok(None),
            };
        };
        let usual = if name.value.eq_ignore_ascii_case(AUTHORIZATION) {
            "Bearer %s"
        } else {
            "%s"
        };
        let (at, format) = match &item.format {
            Some(format) => (format.at, format.value.as_str()),
            None => (name.at, usual),
        };
        let attach = Attach::header(name, format).map_err(|fault| self.refuse(at, fault))?;
        Ok(Some(attach))
    }

    fn refuse(&self, at: Position, fault: CredentialError) -> SourceError {
        self.fail(at, fault.into())
    }
}

/// What may be named as a source.
struct SourceRef<'a> {
    env: Option<&'a Located<String>>,
    file: Option<&'a Located<super::super::document::FileDocument>>,
    command: Option<&'a Located<CommandDocument>>,
    secret: Option<&'a Located<String>>,
}

fn command(item: &CommandDocument) -> Result<SecretSource, Fault> {
    let refresh = item.refresh.as_ref().map(|text| text.parse::<TimeSpan>());
    let refresh = refresh.transpose()?;
    match (&item.argv, &item.run) {
        (Some(argv), None) => Ok(SecretSource::command(argv, refresh)?),
        (None, Some(line)) => Ok(SecretSource::command_line(line, refresh)?),
        _ => Err(CredentialError::CommandForm.into()),
    }
}

fn env_names(sources: &[SecretSource]) -> Vec<String> {
    let names = sources.iter().filter_map(|source| match source {
        SecretSource::Env(name) => Some(name.clone()),
        _ => None,
    });
    names.collect()
}
