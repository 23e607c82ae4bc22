//! Presets: listed, shown, named for a run, and suggested when one would have
//! helped. Names of real hosts are made at run time, from what the program
//! itself prints, and lead into the small internet alone.

use ringfence_testkit::{Folder, Outcome};
use serde_json::Value;

use super::internet::Online;
use super::ringfence;

const ALLOWED: i32 = 0;
const REFUSED: i32 = 3;

fn words(folder: &Folder, words: &[&str]) -> Outcome {
    ringfence().args(words).folder(folder.path()).run()
}

/// What `ringfence WORDS --json` prints.
fn json(list: &[&str]) -> Value {
    let all: Vec<&str> = list.iter().copied().chain(["--json"]).collect();
    let outcome = words(&Folder::new(), &all).expect_code(0);
    serde_json::from_str(&outcome.stdout).expect("JSON")
}

/// The names that a preset allows, without their wildcards.
fn hosts(preset: &str) -> Vec<String> {
    let shown = json(&["preset", "show", preset]);
    let hosts = shown["hosts"].as_array().expect("hosts");
    let name = |own: &Value| own["host"].as_str().expect("a host").to_owned();
    let plain = |name: String| name.trim_start_matches("**.").to_owned();
    hosts.iter().map(name).map(plain).collect()
}

/// A host in the small internet that knows the names of `presets`.
fn online(presets: &[&str]) -> Online {
    let online = Online::new();
    for name in presets.iter().flat_map(|preset| hosts(preset)) {
        online.net.zone().set(&name, "45.0.0.10");
    }
    online
}

/// What the block at the end says to add.
fn to_allow(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    lines
        .filter_map(|line| line.strip_prefix("  to allow: "))
        .collect()
}

fn get(names: &[String]) -> String {
    let urls: Vec<String> = names.iter().map(|name| format!("http://{name}/")).collect();
    format!("curl -sSf -m 10 {}", urls.join(" "))
}

