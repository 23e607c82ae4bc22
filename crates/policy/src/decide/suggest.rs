//! Which line would allow a request.

use std::net::IpAddr;

use serde::Serialize;

use super::reason::Reason;
use super::request::Request;
use super::{Decision, Verdict};
use crate::host::HostName;
use crate::http::{HttpPath, Method, PathPattern};
use crate::origin::LayerKind;
use crate::policy::Policy;
use crate::source;

/// A longer path is nothing to paste.
const LONGEST_PATH: usize = 200;

/// Where a suggested line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuggestionFormat {
    /// The command line.
    Flag,
    /// A YAML policy.
    Yaml,
    /// `ringfence.toml`.
    Toml,
    /// srt settings.
    Srt,
}

/// A line to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// Where it goes.
    pub format: SuggestionFormat,
    /// The key it goes under; empty for flags.
    pub place: &'static str,
    /// The line, ready to paste.
    pub line: String,
}

/// Lines that would allow `request`, the most suitable one first.
pub(super) fn suggestions(
    decision: &Decision,
    policy: &Policy,
    request: &Request<'_>,
) -> Vec<Suggestion> {
    suited(lines(decision, request), policy)
}

fn lines(decision: &Decision, request: &Request<'_>) -> Vec<Suggestion> {
    if decision.verdict == Verdict::Allow || no_line_helps(decision.reason) {
        return Vec::new();
    }
    if decision.reason == Reason::HostPortNotAllowed {
        return host_port_lines(request.port);
    }
    if is_about_request(decision.reason) {
        return request_lines(request).unwrap_or_default();
    }
    match (request.host, request.addr) {
        (Some(name), _) if !is_about_address(decision.reason) => {
            let mut lines = entry_lines(&format!("{name}:{}", request.port));
            // Below the flag for the host alone, which opens less.
            lines.splice(1..1, preset_line(name, request.port));
            lines
        }
        (_, Some(IpAddr::V4(address))) => entry_lines(&format!("{address}:{}", request.port)),
        (_, Some(IpAddr::V6(address))) => entry_lines(&format!("[{address}]:{}", request.port)),
        (_, None) => host_port_lines(request.port),
    }
}

fn is_about_request(reason: Reason) -> bool {
    matches!(reason, Reason::MethodNotAllowed | Reason::PathNotAllowed)
}

/// A rule for this method and path alone; flags and srt settings have none. `None` when no rule
/// could match the request.
fn request_lines(request: &Request<'_>) -> Option<Vec<Suggestion>> {
    let method = request.method?;
    let path = HttpPath::normalise(request.path?).ok()?;
    let known = Method::parse(method).is_ok_and(|own| own.as_str() == method);
    let pattern = PathPattern::parse(path.as_str()).ok()?;
    let path = pattern.as_str();
    if !known || path.len() > LONGEST_PATH {
        return None;
    }
    let (key, whom) = match (request.host, request.addr) {
        (Some(name), _) => ("host", name.to_string()),
        (None, Some(address)) => ("cidr", address.to_string()),
        (None, None) => return None,
    };
    let port = request.port;
    let yaml =
        format!("- {{{key}: {whom:?}, ports: [{port}], methods: [{method:?}], paths: [{path:?}]}}");
    let toml = format!(
        "{{{key} = {whom:?}, ports = [{port}], methods = [{method:?}], paths = [{path:?}]}},"
    );
    Some(vec![
        line(SuggestionFormat::Yaml, "network.allow", yaml),
        line(SuggestionFormat::Toml, "network.allow", toml),
    ])
}

/// Whoever has settings of srt adds to them.
fn suited(mut lines: Vec<Suggestion>, policy: &Policy) -> Vec<Suggestion> {
    let mode = policy.network.mode.as_ref();
    if mode.is_some_and(|mode| mode.origin.layer == LayerKind::SrtSettings) {
        lines.sort_by_key(|line| line.format != SuggestionFormat::Srt);
    }
    lines
}

fn no_line_helps(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Ceiling | Reason::DeniedByRule | Reason::AddressDenied | Reason::MalformedHost
    )
}

fn is_about_address(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::PrivateAddress
            | Reason::LoopbackAddress
            | Reason::UnspecifiedAddress
            | Reason::LinkLocalAddress
            | Reason::MetadataAddress
            | Reason::MulticastAddress
            | Reason::ReservedAddress
            | Reason::HostOwnAddress
    )
}

fn entry_lines(entry: &str) -> Vec<Suggestion> {
    let quoted = format!("{entry:?}");
    // A shell would take the brackets of an IPv6 address for a pattern.
    let typed = if entry.starts_with('[') {
        format!("'{entry}'")
    } else {
        entry.to_owned()
    };
    vec![
        line(SuggestionFormat::Flag, "", format!("--allow {typed}")),
        line(
            SuggestionFormat::Yaml,
            "network.allow",
            format!("- {quoted}"),
        ),
        line(
            SuggestionFormat::Toml,
            "network.allow",
            format!("{quoted},"),
        ),
        line(SuggestionFormat::Srt, "network.allowedDomains", quoted),
    ]
}

fn preset_line(name: &HostName, port: u16) -> Option<Suggestion> {
    let preset = source::suggest(&[(name.clone(), port)], &[])?;
    let flag = format!("--preset {}", preset.name);
    Some(line(SuggestionFormat::Flag, "", flag))
}

fn host_port_lines(port: u16) -> Vec<Suggestion> {
    vec![
        line(SuggestionFormat::Flag, "", format!("--host-port {port}")),
        line(
            SuggestionFormat::Yaml,
            "network.hostPorts",
            format!("- {port}"),
        ),
        line(
            SuggestionFormat::Toml,
            "network.hostPorts",
            format!("{port},"),
        ),
    ]
}

fn line(format: SuggestionFormat, place: &'static str, line: String) -> Suggestion {
    Suggestion {
        format,
        place,
        line,
    }
}
