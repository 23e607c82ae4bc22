//! Where a secret comes from, and that a new one is used for the next request.

use ringfence_testkit::wait_until;
use serde_json::json;

use super::{Bound, HOST, SECRET};

const SECOND: &str = "the-second-s3cr3t-0123456789";

/// Asks twice over one connection, and changes something in between.
#[track_caller]
fn rotated(bound: &Bound, source: &str, how: &str, change: impl FnOnce()) {
    let credential = format!(
        "{{service: my-service, {source}, variables: [API_TOKEN], hosts: [{HOST}], bearer: true}}"
    );
    let flags = bound.policy(&credential);
    bound
        .host
        .write("again.py", include_str!("scripts/again.py"));
    let folder = &bound.host.online.arena.folder;
    for name in ["asked", "changed"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    bound.net().forget();
    let script = format!("/usr/bin/python3 again.py {how} https://{HOST}/");
    let words = ["run", &flags[0], &flags[1], "--", "sh", "-c", &script];
    let run = bound.host.online.ringfence().args(words).start();
    assert!(
        wait_until(|| folder.has("asked")),
        "nothing was asked: {:?}",
        run.finish()
    );
    assert!(bound.net().saw(SECRET) && !bound.net().saw(SECOND), "{how}");
    change();
    folder.write("changed", "");
    assert_eq!(run.finish().expect_code(0).stdout, "200\n200\n");
    assert!(
        bound.saw(HOST, &format!("authorization: Bearer {SECOND}")),
        "{how}"
    );
    assert_eq!(
        bound.net().connections().len(),
        1,
        "another connection was made"
    );
}

#[test]
fn a_changed_file_is_used_for_the_next_request() {
    let bound = Bound::new();
    for how in ["requests", "httpx-h2"] {
        let file = bound.policies.write("token", SECRET);
        let source = format!("file: {{path: {}}}", file.display());
        rotated(&bound, &source, how, || {
            _ = bound.policies.write("token", SECOND);
        });
    }
}

#[test]
fn a_key_of_a_file_in_json() {
    let bound = Bound::new();
    let json = |value: &str| format!("{{\"accounts\": {{\"main\": {{\"token\": \"{value}\"}}}}}}");
    let file = bound.policies.write("tokens.json", &json(SECRET));
    let source = format!(
        "file: {{path: {}, key: accounts.main.token}}",
        file.display()
    );
    rotated(&bound, &source, "requests", || {
        bound.policies.write("tokens.json", &json(SECOND));
    });
}

/// As tools refresh a token: a new file is renamed onto the old one.
#[test]
fn a_masked_file_that_is_replaced() {
    let bound = Bound::new();
    let home = bound.policies.join("home");
    std::fs::create_dir_all(home.join(".config/my-tool")).unwrap();
    for name in ["home/.config/my-tool/auth", "auth"] {
        let content = |user: &str, token: &str| format!("user={user}\ntoken={token}\n");
        let file = bound.policies.write(name, &content("old", SECRET));
        let settings = json!({
            "network": {"allowedDomains": [HOST], "deniedDomains": [], "tlsTerminate": {}},
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []},
            "credentials": {"files": [
                {"path": file, "mode": "mask", "extract": "token=(\\S+)", "injectHosts": [HOST]},
            ]},
        });
        let settings = bound.policies.write("settings.json", &settings.to_string());
        let folder = &bound.host.online.arena.folder;
        let _ = std::fs::remove_file(folder.join("asked"));
        bound.net().forget();
        let ask = format!(
            "curl -sSf -o /dev/null -H \"Authorization: Bearer $(sed -n s/token=//p {})\" https://{HOST}/",
            file.display()
        );
        let script = format!(
            "{ask}; touch asked; until grep -q user=new {0}; do sleep 0.01; done; {ask}; cat {0}",
            file.display()
        );
        let words = [
            "run",
            "--settings",
            &settings.display().to_string(),
            "--",
            "sh",
            "-c",
            &script,
        ]
        .map(str::to_owned);
        let program = bound.host.online.ringfence().args(words);
        let run = program.env("HOME", &home).start();
        assert!(wait_until(|| folder.has("asked")), "{:?}", run.finish());
        assert!(bound.saw(HOST, &format!("authorization: Bearer {SECRET}")));
        let new = bound.policies.write("new", &content("new", SECOND));
        std::fs::rename(new, &file).expect("a new file");
        let shown = run.finish().expect_code(0).stdout;
        assert!(shown.starts_with("user=new\ntoken="), "{shown}");
        assert!(
            !shown.contains(SECRET) && !shown.contains(SECOND),
            "{shown}"
        );
        assert!(bound.saw(HOST, &format!("authorization: Bearer {SECOND}")));
    }
}

