//! Words, settings files and exit codes.

use ringfence_testkit::{Folder, Program};
use serde_json::{Value, json};

use super::case::{Case, Speaker, cases, script, settings, with, words};
use crate::suite::ringfence;

cases! {
    the_exit_code_is_the_commands_own: [
        script("exit 7").code(7),
        script("true"),
        script("no-such-command-anywhere").code(127).says(&["no-such-command-anywhere"]),
        script("kill -KILL $$").code(137),
    ];
    standard_input_is_the_commands: [
        script("cat").input("some\ntext\n").prints(&["some", "text"]),
        words(&["wc", "-l"]).input("1\n2\n3\n").prints(&["3"]),
    ];
    text_is_for_the_shell_and_words_stay_words: [
        script("exit 9").code(9),
        script("echo $((1 + 2)) | cat").prints(&["3"]),
        words(&["echo", "a  b", "$HOME", "it's", "*", ""]).prints(&["a  b $HOME it's * "]),
        words(&["--", "echo", "-n", "x"]).prints_exactly("x"),
        words(&["sh", "-c", "[[ a == a ]] && exit 4"]).code(4),
    ];
    options_after_the_command_are_the_commands: [
        words(&["printf", "%s,", "-s", "-d", "x"]).prints_exactly("-s,-d,x,").but_srt(1, &[]),
        words(&["/usr/bin/python3", "-c", "print(1)"]).prints(&["1"]).but_srt(2, &[]),
    ];
    unusable_settings_run_nothing: [
        with_settings(""),
        with_settings("  \n"),
        with_settings("{"),
        with_settings("[]"),
        with_settings(r#"{"network": {}}"#),
        with_settings("// comment\n{}"),
        with_settings(&with("network", json!({"allowedDomains": "x"})).to_string()),
        with_settings(&with("network", json!({"allowedDomains": ["*"]})).to_string()),
    ];
    missing_lists_are_named: [
        refused(&json!({"network": {"allowedDomains": []}, "filesystem": {"denyRead": []}}))
            .says(&["deniedDomains", "allowWrite", "denyWrite"]),
        refused(&json!({"filesystem": settings()["filesystem"]})).says(&["network"]),
    ];
    settings_of_the_network_alone_write_nothing: [
        script("echo ran; touch made 2>/dev/null || echo refused")
            .settings(&json!({"network": settings()["network"]}))
            .prints(&["ran", "refused"])
            .but_srt(1, &[]),
    ];
    folders_are_safe_for_git_as_the_settings_say: [
        script("git config --get-all safe.directory; git config http.proxyAuthMethod")
            .labelled("git.safeDirectories")
            .settings(&safe_directories())
            .prints(&[
                "/srv/one",
                "/srv/one/*",
                "/srv/two words",
                "/srv/two words/*",
                "basic",
            ]),
    ];
    an_authority_that_is_not_there_is_passed_over: [
        script("echo ran")
            .settings(&with(
                "network",
                json!({"tlsTerminate": {"extraCaCertPaths": ["/no/such/file.pem"]}}),
            ))
            .prints(&["ran"]),
    ];
    unknown_keys_are_passed_over: [
        script("echo ran").settings(&unknown_keys()).prints(&["ran"]),
    ];
    without_a_command_there_is_nothing_to_do: [
        words(&[]).code(1).says(&["ommand"]),
        words(&["-c", ""]).code(1).says(&["ommand"]),
    ];
    wrong_flags_run_nothing: [
        words(&["--control-fd", "1", "touch", "ran"]).code(1),
        words(&["--control-fd", "x", "touch", "ran"]).code(1),
        words(&["--control-fd", "77", "touch", "ran"]).code(1).says(&["77"]),
    ];
}

fn safe_directories() -> Value {
    let mut all = settings();
    all["git"] = json!({"safeDirectories": ["/srv/one/", "", "/srv/two words"]});
    all
}

#[test]
fn what_is_skipped_and_refused_is_told_unless_it_is_to_be_quiet() {
    let folder = Folder::new();
    let skipping = json!({"tlsTerminate": {"extraCaCertPaths": ["/no/such/file.pem"]}});
    let file = folder.write("s.json", &with("network", skipping).to_string());
    // What the user could have made outside.
    let touch = "touch $HOME/ringfence-made 2>/dev/null; true";
    let srt = |words: &[&str], quiet: &str| {
        let program = ringfence().args(["srt"]).args(words.iter().copied());
        let program = program.args(["-s".into(), file.clone()]);
        let program = program.args(["-c", touch]);
        let program = program.env("RINGFENCE_QUIET", quiet).folder(folder.path());
        program.run().expect_code(0).stderr
    };
    for quiet in ["", "0"] {
        let told = srt(&[], quiet);
        assert!(
            told.contains("/ringfence-made") && told.contains("file.pem"),
            "{told}"
        );
    }
    assert_eq!(srt(&["--quiet"], ""), "");
    assert_eq!(srt(&[], "1"), "");
}

/// Under text that is no settings file.
fn with_settings(text: &str) -> Case {
    script("echo ran").labelled(text).raw_settings(text).code(1)
}

fn refused(settings: &Value) -> Case {
    with_settings(&settings.to_string())
}

fn unknown_keys() -> Value {
    let mut all = with("network", json!({"futureThing": 1}));
    all["$schema"] = json!("x");
    all["filesystem"]["alsoNew"] = json!([]);
    all
}

/// `srt` by that name, in a home folder of its own.
struct Home {
    folder: Folder,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.join("work")).expect("a folder");
        std::os::unix::fs::symlink(ringfence().path(), folder.join("srt")).expect("a link");
        Self { folder }
    }

    fn srt(&self, words: &[&str]) -> Program {
        Program::new(self.folder.join("srt"))
            .args(words.iter().copied())
            .env("HOME", self.folder.path())
            .folder(self.folder.join("work"))
    }
}

