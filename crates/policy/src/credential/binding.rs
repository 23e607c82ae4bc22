//! [`Binding`]: which requests get a secret.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::attach::Attach;
use super::error::CredentialError;
use crate::decide::Request;
use crate::host::{Dialect, HOST_ALIAS, HostPattern, PatternError};
use crate::http::{HttpPath, Method, PathPattern};
use crate::port::PortSet;

/// How a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Over verified TLS.
    Https,
    /// In clear; only to the host's own loopback.
    Http,
}

impl Scheme {
    /// The word used in URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }
}

/// The requests that get a secret, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Binding {
    /// To these hosts.
    pub host: HostPattern,
    /// But not to these of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<HostPattern>,
    /// On these ports.
    pub ports: PortSet,
    /// Travelling like this.
    pub scheme: Scheme,
    /// With these methods; `None` is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub methods: Option<BTreeSet<Method>>,
    /// Below these paths; `None` is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<PathPattern>>,
    /// How it is put in.
    pub attach: Attach,
    /// Takes the place of a credential that the request already carries.
    pub replace: bool,
}

impl Binding {
    /// Every HTTPS request to `host` on port 443.
    pub fn new(host: HostPattern, attach: Attach) -> Self {
        Self {
            host,
            except: Vec::new(),
            ports: PortSet::https(),
            scheme: Scheme::Https,
            methods: None,
            paths: None,
            attach,
            replace: false,
        }
    }

    /// Parses the host of a binding, without a port: a name or a wildcard of `dialect`.
    pub fn parse_host(text: &str, dialect: Dialect) -> Result<HostPattern, CredentialError> {
        let pattern = HostPattern::parse(text, dialect)?;
        if pattern.is_too_broad() {
            Err(PatternError::TooBroad(text.to_owned()).into())
        } else {
            Ok(pattern)
        }
    }

    /// The same binding in clear: only for [`HOST_ALIAS`], whose traffic stays on this machine.
    pub fn in_clear(self) -> Result<Self, CredentialError> {
        match &self.host {
            HostPattern::Exact(name) if name.as_str() == HOST_ALIAS => Ok(Self {
                scheme: Scheme::Http,
                ..self
            }),
            other => Err(CredentialError::Clear(other.to_string())),
        }
    }

    /// True when `request`, travelling by `scheme`, gets the secret. A method or path that is not
    /// known yet counts as fitting; a path without a single reading fits no list of paths.
    pub(crate) fn fits(&self, request: &Request<'_>, scheme: Scheme) -> bool {
        self.scheme == scheme
            && self.is_about(request)
            && request.method.is_none_or(|method| self.fits_method(method))
            && request.path.is_none_or(|path| self.fits_path(path))
    }

    /// True when the binding is about the request's host and port.
    pub(crate) fn is_about(&self, request: &Request<'_>) -> bool {
        let is_named =
            |name| self.host.matches(name) && !self.except.iter().any(|own| own.matches(name));
        self.ports.contains(request.port) && request.host.is_some_and(is_named)
    }

    fn fits_method(&self, method: &str) -> bool {
        self.methods
            .as_ref()
            .is_none_or(|all| all.iter().any(|own| own.as_str() == method))
    }

    fn fits_path(&self, path: &str) -> bool {
        self.paths.as_ref().is_none_or(|globs| {
            HttpPath::normalise(path)
                .is_ok_and(|normal| globs.iter().any(|glob| glob.matches(&normal)))
        })
    }

    /// True when some request has one place for both, as far as text can tell.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let hosts = self.host.covers(&other.host) || other.host.covers(&self.host);
        let methods = match (&self.methods, &other.methods) {
            (Some(own), Some(methods)) => !own.is_disjoint(methods),
            _ => true,
        };
        let paths = self.paths.is_none() || other.paths.is_none() || self.paths == other.paths;
        let place = self.attach.slot();
        place.is_some()
            && place == other.attach.slot()
            && self.scheme == other.scheme
            && hosts
            && methods
            && paths
            && !self.ports.is_disjoint(&other.ports)
    }

    /// True when every request of `other` is one of `self`, as far as text can tell.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (None, _) => true,
            (Some(own), Some(methods)) => methods.is_subset(own),
            (Some(_), None) => false,
        };
        let paths = self.paths.is_none() || self.paths == other.paths;
        methods
            && paths
            && self.except.is_empty()
            && self.scheme == other.scheme
            && self.host.covers(&other.host)
            && other.ports.is_subset(&self.ports)
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} to {}://{}:{}",
            self.attach,
            self.scheme.as_str(),
            self.host,
            self.ports
        )?;
        if !self.except.is_empty() {
            let list: Vec<String> = self.except.iter().map(ToString::to_string).collect();
            write!(f, " except {}", list.join(","))?;
        }
        if let Some(methods) = &self.methods {
            let list: Vec<&str> = methods.iter().map(Method::as_str).collect();
            write!(f, " {}", list.join(","))?;
        }
        if let Some(paths) = &self.paths {
            let list: Vec<&str> = paths.iter().map(PathPattern::as_str).collect();
            write!(f, " {}", list.join(","))?;
        }
        Ok(())
    }
}
