//! `ringfence secret`: secrets in an encrypted file, outside of every sandbox.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ringfence_testkit::{Folder, Outcome, Program, wait_until};
use serde_json::{Value, json};

use super::arena::refused;
use super::ringfence;
use super::terminal::Screen;

const SECRET: &str = "s3cr3t-of-the-store";
const FOLDER: &str = "ringfence/secrets";

fn secret(data: &Folder, words: &[&str], input: &[u8]) -> Outcome {
    ringfence()
        .args(["secret"].iter().chain(words).copied())
        .env("XDG_DATA_HOME", data.path())
        .input(input)
        .run()
}

fn set(data: &Folder, name: &str, value: &str) {
    secret(data, &["set", name], value.as_bytes()).expect_code(0);
}

/// A store with one secret.
fn store() -> Folder {
    let data = Folder::new();
    set(&data, "forge", SECRET);
    data
}

/// Runs a script with the binary as `$RF`, without a terminal.
fn scripted(data: &Folder, script: &str) -> Outcome {
    Program::new("setsid")
        .args(["--wait", "bash", "-c", script])
        .env("RF", ringfence().path())
        .env("XDG_DATA_HOME", data.path())
        .folder(data)
        .run()
}

fn fails(outcome: Outcome, exit: i32, code: &str) {
    let outcome = outcome.expect_code(exit);
    let wanted = format!("error[{code}]");
    assert!(outcome.stderr.contains(&wanted), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("s3cr3t"), "{}", outcome.stderr);
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn g5_secrets_are_set_listed_and_removed_and_never_shown() {
    let data = store();
    let outcome = secret(&data, &["set", "mail.work"], b"another-secret\n").expect_code(0);
    assert_eq!(outcome.stdout, "");
    let table = secret(&data, &["list"], b"").expect_code(0).stdout;
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, ["NAME", "forge", "mail.work"]);
    let json = secret(&data, &["list", "--json"], b"").expect_code(0);
    let listed = json_of(&json.stdout);
    assert_eq!(listed[0]["name"], "forge");
    assert!(listed[0]["set"].is_string() && listed[0].as_object().unwrap().len() == 2);
    for text in [&table, &json.stdout] {
        assert!(!text.contains(SECRET) && !text.contains("another"));
    }
    let told = secret(&data, &["set", "forge", "--json"], b"a-third-secret").expect_code(0);
    assert_eq!(json_of(&told.stdout), json!({"set": "forge"}));
    secret(&data, &["remove", "forge"], b"").expect_code(0);
    fails(
        secret(&data, &["remove", "forge"], b""),
        1,
        "no-such-secret",
    );
    let told = secret(&data, &["remove", "forge", "--json"], b"").expect_code(1);
    assert_eq!(json_of(&told.stdout)["error"]["code"], "no-such-secret");
    let told = secret(&data, &["remove", "mail.work", "--json"], b"").expect_code(0);
    assert_eq!(json_of(&told.stdout), json!({"removed": "mail.work"}));
    let files = data.listing();
    assert_eq!(files, ["ringfence", FOLDER], "nothing is left");
}

#[test]
fn g5_the_file_is_encrypted_and_for_the_owner_alone() {
    let data = store();
    let modes = [
        (FOLDER, 0o700),
        ("ringfence/secrets/key", 0o600),
        ("ringfence/secrets/secrets", 0o600),
    ];
    for (name, mode) in modes {
        let found = data.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{name}");
    }
    let script = format!("! grep -raE '{SECRET}|forge' {}", data.text());
    scripted(&data, &script).expect_code(0);
}

