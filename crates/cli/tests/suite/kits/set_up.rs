//! What kits bring is set up inside, before the command.

use std::path::Path;

use super::{Place, fails_with};

#[test]
fn files_commands_and_variables_are_there() {
    let place = Place::with_lines(
        "environment: {variables: {FORGE_URL: 'https://forge.test'}}
setup:
  install:
    - {command: \"cat ~/.config/a > ~/installed\", user: '1000'}
  startup:
    - {command: [sh, -c, 'echo started > ~/started']}
  files:
    - {path: /home/agent/.forge/config, content: 'dir=${WORKDIR}', mode: '0600'}
    - {path: /tmp/flag, content: x}",
    );
    place.kits.write("k/files/home/.config/a", "from home");
    place
        .kits
        .write("k/files/workspace/sub/b", "from workspace");
    let script = "cat ~/.config/a ~/installed ~/started ~/.forge/config /tmp/flag; stat -c %a ~/.forge/config; echo $FORGE_URL";
    let outcome = place.inside(&["--quiet"], script).expect_code(0);
    let told = format!(
        "from homefrom homestarted\ndir={}x600\nhttps://forge.test\n",
        place.working.text()
    );
    assert_eq!(outcome.stdout, told);
    assert_eq!(place.working.read("sub/b"), "from workspace");
    assert_eq!(place.working.listing(), ["sub", "sub/b"]);
}

#[test]
fn g4_the_hosts_home_is_not_touched() {
    let place = Place::with_lines("setup: {install: [{command: 'touch ~/x ~/.bashrc'}]}");
    let home = place.own.join("home");
    std::fs::create_dir(&home).expect("a home");
    let kit = place.kit("k");
    let words = [
        "run",
        "--kit",
        &kit,
        "--",
        "sh",
        "-c",
        "ls -A ~; echo $HOME",
    ];
    let outcome = place.program().env("HOME", &home).args(words).run();
    let outcome = outcome.expect_code(0);
    assert_eq!(outcome.stdout, ".bashrc\nx\n/tmp/ringfence-home\n");
    assert_eq!(std::fs::read_dir(&home).expect("a listing").count(), 0);
}

/// Where kits take the home to be. A host that has it keeps its own.
const KNOWN_HOME: &str = "/home/agent";

#[test]
fn g11_the_home_is_also_where_kits_take_it_to_be() {
    if Path::new(KNOWN_HOME).exists() {
        return;
    }
    let place = Place::with_lines(
        "setup:
  install: [{command: 'mkdir -p /home/agent/bin && echo made > /home/agent/bin/x'}]
  files: [{path: /home/agent/.forgerc, content: 'own '}]",
    );
    let script = "cat /home/agent/.forgerc ~/bin/x && cd /home/agent && echo more > y && cat ~/y";
    let narrow = ["--profile", "restrictive", "--weaker", "limits", "--quiet"];
    for options in [&narrow[4..], &narrow] {
        let outcome = place.inside(options, script).expect_code(0);
        assert_eq!(outcome.stdout, "own made\nmore\n", "{options:?}");
    }
    assert!(!Path::new(KNOWN_HOME).exists());
}

#[test]
fn g4_the_folder_of_homes_has_only_that_name_more() {
    if Path::new(KNOWN_HOME).exists() {
        return;
    }
    let place = Place::with_lines("setup: {install: [{command: 'true'}]}");
    let entries = std::fs::read_dir("/home").expect("a listing");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.into_string().expect("a name"))
        .collect();
    names.push("agent".to_owned());
    names.sort();
    let outcome = place.inside(&["--quiet"], "ls -A /home | LC_ALL=C sort");
    let listed = outcome.expect_code(0).stdout;
    assert_eq!(listed.lines().collect::<Vec<_>>(), names);
    // It cannot be changed, and what is not of a kit has none.
    let script = "for change in 'touch /home/x' 'mkdir /home/x' 'ln -s / /home/x' 'rm /home/agent' \
                  'mv /home/agent /home/x' 'chmod 777 /home'; do $change 2>/dev/null && echo $change; done; true";
    let outcome = place.inside(&["--quiet"], script).expect_code(0);
    assert_eq!(outcome.stdout, "");
    let words = ["run", "--quiet", "--", "test", "-L", KNOWN_HOME];
    place.program().args(words).run().expect_code(1);
}

#[test]
fn steps_are_lines_of_bash() {
    let line = "set -o pipefail; cat <(echo made by bash) > ~/made";
    let place = Place::with_lines(&format!("setup: {{install: [{{command: '{line}'}}]}}"));
    let outcome = place.inside(&["--quiet"], "cat ~/made").expect_code(0);
    assert_eq!(outcome.stdout, "made by bash\n");
}

#[test]
fn what_lies_in_the_working_folder_stays() {
    let place = Place::with_lines("");
    place.kits.write("k/files/workspace/a", "kit");
    place.kits.write("k/files/workspace/b", "kit");
    place.working.write("a", "mine");
    place.inside(&[], "true").expect_code(0);
    assert_eq!(place.working.read("a"), "mine");
    assert_eq!(place.working.read("b"), "kit");
}

