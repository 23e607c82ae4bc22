//! Profiles: named starting points for a run.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::UnknownName;
use crate::filesystem::ReadScope;
use crate::layer::Layer;
use crate::limits::{ByteSize, Cores, Limits};
use crate::origin::{LayerKind, Origin};
use crate::path::{PathContext, PathRule};
use crate::rule::NetworkMode;

const MIB: u64 = 1 << 20;

/// A named starting point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Ours: no destination allowed, working folder writable, no limits.
    Default,
    /// Open network, working folder writable, no limits. The environment stays filtered.
    Permissive,
    /// Open network, 512 MiB, one core; home hidden, working folder readable and not writable.
    Moderate,
    /// No destination allowed, 256 MiB, half a core; only system folders and the working folder are
    /// readable, nothing is writable.
    Restrictive,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 4] = [
        Self::Default,
        Self::Permissive,
        Self::Moderate,
        Self::Restrictive,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Permissive => "permissive",
            Self::Moderate => "moderate",
            Self::Restrictive => "restrictive",
        }
    }
}

/// The layer of `profile`; it goes on top of [`base_layer`](super::base_layer).
pub fn profile_layer(profile: Profile, context: &PathContext) -> Layer {
    let mut layer = Layer::empty(Origin::new(LayerKind::Profile, profile.as_str()));
    let mode = match profile {
        Profile::Default | Profile::Restrictive => NetworkMode::Allowlist,
        Profile::Permissive | Profile::Moderate => NetworkMode::Open,
    };
    layer.network.mode = Some(layer.sourced(mode));
    let writes = matches!(profile, Profile::Default | Profile::Permissive);
    let roots = writes.then(|| layer.sourced(PathRule::Literal(context.base.clone())));
    layer.filesystem.write_allow = Some(roots.into_iter().collect());
    match profile {
        Profile::Default | Profile::Permissive => {}
        Profile::Moderate => {
            hide_home(&mut layer, context);
            layer.limits = limits(&layer, 512 * MIB, 1000);
        }
        Profile::Restrictive => {
            layer.filesystem.scope = Some(layer.sourced(ReadScope::System));
            layer.limits = limits(&layer, 256 * MIB, 500);
        }
    }
    layer
}

/// Hides the home folder and shows the working folder again where it lies inside.
fn hide_home(layer: &mut Layer, context: &PathContext) {
    let home = PathRule::Literal(context.home.clone());
    let base = PathRule::Literal(context.base.clone());
    layer.filesystem.read_deny = vec![layer.sourced(home)];
    layer.filesystem.read_allow = Some(vec![layer.sourced(base)]);
}

fn limits(layer: &Layer, memory: u64, cpu: u32) -> Limits {
    Limits {
        memory: ByteSize::from_bytes(memory).map(|size| layer.sourced(size)),
        cpu: Cores::from_millis(cpu)
            .ok()
            .map(|cores| layer.sourced(cores)),
        ..Limits::default()
    }
}

impl FromStr for Profile {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text);
        found.ok_or_else(|| UnknownName {
            kind: "profile",
            name: text.to_owned(),
            known: Self::ALL.map(Self::as_str).join(", "),
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::builtin_layers;
    use super::*;
    use crate::resolve::resolve;

    #[test]
    fn profiles_mean_what_they_say() {
        let context = PathContext {
            home: "/home/u".into(),
            base: "/home/u/p".into(),
        };
        for (name, mode, writable, memory, scope) in [
            ("default", NetworkMode::Allowlist, 1, None, ReadScope::Host),
            ("permissive", NetworkMode::Open, 1, None, ReadScope::Host),
            ("moderate", NetworkMode::Open, 0, Some(512), ReadScope::Host),
            (
                "restrictive",
                NetworkMode::Allowlist,
                0,
                Some(256),
                ReadScope::System,
            ),
        ] {
            let policy = resolve(builtin_layers(name.parse().unwrap(), &context), None).unwrap();
            assert_eq!(policy.network_mode(), mode, "{name}");
            assert_eq!(policy.filesystem().write_allow.len(), writable, "{name}");
            assert_eq!(policy.filesystem().scope.value, scope, "{name}");
            let have = policy
                .limits()
                .memory
                .as_ref()
                .map(|size| size.bytes() / MIB);
            assert_eq!(have, memory, "{name}");
        }
        assert_eq!(
            "lax".parse::<Profile>().unwrap_err().code(),
            "unknown-profile"
        );
    }
}
