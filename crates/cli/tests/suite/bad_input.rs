//! Mistakes are told in one line with a hint, and nothing runs; what only
//! looks like a mistake works.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use ringfence_testkit::{Folder, Outcome, Program, is_root};

use super::terminal::binary;
use super::{inside, inside_with, ringfence};

/// Checks the shape of an error: `ringfence: error[CODE]: …` in one line, and
/// a hint in the next.
#[track_caller]
pub(super) fn is_error(outcome: &Outcome, code: &str) {
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let [message, hint] = lines[..] else {
        panic!("not a message and a hint:\n{}", outcome.stderr);
    };
    let start = format!("ringfence: error[{code}]: ");
    assert!(
        message.len() > start.len() && message.starts_with(&start),
        "{message}"
    );
    assert!(hint.len() > 8 && hint.starts_with("  hint: "), "{hint}");
}

/// Runs with flags that are wrong; returns what is printed.
#[track_caller]
fn refused(folder: &Folder, flags: &[&str], code: &str) -> String {
    let outcome = inside_with(folder.path(), flags, "echo > ran").expect_code(125);
    is_error(&outcome, code);
    assert!(!folder.has("ran"), "the command ran");
    outcome.stderr
}

/// Runs with a policy that is wrong; returns what is printed.
#[track_caller]
fn refused_policy(name: &str, text: &str, code: &str) -> String {
    let folder = Folder::new();
    folder.write(name, text);
    refused(&folder, &["--policy", name], code)
}

/// Runs with srt settings that are wrong; returns what is printed.
#[track_caller]
fn refused_settings(text: &str, code: &str) -> String {
    let folder = Folder::new();
    folder.write("settings.json", text);
    refused(&folder, &["--settings", "settings.json"], code)
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in: {text}");
}

/// A run that is wrong before there is a command.
#[track_caller]
fn is_usage_error(folder: &Folder, words: &[&str]) -> String {
    let outcome = ringfence()
        .args(words.iter().copied())
        .folder(folder.path())
        .run();
    let outcome = outcome.expect_code(125);
    is_error(&outcome, "usage");
    assert!(!folder.has("ran"));
    outcome.stderr
}

const RUN: [&str; 4] = ["--", "sh", "-c", "echo > ran"];

#[test]
fn an_unknown_flag_is_no_command() {
    let folder = Folder::new();
    let words: Vec<&str> = ["run", "--no-such-flag"].into_iter().chain(RUN).collect();
    has(&is_usage_error(&folder, &words), "--no-such-flag");
    has(
        &is_usage_error(&folder, &["run", "--no-such-flag"]),
        "--no-such-flag",
    );
    has(&is_usage_error(&folder, &["run", "-x", "--", "true"]), "-x");
}

#[test]
fn flags_after_the_command_are_its_own() {
    let outcome = ringfence()
        .args(["run", "echo", "--no-such-flag", "--", "--time", "nonsense"])
        .folder(Folder::new().path())
        .run()
        .expect_code(0);
    assert_eq!(outcome.stdout, "--no-such-flag -- --time nonsense\n");
}

#[test]
fn a_missing_command_is_an_error() {
    let folder = Folder::new();
    is_usage_error(&folder, &["run"]);
    is_usage_error(&folder, &["run", "--"]);
    is_usage_error(&folder, &["run", "--no-network"]);
}

#[test]
fn an_empty_command_is_an_error() {
    let folder = Folder::new();
    let outcome = ringfence()
        .args(["run", "--", ""])
        .folder(folder.path())
        .run();
    is_error(&outcome.expect_code(125), "no-command");
}

#[test]
fn a_flag_without_its_value_is_an_error() {
    has(
        &is_usage_error(&Folder::new(), &["run", "--policy"]),
        "--policy",
    );
}

#[test]
fn an_unknown_weaker_form_is_an_error_that_names_the_known_ones() {
    let folder = Folder::new();
    let words: Vec<&str> = ["run", "--weaker", "everything"]
        .into_iter()
        .chain(RUN)
        .collect();
    let text = is_usage_error(&folder, &words);
    has(&text, "everything");
    has(&text, "landlock");
}

#[test]
fn an_unknown_command_is_an_error() {
    let outcome = ringfence().args(["no-such-command"]).run();
    assert_ne!(outcome.code(), 0);
    has(&outcome.stderr, "no-such-command");
}