#[test]
fn a_command_is_asked_for_each_request() {
    let bound = Bound::new();
    let file = bound.policies.write("token", SECRET);
    let source = format!("command: {{argv: [cat, {}]}}", file.display());
    rotated(&bound, &source, "httpx-h2", || {
        _ = bound.policies.write("token", SECOND);
    });
}

#[test]
fn the_store_of_secrets() {
    let bound = Bound::new();
    let home = bound.policies.join("home");
    std::fs::create_dir_all(&home).unwrap();
    let set = |value: &str| {
        let program = bound
            .host
            .online
            .ringfence()
            .args(["secret", "set", "my-token"]);
        program.env("HOME", &home).input(value).run().expect_code(0);
    };
    set(SECRET);
    let credential = format!(
        "{{service: my-service, secret: my-token, variables: [API_TOKEN], hosts: [{HOST}], bearer: true}}"
    );
    let flags = bound.policy(&credential);
    for value in [SECRET, SECOND] {
        set(value);
        let words = ["run", &flags[0], &flags[1], "--", "curl", "-sSf"];
        let url = format!("https://{HOST}/");
        let program = bound.host.online.ringfence().args(words).args([url]);
        bound.net().forget();
        let outcome = program.env("HOME", &home).run().expect_code(0);
        assert!(!outcome.stdout.contains(value), "{}", outcome.stdout);
        assert!(bound.saw(HOST, value));
    }
}

/// The first source that has it counts.
#[test]
fn sources_are_tried_in_order() {
    let bound = Bound::new();
    let file = bound.policies.write("token", SECRET);
    let credential = format!(
        "{{service: my-service, sources: [{{env: NOT_SET}}, {{file: {{path: {}}}}}, {{env: API_TOKEN}}], \
         hosts: [{HOST}], bearer: true}}",
        file.display()
    );
    bound
        .run(
            &bound.policy(&credential),
            &format!("curl -sSf https://{HOST}/"),
        )
        .expect_code(0);
    assert!(super::clients::arrived(&bound));
}

#[test]
fn g5_a_secret_that_is_not_there_or_cannot_be_used_stops_the_request() {
    let bound = Bound::new();
    let lines = bound
        .policies
        .write("lines", "first-of-two-lines\r\nInjected: yes\r\n");
    let short = bound.policies.write("short", "abc");
    let empty = bound.policies.write("empty", "");
    let missing = bound.policies.join("missing");
    let path = |file: &std::path::Path| format!("file: {{path: {}}}", file.display());
    for source in [
        path(&lines),
        path(&short),
        path(&empty),
        path(&missing),
        "env: NOT_SET".to_owned(),
        "command: {argv: ['false']}".to_owned(),
        "command: {argv: [printf, \"two-lines-of-a\\nsecret\"]}".to_owned(),
        "secret: nobody-set-it".to_owned(),
    ] {
        let credential = format!(
            "{{service: my-service, {source}, variables: [MY_TOKEN], hosts: [{HOST}], bearer: true}}"
        );
        let flags = bound.policy(&credential);
        for version in ["--http1.1", "--http2"] {
            let script = format!(
                "curl -sS -i {version} -H \"Authorization: Bearer $MY_TOKEN\" https://{HOST}/"
            );
            let run = bound.run(&flags, &script);
            let shown = run.stdout();
            assert!(
                shown.contains("credential-unavailable"),
                "{source}: {:?}",
                run.outcome
            );
            assert!(
                !bound.saw(HOST, "GET "),
                "{source}: {:?}",
                bound.net().connections()
            );
            for part in ["first-of-two", "Injected", "two-lines-of"] {
                assert!(!shown.contains(part) && !run.outcome.stderr.contains(part));
            }
        }
    }
}

#[test]
fn a_required_secret_that_is_missing_stops_the_run() {
    let bound = Bound::new();
    let credential = format!(
        "{{service: my-service, env: NOT_SET, required: true, hosts: [{HOST}], bearer: true}}"
    );
    let run = bound
        .run(&bound.policy(&credential), "echo ran")
        .expect_code(125);
    assert_eq!(run.stdout(), "");
    assert!(
        run.outcome.stderr.contains("my-service"),
        "{}",
        run.outcome.stderr
    );
}
