//! What kagent sets and hands over.

use ringfence_testkit::{Folder, Program};
use serde_json::{Value, json};

use super::case::with;
use crate::suite::internet::Online;
use crate::suite::ringfence;

const STATUS: &str = "curl -s -o /dev/null -w '%{http_code}\\n'";

fn srt_settings(folder: &Folder, words: &[&str]) -> Program {
    let words = ["srt-settings"].iter().chain(words);
    ringfence()
        .args(words.copied())
        .env(
            "KAGENT_ALLOWED_DOMAINS",
            "web.example.org, *.example.com:80",
        )
        .env("KAGENT_DENIED_DOMAINS", "other.test")
        .folder(folder.path())
}

#[test]
fn the_lists_in_the_environment_are_written_as_settings() {
    let folder = Folder::new();
    let printed = srt_settings(&folder, &[]).run().expect_code(0).stdout;
    let want = json!({
        "network": {
            "allowedDomains": ["web.example.org", "*.example.com:80"],
            "deniedDomains": ["other.test"]
        },
        "filesystem": {"denyRead": [], "allowWrite": [".", "/tmp"], "denyWrite": []}
    });
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), want);
    let written = srt_settings(&folder, &["--output", "s.json"]).run();
    assert_eq!(written.expect_code(0).stdout, "");
    assert_eq!(folder.read("s.json"), printed);
    let bad = srt_settings(&folder, &[]).env("KAGENT_DENIED_DOMAINS", "https://x.test");
    let outcome = bad.run().expect_code(1);
    assert!(
        outcome.stderr.contains("KAGENT_DENIED_DOMAINS"),
        "{}",
        outcome.stderr
    );
    let unset = ringfence()
        .args(["srt-settings"])
        .run()
        .expect_code(0)
        .stdout;
    assert!(unset.contains("\"allowedDomains\": []"), "{unset}");
}

#[test]
fn a_skills_command_runs_as_it_does_with_srt() {
    let online = Online::new();
    let folder = &online.arena.folder;
    srt_settings(folder, &["--output", "s.json"])
        .run()
        .expect_code(0);
    let run = |command: &str| {
        let words = ["srt", "--settings", "s.json", "sh", "-c", command];
        online.ringfence().args(words).run()
    };
    let allowed = run(&format!("{STATUS} https://web.example.org/")).expect_code(0);
    assert_eq!(allowed.stdout, "200\n");
    let refused = run("curl -sS https://api.example.org/").expect_code(56);
    let want = "curl: (56) CONNECT tunnel failed, response 403";
    assert!(refused.stderr.starts_with(want), "{}", refused.stderr);
    run("[[ a == a ]] && touch made").expect_code(0);
    assert!(folder.has("made"));
}

#[test]
fn the_environment_adds_to_settings_and_its_denials_win() {
    let online = Online::new();
    let open = with(
        "network",
        json!({"allowedDomains": ["web.example.org", "other.test"]}),
    );
    let file = online.arena.folder.write("s.json", &open.to_string());
    let script = "for host in web.example.org api.example.org other.test; do \
                  curl -s -o /dev/null -w '%{http_code}\\n' http://$host/; done";
    for words in [&["srt", "-c"][..], &["run", "--", "sh", "-c"]] {
        let outcome = online
            .ringfence()
            .args(words.iter().copied().chain([script]))
            .env("KAGENT_SRT_SETTINGS_PATH", &file)
            .env("KAGENT_ALLOWED_DOMAINS", "api.example.org")
            .env("KAGENT_DENIED_DOMAINS", "other.test")
            .run()
            .expect_code(0);
        assert_eq!(
            outcome.stdout, "200\n200\n403\n",
            "{words:?}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn g10_settings_that_the_environment_names_must_be_there() {
    let folder = Folder::new();
    for words in [&["srt", "touch", "ran"][..], &["run", "--", "touch", "ran"]] {
        let outcome = ringfence()
            .args(words.iter().copied())
            .env("KAGENT_SRT_SETTINGS_PATH", "missing.json")
            .folder(folder.path())
            .run();
        assert!(
            outcome.stderr.contains("missing.json"),
            "{}",
            outcome.stderr
        );
        assert!([1, 125].contains(&outcome.code()) && !folder.has("ran"));
    }
}