#[test]
fn an_unknown_key_in_yaml_is_named_with_its_place() {
    let text = "version: 1\nnetwork:\n  mode: deny\n  alow: []\n";
    let text = refused_policy("policy.yaml", text, "malformed-document");
    has(&text, "policy.yaml:4:3");
    has(&text, "alow");
}

#[test]
fn an_unknown_key_in_toml_is_named_with_its_place() {
    let text = "version = 1\n[network]\nmode = \"deny\"\nalow = []\n";
    let text = refused_policy("policy.toml", text, "malformed-document");
    has(&text, "policy.toml:4:1");
    has(&text, "alow");
}

#[test]
fn text_that_is_no_yaml_or_toml_is_named_with_its_place() {
    let text = refused_policy(
        "policy.yaml",
        "version: 1\nnetwork: [\n",
        "malformed-document",
    );
    has(&text, "policy.yaml:");
    let text = refused_policy("policy.toml", "version = 1\n= 2\n", "malformed-document");
    has(&text, "policy.toml:2:");
}

#[test]
fn an_empty_policy_is_an_error() {
    let text = refused_policy("policy.yaml", "", "malformed-document");
    has(&text, "policy.yaml");
    assert!(!text.contains("PolicyDocument"), "{text}");
    refused_policy("policy.toml", "", "malformed-document");
    refused_policy("policy.yaml", "# nothing\n", "malformed-document");
}

#[test]
fn a_policy_of_another_version_is_an_error() {
    refused_policy("policy.yaml", "version: 2\n", "unknown-version");
}

#[test]
fn a_policy_with_a_wrong_value_is_an_error_with_its_place() {
    let text = "version: 1\nresources:\n  time: soon\n";
    has(
        &refused_policy("policy.yaml", text, "malformed-limit"),
        "policy.yaml:3:9",
    );
    let text = "version: 1\nnetwork: {mode: ajar}\n";
    has(
        &refused_policy("policy.yaml", text, "malformed-document"),
        "policy.yaml:2:",
    );
}

#[test]
fn a_policy_that_is_no_text_is_an_error() {
    let folder = Folder::new();
    std::fs::write(folder.join("policy.yaml"), b"version: 1\n# \xff\xfe\n").expect("a file");
    refused(&folder, &["--policy", "policy.yaml"], "file-unreadable");
}

#[test]
fn a_policy_that_is_missing_is_an_error() {
    let text = refused(
        &Folder::new(),
        &["--policy", "missing.yaml"],
        "file-unreadable",
    );
    has(&text, "missing.yaml");
}

#[test]
fn a_policy_that_is_a_folder_is_an_error() {
    let folder = Folder::new();
    folder.write("policy.yaml/file", "");
    refused(&folder, &["--policy", "policy.yaml"], "file-unreadable");
}

#[test]
fn a_policy_that_may_not_be_read_is_an_error() {
    if is_root() {
        println!("skipped: root may read everything");
        return;
    }
    let folder = Folder::new();
    let path = folder.write("policy.yaml", "version: 1\n");
    std::fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("a mode");
    refused(&folder, &["--policy", "policy.yaml"], "file-unreadable");
}

#[test]
fn a_policy_of_absurd_size_is_an_error() {
    let folder = Folder::new();
    let file = std::fs::File::create(folder.join("policy.yaml")).expect("a file");
    file.set_len(1 << 30).expect("a sparse file");
    refused(&folder, &["--policy", "policy.yaml"], "file-too-large");
}

#[test]
fn an_endless_policy_is_an_error() {
    // With a bound on memory, lest a failure take the whole machine along.
    let script = "ulimit -v 2000000; exec \"$RF\" run --policy /dev/zero -- true";
    let outcome = Program::new("sh")
        .args(["-c", script])
        .env("RF", binary())
        .folder(Folder::new().path())
        .run()
        .expect_code(125);
    is_error(&outcome, "file-too-large");
}

#[test]
fn settings_that_are_missing_empty_or_no_json_are_errors() {
    let missing = refused(
        &Folder::new(),
        &["--settings", "none.json"],
        "file-unreadable",
    );
    has(&missing, "none.json");
    refused_settings("", "srt-json");
    refused_settings("{\"network\": ", "srt-json");
    let text = refused_settings("{}", "srt-missing");
    has(&text, "settings.json");
    let times = text.matches("settings.json").count();
    assert_eq!(times, 1, "{text}");
}

