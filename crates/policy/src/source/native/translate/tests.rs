//! Tests of the whole reader.

use super::super::{read_toml, read_yaml};
use super::*;
use crate::filesystem::ReadScope;
use crate::origin::LayerKind;

const YAML: &str = r#"
version: 1
network:
  mode: allowlist
  allow:
    - api.example.org
    - "*.example.org:8443"
    - {host: api.example.com, methods: [GET, POST], paths: ["/v1/**"]}
    - {cidr: 10.1.0.0/16, ports: [5432, "8000-8999"]}
  deny: [telemetry.example.com, 10.9.0.0/16]
  hostPorts: [5432]
filesystem:
  read: {deny: ["~/.ssh"], allow: [], scope: system}
  write: {allow: [".", "/tmp"], deny: [".env", "**/*.lock"], unprotect: [.vscode]}
resources: {cpu: 1.5, memory: 512MiB, pids: 128, disk: 1GiB, time: 10m, cpuTime: 2m, output: 16MiB, openFiles: 1024}
environment: {pass: [LANG, LC_*], set: {CI: "1"}, managed: [FORGE_TOKEN]}
credentials:
  - {service: forge, env: FORGE_TOKEN, hosts: [api.example.org], header: Authorization, format: "Bearer %s"}
audit: {level: security}
"#;

const TOML: &str = r#"
version = 1
[network]
mode = "allowlist"
allow = [
  "api.example.org",
  "*.example.org:8443",
  {host = "api.example.com", methods = ["GET", "POST"], paths = ["/v1/**"]},
  {cidr = "10.1.0.0/16", ports = [5432, "8000-8999"]},
]
deny = ["telemetry.example.com", "10.9.0.0/16"]
hostPorts = [5432]
[filesystem]
read = {deny = ["~/.ssh"], allow = [], scope = "system"}
write = {allow = [".", "/tmp"], deny = [".env", "**/*.lock"], unprotect = [".vscode"]}
[resources]
cpu = 1.5
memory = "512MiB"
pids = 128
disk = "1GiB"
time = "10m"
cpuTime = "2m"
output = "16MiB"
openFiles = 1024
[environment]
pass = ["LANG", "LC_*"]
set = {CI = "1"}
managed = ["FORGE_TOKEN"]
[[credentials]]
service = "forge"
env = "FORGE_TOKEN"
hosts = ["api.example.org"]
header = "Authorization"
format = "Bearer %s"
[audit]
level = "security"
"#;

fn context() -> PathContext {
    PathContext {
        home: "/home/u".into(),
        base: "/home/u/p".into(),
    }
}

fn origin() -> Origin {
    Origin::new(LayerKind::Policy, "p.yaml")
}

fn texts<T: ToString>(list: &[Sourced<T>]) -> Vec<String> {
    list.iter().map(|item| item.value.to_string()).collect()
}

#[test]
fn reads_the_whole_document() {
    let layer = read_yaml(YAML, &origin(), &context()).unwrap();
    let allow = layer.network.allow.as_ref().unwrap();
    assert_eq!(
        texts(allow),
        [
            "api.example.org:80,443",
            "*.example.org:8443",
            "api.example.com:80,443 GET,POST /v1/**",
            "10.1.0.0/16:5432,8000-8999",
        ]
    );
    assert_eq!(allow[1].origin.line, Some(7));
    assert_eq!(
        texts(&layer.network.deny),
        ["telemetry.example.com", "10.9.0.0/16"]
    );
    assert_eq!(layer.filesystem.scope.as_deref(), Some(&ReadScope::System));
    assert_eq!(
        texts(layer.filesystem.write_allow.as_ref().unwrap()),
        ["/home/u/p", "/tmp"]
    );
    assert_eq!(
        texts(&layer.filesystem.write_deny),
        ["/home/u/p/.env", "/home/u/p/**/*.lock"]
    );
    assert_eq!(layer.limits.cpu.as_ref().unwrap().millis(), 1500);
    assert_eq!(layer.limits.open_files.as_ref().unwrap().get(), 1024);
    assert_eq!(layer.environment.set["CI"].value, "1");
    assert_eq!(layer.credentials.as_ref().unwrap().len(), 1);
}