#[test]
fn presets_are_listed_and_each_is_shown() {
    let listed = json(&["preset", "list"]);
    let listed = listed.as_array().unwrap();
    let names: Vec<&str> = listed
        .iter()
        .map(|own| own["name"].as_str().unwrap())
        .collect();
    for name in [
        "node",
        "python",
        "rust",
        "go",
        "java",
        "ruby",
        "php",
        "dotnet",
        "apt",
        "git-hosting",
        "claude",
        "codex",
        "gemini",
        "opencode",
        "aider",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    let text = words(&Folder::new(), &["preset", "list"])
        .expect_code(0)
        .stdout;
    assert_eq!(text.lines().count(), names.len() + 1);
    for own in listed {
        let name = own["name"].as_str().unwrap();
        assert_eq!(*own, json(&["preset", "show", name]));
        assert!(
            text.contains(own["description"].as_str().unwrap()),
            "{name}"
        );
    }
}

#[test]
fn a_preset_is_shown_whole() {
    let shown = json(&["preset", "show", "rust"]);
    let text = words(&Folder::new(), &["preset", "show", "rust"])
        .expect_code(0)
        .stdout;
    for own in shown["hosts"].as_array().unwrap() {
        let ports = own["ports"].as_str().unwrap();
        assert_eq!(ports, "80,443");
        let line = format!("{}:{ports}", own["host"].as_str().unwrap());
        assert!(text.contains(&line), "{line}: {text}");
    }
    for line in [
        "pass         RUST_LOG",
        "home         ~/.cargo/registry",
        "detected by  Cargo.toml",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn a_preset_that_does_not_exist_is_an_error_with_the_nearest() {
    let folder = Folder::new();
    for (list, code) in [
        (&["preset", "show", "nodejs"][..], 1),
        (&["policy", "show", "--preset", "nodejs"], 1),
        (&["run", "--preset", "nodejs", "--", "touch", "made"], 125),
    ] {
        let outcome = words(&folder, list).expect_code(code);
        for part in [
            "error[unknown-preset]",
            "did you mean node?",
            "ringfence preset list",
        ] {
            assert!(
                outcome.stderr.contains(part),
                "{list:?}: {}",
                outcome.stderr
            );
        }
    }
    assert!(!folder.has("made"));
    let outcome = words(&folder, &["preset", "show", "nodejs", "--json"]).expect_code(1);
    let error: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(error["error"]["code"], "unknown-preset");
    folder.write("p.yaml", "version: 1\npresets:\n  - rsut\n");
    let outcome = words(&folder, &["policy", "check", "p.yaml"]).expect_code(1);
    assert!(outcome.stderr.contains("p.yaml:3:5"), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("did you mean rust?"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn completions_and_help_know_presets() {
    let folder = Folder::new();
    let shown = words(&folder, &["completions", "bash"])
        .expect_code(0)
        .stdout;
    assert!(shown.contains("git-hosting"));
    let help = words(&folder, &["run", "--help"]).expect_code(0).stdout;
    assert!(help.contains("--preset <NAME>") && !help.contains("git-hosting, "));
}

#[test]
fn every_rule_of_a_preset_is_explained_by_it() {
    let folder = Folder::new();
    for name in hosts("python") {
        let list = ["policy", "explain", &name, "--preset", "python"];
        let outcome = words(&folder, &list).expect_code(ALLOWED);
        assert!(
            outcome.stdout.contains("preset python"),
            "{}",
            outcome.stdout
        );
        let outcome = words(&folder, &["policy", "explain", &name]).expect_code(REFUSED);
        let line = "to allow  --preset python";
        assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    }
    let shown = words(&folder, &["policy", "show", "--preset", "python"])
        .expect_code(0)
        .stdout;
    let has = |section: &str, origin: &str| {
        let mut lines = shown.lines();
        lines.any(|line| line.starts_with(section) && line.ends_with(origin))
    };
    assert!(has("presets", "flag --preset"), "{shown}");
    assert!(has("network.allow", "preset python"), "{shown}");
    assert!(has("environment.pass", "preset python"), "{shown}");
    assert!(has("environment.set", "preset python"), "{shown}");
}

#[test]
fn g3_denies_and_ceilings_hold_against_presets() {
    let folder = Folder::new();
    let names = hosts("rust");
    let explain = |name: &str, flags: &[&str]| {
        let list = [&["policy", "explain", name, "--preset", "rust"], flags].concat();
        words(&folder, &list).code()
    };
    assert_eq!(explain(&names[0], &["--deny", &names[0]]), REFUSED);
    assert_eq!(explain(&names[1], &["--deny", &names[0]]), ALLOWED);
    assert_eq!(explain(&names[0], &["--no-network"]), REFUSED);
    let ceiling = format!("version: 1\nnetwork: {{allow: [\"{}\"]}}\n", names[0]);
    folder.write("ceiling.yaml", &ceiling);
    assert_eq!(explain(&names[0], &["--ceiling", "ceiling.yaml"]), ALLOWED);
    assert_eq!(explain(&names[1], &["--ceiling", "ceiling.yaml"]), REFUSED);
    folder.write("ceiling.yaml", "version: 1\npresets: [rust]\n");
    assert_eq!(explain(&names[1], &["--ceiling", "ceiling.yaml"]), ALLOWED);
    let beyond = ["--allow", "api.example.org", "--ceiling", "ceiling.yaml"];
    assert_eq!(explain("api.example.org", &beyond), REFUSED);
}

#[test]
fn presets_of_a_trusted_folder_count_and_are_shown_before() {
    let folder = Folder::new();
    let state = Folder::new();
    let run = |list: &[&str]| {
        let program = ringfence().args(list.iter().copied()).folder(folder.path());
        program.env("XDG_STATE_HOME", state.path()).run()
    };
    folder.write("ringfence.toml", "version = 1\npresets = [\"rust\"]\n");
    let name = &hosts("rust")[0];
    run(&["policy", "explain", name]).expect_code(REFUSED);
    let asked = run(&["trust", ".", "--dry-run"]);
    for part in ["presets", "network.allow", name.as_str()] {
        assert!(asked.stdout.contains(part), "{part}: {asked:?}");
    }
    run(&["trust", "."]).expect_code(0);
    let outcome = run(&["policy", "explain", name]).expect_code(ALLOWED);
    assert!(outcome.stdout.contains("preset rust"), "{}", outcome.stdout);
}

#[test]
fn a_run_reaches_what_its_presets_allow_and_nothing_else() {
    let online = online(&["rust", "ruby"]);
    let flags = ["--preset", "rust", "--preset", "ruby"];
    for preset in ["rust", "ruby"] {
        let script = get(&hosts(preset));
        online.inside_with(&flags, &script).expect_code(0);
    }
    online.refuses(&flags, "curl -sSf -m 5 http://web.example.org/");
    let log = online.ringfence().args(["policy", "log", "--json"]).run();
    for part in [hosts("rust")[0].as_str(), "preset rust", "preset ruby"] {
        assert!(log.stdout.contains(part), "{part}: {}", log.stdout);
    }
}

#[test]
fn variables_of_a_preset_are_inside_and_give_way_to_flags() {
    let folder = Folder::new();
    let script = "echo $RUST_LOG $DOTNET_NOLOGO";
    let run = |flags: &[&str]| {
        let list = [&["run"], flags, &["--", "sh", "-c", script]].concat();
        let program = ringfence().args(list).folder(folder.path());
        program.env("RUST_LOG", "debug").run().expect_code(0).stdout
    };
    assert_eq!(run(&[]), "\n");
    assert_eq!(
        run(&["--preset", "rust", "--preset", "dotnet"]),
        "debug 1\n"
    );
    assert_eq!(
        run(&["--preset", "dotnet", "--env", "DOTNET_NOLOGO=no"]),
        "no\n"
    );
}

#[test]
fn the_block_names_the_preset_in_place_of_its_hosts() {
    let online = online(&["rust"]);
    let names = hosts("rust");
    let flags = ["--allow", "web.example.org"];
    let outcome = online.inside_with(&flags, &format!("{}; true", get(&names)));
    assert_eq!(to_allow(&outcome), ["--preset rust"], "{}", outcome.stderr);
    for name in &names {
        assert!(outcome.stderr.contains(name.as_str()), "{}", outcome.stderr);
    }
    // What is said can be done.
    let flags = ["--preset", "rust"];
    let outcome = online.inside_with(&flags, &get(&names)).expect_code(0);
    assert_eq!(to_allow(&outcome).len(), 0);
}

#[test]
fn a_single_host_is_offered_beside_its_preset_and_others_stay() {
    let online = online(&["rust"]);
    let name = &hosts("rust")[0];
    let script = format!("curl -s http://{name}/; curl -s http://other.test/; true");
    let outcome = online.inside_with(&["--allow", "web.example.org"], &script);
    let mut flags = [name.as_str(), "other.test"].map(|name| format!("--allow {name}:80"));
    flags.sort();
    // In one piece, and without the preset, which opens more.
    assert_eq!(to_allow(&outcome), [flags.join(" ")]);
    let instead = "\n  or instead: --preset rust\n";
    assert!(outcome.stderr.contains(instead), "{}", outcome.stderr);
    // A deny is not lifted by a preset, so none is offered.
    let flags = ["--allow", "web.example.org", "--deny", name];
    let outcome = online.inside_with(&flags, &format!("curl -s http://{name}/; true"));
    assert_eq!(to_allow(&outcome).len(), 0, "{}", outcome.stderr);
}

#[test]
fn the_kind_of_the_project_decides_which_preset_is_named() {
    let online = online(&["node", "bun"]);
    let bun = hosts("bun");
    let shared = hosts("node").into_iter().find(|name| bun.contains(name));
    let shared = shared.expect("a host that two presets allow");
    let flags = ["--allow", "web.example.org"];
    let script = format!("curl -s http://{shared}/; true");
    for (file, preset) in [
        ("bun.lock", "bun"),
        ("package.json", "node"),
        ("deno.json", "deno"),
    ] {
        let path = online.arena.folder.path().join(file);
        std::fs::write(&path, "").unwrap();
        let outcome = online.inside_with(&flags, &script);
        let wanted = format!("  or instead: --preset {preset}");
        let mut lines = outcome.stderr.lines();
        let named = lines.find(|line| line.contains("--preset"));
        assert_eq!(named, Some(wanted.as_str()), "{}", outcome.stderr);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_quiet_run_suggests_nothing() {
    let online = online(&["rust"]);
    let flags = ["--quiet", "--allow", "web.example.org"];
    let script = format!("{} 2> /dev/null; true", get(&hosts("rust")));
    assert_eq!(online.inside_with(&flags, &script).stderr, "");
}
