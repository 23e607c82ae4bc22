use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ringfence_policy::{LayerKind, Origin, PathContext, Sourced, read_yaml};

use super::*;
use crate::secrets::store::Protection;
use crate::secrets::writable::WritablePlaces;

/// The credential that `fields` describe, as a policy has it.
fn credential(fields: &str) -> Sourced<Credential> {
    let text = format!(
        "version: 1\ncredentials:\n  - {{service: forge, hosts: [api.example.org], bearer: true, {fields}}}\n"
    );
    let paths = PathContext {
        home: "/home/u".into(),
        base: "/w".into(),
    };
    let origin = Origin::new(LayerKind::Policy, "test");
    let layer = read_yaml(&text, &origin, &paths).unwrap();
    layer.credentials.unwrap().remove(0)
}

struct Host {
    folder: tempfile::TempDir,
    variables: Arc<Mutex<BTreeMap<String, OsString>>>,
}

impl Host {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            variables: Arc::default(),
        }
    }

    fn set(&self, name: &str, value: &str) {
        let mut variables = self.variables.lock().unwrap();
        variables.insert(name.to_owned(), value.into());
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn vault(&self, fields: &str) -> HostVault {
        let variables = Arc::clone(&self.variables);
        let surroundings = Surroundings {
            home: self.folder.path().into(),
            path: std::env::var_os("PATH"),
            writable: WritablePlaces::new([self.folder.path().join("work")]),
            masked: Vec::new(),
        };
        let settings = SecretSettings {
            store: self.store(),
            passphrase: None,
        };
        HostVault::new(
            &[credential(fields)],
            &surroundings,
            Box::new(move |name| variables.lock().unwrap().get(name).cloned()),
            settings,
        )
    }
}

fn value(vault: &HostVault) -> String {
    vault.secret("forge").unwrap().expose().to_owned()
}

fn keep(folder: &Path, text: &str) {
    let store = SecretStore::new(folder, None);
    let secret = Secret::new(text.to_owned());
    store
        .set(&"forge".parse().unwrap(), &secret, Protection::KeyFile)
        .unwrap();
}

#[test]
fn g5_a_rotated_secret_takes_effect_at_the_next_request() {
    let host = Host::new();
    let file = host.folder.path().join("token");
    let rotate = |text: &str| {
        host.set("FORGE_TOKEN", text);
        std::fs::write(&file, format!("{text}\n")).unwrap();
        keep(&host.store(), text);
    };
    rotate("the-first-value");
    let command = format!("command: {{argv: [cat, {}]}}", file.display());
    let vaults = [
        "env: FORGE_TOKEN",
        "file: {path: ~/token}",
        "secret: forge",
        &command,
    ]
    .map(|source| host.vault(source));
    for text in ["the-first-value", "the-second-value"] {
        rotate(text);
        for vault in &vaults {
            assert_eq!(value(vault), text);
        }
    }
}

#[test]
fn the_first_source_that_has_it_counts() {
    let host = Host::new();
    let sources = "sources: [{env: ONE_TOKEN}, {file: {path: ~/token}}, {secret: forge}]";
    let vault = host.vault(sources);
    let error = vault.secret("forge").unwrap_err();
    let SecretError::Missing(why) = &error else {
        panic!("{error}");
    };
    for part in ["ONE_TOKEN", "~/token", "store has no forge"] {
        assert!(why.contains(part), "{why}");
    }
    keep(&host.store(), "from-the-store");
    assert_eq!(value(&vault), "from-the-store");
    std::fs::write(host.folder.path().join("token"), "from-the-file").unwrap();
    assert_eq!(value(&vault), "from-the-file");
    host.set("ONE_TOKEN", "from-the-variable");
    assert_eq!(value(&vault), "from-the-variable");
    host.set("ONE_TOKEN", "");
    assert_eq!(value(&vault), "from-the-file", "an empty one is none");
}

#[test]
fn g5_what_cannot_be_a_secret_is_refused_and_not_shown() {
    let host = Host::new();
    let vault = host.vault("env: FORGE_TOKEN");
    for text in ["s3cr3t", "s3cr3t\r\nX-Evil: 1", "s3cr3t-\u{0}-value"] {
        host.set("FORGE_TOKEN", text);
        let error = vault.secret("forge").unwrap_err();
        assert!(matches!(error, SecretError::Malformed(_)), "{error}");
        assert!(!error.to_string().contains("s3cr3t"), "{error}");
    }
    assert!(matches!(
        vault.secret("other"),
        Err(SecretError::Missing(_))
    ));
}

#[test]
fn g5_what_can_be_found_by_trying_needs_a_word() {
    let host = Host::new();
    host.set("FORGE_TOKEN", "20261118");
    let error = host.vault("env: FORGE_TOKEN").secret("forge").unwrap_err();
    assert!(error.to_string().contains("weak: true"), "{error}");
    assert!(!error.to_string().contains("20261118"), "{error}");
    let allowed = host.vault("env: FORGE_TOKEN, weak: true").secret("forge");
    assert_eq!(allowed.unwrap().expose(), "20261118");
}

#[test]
fn a_required_credential_must_be_there() {
    let host = Host::new();
    let fields = "env: FORGE_TOKEN, required: true";
    let vault = host.vault(fields);
    let required = [credential(fields)];
    let error = vault.check_required(&required).unwrap_err();
    assert_eq!(error.code(), "credential-unavailable");
    host.set("FORGE_TOKEN", "the-right-value");
    vault.check_required(&required).unwrap();
    let error = host
        .vault("env: NONE_SUCH")
        .check_required(&[credential("env: NONE_SUCH")]);
    error.unwrap();
}

#[test]
fn g4_a_source_that_code_inside_can_change_stops_the_run() {
    let host = Host::new();
    let work = host.folder.path().canonicalize().unwrap().join("work");
    std::fs::create_dir(&work).unwrap();
    let script = work.join("get-token").display().to_string();
    for source in [
        format!("command: {{argv: [{script}]}}"),
        format!("command: {{argv: [sh, {script}]}}"),
        format!("sources: [{{env: FORGE_TOKEN}}, {{command: {{argv: [sh, {script}]}}}}]"),
    ] {
        let error = host.vault(&source).refuse_danger().unwrap_err();
        assert_eq!(error.code(), "credential-command-unsafe", "{error}");
        assert!(error.to_string().contains("forge"), "{error}");
    }
    let exposed = host.vault(&format!("file: {{path: {script}}}"));
    let error = exposed.refuse_danger().unwrap_err();
    assert_eq!(error.code(), "credential-file-exposed", "{error}");
    let missing = host.vault("command: {argv: [none-such-program]}");
    missing.refuse_danger().unwrap();
}

#[test]
fn only_a_variable_that_is_set_is_read_without_waiting() {
    let host = Host::new();
    for (fields, before, after) in [
        ("env: TOKEN", true, false),
        (
            "sources: [{env: TOKEN}, {file: {path: /token}}]",
            true,
            false,
        ),
        (
            "sources: [{file: {path: /token}}, {env: TOKEN}]",
            true,
            true,
        ),
        ("command: {argv: [cat, /token]}", true, true),
    ] {
        host.variables.lock().unwrap().clear();
        let vault = host.vault(fields);
        assert_eq!(vault.may_block("forge"), before, "{fields}");
        host.set("TOKEN", "s3cr3t-of-the-forge");
        assert_eq!(vault.may_block("forge"), after, "{fields}");
        assert!(vault.may_block("another"));
    }
}
