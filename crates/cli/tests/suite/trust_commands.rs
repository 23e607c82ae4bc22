//! `ringfence trust`: what files may have is approved once, by content.

use ringfence_testkit::{Folder, Outcome};
use serde_json::Value;

use super::ringfence;

const POLICY: &str = r#"
version = 1
[network]
mode = "allowlist"
allow = ["api.example.org"]
[[credentials]]
service = "forge"
env = "FORGE_TOKEN"
hosts = ["api.example.org"]
bearer = true
"#;

struct Place {
    working: Folder,
    state: Folder,
}

impl Place {
    fn new() -> Self {
        let (working, state) = (Folder::new(), Folder::new());
        working.write("ringfence.toml", POLICY);
        Self { working, state }
    }

    fn trust(&self, words: &[&str]) -> Outcome {
        ringfence()
            .args(["trust"].iter().chain(words).copied())
            .env("XDG_STATE_HOME", self.state.path())
            .folder(&self.working)
            .run()
    }

    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let outcome = self.trust(&words).expect_code(0);
        serde_json::from_str(&outcome.stdout).expect("JSON")
    }

    fn file(&self) -> String {
        self.working.join("ringfence.toml").display().to_string()
    }
}

#[test]
fn g5_what_a_file_asks_for_is_shown_and_approved_by_content() {
    let place = Place::new();
    let shown = place.trust(&["--dry-run", "."]).expect_code(0);
    assert!(shown.stderr.contains("is not approved"), "{}", shown.stderr);
    assert_eq!(place.json(&["--list"]), Value::Array(Vec::new()));
    let shown = place.trust(&["ringfence.toml"]).expect_code(0);
    for part in ["api.example.org", "forge", "$FORGE_TOKEN"] {
        assert!(shown.stdout.contains(part), "{}", shown.stdout);
    }
    assert!(shown.stderr.contains("is approved"), "{}", shown.stderr);
    let listed = place.json(&["--list"]);
    assert_eq!(listed[0]["subject"]["name"], place.file());
    assert_eq!(listed[0]["services"][0], "forge");
    place
        .working
        .write("ringfence.toml", &POLICY.replace("version", "\nversion"));
    assert_eq!(place.json(&["--dry-run", "."])["approved"], false);
    place.working.write("ringfence.toml", POLICY);
    assert_eq!(place.json(&["--dry-run", "."])["approved"], true);
}

#[test]
fn approvals_are_taken_back() {
    let place = Place::new();
    let sum = place.json(&["."])["subject"]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    let words = [".", &place.file(), &sum[..12]];
    for wanted in words {
        place.trust(&["."]).expect_code(0);
        place.trust(&["--remove", wanted]).expect_code(0);
        assert_eq!(place.json(&["--list"]), Value::Array(Vec::new()));
        let again = place.trust(&["--remove", wanted]).expect_code(1);
        assert!(again.stderr.contains("not-approved"), "{}", again.stderr);
    }
}

#[test]
fn what_cannot_be_approved_is_an_error() {
    let place = Place::new();
    place
        .working
        .write("modest.toml", POLICY.split("[[").next().unwrap());
    place
        .working
        .write("wrong/ringfence.toml", "version = 1\nnetwrok = 2\n");
    place.working.write("empty/file", "");
    let link = place.working.join("link");
    std::fs::create_dir(&link).unwrap();
    std::os::unix::fs::symlink(place.file(), link.join("ringfence.toml")).unwrap();
    for (words, exit, code) in [
        (&["modest.toml"][..], 1, "nothing-to-approve"),
        (&["wrong"], 1, "error["),
        (&["empty"], 1, "file-unreadable"),
        (&["none/ringfence.toml"], 1, "file-unreadable"),
        (&["link"], 1, "file-unreadable"),
        (&["--list", "."], 2, "usage"),
        (&["--remove"], 2, "usage"),
        (&["--remove", "--dry-run", "."], 2, "usage"),
    ] {
        let outcome = place.trust(words).expect_code(exit);
        assert!(outcome.stderr.contains(code), "{}", outcome.stderr);
    }
    assert_eq!(place.json(&["--list"]), Value::Array(Vec::new()));
}

#[test]
fn g5_approvals_that_others_could_write_are_not_read() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.trust(&["."]).expect_code(0);
    let file = place.state.join("ringfence/approvals/approvals.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o622)).unwrap();
    let outcome = place.trust(&["--list"]).expect_code(1);
    assert!(outcome.stderr.contains("approvals-unavailable"));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&file, text.replace("forge", "forge\u{0}")).unwrap();
    let outcome = place.trust(&["--list"]).expect_code(1);
    assert!(outcome.stderr.contains("approvals-damaged"));
}

const SETTINGS: &str = r#"{
  "network": {"allowedDomains": ["api.example.org"], "deniedDomains": [], "tlsTerminate": {}},
  "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []},
  "credentials": {"envVars": [{"name": "FORGE_TOKEN", "mode": "mask", "injectHosts": ["api.example.org"]}]}
}"#;