#[test]
fn g4_protected_names_are_protected_from_kits_too() {
    let place = Place::with_lines("");
    place
        .kits
        .write("k/files/workspace/.git/hooks/pre-commit", "evil");
    place.working.write(".git/HEAD", "ref: refs/heads/main\n");
    let outcome = place.inside(&[], "true").expect_code(125);
    assert!(
        outcome
            .stderr
            .contains("ringfence: kit forge: cannot write"),
        "{}",
        outcome.stderr
    );
    assert!(!place.working.has(".git/hooks/pre-commit"));
}

#[test]
fn a_failing_install_ends_the_run_with_its_output() {
    let place = Place::with_lines(
        "setup: {install: [{command: 'echo first'}, {command: 'echo out; echo err >&2; exit 9', description: the tool}]}",
    );
    let outcome = place.inside(&["--quiet"], "echo never").expect_code(125);
    assert_eq!(outcome.stdout, "");
    let told =
        "out\nerr\nringfence: kit forge: install step 2 (the tool) failed with exit code 9\n";
    assert!(outcome.stderr.ends_with(told), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("first"), "{}", outcome.stderr);
}

#[test]
fn the_command_is_as_it_would_be_without() {
    let place =
        Place::with_lines("setup: {startup: [{command: [sleep, '300'], background: true}]}");
    let kit = place.kit("k");
    let run = |words: &[&str]| {
        let all = ["run", "--kit", kit.as_str(), "--quiet", "--"];
        let words = all.iter().chain(words).copied();
        place.program().args(words).input("typed").run()
    };
    let outcome = run(&["sh", "-c", "cat; exit 7"]).expect_code(7);
    assert_eq!(outcome.stdout, "typed");
    run(&["/none/such"]).expect_code(127);
    run(&["sh", "-c", "kill -TERM $$"]).expect_code(143);
}

#[test]
fn the_record_tells_the_users_own_command() {
    let place = Place::with_lines("setup: {install: [{command: 'true'}]}");
    let report = place.own.join("report.json").display().to_string();
    place
        .inside(&["--report", &report], "exit 3")
        .expect_code(3);
    let report: serde_json::Value =
        serde_json::from_str(&place.own.read("report.json")).expect("JSON");
    assert_eq!(report["command"], serde_json::json!(["sh", "-c", "exit 3"]));
}

#[test]
fn what_cannot_be_done_here_is_not_run() {
    for (lines, code) in [
        ("security: {privileged: true}", "kit-privileged"),
        ("volumes: [{path: /var/lib/x, size: 10g}]", "kit-volume"),
        (
            "setup: {files: [{path: /etc/x, content: y}]}",
            "kit-file-place",
        ),
    ] {
        let place = Place::with_lines(lines);
        fails_with(place.inside(&[], "true"), 125, code);
    }
    let place = Place::with_lines("setup: {install: [{command: 'true'}]}");
    let settings = r#"{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [".", "/tmp"], "denyWrite": []}}"#;
    let path = place.kits.write("settings.json", settings);
    let path = path.display().to_string();
    fails_with(
        place.inside(&["--settings", &path], "true"),
        125,
        "kit-shared-tmp",
    );
}

#[test]
fn two_kits_are_set_up_in_their_order() {
    let place = Place::with_lines("setup: {install: [{command: 'echo one >> ~/order'}]}");
    let second = "schemaVersion: 2\nkind: mixin\nname: second\nsetup: {install: [{command: 'echo two >> ~/order'}]}\n";
    place.kits.write("k2/spec.yaml", second);
    let other = place.kit("k2");
    let outcome = place
        .inside(&["--kit", &other], "cat ~/order")
        .expect_code(0);
    assert_eq!(outcome.stdout, "one\ntwo\n");
    let again = place.kit("k");
    fails_with(
        place.inside(&["--kit", &again], "true"),
        125,
        "kit-same-name",
    );
}

#[test]
fn g4_a_kit_cannot_be_changed_from_inside() {
    let place = Place::new();
    place.working.write("spec.yaml", super::V2);
    place.working.write("own/spec.yaml", super::V2);
    for (kit, folder) in [("./own", "own"), (".", ".")] {
        let script = format!(
            "echo x > {folder}/other; echo x >> {folder}/spec.yaml; mkdir -p {folder}/files/home; ls {folder}"
        );
        let words = ["run", "--kit", kit, "--quiet", "--", "sh", "-c", &script];
        let outcome = place.program().args(words).run();
        assert!(outcome.stdout.contains("other\n"), "{outcome:?}");
        assert!(!outcome.stdout.contains("files"), "{outcome:?}");
        let spec = place.working.read(format!("{folder}/spec.yaml"));
        assert_eq!(spec, super::V2);
    }
}
