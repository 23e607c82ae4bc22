//! `ringfence policy`: files are checked, decisions explained, rules shown.

use ringfence_testkit::{Folder, Outcome, Program};
use serde_json::Value;

use super::ringfence;

/// `ringfence policy WORDS…`, without the variables of whoever runs the tests.
fn policy(folder: &Folder, words: &[&str]) -> Outcome {
    command(folder, words).run()
}

fn command(folder: &Folder, words: &[&str]) -> Program {
    let variables = [
        "RINGFENCE_POLICY",
        "RINGFENCE_ALLOW",
        "RINGFENCE_DENY",
        "KAGENT_ALLOWED_DOMAINS",
        "KAGENT_DENIED_DOMAINS",
    ];
    let clean = |command: &mut std::process::Command| {
        for name in variables {
            command.env_remove(name);
        }
    };
    ringfence()
        .args(["policy"].iter().chain(words).copied())
        .folder(folder.path())
        .with(clean)
}

const ALLOWED: i32 = 0;
const REFUSED: i32 = 3;

/// The exit code of an explanation with some variables set.
fn explained_with(variables: &[(&str, &str)], words: &[&str]) -> i32 {
    let words: Vec<&str> = ["explain"].iter().chain(words).copied().collect();
    let folder = Folder::new();
    let program = command(&folder, &words);
    let program = variables
        .iter()
        .fold(program, |program, (name, value)| program.env(name, value));
    program.run().code()
}

/// The exit code of an explanation.
fn explained(words: &[&str]) -> i32 {
    explained_with(&[], words)
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// Settings of srt that are right.
const SETTINGS: &str = r#"{
  "network": {"allowedDomains": ["api.example.org"], "deniedDomains": []},
  "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}
}"#;

/// The same with fields that do nothing on Linux.
const SETTINGS_FOR_ELSEWHERE: &str = r#"{
  "network": {"allowedDomains": [], "deniedDomains": [], "allowUnixSockets": ["/x"], "allowLocalBinding": true},
  "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
  "allowPty": true,
  "madeUp": 1
}"#;

#[test]
fn check_says_ok() {
    let folder = Folder::new();
    folder.write(
        "a.yaml",
        "version: 1\nnetwork: {mode: allowlist, allow: [api.example.org]}\n",
    );
    folder.write("b.toml", "version = 1\n[resources]\ntime = \"10m\"\n");
    folder.write("c.json", SETTINGS);
    let outcome = policy(&folder, &["check", "a.yaml", "b.toml", "c.json"]).expect_code(0);
    assert_eq!(outcome.stdout, "a.yaml: ok\nb.toml: ok\nc.json: ok\n");
    assert_eq!(outcome.stderr, "");
}