const POLICY_YAML: &str = "
version: 1
network: {mode: allowlist, allow: [api.example.org]}
credentials:
  - {service: forge, env: FORGE_TOKEN, hosts: [api.example.org], bearer: true}
";

const KIT: &str = r#"
schemaVersion: "2"
kind: mixin
name: my-kit
permissions: {network: {allow: [api.example.org]}}
credentials:
  - service: forge
    apiKey: {name: FORGE_TOKEN, inject: [{domain: api.example.org, header: authorization, format: "Bearer %s"}]}
"#;

impl Place {
    /// What `run` says about what it did not use or give.
    fn remarks(&self, flags: &[&str]) -> String {
        let command = ["--", "true"];
        let words = ["run"].iter().chain(flags).chain(&command).copied();
        ringfence()
            .args(words)
            .env("XDG_STATE_HOME", self.state.path())
            .env("FORGE_TOKEN", "s3cr3t-of-the-forge")
            .folder(&self.working)
            .run()
            .expect_code(0)
            .stderr
    }
}

#[test]
fn g1_the_file_of_the_working_folder_is_used_as_it_was_trusted() {
    let place = Place::new();
    let allows = || {
        let words = ["policy", "explain", "https://api.example.org/"];
        let outcome = ringfence()
            .args(words)
            .env("XDG_STATE_HOME", place.state.path())
            .folder(&place.working)
            .run();
        outcome.code() == 0
    };
    assert!(place.remarks(&[]).contains("is not trusted"));
    assert!(!allows());
    place.trust(&["."]).expect_code(0);
    assert_eq!(place.remarks(&[]), "");
    assert!(allows());
    place
        .working
        .write("ringfence.toml", &format!("{POLICY}\n"));
    assert!(place.remarks(&[]).contains("has changed"));
    assert!(!allows());
}

#[test]
fn g5_credentials_of_policies_settings_and_kits_are_withheld_until_approved() {
    let place = Place::new();
    std::fs::remove_file(place.file()).unwrap();
    place.working.write("policy.yaml", POLICY_YAML);
    place.working.write("policy.toml", POLICY);
    place.working.write("settings.json", SETTINGS);
    place.working.write("kit/spec.yaml", KIT);
    for (flag, file, edit) in [
        ("--policy", "policy.yaml", "policy.yaml"),
        ("--policy", "policy.toml", "policy.toml"),
        ("--settings", "settings.json", "settings.json"),
        ("--kit", "./kit", "kit/spec.yaml"),
    ] {
        let text = place.working.read(edit);
        let remarks = || place.remarks(&[flag, file]);
        assert!(
            remarks().contains("is not approved"),
            "{file}: {}",
            remarks()
        );
        let shown = place.trust(&[file]).expect_code(0);
        assert!(shown.stdout.contains("FORGE_TOKEN"), "{}", shown.stdout);
        assert!(!remarks().contains("approved"), "{file}: {}", remarks());
        let wider = text.replace("api.example.org", "all.example.org");
        place.working.write(edit, &wider);
        assert!(
            remarks().contains("is not approved"),
            "{file}: {}",
            remarks()
        );
        place.working.write(edit, &text);
        assert!(!remarks().contains("approved"), "{file}: {}", remarks());
        place.trust(&["--remove", file]).expect_code(0);
        assert!(
            remarks().contains("is not approved"),
            "{file}: {}",
            remarks()
        );
    }
}

/// What code inside may do to a kit that lies in a writable place. Each has the
/// kit's commands, or what they start, do something else with the secret's hosts.
const KIT_CHANGES: [(&str, &str); 8] = [
    ("what a step runs", "echo : evil >> kit/files/home/setup.sh"),
    ("a file beside it", "echo evil > kit/files/home/python3"),
    (
        "a file of the working directory",
        "mkdir kit/files/workspace; echo evil > kit/files/workspace/Makefile",
    ),
    ("another mode of a file", "chmod +x kit/files/home/notes"),
    (
        "a step",
        "sed -i 's/sh setup.sh/sh setup.sh; true evil/' kit/spec.yaml",
    ),
    (
        "what is loaded",
        "sed -i 's#A: b#LD_PRELOAD: /tmp/evil.so#' kit/spec.yaml",
    ),
    (
        "a file of its own",
        "sed -i 's/plain text/evil/' kit/spec.yaml",
    ),
    (
        "another kit",
        "mv kit old; cp -r old kit; echo : evil > kit/files/home/setup.sh",
    ),
];

#[test]
fn g5_a_kit_that_a_run_changed_gets_nothing_by_its_old_approval() {
    let spec = format!(
        "{KIT}environment: {{variables: {{A: b}}}}\nsetup:\n  install:\n    \
         - {{command: cd ~; sh setup.sh}}\n  files:\n    - {{path: /home/agent/own, content: plain text}}\n"
    );
    for (change, script) in KIT_CHANGES {
        let place = Place::new();
        std::fs::remove_file(place.file()).unwrap();
        place.working.write("kit/spec.yaml", &spec);
        place.working.write("kit/files/home/setup.sh", "true\n");
        place.working.write("kit/files/home/notes", "plain\n");
        place.trust(&["./kit"]).expect_code(0);
        let flags = ["--kit", "./kit"];
        assert_eq!(place.remarks(&flags), "", "{change}");
        super::inside(&place.working, script).expect_code(0);
        let remarks = place.remarks(&flags);
        assert!(
            remarks.contains("asks for more than was approved"),
            "{change}: {remarks}"
        );
        place.trust(&["./kit"]).expect_code(0);
        let remarks = place.remarks(&flags);
        assert!(!remarks.contains("approved"), "{change}: {remarks}");
    }
}

