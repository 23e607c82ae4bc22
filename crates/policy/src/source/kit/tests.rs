use super::entry::KitEntry;
use super::*;
use crate::note::NoteKind;
use crate::origin::LayerKind;
use crate::path::PathContext;
use crate::resolve::resolve;
use crate::rule::Side;
use crate::source::{Profile, builtin_layers};

const V1: &str = r#"schemaVersion: "1"
kind: mixin
name: my-service
network:
  allowedDomains: [api.my-service.test, "*.my-service.test"]
  deniedDomains: [telemetry.my-service.test]
  serviceDomains: {api.my-service.test: my-service}
  serviceAuth:
    my-service: {headerName: Authorization, valueFormat: "Bearer %s"}
credentials:
  sources:
    my-service: {env: [MY_SERVICE_TOKEN]}
environment:
  variables: {MY_SERVICE_URL: "https://api.my-service.test"}
  proxyManaged: [MY_SERVICE_TOKEN]
commands:
  install:
    - {command: "mkdir -p ~/.my-service", user: "1000"}
  startup:
    - {command: [my-service, serve], background: true}
  initFiles:
    - {path: /home/agent/.my-service/config, content: "dir=${WORKDIR}", mode: "0600", onlyIfMissing: true}
"#;

const V2: &str = r#"schemaVersion: "2"
kind: mixin
name: my-service
permissions:
  network:
    allow: [api.my-service.test, "*.my-service.test"]
    deny: [telemetry.my-service.test]
credentials:
  - service: my-service
    apiKey:
      name: MY_SERVICE_TOKEN
      proxyManaged: true
      inject:
        - {domain: api.my-service.test, scheme: bearer}
environment:
  variables: {MY_SERVICE_URL: "https://api.my-service.test"}
setup:
  install:
    - {command: "mkdir -p ~/.my-service", user: "1000"}
  startup:
    - {command: [my-service, serve], background: true}
  files:
    - {path: /home/agent/.my-service/config, content: "dir=${WORKDIR}", mode: "0600", onlyIfMissing: true}
"#;

fn origin() -> Origin {
    Origin::new(LayerKind::Kit, "spec.yaml")
}

fn read(text: &str) -> Result<Kit, SourceError> {
    read_kit(text, &BTreeMap::new(), &origin())
}

fn given(text: &str, values: &[(&str, &str)]) -> Result<Kit, SourceError> {
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    read_kit(text, &values, &origin())
}

/// A kit of version 2 with more lines.
fn with(lines: &str) -> Result<Kit, SourceError> {
    read(&format!(
        "schemaVersion: \"2\"\nkind: mixin\nname: k\n{lines}\n"
    ))
}

/// A kit of version 1 with more lines.
fn with_v1(lines: &str) -> Result<Kit, SourceError> {
    read(&format!(
        "schemaVersion: \"1\"\nkind: mixin\nname: k\n{lines}\n"
    ))
}

fn codes(kit: &Kit, kind: NoteKind) -> Vec<&'static str> {
    let notes = kit.notes.iter().filter(|note| note.kind == kind);
    notes.map(|note| note.code).collect()
}

#[test]
fn both_versions_mean_the_same() {
    let (one, two) = (read(V1).unwrap(), read(V2).unwrap());
    let values = |kit: &Kit| {
        let credentials: Vec<_> = kit
            .credentials
            .iter()
            .map(|own| own.value.clone())
            .collect();
        (
            kit.surface(BTreeMap::new()),
            credentials,
            kit.files.clone(),
            kit.startup.clone(),
        )
    };
    assert_eq!(values(&one), values(&two));
    assert_eq!(
        (one.notes.as_slice(), two.notes.as_slice()),
        (&[][..], &[][..])
    );
    let credential = &one.credentials[0];
    assert_eq!(
        credential.bindings[0].to_string(),
        "header authorization: Bearer %s to https://api.my-service.test:443"
    );
    assert!(credential.bindings[0].replace);
    let sources: Vec<_> = credential.sources.iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["$MY_SERVICE_TOKEN", "secret my-service"]);
    assert_eq!(credential.variables, ["MY_SERVICE_TOKEN"]);
    assert_eq!(one.files[0].mode, 0o600);
    assert_eq!(one.files[0].existing, Existing::Keep);
}