#[test]
fn check_names_the_place_of_a_mistake() {
    let folder = Folder::new();
    folder.write("good.yaml", "version: 1\n");
    folder.write("bad.yaml", "version: 1\nnetwork:\n  allow: [\"a b\"]\n");
    let outcome = policy(&folder, &["check", "good.yaml", "bad.yaml"]).expect_code(1);
    assert_eq!(outcome.stdout, "good.yaml: ok\n");
    assert!(
        outcome.stderr.contains("ringfence: error["),
        "{}",
        outcome.stderr
    );
    assert!(
        outcome.stderr.contains("bad.yaml:3:11"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("  hint: "), "{}", outcome.stderr);
}

#[test]
fn check_finds_entries_that_can_never_match() {
    let folder = Folder::new();
    let text = "version: 1\nnetwork:\n  mode: allowlist\n  allow: [a.example.org]\n  deny: [\"**.example.org\"]\n";
    folder.write("policy.yaml", text);
    let outcome = policy(&folder, &["check", "policy.yaml"]).expect_code(1);
    assert!(
        outcome.stderr.contains("error[entry-never-matches]"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn check_notes_what_has_no_effect_here() {
    let folder = Folder::new();
    folder.write("settings.json", SETTINGS_FOR_ELSEWHERE);
    let outcome = policy(&folder, &["check", "settings.json"]).expect_code(0);
    for part in [
        "settings.json: ok",
        "note[srt-unix-sockets]",
        "note[srt-local-binding]",
        "note[srt-allow-pty]",
        "note[srt-unknown-key]",
        "madeUp",
    ] {
        assert!(
            outcome.stdout.contains(part),
            "no {part} in {}",
            outcome.stdout
        );
    }
}

#[test]
fn a_name_with_control_characters_does_not_reach_the_terminal() {
    let folder = Folder::new();
    let name = "a\u{1b}[31mb.json";
    folder.write(name, SETTINGS_FOR_ELSEWHERE);
    for words in [&["check", name][..], &["show", "--settings", name]] {
        let outcome = policy(&folder, words).expect_code(0);
        assert!(outcome.stdout.contains("note["), "{outcome:?}");
        assert!(!outcome.stdout.contains('\u{1b}'), "{outcome:?}");
    }
}

#[test]
fn check_refuses_settings_that_cannot_be_honoured() {
    let folder = Folder::new();
    let text = SETTINGS.replace(
        "\"deniedDomains\"",
        "\"httpProxyPort\": 3128, \"deniedDomains\"",
    );
    folder.write("settings.json", &text);
    let outcome = policy(&folder, &["check", "settings.json"]).expect_code(1);
    assert!(
        outcome.stderr.contains("error[srt-http-proxy-port]"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn check_prints_json() {
    let folder = Folder::new();
    folder.write("good.json", SETTINGS_FOR_ELSEWHERE);
    folder.write("bad.yaml", "version: 9\n");
    let words = ["check", "--json", "good.json", "bad.yaml", "missing.yaml"];
    let answer = json(&policy(&folder, &words).expect_code(1));
    assert_eq!(answer[0]["ok"], true);
    assert!(
        answer[0]["notes"]
            .as_array()
            .is_some_and(|notes| notes.len() == 4)
    );
    assert_eq!(answer[0]["notes"][0]["kind"], "no-effect");
    assert_eq!(answer[1]["error"]["code"], "unknown-version");
    assert!(answer[1]["error"]["hint"].is_string());
    assert_eq!(answer[2]["error"]["code"], "file-unreadable");
}

#[test]
fn check_reads_what_a_shell_substitutes() {
    let outcome = Program::new("bash")
        .args(["-c", "\"$RF\" policy check <(echo 'version: 1')"])
        .env("RF", super::terminal::binary())
        .folder(Folder::new().path())
        .run()
        .expect_code(0);
    assert!(outcome.stdout.ends_with(": ok\n"), "{}", outcome.stdout);
}

#[test]
fn check_needs_a_file() {
    let outcome = policy(&Folder::new(), &["check"]);
    assert_ne!(outcome.code(), 0);
    assert_ne!(outcome.stderr, "");
}

#[test]
fn explain_refuses_by_default_and_says_what_to_add() {
    let folder = Folder::new();
    let outcome = policy(&folder, &["explain", "api.example.org"]).expect_code(REFUSED);
    for part in ["refused", "not-in-allowlist", "--allow api.example.org:443"] {
        assert!(
            outcome.stdout.contains(part),
            "no {part} in {}",
            outcome.stdout
        );
    }
    assert!(!outcome.stdout.contains("()"), "{}", outcome.stdout);
}

#[test]
fn the_suggested_flag_allows_it() {
    for target in [
        "api.example.org",
        "api.example.org:8443",
        "http://api.example.org/path",
        "10.1.2.3:5432",
        "[fd00::1]:5432",
    ] {
        let folder = Folder::new();
        let answer = policy(&folder, &["explain", target, "--json"]).expect_code(REFUSED);
        let answer = json(&answer);
        let flag = suggestion(&answer, "flag").expect("a flag");
        let words: Vec<&str> = flag
            .split(' ')
            .map(|word| word.trim_matches('\''))
            .collect();
        let words: Vec<&str> = ["explain", target].into_iter().chain(words).collect();
        policy(&folder, &words).expect_code(ALLOWED);
    }
}

#[test]
fn the_suggested_line_of_a_policy_allows_it() {
    let folder = Folder::new();
    let answer = json(&policy(&folder, &["explain", "api.example.org", "--json"]));
    let line = suggestion(&answer, "yaml").expect("a line");
    folder.write(
        "p.yaml",
        &format!("version: 1\nnetwork:\n  mode: allowlist\n  allow:\n  {line}\n"),
    );
    policy(
        &folder,
        &["explain", "api.example.org", "--policy", "p.yaml"],
    )
    .expect_code(ALLOWED);
    let line = suggestion(&answer, "toml").expect("a line");
    folder.write(
        "p.toml",
        &format!("version = 1\n[network]\nmode = \"allowlist\"\nallow = [{line}]\n"),
    );
    policy(
        &folder,
        &["explain", "api.example.org", "--policy", "p.toml"],
    )
    .expect_code(ALLOWED);
    let line = suggestion(&answer, "srt").expect("a line");
    folder.write("s.json", &SETTINGS.replace("\"api.example.org\"", &line));
    policy(
        &folder,
        &["explain", "api.example.org", "--settings", "s.json"],
    )
    .expect_code(ALLOWED);
}

fn suggestion(answer: &Value, format: &str) -> Option<String> {
    let all = answer["suggestions"].as_array()?;
    let found = all
        .iter()
        .find(|suggestion| suggestion["format"] == format)?;
    found["line"].as_str().map(str::to_owned)
}

#[test]
fn explain_names_the_rule_and_where_it_stands() {
    let folder = Folder::new();
    folder.write(
        "p.yaml",
        "version: 1\nnetwork:\n  mode: allowlist\n  allow:\n  - \"*.example.org\"\n",
    );
    let words = ["explain", "deep.api.example.org", "--policy", "p.yaml"];
    let outcome = policy(&folder, &words).expect_code(ALLOWED);
    for part in ["allowed", "*.example.org", "p.yaml:5"] {
        assert!(
            outcome.stdout.contains(part),
            "no {part} in {}",
            outcome.stdout
        );
    }
    policy(&folder, &["explain", "example.org", "--policy", "p.yaml"]).expect_code(REFUSED);
    policy(
        &folder,
        &["explain", "a.example.org:22", "--policy", "p.yaml"],
    )
    .expect_code(REFUSED);
}

#[test]
fn explain_tells_which_credential_a_request_gets() {
    let text = "version: 1\nnetwork: {allow: [api.example.org, b.example.org]}\ncredentials:\n\
                - {service: forge, env: FORGE_TOKEN, hosts: [api.example.org], paths: [\"/v1/**\"], bearer: true}\n";
    let (here, elsewhere) = (Folder::new(), Folder::new());
    let asked = |files: &Folder, target: &str| {
        let file = files.path().join("p.yaml").display().to_string();
        files.write("p.yaml", text);
        let words = ["explain", target, "--method", "POST", "--policy", &file];
        policy(&here, &words).expect_code(ALLOWED).stdout
    };
    let bound = asked(&elsewhere, "https://api.example.org/v1/items");
    for part in [
        "looked into, also inside TLS",
        "credential",
        "forge",
        "p.yaml:4",
    ] {
        assert!(bound.contains(part), "no {part} in {bound}");
    }
    let beside = asked(&elsewhere, "https://api.example.org/v2/items");
    assert!(!beside.contains("forge"), "{beside}");
    let other = asked(&elsewhere, "https://b.example.org/v1/items");
    assert!(other.contains("not looked into"), "{other}");
    let unapproved = asked(&here, "https://api.example.org/v1/items");
    assert!(unapproved.contains("withheld  forge"), "{unapproved}");
}

#[test]
fn explain_prints_json() {
    let folder = Folder::new();
    let words = [
        "explain",
        "API.example.org.",
        "--allow",
        "api.example.org",
        "--json",
    ];
    let answer = json(&policy(&folder, &words).expect_code(ALLOWED));
    assert_eq!(answer["request"]["host"], "api.example.org");
    assert_eq!(answer["request"]["port"], 443);
    assert_eq!(answer["decision"]["verdict"], "allow");
    assert_eq!(answer["decision"]["reason"], "allowed-by-rule");
    assert_eq!(answer["decision"]["source"]["name"], "--allow");
    assert_eq!(answer["suggestions"], Value::Array(Vec::new()));
}

#[test]
fn explain_judges_methods_and_paths() {
    let folder = Folder::new();
    let text = "version: 1\nnetwork:\n  mode: allowlist\n  allow:\n  - {host: api.example.org, methods: [GET], paths: [\"/v1/**\"]}\n";
    folder.write("p.yaml", text);
    let explained = |words: &[&str]| {
        let words: Vec<&str> = ["explain", "--policy", "p.yaml"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        policy(&folder, &words).code()
    };
    assert_eq!(explained(&["https://api.example.org/v1/items"]), ALLOWED);
    assert_eq!(explained(&["https://api.example.org/v2/items"]), REFUSED);
    assert_eq!(explained(&["https://api.example.org/v1/../v2"]), REFUSED);
    assert_eq!(
        explained(&["https://api.example.org/v1/a", "--method", "POST"]),
        REFUSED
    );
    assert_eq!(
        explained(&["api.example.org", "--path", "/v1/a", "--method", "GET"]),
        ALLOWED
    );
}

#[test]
fn explain_judges_the_address_behind_a_name() {
    let allow = ["a.example.org", "--allow", "a.example.org", "--address"];
    let at = |address: &str| explained(&[&allow[..], &[address]].concat());
    assert_eq!(at("93.184.216.34"), ALLOWED);
    for address in [
        "10.0.0.7",
        "127.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:10.0.0.7",
        "0.0.0.0",
    ] {
        assert_eq!(at(address), REFUSED, "{address}");
    }
}

#[test]
fn explain_refuses_nonsense() {
    for target in [
        "",
        "a b",
        "ftp://a.example.org",
        "a.example.org:0",
        "a.example.org:080",
        "me@a.example.org",
        "bücher.example.org",
        "http://a.example.org/ä",
    ] {
        let outcome = policy(&Folder::new(), &["explain", target]);
        assert!(![ALLOWED, REFUSED].contains(&outcome.code()), "{target:?}");
        assert!(
            outcome.stderr.contains("ringfence: error[bad-target]"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_deny_wins_over_an_allow_of_any_layer() {
    let folder = Folder::new();
    folder.write(
        "deny.yaml",
        "version: 1\nnetwork: {deny: [bad.example.org]}\n",
    );
    folder.write(
        "allow.yaml",
        "version: 1\nnetwork: {mode: allowlist, allow: [\"*.example.org\"]}\n",
    );
    let explained = |words: &[&str]| {
        let words: Vec<&str> = ["explain"].iter().chain(words).copied().collect();
        policy(&folder, &words).code()
    };
    let allow = ["--allow", "*.example.org"];
    for host in ["bad.example.org", "BAD.example.org", "bad.example.org."] {
        let words = [&[host][..], &allow, &["--policy", "deny.yaml"]].concat();
        assert_eq!(explained(&words), REFUSED, "{host}");
    }
    let words = [
        &["good.example.org"][..],
        &allow,
        &["--policy", "deny.yaml"],
    ]
    .concat();
    assert_eq!(explained(&words), ALLOWED);
    let words = [
        "bad.example.org",
        "--policy",
        "allow.yaml",
        "--deny",
        "bad.example.org",
    ];
    assert_eq!(explained(&words), REFUSED);
    let words = ["a.example.org", "--policy", "allow.yaml", "--no-network"];
    assert_eq!(explained(&words), REFUSED);
}

#[test]
fn a_ceiling_only_narrows() {
    let folder = Folder::new();
    folder.write(
        "ceiling.yaml",
        "version: 1\nnetwork: {mode: allowlist, allow: [\"*.example.org\"]}\n",
    );
    let explained = |host: &str, more: &[&str]| {
        let words = [&["explain", host, "--ceiling", "ceiling.yaml"], more].concat();
        policy(&folder, &words)
    };
    explained("a.example.org", &["--allow", "a.example.org"]).expect_code(ALLOWED);
    explained("a.example.org", &[]).expect_code(REFUSED);
    let outside = explained("a.test", &["--allow", "a.test"]).expect_code(REFUSED);
    assert!(outside.stdout.contains("ceiling"), "{}", outside.stdout);
    assert!(
        !outside.stdout.contains("to allow"),
        "no line helps: {}",
        outside.stdout
    );
}

#[test]
fn a_ceiling_that_would_widen_is_an_error() {
    for key in [
        "filesystem: {write: {unprotect: [.bashrc]}}",
        "requests: allow",
        "environment: {set: {A: b}}",
    ] {
        let folder = Folder::new();
        folder.write("ceiling.yaml", &format!("version: 1\n{key}\n"));
        let outcome = policy(&folder, &["show", "--ceiling", "ceiling.yaml"]).expect_code(1);
        let is_named = outcome.stderr.contains("error[ceiling-widens]");
        assert!(is_named, "{key}: {}", outcome.stderr);
    }
}

#[test]
fn our_variables_count() {
    let allow = ("RINGFENCE_ALLOW", "a.example.org, b.example.org:8443");
    // A list by itself does not open what the profile closes, or it does:
    // either way it adds to an allow list.
    let list = ["--allow", "c.example.org"];
    let with = |variables: &[(&str, &str)], host: &str| {
        explained_with(variables, &[&[host][..], &list].concat())
    };
    assert_eq!(with(&[allow], "a.example.org"), ALLOWED);
    assert_eq!(with(&[allow], "b.example.org:8443"), ALLOWED);
    assert_eq!(with(&[allow], "b.example.org"), REFUSED);
    assert_eq!(with(&[], "a.example.org"), REFUSED);
    let deny = ("RINGFENCE_DENY", "a.example.org,c.example.org");
    assert_eq!(with(&[allow, deny], "a.example.org"), REFUSED);
    assert_eq!(with(&[deny], "c.example.org"), REFUSED);
}

#[test]
fn a_policy_can_be_named_by_a_variable() {
    let folder = Folder::new();
    let path = folder.write(
        "p.yaml",
        "version: 1\nnetwork: {mode: allowlist, allow: [a.example.org]}\n",
    );
    let named = [("RINGFENCE_POLICY", path.to_str().expect("a plain path"))];
    assert_eq!(explained_with(&named, &["a.example.org"]), ALLOWED);
    assert_eq!(explained_with(&named, &["b.example.org"]), REFUSED);
    assert_eq!(
        explained_with(&[("RINGFENCE_POLICY", "/no/such/file")], &["a.example.org"]),
        1
    );
}

#[test]
fn the_variables_of_kagent_count() {
    let allowed = ("KAGENT_ALLOWED_DOMAINS", "api.example.org,*.example.com");
    for (target, code) in [
        ("api.example.org", ALLOWED),
        ("api.example.org:8443", ALLOWED),
        ("deep.api.example.com", ALLOWED),
        ("other.example.org", REFUSED),
    ] {
        assert_eq!(explained_with(&[allowed], &[target]), code, "{target}");
    }
    let denied = ("KAGENT_DENIED_DOMAINS", "bad.example.com");
    assert_eq!(
        explained_with(&[allowed, denied], &["bad.example.com"]),
        REFUSED
    );
    assert_eq!(
        explained_with(&[allowed, denied], &["good.example.com"]),
        ALLOWED
    );
    let none = [("KAGENT_ALLOWED_DOMAINS", "")];
    assert_eq!(explained_with(&none, &["api.example.org"]), REFUSED);
}

#[test]
fn a_wrong_variable_is_an_error_that_names_it() {
    let folder = Folder::new();
    let outcome = command(&folder, &["explain", "a.example.org"])
        .env("RINGFENCE_ALLOW", "a b")
        .run()
        .expect_code(1);
    assert!(
        outcome.stderr.contains("RINGFENCE_ALLOW"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn show_tells_where_each_rule_comes_from() {
    let folder = Folder::new();
    folder.write(
        "p.yaml",
        "version: 1\nfilesystem:\n  read:\n    deny: [secret]\nresources: {time: 10m}\n",
    );
    let words = [
        "show",
        "--policy",
        "p.yaml",
        "--allow",
        "api.example.org",
        "--env",
        "A=b",
    ];
    let outcome = policy(&folder, &words).expect_code(0);
    let row = |parts: &[&str]| {
        let found = outcome
            .stdout
            .lines()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(found, "no row with {parts:?} in\n{}", outcome.stdout);
    };
    row(&["network.allow", "api.example.org", "flag --allow"]);
    row(&["filesystem.read.deny", "/secret", "policy p.yaml:4"]);
    row(&["resources.time", "10m", "policy p.yaml:5"]);
    row(&["environment.set", "A=b", "flag --env"]);
    row(&["filesystem.protect", ".bashrc", "built-in"]);
    row(&[
        "filesystem.write.allow",
        folder.path().to_str().expect("a plain path"),
        "profile default",
    ]);
}

#[test]
fn show_prints_json() {
    let folder = Folder::new();
    let words = ["show", "--allow", "api.example.org", "--json"];
    let outcome = policy(&folder, &words).expect_code(0);
    assert!(json(&outcome).is_object());
    assert!(outcome.stdout.contains("\"--allow\""), "{}", outcome.stdout);
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let folder = Folder::new();
    for words in [
        &["show", "--profile", "none", "--json"][..],
        &["explain", "a.example.org", "--profile", "none", "--json"],
    ] {
        let answer = json(&policy(&folder, words).expect_code(1));
        assert_eq!(answer["error"]["code"], "unknown-profile");
        assert!(answer["error"]["hint"].is_string());
    }
}

#[test]
fn every_profile_can_be_shown() {
    for profile in ["default", "permissive", "moderate", "restrictive"] {
        policy(&Folder::new(), &["show", "--profile", profile]).expect_code(0);
    }
}

#[test]
fn schemas_are_json_schemas() {
    for format in ["policy", "srt-settings", "report"] {
        let schema = json(&policy(&Folder::new(), &["schema", format]).expect_code(0));
        let dialect = schema["$schema"].as_str().unwrap_or_default();
        assert!(
            dialect.starts_with("https://json-schema.org/"),
            "{format}: {dialect:?}"
        );
        assert!(schema["properties"].is_object(), "{format}");
    }
}

#[test]
fn the_hint_about_a_schema_names_one_that_exists() {
    let folder = Folder::new();
    folder.write("s.json", &SETTINGS.replace("[\".\"]", "7"));
    let outcome = policy(&folder, &["check", "s.json"]).expect_code(1);
    let (_, rest) = outcome
        .stderr
        .split_once("`ringfence policy schema ")
        .expect("a hint");
    let (format, _) = rest.split_once('`').expect("a closing quote");
    policy(&folder, &["schema", format]).expect_code(0);
}
