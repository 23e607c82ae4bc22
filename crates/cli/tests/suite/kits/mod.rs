//! Sandbox kits: read strictly, compared, and set up inside.

mod commands;
mod end_to_end;
mod set_up;
mod sources;

use ringfence_testkit::{Folder, Outcome, Program};
use serde_json::Value;

use super::ringfence;

/// A kit of schema version 1.
const V1: &str = r#"schemaVersion: "1"
kind: mixin
name: my-service
network:
  allowedDomains: [api.my-service.test]
  deniedDomains: [telemetry.my-service.test]
  serviceDomains: {api.my-service.test: my-service}
  serviceAuth:
    my-service: {headerName: Authorization, valueFormat: "Bearer %s"}
credentials:
  sources:
    my-service: {env: [MY_SERVICE_TOKEN]}
environment:
  proxyManaged: [MY_SERVICE_TOKEN]
"#;

/// The same in schema version 2.
const V2: &str = r#"schemaVersion: "2"
kind: mixin
name: my-service
permissions:
  network:
    allow: [api.my-service.test]
    deny: [telemetry.my-service.test]
credentials:
  - service: my-service
    apiKey:
      name: MY_SERVICE_TOKEN
      proxyManaged: true
      inject:
        - {domain: api.my-service.test, scheme: bearer}
"#;

/// What every kit of these tests begins with.
const HEAD: &str = "schemaVersion: \"2\"\nkind: mixin\nname: forge\n";

/// Folders of a user: one to work in, one with kits, and ringfence's own.
struct Place {
    working: Folder,
    kits: Folder,
    own: Folder,
}

impl Place {
    fn new() -> Self {
        Self {
            working: Folder::new(),
            kits: Folder::new(),
            own: Folder::new(),
        }
    }

    /// One with a kit `k` of this text.
    fn with(spec: &str) -> Self {
        let place = Self::new();
        place.kits.write("k/spec.yaml", spec);
        place
    }

    /// One with a kit `k` of schema version 2 with these lines.
    fn with_lines(lines: &str) -> Self {
        Self::with(&format!("{HEAD}{lines}\n"))
    }

    /// The path of a kit.
    fn kit(&self, name: &str) -> String {
        self.kits.join(name).display().to_string()
    }

    fn program(&self) -> Program {
        ringfence()
            .folder(&self.working)
            .env("XDG_STATE_HOME", self.own.path())
            .env("XDG_CACHE_HOME", self.own.path())
    }

    /// `ringfence kit WORDS…`.
    fn run_kit(&self, words: &[&str]) -> Outcome {
        let words = ["kit"].iter().chain(words).copied();
        self.program().args(words).run()
    }

    /// What `ringfence kit WORDS… --json` prints.
    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let outcome = self.run_kit(&words);
        serde_json::from_str(&outcome.stdout).expect("JSON")
    }

    /// `ringfence run --kit k FLAGS -- sh -c SCRIPT`.
    fn inside(&self, flags: &[&str], script: &str) -> Outcome {
        let kit = self.kit("k");
        let words = ["run", "--kit", kit.as_str()];
        let words = words.into_iter().chain(flags.iter().copied());
        let words = words.chain(["--", "sh", "-c", script]);
        self.program().args(words).run()
    }
}

/// Fails the test unless the outcome is this failure.
#[track_caller]
fn fails_with(outcome: Outcome, exit: i32, code: &str) -> String {
    let outcome = outcome.expect_code(exit);
    let told = format!("ringfence: error[{code}]: ");
    assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("  hint: "), "{}", outcome.stderr);
    outcome.stderr
}
