//! Every crate takes its lints from the workspace, so none can weaken them.

use toml::Value;

use super::assert_none;
use super::workspace::{self, Manifest};

#[test]
fn lints_come_from_the_workspace() {
    assert_none(&without_lints(&workspace::manifests().unwrap()));
}

fn without_lints(manifests: &[Manifest]) -> Vec<String> {
    let inherits = |manifest: &Manifest| {
        let lints = manifest.table.get("lints");
        lints.and_then(|lints| lints.get("workspace")) == Some(&Value::Boolean(true))
    };
    let bad = manifests.iter().filter(|manifest| !inherits(manifest));
    bad.map(|manifest| format!("{} has lints of its own", manifest.folder))
        .collect()
}

#[test]
fn own_or_missing_lints_are_seen() {
    let manifests = [
        Manifest::parse("good", "[lints]\nworkspace = true").unwrap(),
        Manifest::parse("own", "[lints.rust]\nunsafe_code = 'allow'").unwrap(),
        Manifest::parse("none", "").unwrap(),
    ];
    assert_eq!(without_lints(&manifests).len(), 2);
}