#[test]
fn a_kit_opens_and_closes_but_gets_no_secret_unasked() {
    let context = PathContext {
        home: "/home/u".into(),
        base: "/home/u/w".into(),
    };
    let resolved = |approve: bool| {
        let mut layers = builtin_layers(Profile::Default, &context);
        let mut layer = read(V1).unwrap().layer();
        if approve {
            layer.approve("my-service");
        }
        layers.push(layer);
        resolve(layers, None).unwrap()
    };
    let policy = resolved(false);
    assert_eq!(policy.credentials(), []);
    assert_eq!(policy.withheld()[0].service, "my-service");
    assert!(!policy.environment().passes("MY_SERVICE_TOKEN"));
    let policy = resolved(true);
    assert_eq!(policy.credentials()[0].service, "my-service");
    assert_eq!(
        policy.environment().set["MY_SERVICE_URL"].value,
        "https://api.my-service.test"
    );
}

#[test]
fn a_credential_opens_its_host_where_the_secret_goes() {
    let text = V2.replace("domain: api.my-service.test", "domain: '*.example.org'");
    let kit = read(&text).unwrap();
    let last = kit.allow.last().unwrap();
    assert_eq!(last.text, "*.example.org:443");
    assert_eq!(
        KitEntry::parse(&last.text, Side::Allow).unwrap().allow(),
        last.rule.value
    );
    let mut layer = kit.layer();
    layer.approve("my-service");
    assert!(resolve(vec![layer], None).is_ok());
    // What a list has is not opened twice, and what the kit denies stays closed.
    assert_eq!(read(V2).unwrap().allow.len() + 1, kit.allow.len());
    let denied = text.replace("deny:", "deny: ['**.example.org'] #");
    let mut layer = read(&denied).unwrap().layer();
    layer.approve("my-service");
    let error = resolve(vec![layer], None).unwrap_err();
    assert_eq!(error.code(), "credential-host-not-allowed");
}

#[test]
fn version_1_has_keys_of_its_successor() {
    let kit = with_v1("version: 2\nsourceURL: https://example.org/k\nextends: claude").unwrap();
    assert_eq!(kit.version.as_deref(), Some("2"));
    assert_eq!(codes(&kit, NoteKind::NoEffect), ["kit-not-handed-on"]);
    assert!(with_v1("sourceUrl: https://example.org/k").is_err());
}

#[test]
fn a_credentials_variable_may_have_a_text_of_the_kit() {
    let line = "MY_SERVICE_URL: \"https://api.my-service.test\"";
    let other = V2.replace(line, "MY_SERVICE_TOKEN: sk-none-0000");
    let kit = read(&other).unwrap();
    assert_eq!(kit.credentials[0].variables, [""; 0]);
    assert_eq!(kit.variables["MY_SERVICE_TOKEN"].value, "sk-none-0000");
    let ours = V2.replace(line, "MY_SERVICE_TOKEN: proxy-managed");
    let kit = read(&ours).unwrap();
    assert_eq!(kit.credentials[0].variables, ["MY_SERVICE_TOKEN"]);
    assert!(!kit.variables.contains_key("MY_SERVICE_TOKEN"));
    // In version 1 also when no list names it.
    let text = with_v1(
        "network: {serviceDomains: {api.example.org: s}, serviceAuth: {s: {headerName: \
         X-Key, valueFormat: '%s'}}}\ncredentials: {sources: {s: {env: [S_KEY]}}}\n\
         environment: {variables: {S_KEY: proxy-managed, OTHER: proxy-managed}}",
    );
    let kit = text.unwrap();
    assert_eq!(kit.credentials[0].variables, ["S_KEY"]);
    assert_eq!(kit.variables["OTHER"].value, "proxy-managed");
    assert_eq!(kit.allow[0].text, "api.example.org:443");
}

#[test]
fn the_hint_about_version_3_sends_nobody_astray() {
    let error = read("schemaVersion: \"3\"\nkind: workload\n").unwrap_err();
    assert_eq!(error.code(), "kit-version");
    assert!(
        !error.hint().contains("write `schemaVersion"),
        "{}",
        error.hint()
    );
}

