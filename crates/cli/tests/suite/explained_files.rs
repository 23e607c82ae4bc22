//! `ringfence policy explain FILE` against what really happens inside.

use ringfence_testkit::{Folder, Outcome, Program, is_root, sh};
use serde_json::Value;

use super::ringfence;

const SECRET: &str = "s3cr3t-of-the-home";

/// A home, a project with a repository, and a place elsewhere.
struct Place {
    home: Folder,
    project: Folder,
    elsewhere: Folder,
    state: Folder,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            home: Folder::durable(),
            project: Folder::durable(),
            elsewhere: Folder::durable(),
            state: Folder::new(),
        };
        for name in [".ssh/id", ".config/gh/hosts.yml", ".netrc"] {
            place.home.write(name, SECRET);
        }
        place.home.write(".config/tool/settings", "old");
        place.home.write(
            ".npmrc",
            "a=1\n//r.example.org/:_authToken=s3cr3t-of-the-home\n",
        );
        place.project.write("src/main.c", "old");
        place.project.write(".vscode/settings.json", "{}");
        place.project.write("denied/file", "old");
        place.elsewhere.write("file", "old");
        sh(
            "git init -q . && ln -s src/main.c link && mkdir idea && touch idea/x && ln -s idea .idea && mkdir -p node_modules/a",
            place.project.path(),
        )
        .expect_code(0);
        if is_root() {
            // Root's own are not the sandbox's to reach.
            sh("chmod 755 .", place.elsewhere.path()).expect_code(0);
        }
        place
    }

    fn ringfence(&self, words: &[&str]) -> Program {
        ringfence()
            .args(words.iter().copied())
            .env("HOME", self.home.path())
            .env("XDG_STATE_HOME", self.state.path())
            .folder(&self.project)
    }

    fn explained(&self, flags: &[&str], path: &str) -> Value {
        let words = ["policy", "explain", "--json", "--file", path];
        let outcome = self.ringfence(&[&words, flags].concat()).run();
        serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|_| panic!("{path}: {}{}", outcome.stdout, outcome.stderr))
    }

    fn inside(&self, flags: &[&str], script: &str) -> Outcome {
        let command = ["--", "sh", "-c", script];
        self.ringfence(&[&["run", "--quiet"], flags, &command].concat())
            .run()
    }

    /// The paths of the table, with what is meant by `H`, `P` and `E`.
    fn path(&self, short: &str) -> String {
        let root = |folder: &Folder| folder.path().canonicalize().expect("a path");
        let (name, rest) = short.split_once('/').unwrap_or((short, ""));
        let root = match name {
            "H" => root(&self.home),
            "P" => root(&self.project),
            "E" => root(&self.elsewhere),
            _ => return short.to_owned(),
        };
        let path = if rest.is_empty() {
            root
        } else {
            root.join(rest)
        };
        path.display().to_string()
    }

    /// Whether it can be read, and whether it can be written or made, inside.
    fn tried(&self, flags: &[&str], path: &str) -> (bool, bool) {
        // What is not there cannot be read, but neither is it kept from anybody.
        let script = format!(
            "p='{path}'; if [ -d \"$p\" ]; then ls \"$p/\" >/dev/null; r=$?; (: > \"$p/.try\"); w=$?; rm -f \"$p/.try\"; \
             else cat \"$p\" >/dev/null; r=$?; d=$(dirname \"$p\"); mkdir -p \"$d\"; \
             if [ -e \"$p\" ]; then (: >> \"$p\"); w=$?; else (: > \"$p\"); w=$?; rm -f \"$p\"; fi; fi 2>/dev/null; echo $r $w"
        );
        let outcome = self.inside(flags, &script);
        let numbers: Vec<bool> = outcome
            .stdout
            .split_whitespace()
            .map(|number| number == "0")
            .collect();
        assert_eq!(numbers.len(), 2, "{path}: {}", outcome.stderr);
        (numbers[0], numbers[1])
    }
}

/// Path, what it is said to be, and why.
const TABLE: [(&str, &str, &str); 24] = [
    ("P/src/main.c", "writable", "writable"),
    ("P/src", "writable", "writable"),
    ("P/new/.bashrc", "writable", "writable"),
    ("P/node_modules/a/.vscode", "writable", "writable"),
    ("P/.vscode/settings.json", "protected", "protected-name"),
    ("P/.VSCode", "protected", "protected-name"),
    ("P/src/.bashrc", "protected", "protected-name"),
    ("P/.claude/commands", "protected", "protected-name"),
    ("P/.git/config", "protected", "git-configuration"),
    ("P/.git/hooks/pre-commit", "protected", "git-control"),
    ("P/.git/commondir", "protected", "git-control"),
    ("P/denied/file", "protected", "denied"),
    ("P/idea/x", "protected", "led-to"),
    ("E/file", "read-only", "host-view"),
    ("/usr/bin/env", "read-only", "host-view"),
    ("/etc/hosts", "replaced", "made-for-sandbox"),
    ("/tmp/of-the-sandbox", "private", "private-folder"),
    ("/dev/shm/of-the-sandbox", "private", "sandbox-own"),
    ("/proc/version", "read-only", "sandbox-own"),
    ("H/.ssh/id", "hidden", "hidden-in-home"),
    ("H/.netrc", "hidden", "hidden-in-home"),
    ("H/.npmrc", "masked", "settings-file"),
    ("H/.config/tool/settings", "private", "home-layer"),
    ("H/made", "private", "home-layer"),
];