#[test]
fn toml_says_the_same() {
    let lines = |mut layer: Layer| {
        layer.origin.line = None;
        let allow = texts(layer.network.allow.as_ref().unwrap());
        (
            allow,
            texts(&layer.network.deny),
            layer.limits.cpu.unwrap().value,
            layer.environment.set["CI"].value.clone(),
        )
    };
    let yaml = read_yaml(YAML, &origin(), &context()).unwrap();
    let toml = read_toml(TOML, &origin(), &context()).unwrap();
    assert_eq!(toml.network.allow.as_ref().unwrap()[1].origin.line, Some(7));
    assert_eq!(lines(toml), lines(yaml));
}

/// Text, code of the error, and where it points.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("version: 2\n", "unknown-version", "p.yaml:1:10"),
    ("{}\n", "malformed-document", "p.yaml:1:1"),
    (
        "version: 1\nnetwrk: {}\n",
        "malformed-document",
        "p.yaml:2:1",
    ),
    (
        "version: 1\nnetwork: {mode: maybe}\n",
        "malformed-document",
        "p.yaml:2:17",
    ),
    (
        "version: 1\nnetwork:\n  allow:\n    - \"*\"\n",
        "pattern-everything",
        "p.yaml:4:7",
    ),
    (
        "version: 1\nnetwork: {allow: [0.0.0.0/0]}\n",
        "pattern-too-broad",
        "p.yaml:2:19",
    ),
    (
        "version: 1\nnetwork: {allow: [{host: a.example.org, port: 1}]}\n",
        "malformed-document",
        "p.yaml:2:41",
    ),
    (
        "version: 1\nnetwork: {allow: [{host: a.example.org, cidr: 10.0.0.0/8}]}\n",
        "host-or-cidr",
        "p.yaml:2:19",
    ),
    (
        "version: 1\nnetwork: {allow: [{host: \"a.example.org:1\", ports: [2]}]}\n",
        "malformed-port",
        "p.yaml:2:19",
    ),
    (
        "version: 1\nnetwork: {allow: [{cidr: 0.0.0.0/0}]}\n",
        "pattern-everything",
        "p.yaml:2:19",
    ),
    (
        "version: 1\nnetwork: {allow: [{cidr: 10.0.0.0/8, ports: []}]}\n",
        "malformed-port",
        "p.yaml:2:19",
    ),
    (
        "version: 1\nnetwork: {mode: deny, allow: [a.example.org]}\n",
        "entry-never-matches",
        "p.yaml:2",
    ),
    (
        "version: 1\nnetwork: {hostPorts: [0]}\n",
        "malformed-port",
        "p.yaml:2:23",
    ),
    (
        "version: 1\nfilesystem: {read: {deny: [../x]}}\n",
        "path-leaves-base",
        "p.yaml:2:28",
    ),
    (
        "version: 1\nfilesystem: {write: {allow: [\"*.x\"]}}\n",
        "path-glob-not-allowed",
        "p.yaml:2:30",
    ),
    (
        "version: 1\nresources: {memory: 0MiB}\n",
        "malformed-limit",
        "p.yaml:2:21",
    ),
    (
        "version: 1\nresources: {memory: 512}\n",
        "malformed-document",
        "p.yaml:2:21",
    ),
    (
        "version: 1\nresources: {pids: -1}\n",
        "malformed-document",
        "p.yaml:2:19",
    ),
    (
        "version: 1\nresources: {cpu: 0}\n",
        "malformed-limit",
        "p.yaml:2:18",
    ),
    (
        "version: 1\nenvironment: {set: {\"A=B\": \"1\"}}\n",
        "malformed-environment",
        "p.yaml:2:28",
    ),
    (
        "version: 1\ncredentials: [{service: s, env: E, hosts: [a.example.org], header: A, format: x}]\n",
        "credential-format",
        "p.yaml:2:79",
    ),
];

#[test]
fn mistakes_are_named_with_line_and_column() {
    for (text, code, place) in MISTAKES {
        let error = read_yaml(text, &origin(), &context()).unwrap_err();
        assert_eq!(error.code(), *code, "{text}: {error}");
        assert!(
            error.to_string().starts_with(&format!("policy {place}: ")),
            "{text}: {error}"
        );
    }
}