#[test]
fn what_is_no_secret_or_no_name_is_refused() {
    let data = Folder::new();
    let large = vec![b'x'; 64 * 1024 + 1];
    for value in [
        &b""[..],
        b"\n",
        b"s3cr3t",
        b"s3cr3t-of-the-store\n\n",
        b"s3cr3t-of\nthe-store",
        b"s3cr3t-of\0the-store",
        b"s3cr3t-of-the-store\xff",
        &large,
    ] {
        fails(
            secret(&data, &["set", "forge"], value),
            1,
            "secret-malformed",
        );
    }
    for words in [
        &["set"][..],
        &["set", ""],
        &["set", "a/b"],
        &["set", "../x"],
        &["set", "a b"],
        &["set", "forge", "a-value-of-some-length"],
        &["set", "forge", "--value=a-value"],
        &["list", "--passphrase-fd", "0"],
        &["list", "--passphrase-fd", "x"],
        &["remove"],
    ] {
        secret(&data, words, b"a-value-of-some-length").expect_code(2);
    }
    assert!(data.listing().is_empty(), "nothing was made");
}

#[test]
fn g5_a_store_that_is_damaged_or_was_open_to_others_is_an_error() {
    let file = "ringfence/secrets/secrets";
    for (damage, code) in [
        ("printf x >> FILE", "secret-store-damaged"),
        ("truncate -s 40 FILE", "secret-store-damaged"),
        (": > FILE", "secret-store-damaged"),
        ("echo something else > FILE", "secret-store-damaged"),
        ("head -c 32 /dev/zero > KEY", "secret-store-damaged"),
        ("echo short > KEY", "secret-store-no-key"),
        ("rm KEY", "secret-store-no-key"),
        ("chmod 640 KEY", "secret-store-unavailable"),
        ("chmod 604 FILE", "secret-store-unavailable"),
        ("mv KEY k; ln -s k KEY", "secret-store-unavailable"),
        ("rm FILE; mkdir FILE", "secret-store-unavailable"),
        (
            "mv ringfence/secrets s; ln -s ../s ringfence/secrets",
            "secret-store-unavailable",
        ),
    ] {
        let data = store();
        let script = damage
            .replace("FILE", file)
            .replace("KEY", "ringfence/secrets/key");
        scripted(&data, &script).expect_code(0);
        fails(secret(&data, &["list"], b""), 1, code);
        let again = secret(&data, &["set", "other"], SECRET.as_bytes());
        fails(again, 1, code);
    }
}

#[test]
fn g5_a_passphrase_comes_through_a_descriptor() {
    let data = Folder::new();
    data.write("right", "correct horse\n");
    data.write("wrong", "battery staple\n");
    let run = |words: &str| scripted(&data, &format!("echo {SECRET} | $RF secret {words}"));
    run("set forge --passphrase-fd 3 3< right").expect_code(0);
    assert!(!data.has("ringfence/secrets/key"));
    let table = run("list --passphrase-fd 7 7< right").expect_code(0).stdout;
    assert!(table.contains("forge") && !table.contains(SECRET));
    fails(
        run("list --passphrase-fd 3 3< wrong"),
        1,
        "wrong-passphrase",
    );
    fails(
        run("list --passphrase-fd 3 3< /dev/null"),
        1,
        "bad-passphrase",
    );
    fails(run("list --passphrase-fd 9"), 1, "passphrase-unreadable");
    fails(run("list"), 1, "no-passphrase");
    run("set more --passphrase-fd 3 3< right").expect_code(0);
    for name in ["forge", "more"] {
        run(&format!("remove {name} --passphrase-fd 3 3< right")).expect_code(0);
    }
    run("set forge").expect_code(0);
    let has_key = run("set more --passphrase-fd 3 3< right");
    fails(has_key, 1, "secret-store-has-key");
}

#[test]
fn g5_what_is_typed_is_not_shown() {
    let screen = Screen::new();
    screen.line("export XDG_DATA_HOME=$PWD/data");
    screen.line("$RF secret set forge --passphrase");
    screen.shows("Secret forge:");
    screen.line(SECRET);
    screen.shows("New passphrase:");
    screen.line("correct horse");
    screen.shows("The same again:");
    screen.line("correct horse");
    screen.shows("the secret forge is set");
    screen.line("$RF secret list");
    screen.shows("Passphrase of the secret store:");
    screen.line("correct horse");
    screen.shows("NAME");
    screen.line("$RF secret set more --passphrase");
    screen.shows("Secret more:");
    screen.line(SECRET);
    screen.line("battery staple");
    screen.shows("error[wrong-passphrase]");
    let shown = screen.text();
    for typed in [SECRET, "horse", "staple"] {
        assert!(!shown.contains(typed), "{shown}");
    }
}

