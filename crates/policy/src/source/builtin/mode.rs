//! Compatibility modes: what a known agent needs to work.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::UnknownName;
use crate::host::{Dialect, HostName, HostPattern};
use crate::layer::Layer;
use crate::origin::{LayerKind, Origin};
use crate::path::{PathContext, PathRule};
use crate::port::PortSet;
use crate::rule::{AllowRule, DenyRule, Destination, Endpoint, NetworkMode, Side};
use crate::source::preset::{PresetKind, hosts_of};

/// A known agent, or none in particular. Metadata endpoints are denied in every mode; how much
/// of the host is seen and which limits hold is the profile's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompatibilityMode {
    /// Open network; the working folder is not made writable.
    Native,
    /// Anthropic's hosts, registries and code hosts; working folder writable.
    Claude,
    /// The hosts of `OpenAI` and registries, no names below `internal`; working folder writable.
    Codex,
    /// Google's API hosts, registries and code hosts; working folder writable.
    Gemini,
    /// As Claude, and Sourcegraph's hosts.
    Amp,
    /// The three vendors' API hosts, registries and code hosts; working folder writable.
    Pi,
}

/// What one mode allows and denies.
struct Rules {
    hosts: &'static [&'static str],
    kinds: &'static [PresetKind],
    deny: &'static [&'static str],
}

/// Names under which clouds serve credentials; their addresses are guarded by `decide` itself.
const METADATA: &[&str] = &[
    "metadata.google.internal",
    "metadata.goog",
    "169.254.169.254",
    "[fd00:ec2::254]",
];

impl CompatibilityMode {
    /// Every mode.
    pub const ALL: [Self; 6] = [
        Self::Native,
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Amp,
        Self::Pi,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Amp => "amp",
            Self::Pi => "pi",
        }
    }

    fn rules(self) -> Rules {
        let both: &[PresetKind] = &[PresetKind::Packages, PresetKind::Code];
        let (hosts, kinds): (&[&str], _) = match self {
            Self::Native => (&[], &[][..]),
            Self::Claude => (&["api.anthropic.com", "cdn.anthropic.com"], both),
            Self::Codex => (
                &["api.openai.com", "cdn.openai.com"],
                &[PresetKind::Packages][..],
            ),
            Self::Gemini => (&["*.googleapis.com"], both),
            Self::Amp => (
                &[
                    "api.anthropic.com",
                    "cdn.anthropic.com",
                    "*.sourcegraph.com",
                ],
                both,
            ),
            Self::Pi => (
                &[
                    "api.anthropic.com",
                    "api.openai.com",
                    "generativelanguage.googleapis.com",
                ],
                both,
            ),
        };
        let deny: &[&str] = if self == Self::Codex {
            &["*.internal"]
        } else {
            &[]
        };
        Rules { hosts, kinds, deny }
    }
}

/// The layer of `mode`.
pub fn mode_layer(mode: CompatibilityMode, context: &PathContext) -> Layer {
    let mut layer = Layer::empty(Origin::new(LayerKind::Mode, mode.as_str()));
    let rules = mode.rules();
    let network = match mode {
        CompatibilityMode::Native => NetworkMode::Open,
        _ => NetworkMode::Allowlist,
    };
    layer.network.mode = Some(layer.sourced(network));
    let allow = allowed(&rules).map(|rule| layer.sourced(rule)).collect();
    layer.network.allow = Some(allow);
    layer.network.deny = denied(&rules).map(|rule| layer.sourced(rule)).collect();
    if mode != CompatibilityMode::Native {
        let base = PathRule::Literal(context.base.clone());
        layer.filesystem.write_allow = Some(vec![layer.sourced(base)]);
    }
    layer
}

fn allowed(rules: &Rules) -> impl Iterator<Item = AllowRule> {
    let hosts = rules
        .hosts
        .iter()
        .filter_map(|text| HostPattern::parse(text, Dialect::Native).ok());
    let all = hosts.chain(hosts_of(rules.kinds));
    all.map(|pattern| AllowRule::plain(Destination::Host(pattern), PortSet::web()))
}

fn denied(rules: &Rules) -> impl Iterator<Item = DenyRule> {
    let bare = HostName::parse("metadata").ok().map(HostPattern::Exact);
    let bare = bare.map(|pattern| DenyRule::plain(Destination::Host(pattern), PortSet::any()));
    let entries = METADATA.iter().chain(rules.deny);
    let denies = entries.filter_map(|text| {
        Some(
            Endpoint::parse(text, Dialect::Native, Side::Deny)
                .ok()?
                .deny(),
        )
    });
    denies.chain(bare)
}

impl FromStr for CompatibilityMode {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        found.ok_or_else(|| UnknownName {
            kind: "compatibility mode",
            name: text.to_owned(),
            known: Self::ALL.map(Self::as_str).join(", "),
        })
    }
}

impl fmt::Display for CompatibilityMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_parses() {
        for mode in CompatibilityMode::ALL {
            let rules = mode.rules();
            let registries = hosts_of(rules.kinds).count();
            assert_eq!(
                allowed(&rules).count(),
                rules.hosts.len() + registries,
                "{mode}"
            );
            assert_eq!(
                denied(&rules).count(),
                METADATA.len() + rules.deny.len() + 1,
                "{mode}"
            );
        }
    }
}
