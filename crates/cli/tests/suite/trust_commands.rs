//! `ringfence trust`: what files may have is approved once, by content.

use std::sync::atomic::{AtomicBool, Ordering};

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

/// Directories beside the trusted `proj`: what leads to that very directory, and
/// what only looks like it.
const LOOK_ALIKES: [(&str, bool); 16] = [
    ("proj", true),
    ("proj/", true),
    ("proj/.", true),
    ("proj/../proj", true),
    ("link", true),
    ("link/sub/..", true),
    ("Proj", false),
    ("PROJ", false),
    ("proj ", false),
    ("proj\n", false),
    ("proj\u{200b}", false),
    // The letter of another alphabet, and a mark that is a character of its own.
    ("pr\u{43e}j", false),
    ("proj\u{301}", false),
    ("proj (deleted)", false),
    ("proj/sub", false),
    ("copied-link", false),
];

#[test]
fn g5_what_looks_like_something_trusted_is_not_trusted() {
    let base = Folder::new();
    let state = Folder::new();
    for (name, is_same) in LOOK_ALIKES {
        if !is_same && name != "copied-link" {
            std::fs::create_dir_all(base.join(name)).unwrap();
            base.write(format!("{name}/ringfence.toml"), POLICY);
        }
    }
    base.write("proj/ringfence.toml", POLICY);
    std::os::unix::fs::symlink("proj", base.join("link")).unwrap();
    // The file itself is no link, whatever it leads to.
    std::fs::create_dir(base.join("copied-link")).unwrap();
    let link = base.join("copied-link/ringfence.toml");
    std::os::unix::fs::symlink("../proj/ringfence.toml", link).unwrap();
    let program = |folder: &str| {
        let program = ringfence().env("XDG_STATE_HOME", state.path());
        program.folder(base.join(folder))
    };
    program("proj").args(["trust", "."]).run().expect_code(0);
    for (name, is_same) in LOOK_ALIKES {
        let words = ["policy", "explain", "https://api.example.org/"];
        let outcome = program(name).args(words).run();
        assert_eq!(outcome.code() == 0, is_same, "{name:?}: {}", outcome.stderr);
    }
    // Names of the file that only look like it say nothing at all.
    for name in [
        "Ringfence.toml",
        "ringfence.toml ",
        "ringfence.toml\u{200b}",
        "ringfence.tom1",
    ] {
        std::fs::rename(
            base.join("proj/ringfence.toml"),
            base.join("proj").join(name),
        )
        .unwrap();
        let words = ["policy", "explain", "https://api.example.org/"];
        assert_ne!(program("proj").args(words).run().code(), 0, "{name:?}");
        std::fs::rename(
            base.join("proj").join(name),
            base.join("proj/ringfence.toml"),
        )
        .unwrap();
    }
}

/// Puts one text after the other in the place of a file, for as long as `work`
/// goes on.
fn while_swapped(file: &std::path::Path, texts: [&str; 2], work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let new = file.with_extension("new");
            for text in texts.iter().cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                std::fs::write(&new, text).expect("a file");
                std::fs::rename(&new, file).expect("a file in its place");
            }
        });
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn g5_what_is_kept_is_what_was_shown_also_under_swaps() {
    for (name, subject, text) in [
        ("policy.yaml", "policy.yaml", POLICY_YAML),
        ("settings.json", "settings.json", SETTINGS),
        ("ringfence.toml", ".", POLICY),
        ("kit/spec.yaml", "./kit", KIT),
    ] {
        let place = Place::new();
        let other = text.replace("api.example.org", "all.example.org");
        let texts = [text, other.as_str()];
        let sums = texts.map(|text| {
            place.working.write(name, text);
            place.json(&["--dry-run", subject])["subject"]["digest"].clone()
        });
        assert_ne!(sums[0], sums[1]);
        let mut seen = [0; 2];
        while_swapped(&place.working.join(name), texts, || {
            for _ in 0..16 {
                let shown = place.json(&[subject]);
                let which = usize::from(shown.to_string().contains("all.example.org"));
                seen[which] += 1;
                assert!(
                    shown["approved"] == true && shown["subject"]["digest"] == sums[which],
                    "{shown}"
                );
                let list = place.json(&["--list"]);
                let kept = list.as_array().expect("a list");
                let kept: Vec<_> = kept
                    .iter()
                    .map(|one| one["subject"]["digest"].clone())
                    .collect();
                assert_eq!(kept, [sums[which].clone()], "{name}");
                place.trust(&["--remove", subject]).expect_code(0);
            }
        });
        assert!(
            seen.iter().all(|count| *count > 0),
            "{name} was not swapped: {seen:?}"
        );
    }
}

#[test]
fn g1_what_is_used_is_what_was_trusted_also_under_swaps() {
    let place = Place::new();
    place.trust(&["."]).expect_code(0);
    let other = POLICY.replace("api.example.org", "all.example.org");
    let allows = |host: &str| {
        let words = ["policy", "explain", host];
        let program = ringfence().args(words);
        let program = program.env("XDG_STATE_HOME", place.state.path());
        program.folder(&place.working).run().code() == 0
    };
    let mut used = [0; 2];
    while_swapped(
        &place.working.join("ringfence.toml"),
        [POLICY, other.as_str()],
        || {
            for _ in 0..40 {
                used[usize::from(allows("https://api.example.org/"))] += 1;
                assert!(!allows("https://all.example.org/"));
            }
            for _ in 0..10 {
                let words = ["run", "--", "touch", "ran"];
                let program = ringfence().args(words).folder(&place.working);
                let outcome = program.env("XDG_STATE_HOME", place.state.path()).run();
                let told = &outcome.stderr;
                // It may have been replaced as often as it was looked at.
                let is_refused = outcome.code() == 125 && !place.working.has("ran");
                let is_right = told.is_empty() || told.contains("has changed");
                assert!(is_refused || is_right, "{told}");
                let _ = std::fs::remove_file(place.working.join("ran"));
            }
        },
    );
    assert!(
        used.iter().all(|count| *count > 0),
        "it was not swapped: {used:?}"
    );
}