#[test]
fn g5_a_copy_of_what_was_approved_is_not_approved() {
    let place = Place::new();
    place.working.write("policy.yaml", POLICY_YAML);
    place.working.write("settings.json", SETTINGS);
    for file in [".", "policy.yaml", "settings.json"] {
        place.trust(&[file]).expect_code(0);
    }
    let flags = [
        &["--policy", "policy.yaml"],
        &["--settings", "settings.json"],
    ];
    for flags in flags {
        assert_eq!(place.remarks(flags), "");
    }
    let copy = Place {
        working: Folder::new(),
        state: place.state,
    };
    for name in ["ringfence.toml", "policy.yaml", "settings.json"] {
        copy.working.write(name, &place.working.read(name));
    }
    assert_eq!(copy.json(&["--dry-run", "."])["approved"], false);
    for flags in flags {
        let remarks = copy.remarks(flags);
        assert!(remarks.contains("is not trusted"), "{remarks}");
        assert!(remarks.contains("is not approved"), "{remarks}");
    }
}

#[test]
fn g5_a_policy_in_any_writable_place_asks_for_its_credentials() {
    let place = Place::new();
    std::fs::remove_file(place.file()).unwrap();
    let elsewhere = Folder::durable();
    let policy = elsewhere.write("policy.yaml", POLICY_YAML);
    let policy = policy.to_str().unwrap();
    assert_eq!(place.remarks(&["--policy", policy]), "");
    let writable = ["--policy", policy, "--write", elsewhere.text()];
    assert!(place.remarks(&writable).contains("is not approved"));
    place.trust(&[policy]).expect_code(0);
    assert_eq!(place.remarks(&writable), "");
    let link = place.working.join("link.yaml");
    std::os::unix::fs::symlink(policy, link).unwrap();
    assert_eq!(place.remarks(&["--policy", "link.yaml"]), "");
}

#[test]
fn g5_a_name_that_means_two_things_cannot_be_approved() {
    let place = Place::new();
    std::fs::remove_file(place.file()).unwrap();
    place.working.write("kit/spec.yaml", KIT);
    let other = KIT.replace("my-kit", "other-kit");
    place.working.write("same/spec.yaml", &other);
    let other = other.replace("FORGE_TOKEN", "MAIL_TOKEN");
    place.working.write("other/spec.yaml", &other);
    let run = |kits: [&str; 2]| {
        let flags = kits.iter().flat_map(|kit| ["--kit", kit]);
        let words = ["--approve", "forge", "--", "echo", "ran"];
        ringfence()
            .args(["run"].into_iter().chain(flags).chain(words))
            .env("XDG_STATE_HOME", place.state.path())
            .folder(&place.working)
            .run()
    };
    let told = run(["./kit", "./other"]).expect_code(125);
    assert_eq!(told.stdout, "");
    for part in ["approve-ambiguous", "/kit/spec.yaml", "/other/spec.yaml"] {
        assert!(told.stderr.contains(part), "{}", told.stderr);
    }
    assert_eq!(run(["./kit", "./same"]).expect_code(0).stdout, "ran\n");
}

#[test]
fn g4_certificates_that_a_policy_trusts_cannot_be_changed_inside() {
    let place = Place::new();
    std::fs::remove_file(place.file()).unwrap();
    let run = |flags: &[&str], script: &str| {
        place.working.write("authority.pem", "first");
        place.working.write("other.pem", "other");
        let link = place.working.join("link.pem");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink("authority.pem", link).unwrap();
        let command = ["--", "sh", "-c", script];
        let words = ["run"].iter().chain(flags).chain(&command).copied();
        let outcome = ringfence()
            .args(words)
            .env("XDG_STATE_HOME", place.state.path())
            .folder(&place.working)
            .run();
        let texts = ["authority.pem", "link.pem"].map(|name| place.working.read(name));
        (outcome, texts == ["first", "first"])
    };
    for script in [
        "echo other > authority.pem",
        "mv other.pem authority.pem",
        "ln -sf other.pem link.pem",
        "mv other.pem link.pem",
    ] {
        let (outcome, is_unchanged) = run(&[], script);
        outcome.expect_code(0);
        assert!(!is_unchanged, "{script} changes nothing");
        let (outcome, is_unchanged) = run(&["--no-network", "--authority", "link.pem"], script);
        assert_ne!(outcome.code(), 0, "{script}");
        assert_ne!(outcome.code(), 125, "{script}: {}", outcome.stderr);
        assert!(is_unchanged, "{script}: {}", outcome.stderr);
    }
}