#[test]
fn settings_of_another_shape_are_an_error() {
    refused_settings("[]", "srt-shape");
    has(
        &refused_settings("{\"network\": 1}", "srt-shape"),
        "network",
    );
}

#[test]
fn settings_that_may_not_be_read_are_an_error() {
    if is_root() {
        println!("skipped: root may read everything");
        return;
    }
    let folder = Folder::new();
    let path = folder.write("settings.json", "{}");
    std::fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("a mode");
    refused(&folder, &["--settings", "settings.json"], "file-unreadable");
}

#[test]
fn an_unknown_profile_is_an_error_that_names_the_known_ones() {
    let text = refused(&Folder::new(), &["--profile", "lax"], "unknown-profile");
    has(&text, "restrictive");
}

#[test]
fn a_relative_path_that_leaves_the_folder_is_an_error() {
    let text = "version: 1\nfilesystem: {write: {allow: [\"../other\"]}}\n";
    let text = refused_policy("policy.yaml", text, "path-leaves-base");
    has(&text, "policy.yaml:2:");
    has(&text, "absolute path");
    let text = refused(
        &Folder::new(),
        &["--write", "~/../other"],
        "path-leaves-base",
    );
    has(&text, "--write");
    has(&text, "absolute path");
}

#[test]
fn the_whole_file_system_cannot_be_writable() {
    refused(&Folder::new(), &["--write", "/"], "root-writable");
}

#[test]
fn places_of_the_sandbox_itself_cannot_be_writable() {
    for place in ["/proc", "/sys", "/dev"] {
        refused(&Folder::new(), &["--write", place], "reserved-place");
    }
}

#[test]
fn nonsense_for_a_time_is_an_error() {
    for time in [
        "",
        "soon",
        "10",
        "-1s",
        "0s",
        "1y",
        "1m1h",
        "99999999999999999999s",
        "1.5s",
    ] {
        let folder = Folder::new();
        let flag = format!("--time={time}");
        has(&refused(&folder, &[&flag], "malformed-limit"), "--time");
    }
}

#[test]
fn nonsense_for_a_variable_is_an_error() {
    for variable in ["", "NAME", "=value", "A B=c", "1A=b"] {
        let flag = format!("--env={variable}");
        has(
            &refused(&Folder::new(), &[&flag], "malformed-environment"),
            "--env",
        );
    }
    refused(
        &Folder::new(),
        &["--pass-env", "A B"],
        "malformed-environment",
    );
}

#[test]
fn nonsense_for_a_host_is_an_error() {
    for host in [
        "",
        "*",
        "a b",
        "http://",
        "a.example.org:0",
        "a.example.org:99999",
    ] {
        let folder = Folder::new();
        let flag = format!("--deny={host}");
        let outcome = inside_with(folder.path(), &[&flag], "echo > ran").expect_code(125);
        has(&outcome.stderr, "ringfence: error[");
        has(&outcome.stderr, "  hint: ");
        assert!(!folder.has("ran"));
    }
}

#[test]
fn a_report_into_a_missing_folder_is_an_error() {
    let text = refused(
        &Folder::new(),
        &["--report", "none/report.json"],
        "report-unwritable",
    );
    has(&text, "none/report.json");
}

#[test]
fn a_report_at_a_link_is_an_error() {
    let folder = Folder::new();
    folder.write("target", "mine\n");
    symlink("target", folder.join("link")).expect("a link");
    symlink("missing", folder.join("dangling")).expect("a link");
    let absolute = folder.join("link");
    for link in [Path::new("link"), Path::new("dangling"), &absolute] {
        let link = link.to_str().expect("a plain path");
        refused(&folder, &["--report", link], "report-unwritable");
    }
    assert_eq!(folder.read("target"), "mine\n");
    assert!(!folder.has("missing"));
}

#[test]
fn a_report_below_a_link_is_an_error() {
    let (folder, other) = (Folder::new(), Folder::new());
    symlink(other.path(), folder.join("sub")).expect("a link");
    let absolute = folder.join("sub/report.json");
    for path in [Path::new("sub/report.json"), &absolute] {
        let path = path.to_str().expect("a plain path");
        refused(&folder, &["--report", path], "report-unwritable");
    }
    assert!(other.listing().is_empty());
}

#[test]
fn a_report_at_a_folder_is_an_error() {
    let folder = Folder::new();
    folder.write("sub/file", "");
    refused(&folder, &["--report", "sub"], "report-unwritable");
}

