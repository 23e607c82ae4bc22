//! [`Request`]: what is asked.

use std::net::IpAddr;

use serde::Serialize;

use crate::host::{HostName, Target};

/// A connection, or one HTTP request inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The name the client used, if it used one.
    pub host: Option<&'a HostName>,
    /// The address that would be dialled, once it is known.
    pub addr: Option<IpAddr>,
    /// The port that would be dialled.
    pub port: u16,
    /// The HTTP method, once it is known.
    pub method: Option<&'a str>,
    /// The HTTP request path, as sent.
    pub path: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// A connection to `target`; the address of a name is not known yet.
    pub fn connect(target: &'a Target, port: u16) -> Self {
        Self {
            host: target.name(),
            addr: target.addr(),
            port,
            method: None,
            path: None,
        }
    }

    /// The same request with the address that its name resolved to.
    #[must_use]
    pub fn resolved_to(self, addr: IpAddr) -> Self {
        Self {
            addr: Some(addr),
            ..self
        }
    }

    /// The same request with method and path.
    #[must_use]
    pub fn with_http(self, method: &'a str, path: &'a str) -> Self {
        Self {
            method: Some(method),
            path: Some(path),
            ..self
        }
    }
}

/// A request as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestView {
    /// Name the client used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Address that would be dialled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addr: Option<IpAddr>,
    /// Port that would be dialled.
    pub port: u16,
    /// HTTP method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// HTTP path, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl From<&Request<'_>> for RequestView {
    fn from(request: &Request<'_>) -> Self {
        Self {
            host: request.host.map(ToString::to_string),
            addr: request.addr,
            port: request.port,
            method: request.method.map(str::to_owned),
            path: request.path.map(str::to_owned),
        }
    }
}