#[test]
fn g4_what_is_explained_is_what_happens() {
    let place = Place::new();
    let policy = place.elsewhere.write(
        "policy.yaml",
        "version: 1\nfilesystem: {write: {deny: [denied]}}\n",
    );
    let flags = ["--policy", policy.to_str().unwrap()];
    for (short, access, reason) in TABLE {
        let path = place.path(short);
        let said = place.explained(&flags, &path);
        assert_eq!(
            (&said["access"], &said["reason"]),
            (&access.into(), &reason.into()),
            "{said:#}"
        );
        let (read, write) = place.tried(&flags, &path);
        assert_eq!(said["write"], write, "{short}: {said:#}");
        // Nothing that is missing can be read.
        let is_missing = said["exists"] == false;
        assert!(
            said["read"] == read || (is_missing && !read),
            "{short}: {said:#}"
        );
    }
    let masked = place.inside(&flags, "cat ~/.npmrc").expect_code(0).stdout;
    assert!(
        masked.contains("a=1") && !masked.contains(SECRET),
        "{masked}"
    );
}

/// A deny, and paths with whether they can be written.
const DENIES: [(&str, &[(&str, bool)]); 9] = [
    (
        "**/secrets/**",
        &[
            ("P/a/secrets/x", false),
            ("P/secrets/new", false),
            ("P/a/other", true),
        ],
    ),
    (
        "**/secrets",
        &[
            ("P/a/secrets/x", false),
            ("P/a/b/secrets", false),
            ("P/a/secretsx", true),
        ],
    ),
    (
        "*/secrets",
        &[
            ("P/a/secrets/x", false),
            ("P/a/b/secrets", true),
            ("P/secrets/new", true),
        ],
    ),
    (
        "**/secrets/*",
        &[("P/a/secrets/x", false), ("P/a/secrets/y/z", false)],
    ),
    (
        "*.d/**",
        &[
            ("P/conf.d/x", false),
            ("P/conf.d/new", false),
            ("P/a/x.d/y", true),
        ],
    ),
    (
        "app/[id]",
        &[
            ("P/app/[id]/page", false),
            ("P/app/i", false),
            ("P/app/x", true),
        ],
    ),
    (
        "[...slug]",
        &[("P/[...slug]/page", false), ("P/s", false), ("P/t", true)],
    ),
    ("[WIP] x", &[("P/[WIP] x", false), ("P/x", true)]),
    (
        "app/[id]/*.ts",
        &[("P/app/[id]/a.ts", false), ("P/app/[id]/page", true)],
    ),
];

#[test]
fn g4_denies_hold_what_they_are_said_to_hold() {
    let place = Place::new();
    for name in [
        "a/secrets/x",
        "conf.d/x",
        "app/[id]/page",
        "app/[id]/a.ts",
        "[...slug]/page",
        "[WIP] x",
    ] {
        place.project.write(name, "old");
    }
    for (deny, paths) in DENIES {
        let policy = format!("version: 1\nfilesystem: {{write: {{deny: ['{deny}']}}}}\n");
        let policy = place.elsewhere.write("policy.yaml", &policy);
        let flags = ["--policy", policy.to_str().unwrap()];
        for (short, is_writable) in paths {
            let path = place.path(short);
            assert_eq!(
                place.explained(&flags, &path)["write"],
                *is_writable,
                "{deny} {short}"
            );
            let (_, write) = place.tried(&flags, &path);
            assert_eq!(write, *is_writable, "{deny} {short}");
        }
    }
}

#[test]
fn g4_a_denied_pattern_is_not_moved_away_with_its_directory() {
    let place = Place::new();
    place.project.write("a/secrets/x", "old");
    for deny in ["**/secrets/*", "**/secrets", "*/secrets/x"] {
        let policy = format!("version: 1\nfilesystem: {{write: {{deny: ['{deny}']}}}}\n");
        let policy = place.elsewhere.write("policy.yaml", &policy);
        let flags = ["--policy", policy.to_str().unwrap()];
        for attack in [
            "mv a/secrets a/other && echo new > a/other/x",
            "mv a b && mv b/secrets b/other && echo new > b/other/x",
            "cp a/secrets/x y && mv -T y a/secrets/x",
            "rm a/secrets/x",
            "ln a/secrets/x y && echo new > y",
        ] {
            let inside = place.inside(&flags, attack);
            assert_ne!(inside.code(), 0, "{deny}: {attack}");
            assert_eq!(place.project.read("a/secrets/x"), "old", "{deny}: {attack}");
        }
    }
    let outside = "mv a/secrets a/other && echo new > a/other/x";
    sh(outside, place.project.path()).expect_code(0);
}

