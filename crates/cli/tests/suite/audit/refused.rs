//! Files that were refused are on record with their path and the rule.

use ringfence_testkit::Folder;

use super::{Ledger, Recorded};

/// The refusals on record that name a path.
fn refusals<'a>(recorded: &'a Recorded, path: &'a str) -> Vec<&'a serde_json::Value> {
    let names_it = move |call: &&serde_json::Value| {
        let mut paths = call["paths"].as_array().into_iter().flatten();
        call["outcome"].get("refused").is_some() && paths.any(|found| found == path)
    };
    recorded.of_kind("call").filter(names_it).collect()
}

#[test]
fn g7_a_protected_name_is_recorded_with_its_rule() {
    let ledger = Ledger::new();
    for (script, name, action) in [
        ("echo > .bashrc", ".bashrc", "write"),
        ("mkdir .vscode", ".vscode", "make"),
        ("ln -s x .zshrc", ".zshrc", "link"),
        ("echo > f; mv f .profile", ".profile", "rename"),
        ("echo > f; ln f .bash_profile", ".bash_profile", "link"),
    ] {
        let recorded = ledger.run(&[], &format!("{script}; true")).expect_code(0);
        let path = ledger.path(name);
        let found = refusals(&recorded, &path);
        assert_eq!(found.len(), 1, "`{script}`: {}", recorded.text());
        assert_eq!(found[0]["action"], action, "{}", found[0]);
        let rule = found[0]["rule"].as_str().unwrap_or_default();
        assert!(rule.contains(name), "{}", found[0]);
    }
}

#[test]
fn g7_a_write_outside_of_the_writable_folders_is_recorded() {
    let ledger = Ledger::new();
    for (script, path) in [
        ("echo > /etc/made", "/etc/made"),
        ("mkdir /usr/made", "/usr/made"),
        ("rm -f /etc/hostname", "/etc/hostname"),
        ("chmod 777 /etc/hostname", "/etc/hostname"),
    ] {
        let recorded = ledger
            .run(&["--audit", "security"], &format!("{script}; true"))
            .expect_code(0);
        let found = refusals(&recorded, path);
        assert!(!found.is_empty(), "`{script}`: {}", recorded.text());
        assert!(found[0]["rule"].is_string(), "{}", found[0]);
    }
}

#[test]
fn g7_a_look_at_a_hidden_place_is_recorded() {
    let ledger = Ledger::new();
    let home = Folder::durable();
    home.write(".ssh/id_rsa", "secret");
    home.write(".aws/credentials", "secret");
    let key = home.join(".ssh/id_rsa").display().to_string();
    let script = "cat $HOME/.ssh/id_rsa; cd $HOME && cat ./.aws/credentials; true";
    let outcome = ledger
        .command(&["--audit", "security"], &["sh", "-c", script])
        .env("HOME", home.path())
        .run()
        .expect_code(0);
    assert!(!outcome.stdout.contains("secret"), "{outcome:?}");
    let recorded = Recorded {
        outcome,
        events: ledger.events(),
    };
    let looked = recorded.naming("read", &key);
    assert_eq!(looked.len(), 1, "{}", recorded.text());
    let credentials = home.join(".aws/credentials").display().to_string();
    assert_eq!(
        recorded.naming("read", &credentials).len(),
        1,
        "{}",
        recorded.text()
    );
}

#[test]
fn ordinary_reads_are_not_told_one_by_one() {
    let ledger = Ledger::new();
    let recorded = ledger.run(
        &[],
        "cat /etc/passwd /etc/hosts > /dev/null; ls /usr/bin > /dev/null",
    );
    let recorded = recorded.expect_code(0);
    assert!(recorded.calls("read").is_empty(), "{}", recorded.text());
}

#[test]
fn g7_paths_with_anything_in_them_are_one_line_of_json_each() {
    let ledger = Ledger::new();
    let script = "d=$(printf 'a\\033[31m\\n\\r\"\\\\\\377b'); echo > \"/usr/$d\"; true";
    let recorded = ledger.run(&[], script).expect_code(0);
    let refused = recorded
        .of_kind("call")
        .filter(|call| call["outcome"].get("refused").is_some());
    assert_eq!(refused.count(), 1, "{}", recorded.text());
    assert!(!recorded.text().contains('\u{1b}'));
    for words in [&["show"][..], &["tail"], &["list"]] {
        let told = ledger.audit(words).expect_code(0).stdout;
        let is_raw = |character: char| character.is_control() && character != '\n';
        assert!(!told.contains(is_raw), "{words:?}: {told:?}");
    }
    ledger.audit(&["verify"]).expect_code(0);
}

#[test]
fn g7_what_is_refused_is_counted_at_the_end() {
    let ledger = Ledger::new();
    let script = "for i in 1 2 3 4 5; do echo > .bashrc; done; ./attack bpf; true";
    // Below `security` the kernel refuses `bpf` without telling anybody.
    let recorded = ledger.run(&["--audit", "security"], script);
    let recorded = recorded.expect_code(0);
    let ended = recorded.of_kind("run-ended").next().expect("its end");
    assert_eq!(ended["refusals"], 6, "{}", recorded.text());
}