#[test]
fn unknown_versions_and_keys_are_errors_with_their_place() {
    for (text, code, place) in [
        ("kind: mixin\nname: k\n", "kit-version", "1:1"),
        ("schemaVersion: \"3\"\nkind: mixin\n", "kit-version", "1:16"),
        ("schemaVersion: two\n", "kit-version", "1:16"),
        (
            "schemaVersion: 2\nkind: mixin\nname: k\nnetwork: {}\n",
            "malformed-document",
            "4:1",
        ),
        (
            "schemaVersion: 1\nkind: mixin\nname: k\nsetup: {}\n",
            "malformed-document",
            "4:1",
        ),
        (
            "schemaVersion: 2\nkind: mixin\nname: K\n",
            "kit-name",
            "3:7",
        ),
        ("schemaVersion: 2\nkind: tool\nname: k\n", "kit-kind", "2:7"),
        (
            "schemaVersion: 2\nkind: mixin\nname: k\npermissions:\n  network:\n    alow: []\n",
            "malformed-document",
            "6:5",
        ),
        (
            "schemaVersion: 2\nkind: mixin\nname: k\npermissions:\n  network:\n    allow: [\"a b\"]\n",
            "pattern-space",
            "6:13",
        ),
        ("[1, 2]", "kit-version", "1:1"),
        ("a: [", "malformed-document", ""),
        ("", "kit-version", ""),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.code(), code, "{text}: {error}");
        let shown = error.to_string();
        assert!(shown.contains(&format!("spec.yaml:{place}")), "{shown}");
    }
}

#[test]
fn formats_headers_and_schemes_are_checked() {
    let inject = |entry: &str| {
        with(&format!(
            "credentials:\n  - service: s\n    apiKey:\n      name: S\n      inject:\n        - {entry}"
        ))
    };
    for (entry, code) in [
        (
            "{domain: a.example.org, header: X-Key, format: 'Bearer'}",
            "credential-format",
        ),
        (
            "{domain: a.example.org, header: X-Key, format: '%s %s'}",
            "credential-format",
        ),
        (
            "{domain: a.example.org, header: X-Key, format: \"%s\\r\\nX: y\"}",
            "credential-format",
        ),
        (
            "{domain: a.example.org, header: \"X\\r\\nY\", format: '%s'}",
            "credential-header",
        ),
        (
            "{domain: a.example.org, header: Host, format: '%s'}",
            "credential-framing-header",
        ),
        ("{domain: a.example.org}", "kit-inject"),
        ("{domain: a.example.org, format: '%s'}", "kit-inject"),
        (
            "{domain: a.example.org, scheme: bearer, format: '%s'}",
            "kit-inject",
        ),
        ("{domain: a.example.org, scheme: digest}", "kit-inject"),
        ("{domain: a.example.org, scheme: basic}", "kit-inject"),
        (
            "{domain: a.example.org, scheme: bearer, username: u}",
            "kit-inject",
        ),
        (
            "{domain: a.example.org, scheme: basic, username: 'u:v'}",
            "credential-username",
        ),
        (
            "{domain: a.example.org, scheme: basic, username: u, header: X}",
            "kit-inject",
        ),
        ("{domain: 192.0.2.1, scheme: bearer}", "kit-credential"),
        ("{domain: '*', scheme: bearer}", "pattern-everything"),
    ] {
        let error = inject(entry).unwrap_err();
        assert_eq!(error.code(), code, "{entry}: {error}");
        assert!(error.to_string().contains("spec.yaml:9:11"), "{error}");
    }
    for (entry, meaning) in [
        (
            "{domain: a.example.org, scheme: bearer, header: X-Key}",
            "header x-key: Bearer %s to https://a.example.org:443",
        ),
        (
            "{domain: 'a.example.org:8443', header: X-Key, format: 'k %s'}",
            "header x-key: k %s to https://a.example.org:8443",
        ),
        (
            "{domain: a.example.org, username: u}",
            "basic authentication as \"u\" to https://a.example.org:443",
        ),
        (
            "{domain: a.example.org, scheme: basic, username: u}",
            "basic authentication as \"u\" to https://a.example.org:443",
        ),
    ] {
        let kit = inject(entry).unwrap();
        assert_eq!(kit.credentials[0].bindings[0].to_string(), meaning);
    }
}