#[test]
fn an_error_leaves_no_report_and_does_not_touch_an_old_one() {
    let folder = Folder::new();
    folder.write("old.json", "old\n");
    for name in ["old.json", "new.json"] {
        refused(
            &folder,
            &["--report", name, "--time", "soon"],
            "malformed-limit",
        );
    }
    assert_eq!(folder.listing(), ["old.json"]);
    assert_eq!(folder.read("old.json"), "old\n");
}

#[test]
fn a_missing_working_folder_is_an_error() {
    let text = refused(&Folder::new(), &["--cwd", "missing"], "no-working-folder");
    has(&text, "missing");
    has(&text, "--cwd");
}

#[test]
fn a_file_as_the_working_folder_is_an_error() {
    let folder = Folder::new();
    folder.write("file", "");
    refused(&folder, &["--cwd", "file"], "working-folder-is-file");
}

#[test]
fn the_root_as_the_working_folder_is_an_error() {
    let outcome = inside("/", "true").expect_code(125);
    is_error(&outcome, "root-writable");
    has(&outcome.stderr, "--cwd");
}

#[test]
fn the_folder_for_temporary_files_as_the_working_folder_is_an_error() {
    let outcome = inside("/tmp", "true").expect_code(125);
    is_error(&outcome, "working-folder-is-private");
    has(&outcome.stderr, "mkdir");
}

#[test]
fn a_deleted_working_folder_is_an_error() {
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$RF\" run -- true";
    let outcome = Program::new("sh")
        .args(["-c", script])
        .env("RF", binary())
        .folder(Folder::new().path())
        .run()
        .expect_code(125);
    is_error(&outcome, "no-working-folder");
}

#[test]
fn a_hidden_working_folder_is_an_error() {
    let folder = Folder::new();
    refused(&folder, &["--hide", "."], "working-folder-hidden");
}

#[test]
fn a_linked_working_folder_works() {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("real")).expect("a folder");
    symlink("real", folder.join("link")).expect("a link");
    inside(folder.join("link"), "echo one > one").expect_code(0);
    assert_eq!(folder.read("real/one"), "one\n");
    inside_with(folder.path(), &["--cwd", "link"], "echo two > two").expect_code(0);
    assert_eq!(folder.read("real/two"), "two\n");
}

#[test]
fn a_read_only_working_folder_works() {
    let folder = Folder::new();
    folder.write("file", "words\n");
    let mode = |bits| std::fs::set_permissions(folder.path(), Permissions::from_mode(bits));
    mode(0o555).expect("a mode");
    let outcome = inside(folder.path(), "cat file; echo x > new");
    mode(0o755).expect("a mode");
    assert_eq!(outcome.stdout, "words\n");
    assert_ne!(outcome.code(), 125, "{}", outcome.stderr);
}

#[test]
fn the_home_folder_as_the_working_folder_works() {
    let home = Folder::new();
    home.write(".ssh/key", "secret\n");
    let outcome = ringfence()
        .args([
            "run",
            "--",
            "sh",
            "-c",
            "echo text > file; echo $HOME; cat .ssh/key",
        ])
        .env("HOME", home.path())
        .folder(home.path())
        .run();
    assert_eq!(outcome.stdout, format!("{}\n", home.path().display()));
    assert_eq!(home.read("file"), "text\n");
    assert_eq!(home.read(".ssh/key"), "secret\n");
}

#[test]
fn a_missing_home_does_not_matter() {
    let folder = Folder::new();
    for change in ["unset HOME", "HOME=", "HOME=/no/such/home", "HOME=relative"] {
        let outcome = Program::new("sh")
            .args([
                "-c",
                &format!("{change}; exec \"$RF\" run -- sh -c 'exit 6'"),
            ])
            .env("RF", binary())
            .folder(folder.path())
            .run();
        // It runs, or says which variable is wrong.
        match outcome.code() {
            6 => {}
            125 => has(&outcome.stderr, "HOME"),
            code => panic!("{change}: {code}: {}", outcome.stderr),
        }
    }
}

#[test]
fn an_argument_that_is_no_text_is_passed_on() {
    let folder = Folder::new();
    let odd = OsString::from_vec(vec![b'a', 0xff, 0xfe, b'\n', 0x1b, b'z']);
    let words = ["run", "--", "sh", "-c", "printf %s \"$1\" > out", "sh"];
    let words = words.iter().map(OsString::from).chain([odd.clone()]);
    ringfence()
        .args(words)
        .folder(folder.path())
        .run()
        .expect_code(0);
    assert_eq!(
        std::fs::read(folder.join("out")).expect("a file"),
        odd.as_bytes()
    );
}

