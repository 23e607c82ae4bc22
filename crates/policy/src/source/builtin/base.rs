//! The base layer: closed network, hidden places, protected names, a harmless environment.

use std::path::Path;

use super::{hidden, protected};
use crate::audit::AuditLevel;
use crate::filesystem::ReadScope;
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

/// What holds for every run: no network, nothing writable but the private `/tmp` (which needs no
/// rule), hidden places, protected names, and the variables above. Profiles and files add to it.
pub fn base_layer(context: &PathContext) -> Layer {
    let origin = Origin::new(LayerKind::Default, "built-in");
    let mut layer = Layer::empty(origin);
    layer.network = NetworkLayer {
        mode: Some(layer.sourced(NetworkMode::Deny)),
        ..NetworkLayer::default()
    };
    layer.filesystem = FilesystemLayer {
        scope: Some(layer.sourced(ReadScope::Host)),
        read_deny: sourced_all(&layer, hidden::places(context)),
        protect: sourced_all(&layer, protected::names()),
        ..FilesystemLayer::default()
    };
    layer.environment = EnvironmentLayer {
        pass: Some(sourced_all(&layer, PASS.iter().map(ToString::to_string))),
        ..EnvironmentLayer::default()
    };
    layer.audit = Some(layer.sourced(AuditLevel::Security));
    layer
}

/// What is hidden in a further home folder of the user's, alone.
pub fn home_layer(home: &Path) -> Layer {
    let mut layer = Layer::empty(Origin::new(LayerKind::Default, "built-in"));
    layer.filesystem.read_deny = sourced_all(&layer, hidden::places_in(home));
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
