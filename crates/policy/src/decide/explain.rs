//! [`explain`]: the decision with everything it looked at, and what to write to change it.

use std::net::IpAddr;

use serde::Serialize;

use super::evaluate::evaluate;
use super::reason::Reason;
use super::request::{Request, RequestView};
use super::trace::Considered;
use super::{Decision, Verdict};
use crate::origin::LayerKind;
use crate::policy::{Policy, Resolved};

/// A decision and its grounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What was asked.
    pub request: RequestView,
    /// The answer: exactly that of [`decide`](super::decide).
    pub decision: Decision,
    /// Every rule that was looked at, in order.
    pub considered: Vec<Considered>,
    /// Lines that would allow it, one for each place it can be written, the most suitable one
    /// first. Empty when adding a line cannot help: it is allowed, a deny holds, or the ceiling
    /// stands against it.
    pub suggestions: Vec<Suggestion>,
}

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

/// Decides one request and tells why.
pub fn explain(policy: &Resolved<Policy>, request: &Request<'_>) -> Explanation {
    let mut considered = Vec::new();
    let decision = evaluate(policy.inner(), request, &mut considered);
    Explanation {
        request: request.into(),
        suggestions: suited(suggestions(&decision, request), policy.inner()),
        considered,
        decision,
    }
}

fn suggestions(decision: &Decision, request: &Request<'_>) -> Vec<Suggestion> {
    if decision.verdict == Verdict::Allow || no_line_helps(decision.reason) {
        return Vec::new();
    }
    if decision.reason == Reason::HostPortNotAllowed {
        return host_port_lines(request.port);
    }
    match (request.host, request.addr) {
        (Some(name), _) if !is_about_address(decision.reason) => {
            entry_lines(&format!("{name}:{}", request.port))
        }
        (_, Some(IpAddr::V4(address))) => entry_lines(&format!("{address}:{}", request.port)),
        (_, Some(IpAddr::V6(address))) => entry_lines(&format!("[{address}]:{}", request.port)),
        (_, None) => host_port_lines(request.port),
    }
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

fn host_port_lines(port: u16) -> Vec<Suggestion> {
    vec![
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