#[test]
fn g4_the_flags_that_are_named_change_it() {
    let place = Place::new();
    for (short, flag) in [
        ("P/.vscode/settings.json", "--unprotect"),
        ("P/src/.bashrc", "--unprotect"),
        ("P/.git/config", "--unprotect"),
        ("P/.git/hooks/pre-commit", "--unprotect"),
        ("P/.git/commondir", "--unprotect"),
        ("E/file", "--write"),
        ("E/new", "--write"),
        ("H/.ssh/id", "--read"),
        ("H/.config/tool/settings", "--write"),
    ] {
        let path = place.path(short);
        let said = place.explained(&[], &path);
        let line = said["suggestions"][0]["line"].as_str().unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], flag, "{said:#}");
        let after = place.explained(&words, &path);
        let (read, write) = place.tried(&words, &path);
        let wanted = if flag == "--read" {
            &after["read"]
        } else {
            &after["write"]
        };
        assert_eq!(wanted, true, "{short} {line}: {after:#}");
        let tried = if flag == "--read" { read } else { write };
        assert!(tried, "{short} {line}: {after:#}");
    }
}

#[test]
fn g4_the_sweep_is_told_of_and_moves_what_it_says() {
    let place = Place::new();
    let path = place.path("P/src/.bashrc");
    let said = place.explained(&["--guard", "sweep"], &path);
    assert_eq!(
        (&said["guard"], &said["write"]),
        (&"swept".into(), &true.into())
    );
    place
        .inside(&["--guard", "sweep"], "echo x > src/.bashrc")
        .expect_code(0);
    assert!(!place.project.has("src/.bashrc"));
    let said = place.explained(
        &["--guard", "sweep"],
        &place.path("P/.vscode/settings.json"),
    );
    assert_eq!(said["guard"], "frozen");
    let said = place.explained(&[], &path);
    assert_eq!(said["guard"], "judged-when-made");
}

#[test]
fn origins_tell_which_layer_decides() {
    let place = Place::new();
    place.project.write(
        "policy.yaml",
        "version: 1\nfilesystem:\n  write: {deny: [src]}\n",
    );
    let origin = |flags: &[&str], short: &str| {
        let said = place.explained(flags, &place.path(short));
        let layer = said["source"]["layer"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (layer, said["rule"].as_str().unwrap_or_default().to_owned())
    };
    let policy = ["--policy", "policy.yaml"];
    assert_eq!(
        origin(&policy, "P/src/main.c"),
        ("policy".into(), place.path("P/src"))
    );
    let protect = ["--protect", "main.c"];
    let rule = "protected name main.c".to_owned();
    assert_eq!(origin(&protect, "P/src/main.c"), ("flag".into(), rule));
    let elsewhere = place.path("E");
    assert_eq!(
        origin(&["--write", &elsewhere], "E/file"),
        ("flag".into(), elsewhere.clone())
    );
    assert_eq!(
        origin(&["--hide", &elsewhere], "E/file"),
        ("flag".into(), elsewhere.clone())
    );
    assert_eq!(
        origin(&["--home", "keep"], "H/x"),
        ("flag".into(), "home keep".into())
    );
    assert_eq!(
        place.explained(&policy, &place.path("P/policy.yaml"))["reason"],
        "untouchable"
    );
}

#[test]
fn files_are_told_from_hosts() {
    let place = Place::new();
    let explain = |words: &[&str]| {
        let words = [&["policy", "explain"], words].concat();
        place.ringfence(&words).run()
    };
    for target in ["./src", "../x", "~/.ssh", "/etc", "src", ".", "link"] {
        let told = explain(&[target]).stdout;
        assert!(told.starts_with("path "), "{target}: {told}");
    }
    for target in ["a.example.org", "https://src/x", "nothing.here"] {
        let told = explain(&[target]).stdout;
        assert!(told.starts_with("verdict "), "{target}: {told}");
    }
    assert!(
        explain(&["--file", "nothing.here"])
            .stdout
            .starts_with("path ")
    );
    explain(&["~/.ssh/id"]).expect_code(0);
    explain(&["--home", "none", "~/.ssh/id"]).expect_code(3);
    assert!(
        explain(&["~nobody/x"])
            .expect_code(1)
            .stderr
            .contains("bad-target")
    );
    let link = place.explained(&[], &place.path("P/link"));
    assert_eq!(link["leadsTo"], place.path("P/src/main.c"));
    let link = place.explained(&[], &place.path("P/.idea"));
    assert_eq!(link["reason"], "protected-name", "{link:#}");
}

#[test]
fn asking_makes_nothing() {
    let place = Place::new();
    let wanted = format!("{}/made/", place.path("E"));
    let said = place.explained(&["--write", &wanted], &format!("{wanted}x"));
    assert_eq!(said["access"], "writable", "{said:#}");
    assert!(!place.elsewhere.has("made"));
}