#[test]
fn sources_of_version_1_are_read_in_order() {
    let kit = |source: &str| {
        with_v1(&format!(
            "network:\n  allowedDomains: [a.example.org]\n  serviceDomains: {{a.example.org: s}}\n  serviceAuth: {{s: {{headerName: X-Key, valueFormat: '%s'}}}}\ncredentials:\n  sources:\n    s: {source}"
        ))
    };
    let sources = |source: &str| {
        let kit = kit(source).unwrap();
        let own = &kit.credentials[0].sources;
        own.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let file = "file: {path: ~/.s.json, parser: 'json:auth.token'}";
    assert_eq!(
        sources(&format!("{{env: [A, B], {file}}}")),
        ["$A", "$B", "file ~/.s.json auth.token", "secret s"]
    );
    assert_eq!(
        sources(&format!("{{env: [A], {file}, priority: file-first}}")),
        ["file ~/.s.json auth.token", "$A", "secret s"]
    );
    for (source, code) in [
        (
            "{env: [A], file: {path: /x, parser: yaml}}",
            "kit-credential-source",
        ),
        (
            "{env: [A], file: {path: /x}, priority: random}",
            "kit-credential-source",
        ),
        ("{file: {path: x}}", "credential-file"),
        ("{file: {path: ~/../x}}", "credential-file"),
        ("{env: ['A B']}", "credential-env"),
    ] {
        assert_eq!(kit(source).unwrap_err().code(), code, "{source}");
    }
    let lonely = with_v1("network: {serviceDomains: {a.example.org: s}}").unwrap_err();
    assert_eq!(lonely.code(), "kit-credential");
}

#[test]
fn a_managed_variable_without_a_credential_has_the_usual_word() {
    let kit = with_v1("environment: {proxyManaged: [OTHER_TOKEN]}").unwrap();
    assert_eq!(kit.variables["OTHER_TOKEN"].value, "proxy-managed");
    let unused = with_v1("credentials: {sources: {s: {env: [A]}}}").unwrap();
    assert_eq!(
        codes(&unused, NoteKind::NoEffect),
        ["kit-unused-credential"]
    );
    assert_eq!(unused.credentials, []);
}

#[test]
fn reserved_variables_are_errors() {
    for name in [
        "SBX_X",
        "DASH_X",
        "DOCKER_HOST",
        "RINGFENCE",
        "RINGFENCE_POLICY",
    ] {
        let error = with(&format!("environment: {{variables: {{{name}: x}}}}")).unwrap_err();
        assert_eq!(error.code(), "kit-reserved-variable", "{name}");
    }
    assert!(with_v1("environment: {variables: {DOCKER_HOST: x}}").is_ok());
    assert!(with_v1("environment: {variables: {RINGFENCE: x}}").is_err());
    let kit = with("environment: {variables: {A: 1, B: true, C: x}}").unwrap();
    assert_eq!(kit.variables["A"].value, "1");
    assert!(with("environment: {variables: {A: 1.20}}").is_err());
    assert!(with("environment: {variables: {'A=B': x}}").is_err());
}

#[test]
fn what_a_kit_cannot_do_without_is_refused_and_the_rest_told() {
    let refused = |kit: Result<Kit, SourceError>| codes(&kit.unwrap(), NoteKind::Unsupported);
    let told = |kit: Result<Kit, SourceError>| codes(&kit.unwrap(), NoteKind::NoEffect);
    let sandbox = "schemaVersion: 2\nkind: sandbox\nname: k\nsandbox: {image: x}\n";
    assert_eq!(refused(read(sandbox)), ["kit-image"]);
    let agent = "schemaVersion: 1\nkind: agent\nname: k\nagent: {image: x, persistence: y}\n";
    assert_eq!(refused(read(agent)), ["kit-image"]);
    assert_eq!(
        refused(with("security: {privileged: true}")),
        ["kit-privileged"]
    );
    assert_eq!(
        refused(with("volumes: [{path: /var/lib/x, size: 10g}]")),
        ["kit-volume"]
    );
    assert_eq!(
        refused(with("setup: {files: [{path: /etc/x, content: y}]}")),
        ["kit-file-place"]
    );
    assert_eq!(
        refused(with("permissions: {network: {allow: [169.254.169.254]}}")),
        ["kit-metadata-address"]
    );
    for (lines, code) in [
        ("security: {privileged: false}", None),
        (
            "volumes: [{path: /tmp/x, type: tmpfs, size: 1m}]",
            Some("kit-volume"),
        ),
        ("ports: [{container: 80}]", Some("kit-ports")),
        ("requires: {agent: x}", Some("kit-agent")),
        ("agentInstructions: {content: x}", Some("kit-not-handed-on")),
        (
            "permissions: {network: {allow: ['localhost:80']}}",
            Some("kit-loopback"),
        ),
        ("setup: {install: [{command: x}]}", Some("kit-root")),
        (
            "setup: {startup: [{command: [x], user: root}]}",
            Some("kit-root"),
        ),
        ("setup: {startup: [{command: [x]}]}", None),
    ] {
        assert_eq!(told(with(lines)).first().copied(), code, "{lines}");
        assert_eq!(refused(with(lines)), [""; 0], "{lines}");
    }
    for block in ["sandbox: {image: x}", "extends: shell", "mixins: [a]"] {
        assert_eq!(with(block).unwrap_err().code(), "kit-block", "{block}");
    }
}

#[test]
fn g5_tokens_are_never_handed_in() {
    let oauth = |more: &str, required: bool| {
        with(&format!(
            "credentials:\n  - service: s\n    required: {required}\n    oauth:\n      tokenEndpoint: {{host: a.example.org, path: /t}}\n{more}"
        ))
    };
    let error = oauth("      passthrough: true", false).unwrap_err();
    assert_eq!(error.code(), "kit-passthrough");
    let kit = oauth("", true).unwrap();
    assert_eq!(codes(&kit, NoteKind::Unsupported), ["kit-oauth"]);
    let kit = oauth("", false).unwrap();
    assert_eq!(codes(&kit, NoteKind::NoEffect), ["kit-oauth"]);
    let key = "    apiKey: {name: S, inject: [{domain: a.example.org, scheme: bearer}]}";
    let kit = oauth(key, true).unwrap();
    assert_eq!(codes(&kit, NoteKind::Unsupported), [""; 0]);
    assert!(kit.credentials[0].required);
    let v1 = "oauth:\n  service: s\n  tokenEndpoint: {host: a.example.org, path: /t}\n  sentinels: {accessToken: a, refreshToken: b}\n";
    assert_eq!(
        codes(&with_v1(v1).unwrap(), NoteKind::NoEffect),
        ["kit-oauth"]
    );
    let handed = format!("{v1}  passthroughResponse: true\n");
    assert_eq!(with_v1(&handed).unwrap_err().code(), "kit-passthrough");
}

#[test]
fn arguments_are_replaced_in_values_and_add_nothing() {
    let text = "schemaVersion: \"2\"\nkind: mixin\nname: k\nargs:\n  host: {required: true}\n  late: {default: \"false\"}\npermissions:\n  network:\n    allow: [\"${{ kit.args.host }}\"]\nsetup:\n  startup:\n    - command: [echo, \"${{kit.args.host}}\"]\n      background: ${{ kit.args.late }}\n";
    let kit = given(text, &[("host", "a.example.org"), ("late", "true")]).unwrap();
    assert_eq!(kit.allow[0].text, "a.example.org");
    assert!(kit.startup[0].background);
    for injected in [
        "a.example.org\", \"b.example.org",
        "a.example.org\n    - b.example.org",
        "a.example.org]\nsecurity: {privileged: true}",
    ] {
        let error = given(text, &[("host", injected)]).unwrap_err();
        assert!(error.to_string().contains("spec.yaml:9:13"), "{error}");
    }
    assert!(given(text, &[("host", "a.example.org"), ("late", "\"true\"")]).is_err());
    assert_eq!(given(text, &[]).unwrap_err().code(), "kit-arg-missing");
    let key = text.replace("kind:", "\"${{ kit.args.host }}\": 1\nkind:");
    let error = given(&key, &[("host", "x")]).unwrap_err();
    assert_eq!(error.code(), "kit-reference");
    let old = given(V1, &[("host", "x")]).unwrap_err();
    assert_eq!(old.code(), "kit-arg-unknown");
}

#[test]
fn an_allow_that_the_kit_denies_itself_is_told() {
    let kit = with("permissions: {network: {allow: [a.example.org], deny: ['**.example.org']}}");
    let layer = kit.unwrap().layer();
    assert_eq!(layer.network.allow, None);
    assert_eq!(layer.notes[0].code, "kit-denied-allow");
    assert!(resolve(vec![layer], None).is_ok());
}

#[test]
fn commands_modes_and_sizes_are_checked() {
    for (lines, code) in [
        ("setup: {install: [{command: ''}]}", "kit-command"),
        ("setup: {install: [{command: \"a\\0b\"}]}", "kit-command"),
        ("setup: {startup: [{command: []}]}", "kit-command"),
        ("setup: {startup: [{command: ['']}]}", "kit-command"),
        (
            "setup: {startup: [{command: [a, \"b\\0\"]}]}",
            "kit-command",
        ),
        ("setup: {startup: [{command: a b}]}", "malformed-document"),
        ("setup: {install: [{command: [a]}]}", "malformed-document"),
        ("setup: {files: [{path: x, content: y}]}", "kit-path"),
        (
            "setup: {files: [{path: ~/x, content: y, mode: '4755'}]}",
            "kit-mode",
        ),
        (
            "setup: {files: [{path: ~/x, content: y, mode: rw}]}",
            "kit-mode",
        ),
        ("credentials: [{service: s}]", "kit-credential"),
    ] {
        let error = with(lines).unwrap_err();
        assert_eq!(error.code(), code, "{lines}: {error}");
    }
    let large = format!("#{}", "x".repeat(LARGEST_SPEC));
    assert_eq!(read(&large).unwrap_err().code(), "kit-too-large");
}