#[test]
fn an_empty_argument_and_many_arguments_are_passed_on() {
    let many: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    let words = [
        "run",
        "--",
        "sh",
        "-c",
        "echo \"$# [$1] [$2]\"",
        "sh",
        "",
        " ",
    ];
    let outcome = ringfence()
        .args(words.into_iter().map(str::to_owned).chain(many))
        .folder(Folder::new().path())
        .run()
        .expect_code(0);
    assert_eq!(outcome.stdout, "10002 [] [ ]\n");
}

#[test]
fn a_working_folder_whose_name_is_no_text_works() {
    let folder = Folder::new();
    let odd = folder.join(OsStr::from_bytes(b"f\xff\xfe \n\x1b[31m"));
    std::fs::create_dir(&odd).expect("a folder");
    inside(&odd, "echo text > file").expect_code(0);
    assert!(odd.join("file").is_file());
}

/// Starts the binary with two mebibytes of environment, for which a shell or
/// the test itself would have too little stack.
const LARGE_ENVIRONMENT: &str = "
import os, resource, sys
_, most = resource.getrlimit(resource.RLIMIT_STACK)
resource.setrlimit(resource.RLIMIT_STACK, (64 << 20 if most < 0 else min(64 << 20, most), most))
for number in range(32):
    os.environ[f'LARGE_{number}'] = 'x' * 65535
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn a_large_environment_works() {
    let folder = Folder::new();
    let run = |flags: &[&str]| {
        let rest = ["--", "sh", "-c", "env | wc -c"];
        Program::new("python3")
            .args(["-c", LARGE_ENVIRONMENT])
            .args([binary()])
            .args(["run"].iter().chain(flags).chain(&rest).copied())
            .folder(folder.path())
            .run()
            .expect_code(0)
    };
    let size = |outcome: &Outcome| outcome.stdout.trim().parse::<u64>().expect("a number");
    assert!(size(&run(&["--pass-env", "*"])) > 2 << 20);
    assert!(size(&run(&[])) < 1 << 16);
}

#[test]
fn ten_thousand_rules_for_files_work() {
    let folder = Folder::new();
    let mut text = String::from("version: 1\nfilesystem:\n  read:\n    deny:\n");
    for number in 0..5_000 {
        writeln!(text, "    - /no/such/place/{number}").expect("text");
    }
    text.push_str("  write:\n    deny:\n");
    for number in 0..5_000 {
        writeln!(text, "    - kept/{number}").expect("text");
    }
    folder.write("policy.yaml", &text);
    std::fs::create_dir(folder.join("kept")).expect("a folder");
    let script = "echo x > free; mkdir -p kept; echo x > kept/other; echo x > kept/4999 || exit 9";
    inside_with(folder.path(), &["--policy", "policy.yaml"], script).expect_code(9);
    assert!(folder.has("free") && folder.has("kept/other") && !folder.has("kept/4999"));
}

#[test]
fn ten_thousand_hidden_places_that_exist_work() {
    let folder = Folder::new();
    let mut text = String::from("version: 1\nfilesystem:\n  read:\n    deny:\n");
    for number in 0..10_000 {
        folder.write(format!("places/{number}"), "secret\n");
        writeln!(text, "    - places/{number}").expect("text");
    }
    folder.write("policy.yaml", &text);
    let script = "echo ran; cat places/0 places/9999";
    let outcome = inside_with(folder.path(), &["--policy", "policy.yaml"], script);
    assert_eq!(outcome.stdout, "ran\n", "{}", outcome.stderr);
}

#[test]
fn ten_thousand_rules_for_hosts_work() {
    let folder = Folder::new();
    let mut text = String::from("version: 1\nnetwork:\n  mode: allowlist\n  allow:\n");
    for number in 0..10_000 {
        writeln!(text, "  - host-{number}.example.org").expect("text");
    }
    folder.write("policy.yaml", &text);
    for (host, code) in [("host-9999.example.org", 0), ("host-10000.example.org", 3)] {
        let words = ["policy", "explain", host, "--policy", "policy.yaml"];
        ringfence()
            .args(words)
            .folder(folder.path())
            .run()
            .expect_code(code);
    }
}
