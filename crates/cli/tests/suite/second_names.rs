//! Secrets with a second name: what is hidden is a place, so a hard link of a
//! file in it is read by its own name.

use ringfence_testkit::Folder;
use serde_json::Value;

use super::{inside, ringfence};

const SECRET: &str = "s3cr3t-with-two-names";

#[test]
fn g5_nothing_is_run_with_the_secret_of_a_file_that_has_another_name() {
    let folders = [Folder::durable(), Folder::new(), Folder::durable()];
    let [secrets, working, state] = &folders;
    let token = secrets.write("token", SECRET);
    let policy = |key: &str| {
        let text = format!(
            "version: 1\nnetwork: {{allow: [api.example.org]}}\ncredentials:\n  \
             - {{service: forge, file: {{path: {}{key}}}, hosts: [api.example.org], bearer: true}}\n",
            token.display()
        );
        state.write("policy.yaml", &text).display().to_string()
    };
    for (key, other) in [("", "near"), (", key: token", "far/away")] {
        let other = secrets.join(other);
        std::fs::create_dir_all(other.parent().expect("a directory")).expect("a directory");
        let policy = policy(key);
        let run = || {
            ringfence()
                .args(["run", "--policy", &policy, "--", "touch", "ran"])
                .env("XDG_STATE_HOME", state.path())
                .folder(working)
                .run()
        };
        std::fs::hard_link(&token, &other).expect("a link");
        // The place is hidden, and the other name shows what is in it.
        assert_eq!(std::fs::read_to_string(&other).expect("a file"), SECRET);
        let outcome = run().expect_code(125);
        let told = &outcome.stderr;
        assert!(told.contains("error[credential-file-linked]"), "{told}");
        assert!(
            told.contains(token.to_str().expect("text")) && !told.contains(SECRET),
            "{told}"
        );
        assert!(!working.has("ran"));
        std::fs::remove_file(&other).expect("a removal");
        run().expect_code(0);
        std::fs::remove_file(working.join("ran")).expect("a removal");
    }
}

#[test]
fn g4_doctor_names_hidden_files_that_have_another_name() {
    let (home, working) = (Folder::new(), Folder::new());
    home.write(".netrc", SECRET);
    home.write(".ssh/keys/id_test", SECRET);
    let doctor = |words: &[&str]| {
        let words = ["doctor"].iter().chain(words).copied();
        ringfence()
            .env("HOME", home.path())
            .args(words)
            .run()
            .expect_code(0)
            .stdout
    };
    let check = || -> Value {
        let answer: Value = serde_json::from_str(&doctor(&["--json"])).expect("JSON");
        let checks = answer["checks"].as_array().expect("checks");
        let mut checks = checks
            .iter()
            .filter(|check| check["check"] == "hidden-files");
        checks.next().expect("the check").clone()
    };
    assert_eq!(check()["health"], "ok");
    for (name, other) in [(".netrc", "one"), (".ssh/keys/id_test", "two")] {
        std::fs::hard_link(home.join(name), working.join(other)).expect("a link");
        // By that name nothing hides it.
        assert_eq!(
            inside(&working, &format!("cat {other}"))
                .expect_code(0)
                .stdout,
            SECRET
        );
        let told = check();
        assert_eq!(told["health"], "absent");
        let named = home.join(name).display().to_string();
        assert!(
            told["detail"].as_str().expect("text").contains(&named),
            "{told}"
        );
        assert!(doctor(&[]).contains(&named));
    }
}