#[test]
fn g5_the_memory_of_the_command_is_its_own() {
    let data = Folder::new();
    let mut started = ringfence()
        .args(["secret", "set", "forge"])
        .env("XDG_DATA_HOME", data.path())
        .with(|command| {
            command.stdin(std::process::Stdio::piped());
        })
        .start();
    let input = started.child().stdin.take();
    let process = format!("/proc/{}", started.id());
    let leaves_no_core = || {
        let limits = std::fs::read_to_string(format!("{process}/limits")).unwrap_or_default();
        let core = limits.lines().find(|line| line.starts_with("Max core"));
        core.is_some_and(|line| line.split_whitespace().nth(4) == Some("0"))
    };
    assert!(wait_until(leaves_no_core), "it may leave a core file");
    // What cannot be dumped belongs to root.
    let is_roots = || std::fs::metadata(format!("{process}/mem")).is_ok_and(|it| it.uid() == 0);
    assert!(wait_until(is_roots), "others can read it");
    drop(input);
    fails(started.finish(), 1, "secret-malformed");
}

/// Runs a script inside, in the home folder `home`.
fn at_home(home: &Folder, data: Option<&Folder>, script: &str) -> Outcome {
    let program = ringfence()
        .args(["run", "--audit", "off", "--", "sh", "-c", script])
        .env("HOME", home.path())
        .with(|command| {
            for name in ["XDG_DATA_HOME", "XDG_STATE_HOME"] {
                command.env_remove(name);
            }
        })
        .folder(home);
    match data {
        Some(data) => program.env("XDG_DATA_HOME", data.path()).run(),
        None => program.run(),
    }
}

#[test]
fn g5_the_store_is_hidden_from_every_sandbox() {
    let home = Folder::new();
    ringfence()
        .args(["secret", "set", "forge"])
        .env("HOME", home.path())
        .with(|command| {
            command.env_remove("XDG_DATA_HOME");
        })
        .input(SECRET)
        .run()
        .expect_code(0);
    let usual = ".local/share/ringfence/secrets/key";
    assert!(home.has(usual));
    refused("cat", at_home(&home, None, &format!("cat {usual}")));
    for attack in [
        "echo x > .local/share/ringfence/secrets/new",
        "mv .local/share .local/away",
        "mv .local away",
        "rm -rf .local/share/ringfence",
    ] {
        refused(attack, at_home(&home, None, attack));
        assert!(home.has(usual), "{attack}");
    }
    let elsewhere = Folder::durable();
    set(&elsewhere, "forge", SECRET);
    let key = elsewhere.join("ringfence/secrets/key");
    let attack = format!("cat {}", key.display());
    refused(&attack, at_home(&home, Some(&elsewhere), &attack));
}

#[test]
fn g5_code_inside_cannot_make_a_store_or_approvals_of_its_own() {
    for name in [
        ".local/share/ringfence/secrets",
        ".local/state/ringfence/approvals",
    ] {
        for attack in [
            format!("mkdir -p {name}"),
            format!("mkdir -p x/$(basename {name}) $(dirname {name}) && mv x/* $(dirname {name})"),
            format!(
                "mkdir -p $(dirname $(dirname {name})) x/ringfence/$(basename {name}) && mv x/ringfence $(dirname $(dirname {name}))"
            ),
            format!(
                "mkdir -p y/$(dirname {name} | cut -d/ -f2-)/$(basename {name}) && mv y .local"
            ),
        ] {
            let (inside, outside) = (Folder::new(), Folder::new());
            let proof = Program::new("sh").args(["-c", &attack]).folder(&outside);
            proof.run().expect_code(0);
            assert!(outside.has(name), "{attack}");
            at_home(&inside, None, &format!("touch ran; {attack}"));
            assert!(inside.has("ran") && !inside.has(name), "{attack}");
        }
    }
}