#[test]
fn the_name_of_the_program_chooses_the_command_line() {
    let home = Home::new();
    home.srt(&["exit 3"]).run().expect_code(127);
    home.srt(&["-c", "exit 3"]).run().expect_code(3);
    let version = home.srt(&["--version"]).run().expect_code(0).stdout;
    assert!(version.starts_with("0.0.83 (ringfence "), "{version}");
    let help = home.srt(&["-h"]).run().expect_code(0).stdout;
    assert!(
        help.contains("--control-fd") && help.contains("Usage: srt "),
        "{help}"
    );
}

#[test]
fn settings_of_the_home_folder_hold_where_none_are_named() {
    let home = Home::new();
    let write = "touch made && echo made";
    home.srt(&["-c", write]).run().expect_code(1);
    home.folder
        .write(".srt-settings.json", &settings().to_string());
    home.srt(&["-c", write]).run().expect_code(0);
    assert!(home.folder.has("work/made"));
    home.folder.write(".srt-settings.json", "");
    let outcome = home.srt(&["-c", "touch ran"]).run().expect_code(1);
    assert!(outcome.stderr.contains("empty"), "{}", outcome.stderr);
    let missing = ["--settings", "none.json", "-c", "touch ran"];
    home.folder
        .write(".srt-settings.json", &settings().to_string());
    home.srt(&missing).run().expect_code(1);
    assert!(!home.folder.has("work/ran"));
}

#[test]
fn g4_settings_for_the_next_run_cannot_be_made_or_changed() {
    let home = Home::new();
    let open = with("filesystem", json!({"allowWrite": ["~"]}));
    let named = home.folder.write("named.json", &open.to_string());
    let named = named.to_str().unwrap();
    let attack = "cd; echo x > .srt-settings.json; echo x > named.json; touch other; true";
    home.srt(&["-s", named, "-c", attack]).run().expect_code(0);
    assert!(home.folder.has("other"), "the home folder is writable");
    assert!(!home.folder.has(".srt-settings.json"));
    assert_eq!(home.folder.read("named.json"), open.to_string());
}

#[test]
fn subcommands_of_srt_are_refused_and_say_how_to_run_such_a_command() {
    let home = Home::new();
    for name in ["proxy", "windows-install", "windows-uninstall"] {
        let outcome = home.srt(&[name, "--listen", "x"]).run().expect_code(1);
        let want = format!("srt -c {name}");
        assert!(outcome.stderr.contains(&want), "{}", outcome.stderr);
    }
}

#[test]
fn debug_tells_of_settings_rules_and_layers() {
    let home = Home::new();
    let path = home
        .folder
        .write(".srt-settings.json", &settings().to_string());
    let path = path.to_str().unwrap();
    let by_flag = home.srt(&["-d", "true"]).run().expect_code(0);
    let by_variable = home.srt(&["true"]).env("SRT_DEBUG", "true").run();
    for stderr in [by_flag.stderr, by_variable.stderr] {
        for want in [path, "[SandboxDebug] ", "write.allow", "seccomp: "] {
            assert!(stderr.contains(want), "{want}: {stderr}");
        }
    }
    let quiet = home.srt(&["true"]).run().expect_code(0);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn g10_what_cannot_be_honoured_is_refused_by_name() {
    let masked = json!({"envVars": [{"name": "TOKEN", "mode": "mask", "decode": "jwt"}]});
    for (part, fields, want) in [
        ("network", json!({"httpProxyPort": 3128}), "httpProxyPort"),
        ("network", json!({"socksProxyPort": 1080}), "socksProxyPort"),
        (
            "network",
            json!({"stripResponseHeaders": ["x"]}),
            "stripResponseHeaders",
        ),
        (
            "network",
            json!({"mitmProxy": {"socketPath": "/s", "domains": ["a.test"]}}),
            "mitmProxy",
        ),
        ("filesystem", json!({"disabled": true}), "disabled"),
        ("filesystem", json!({"allowWrite": ["*.lock"]}), "*.lock"),
        ("filesystem", json!({"denyRead": ["a["]}), "a["),
        (
            "network",
            json!({"deniedDomains": ["exa mple.org"]}),
            "exa mple.org",
        ),
        (
            "network",
            json!({"parentProxy": {"http": "socks5://p.test"}}),
            "parentProxy.http",
        ),
    ] {
        let case = with_settings(&with(part, fields).to_string());
        let outcome = case.run(&Speaker::Ours).expect_code(1);
        assert!(outcome.stderr.contains(want), "{want}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{want}");
    }
    let mut all = with("network", json!({"tlsTerminate": {}}));
    all["credentials"] = masked;
    let outcome = with_settings(&all.to_string())
        .run(&Speaker::Ours)
        .expect_code(1);
    assert!(
        outcome.stderr.contains("credentials.envVars.decode"),
        "{}",
        outcome.stderr
    );
}
