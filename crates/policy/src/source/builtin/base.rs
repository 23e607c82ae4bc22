//! The base layer: closed network, hidden places, protected names, a harmless environment.

use std::path::Path;

use super::{hidden, protected};
use crate::audit::AuditLevel;
use crate::filesystem::ReadScope;
use crate::home::HomeRule;
use crate::layer::{EnvironmentLayer, FilesystemLayer, Layer, NetworkLayer};
use crate::origin::{LayerKind, Origin, Sourced};
use crate::path::PathContext;
use crate::rule::NetworkMode;

/// Variables that shape a terminal, a language or a tool chain, and carry no secret.
const PASS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "TZ",
    "CI",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
];

/// What holds for every run: no destination allowed, nothing writable but the private `/tmp` (which needs no
/// rule), hidden places, protected names, and the variables above. Profiles and files add to it.
pub fn base_layer(context: &PathContext) -> Layer {
    let origin = Origin::new(LayerKind::Default, "built-in");
    let mut layer = Layer::empty(origin);
    layer.network = NetworkLayer {
        mode: Some(layer.sourced(NetworkMode::Allowlist)),
        ..NetworkLayer::default()
    };
    layer.filesystem = FilesystemLayer {
        scope: Some(layer.sourced(ReadScope::Host)),
        home: Some(layer.sourced(HomeRule::Private)),
        read_deny: sourced_all(&layer, hidden::places(context)),
        protect: sourced_all(&layer, protected::names()),
        ..FilesystemLayer::default()
    };
    layer.environment = EnvironmentLayer {
        pass: Some(sourced_all(&layer, PASS.iter().map(ToString::to_string))),
        ..EnvironmentLayer::default()
    };
    layer.audit = Some(layer.sourced(AuditLevel::Standard));
    layer
}

/// What is hidden because of a further home folder of the user's, beyond what
/// [`base_layer`] has.
pub fn home_layer(home: &Path, context: &PathContext) -> Layer {
    let mut layer = Layer::empty(Origin::new(LayerKind::Default, "built-in"));
    let places = hidden::places_in(home).chain(hidden::roots_home(home));
    let known = hidden::roots_home(&context.home);
    let places = places.filter(|place| known.as_ref() != Some(place));
    layer.filesystem.read_deny = sourced_all(&layer, places);
    layer
}

fn sourced_all<T>(layer: &Layer, values: impl IntoIterator<Item = T>) -> Vec<Sourced<T>> {
    values
        .into_iter()
        .map(|value| layer.sourced(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hidden for a user with these two homes.
    fn hidden_with(home: &str, other: &str) -> Vec<String> {
        let context = PathContext {
            home: home.into(),
            base: "/work".into(),
        };
        let layers = [base_layer(&context), home_layer(Path::new(other), &context)];
        let places = layers.iter().flat_map(|layer| &layer.filesystem.read_deny);
        places.map(|place| place.value.to_string()).collect()
    }

    #[test]
    fn g4_what_is_hidden_in_a_home_is_hidden_in_both() {
        for (home, other) in [
            ("/home/a", "/home/b"),
            ("/root", "/home/b"),
            ("/home/a", "/root"),
        ] {
            let hidden = hidden_with(home, other);
            for place in [home, other].map(|home| format!("{home}/.ssh")) {
                assert!(hidden.contains(&place), "{place}");
            }
            // Root's own is hidden as a whole from whoever has another as well.
            let count = |wanted: &str| hidden.iter().filter(|place| *place == wanted).count();
            assert_eq!(
                (count("/root"), count("/etc/shadow")),
                (1, 1),
                "{home} {other}"
            );
        }
    }

    #[test]
    fn g5_no_variable_of_the_base_can_hold_a_secret() {
        let secret = [
            "TOKEN",
            "KEY",
            "SECRET",
            "PASS",
            "CREDENTIAL",
            "AUTH",
            "SOCK",
        ];
        assert!(
            PASS.iter()
                .all(|name| !secret.iter().any(|word| name.contains(word)))
        );
    }
}
