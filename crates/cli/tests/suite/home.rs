//! The home directory: a private layer, one that is kept, or none; and writable places that are
//! not there or are single files.

use ringfence_testkit::{Folder, Outcome, Program, Started, is_root, sh, wait_until};

use super::arena::{refused, state};
use super::ringfence;

const SECRET: &str = "s3cr3t-of-the-home";

/// A home directory outside of the folders for temporary files, a project, and where records go.
struct Place {
    home: Folder,
    project: Folder,
    state: Folder,
}

impl Place {
    fn new() -> Self {
        let home = Folder::durable();
        for name in [".ssh/id", ".config/gh/hosts.yml", ".netrc", ".claude.json"] {
            home.write(name, SECRET);
        }
        home.write(".bashrc", "start\n");
        home.write(".config/tool/settings", "old");
        home.write(".cache/pip/wheel", "of the host");
        Self {
            home,
            project: Folder::new(),
            state: Folder::new(),
        }
    }

    fn command(&self, words: &[&str]) -> Program {
        ringfence()
            .args(words.iter().copied())
            .env("HOME", self.home.path())
            .env("XDG_STATE_HOME", self.state.path())
            .folder(&self.project)
    }

    fn program(&self, flags: &[&str], script: &str) -> Program {
        let command = ["--", "sh", "-c", script];
        self.command(&[&["run"], flags, &command].concat())
    }

    fn inside(&self, flags: &[&str], script: &str) -> Outcome {
        self.program(flags, script).run()
    }

    fn outside(&self, script: &str) -> Outcome {
        let shell = Program::new("sh").args(["-c", script]);
        shell
            .env("HOME", self.home.path())
            .folder(&self.project)
            .run()
    }

    /// Starts a script that says when it has begun, and goes on once it is told to.
    fn start(&self, flags: &[&str], before: &str, after: &str) -> Started {
        let script =
            format!("{before}; touch go; while [ ! -e done ]; do sleep 0.05; done; {after}");
        let started = self.program(flags, &script).start();
        assert!(wait_until(|| self.project.has("go")), "it did not start");
        started
    }
}

/// What package managers and agents do in a home directory on their first run.
const TOOLS: &str = r#"set -e; cd ~
mkdir -p .npm/_cacache/tmp && echo a > .npm/_cacache/tmp/x && mv .npm/_cacache/tmp/x .npm/_cacache/x
mkdir -p .cargo/registry && touch .cargo/.package-cache && mkdir .cargo/registry/t && mv .cargo/registry/t .cargo/registry/src
echo new > .cache/pip/wheel.tmp && mv .cache/pip/wheel.tmp .cache/pip/wheel
echo '{}' > .claude.json.tmp && mv .claude.json.tmp .claude.json
echo 'ls' >> .bash_history; rm -rf .config/tool && mkdir -p .config/tool && echo s > .config/tool/new
python3 -c 'import sqlite3; d = sqlite3.connect(".cache/db"); d.execute("create table t (x)"); d.commit()'
ln .cache/pip/wheel .cache/pip/hard && chmod 600 .cache/pip/hard
cat .npm/_cacache/x .cache/pip/wheel .claude.json .bash_history; ls .config/tool
test -d .cargo/registry/src && test -s .cache/db"#;

#[test]
fn g4_tools_find_their_caches_again_and_the_host_none_of_it() {
    let place = Place::new();
    let before = state(place.home.path());
    let outcome = place.inside(&[], TOOLS).expect_code(0);
    assert_eq!(outcome.stdout, "a\nnew\n{}\nls\nnew\n");
    assert_eq!(outcome.stderr, "");
    assert_eq!(state(place.home.path()), before);
}

#[test]
fn g4_start_files_are_changed_in_the_layer_alone() {
    let place = Place::new();
    for change in [
        "echo evil >> ~/.bashrc",
        "echo evil > ~/n && mv ~/n ~/.bashrc",
        "ln -sf /etc/passwd ~/.bashrc",
        "rm ~/.bashrc",
        "chmod 777 ~/.bashrc ~",
        "mkdir -p ~/.config/autostart && echo evil > ~/.config/autostart/x",
    ] {
        let before = state(place.home.path());
        place.inside(&[], change).expect_code(0);
        assert_eq!(state(place.home.path()), before, "{change}");
    }
}

#[test]
fn g4_hidden_places_stay_hidden_under_the_layer() {
    for attack in [
        "cat ~/.ssh/id",
        "cat ~/.claude.json",
        "cd ~ && mv .config c && cat c/gh/hosts.yml",
        "cd ~ && mv .ssh s && cat s/id",
        "cd ~ && mv .netrc n && cat n",
        "cd ~ && ln .netrc n && cat n",
        "cd ~ && ln -s .ssh s && cat s/id",
        "cp -a ~ copy; cat copy/.ssh/id",
        "exec 5< ~; cat /proc/self/fd/5/.netrc",
        "cat /proc/self/root/$HOME/.netrc",
        "cd ~/.config && cat ../.netrc",
        "mkdir -p ~/.ssh; cat ~/.ssh/id",
        "mkdir -p ~/.config/gh; cat ~/.config/gh/hosts.yml",
        "test -s ~/.netrc || touch ~/.netrc; cat ~/.netrc | grep .",
        "grep -r s3cr3t ~",
    ] {
        let place = Place::new();
        let outside = Place::new().outside(attack).expect_code(0);
        assert!(outside.stdout.contains("s3cr3t"), "{attack}");
        let outcome = refused(attack, place.inside(&[], attack));
        assert!(!outcome.stdout.contains("s3cr3t"), "{attack}");
    }
}

#[test]
fn g4_a_name_made_and_removed_inside_does_not_uncover_the_hosts() {
    let place = Place::new();
    std::fs::remove_file(place.home.join(".netrc")).unwrap();
    let names = "~/.netrc ~/.aws/credentials ~/.config/op/x";
    let begin = "mkdir -p ~/.aws ~/.config/op; touch ~/.netrc ~/.aws/credentials ~/.config/op/x; \
                 rm -r ~/.netrc ~/.aws ~/.config/op";
    let started = place.start(&[], begin, &format!("cat {names}"));
    for name in [".netrc", ".aws/credentials", ".config/op/x"] {
        place.home.write(name, SECRET);
    }
    place.outside(&format!("cat {names}")).expect_code(0);
    place.project.write("done", "");
    assert_eq!(refused("cat", started.finish()).stdout, "");
}

/// As agents do with their settings while another run of theirs is in a sandbox.
#[test]
fn g4_a_copy_that_the_host_makes_of_a_hidden_file_cannot_be_read() {
    let place = Place::new();
    let names = "~/.claude.json.tmp.1 ~/.ssh-old/id ~/.config/gh.new";
    let started = place.start(&[], "ls ~ ~/.config > /dev/null", &format!("cat {names}"));
    place.home.write(".claude.json.tmp.1", SECRET);
    place.home.write(".config/gh.new", SECRET);
    std::fs::rename(place.home.join(".ssh"), place.home.join(".ssh-old")).unwrap();
    place.outside(&format!("cat {names}")).expect_code(0);
    place.project.write("done", "");
    assert_eq!(refused("cat", started.finish()).stdout, "");
}

#[test]
fn g4_a_working_folder_in_the_home_is_the_hosts_own_and_guarded() {
    let mut place = Place::new();
    let inner = place.home.join("src/project");
    std::fs::create_dir_all(&inner).unwrap();
    place.home.write("src/other", "old");
    let run = |script: &str| place.program(&[], script).folder(&inner).run();
    run("echo made > file; echo new > ~/src/other; cat ~/src/other").expect_code(0);
    assert_eq!(place.home.read("src/project/file"), "made\n");
    assert_eq!(place.home.read("src/other"), "old");
    for attack in [
        "echo evil > .bashrc",
        "mv ~/src/project ~/src/p && echo evil > ~/src/p/.bashrc",
    ] {
        refused(attack, run(attack));
    }
    assert!(!place.home.has("src/project/.bashrc"));
    // One that is only shown is not private either.
    place.project = Folder::new();
    let flags = ["--profile", "moderate", "--weaker", "limits"];
    let words = [&["run"], &flags[..], &["--", "sh", "-c", "echo evil > new"]].concat();
    refused("write", place.command(&words).folder(&inner).run());
}

#[test]
fn a_home_that_is_worked_in_has_no_layer() {
    let place = Place::new();
    let inside = |script: &str| place.program(&[], script).folder(&place.home).run();
    inside("echo made > file").expect_code(0);
    assert_eq!(place.home.read("file"), "made\n");
    refused("echo evil >> .bashrc", inside("echo evil >> .bashrc"));
}

#[test]
fn none_leaves_the_home_read_only() {
    let place = Place::new();
    let before = state(place.home.path());
    refused("write", place.inside(&["--home", "none"], "echo x > ~/new"));
    let outcome = place
        .inside(&["--home", "none"], "cat ~/.bashrc")
        .expect_code(0);
    assert_eq!(outcome.stdout, "start\n");
    refused("read", place.inside(&["--home", "none"], "cat ~/.netrc"));
    assert_eq!(state(place.home.path()), before);
}

#[test]
fn a_home_that_does_not_show_is_empty_and_private() {
    let place = Place::new();
    for profile in ["restrictive", "moderate"] {
        let flags = ["--profile", profile, "--weaker", "limits"];
        let script = "ls -A ~; mkdir ~/.npm && echo made > ~/.npm/x && cat ~/.npm/x";
        let outcome = place.inside(&flags, script).expect_code(0);
        // A home among system folders shows even in the narrow scope, as those do.
        let shows = profile == "restrictive" && place.home.path().starts_with("/opt");
        let wanted = if shows {
            ".bashrc\n.cache\n.config\nmade\n"
        } else {
            "made\n"
        };
        assert_eq!(outcome.stdout, wanted, "{profile}");
        assert!(!place.home.has(".npm"));
    }
}

#[test]
fn without_an_overlay_the_caches_are_private() {
    let place = Place::new();
    std::fs::create_dir(place.home.join("mnt")).unwrap();
    let before = state(place.home.path());
    // The kernel makes no layer of a directory with a mount in it that is not the sandbox's own.
    let script = format!(
        "mount -t tmpfs none $HOME/mnt && exec {} run --weaker host-root -- sh -c \
         'ls ~/.cache; echo made > ~/.cache/x && cat ~/.cache/x; cat ~/.ssh/id; echo evil > ~/new'",
        ringfence().path().display()
    );
    let outcome = Program::new("unshare")
        .args(["-Urm", "sh", "-c", &script])
        .env("HOME", place.home.path())
        .env("XDG_STATE_HOME", place.state.path())
        .folder(&place.project)
        .run();
    assert_eq!(refused("write", outcome).stdout, "made\n");
    assert_eq!(state(place.home.path()), before);
}

#[test]
fn a_kept_home_is_found_again_by_its_project_alone() {
    let mut place = Place::new();
    let before = state(place.home.path());
    let keep = ["--home", "keep"];
    place
        .inside(
            &keep,
            "mkdir ~/.npm; echo cached > ~/.npm/x; echo own > ~/.claude.json; rm ~/.bashrc",
        )
        .expect_code(0);
    let read = "cat ~/.npm/x ~/.claude.json; ls -A ~";
    let outcome = place.inside(&keep, read).expect_code(0);
    assert_eq!(
        outcome.stdout,
        "cached\nown\n.cache\n.claude.json\n.config\n.npm\n"
    );
    refused("private", place.inside(&[], "cat ~/.npm/x"));
    refused("hidden", place.inside(&keep, "cat ~/.ssh/id"));
    // Nor is it in sight of whoever uses it.
    let store = format!("ls -A {}/ringfence/homes | grep .", place.state.text());
    sh(&store, place.project.path()).expect_code(0);
    refused("store", place.inside(&keep, &store));
    place.project = Folder::new();
    refused("another project", place.inside(&keep, "cat ~/.npm/x"));
    assert_eq!(state(place.home.path()), before);
}

#[test]
fn g4_a_preset_keeps_the_home_for_itself_and_the_project() {
    let place = Place::new();
    let state = "cat ~/.tool-state 2>/dev/null || echo none";
    let agent = ["--preset", "claude"];
    place
        .inside(&agent, "echo session > ~/.tool-state")
        .expect_code(0);
    let found = |flags: &[&str]| place.inside(flags, state).expect_code(0).stdout;
    assert_eq!(found(&agent), "session\n");
    let policy = place
        .state
        .write("p.yaml", "version: 1\nfilesystem: {home: private}\n");
    let policy = policy.to_str().unwrap();
    for flags in [
        &[][..],
        &["--preset", "codex"],
        &["--preset", "node"],
        &["--home", "keep"],
        &["--preset", "claude", "--home", "private"],
        &["--preset", "claude", "--policy", policy],
        &["--preset", "claude", "--ceiling", policy],
    ] {
        assert_eq!(found(flags), "none\n", "{flags:?}");
    }
    let other = Folder::new();
    let words = ["run", "--preset", "claude", "--", "sh", "-c", state];
    let elsewhere = place.command(&words).folder(&other).run();
    assert_eq!(elsewhere.expect_code(0).stdout, "none\n");
    assert!(!place.home.has(".tool-state"));
    let listed = place.command(&["home", "list"]).run().expect_code(0).stdout;
    let lines = listed.lines().filter(|line| line.starts_with("claude-"));
    assert_eq!(lines.count(), 2, "{listed}");
    let shown = place.command(&["policy", "show", "--preset", "claude"]);
    let shown = shown.run().expect_code(0).stdout;
    let row = shown.lines().find(|row| row.contains("filesystem.home"));
    let row = row.unwrap_or_default();
    assert!(
        row.contains("keep") && row.contains("preset claude"),
        "{row}"
    );
}

#[test]
fn a_home_that_only_a_preset_keeps_stops_no_second_run() {
    let place = Place::new();
    let agent = ["--preset", "claude"];
    let first = place.start(&agent, "echo one > ~/.tool-state", "cat ~/.tool-state");
    let second = place.inside(&agent, "echo two > ~/.tool-state; cat ~/.tool-state");
    assert_eq!(second.expect_code(0).stdout, "two\n");
    let report = place.project.join("r.json");
    let flags = ["--preset", "claude", "--report", "r.json"];
    let third = place.inside(&flags, "true").expect_code(0);
    let said = "the home was private this time: the kept home claude-";
    assert!(third.stderr.contains(said), "{}", third.stderr);
    let report = std::fs::read_to_string(report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["home"]["origin"], "preset claude");
    assert!(report["home"]["notKept"].is_string() && report["home"]["kept"].is_null());
    let listed = place.command(&["home", "list", "--json"]).run().stdout;
    let homes: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let name = homes[0]["name"].as_str().unwrap_or_default();
    let asked = place.inside(&["--home", &format!("keep={name}")], "true");
    assert!(asked.expect_code(125).stderr.contains("home-in-use"));
    place.project.write("done", "");
    assert_eq!(first.finish().expect_code(0).stdout, "one\n");
}

#[test]
fn a_kept_home_is_one_runs_at_a_time() {
    let place = Place::new();
    let keep = ["--home", "keep=web"];
    let started = place.start(&keep, "echo a > ~/a", "cat ~/a");
    let second = place.inside(&keep, "true").expect_code(125);
    assert!(
        second.stderr.contains("error[home-in-use]"),
        "{}",
        second.stderr
    );
    let remove = place
        .command(&["home", "remove", "web"])
        .run()
        .expect_code(1);
    assert!(
        remove.stderr.contains("error[home-in-use]"),
        "{}",
        remove.stderr
    );
    place
        .inside(&["--home", "keep=other"], "true")
        .expect_code(0);
    place.project.write("done", "");
    started.finish().expect_code(0);
    place.inside(&keep, "cat ~/a").expect_code(0);
}

#[test]
fn kept_homes_are_listed_shown_removed_and_pruned() {
    let place = Place::new();
    for name in ["keep=a", "keep=b"] {
        place
            .inside(
                &["--home", name],
                "mkdir ~/.npm ~/shut; chmod 0 ~/shut; rm ~/.bashrc",
            )
            .expect_code(0);
    }
    let run = |words: &[&str]| place.command(&[&["home"], words].concat()).run();
    let listed = run(&["list", "--json"]).expect_code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["inUse"]),
        (&"a".into(), &false.into())
    );
    assert_eq!(listed[1]["project"], place.project.text());
    let shown = run(&["show", "a"]).expect_code(0).stdout;
    assert!(
        shown.contains("removed    .bashrc") && shown.contains("directory  .npm"),
        "{shown}"
    );
    run(&["remove", "a"]).expect_code(0);
    for words in [["remove", "a"], ["show", "a"]] {
        let gone = run(&words).expect_code(1);
        assert!(
            gone.stderr.contains("error[unknown-home-name]"),
            "{}",
            gone.stderr
        );
    }
    run(&["prune"]).expect_code(0);
    let pruned = run(&["prune", "--older-than", "1ms", "--json"])
        .expect_code(0)
        .stdout;
    let pruned: serde_json::Value = serde_json::from_str(&pruned).unwrap();
    assert_eq!(pruned["removed"], serde_json::json!(["b"]));
    assert_eq!(run(&["list", "--json"]).expect_code(0).stdout, "[]\n");
    for name in ["..", ".a", "a/b", "-a"] {
        run(&["remove", "--", name]).expect_code(2);
        refused_name(place.inside(&["--home", &format!("keep={name}")], "true"));
    }
}

fn refused_name(outcome: Outcome) {
    let outcome = outcome.expect_code(125);
    assert!(
        outcome.stderr.contains("error[malformed-home-name]"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn g4_links_planted_in_a_kept_home_are_not_followed() {
    let place = Place::new();
    let precious = Folder::durable();
    precious.write("file", &"x".repeat(1 << 20));
    let plant = format!(
        "ln -s {0} ~/dir; ln -s {0}/file ~/file; ln -s {0} ~/.npm",
        precious.text()
    );
    place.inside(&["--home", "keep=a"], &plant).expect_code(0);
    // What follows links sees and removes what they lead to.
    let upper = place.state.join("ringfence/homes/a/layer/upper/dir/file");
    assert!(upper.exists());
    let shown = place
        .command(&["home", "show", "a", "--json"])
        .run()
        .expect_code(0)
        .stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(
        shown["home"]["bytes"].as_u64().unwrap() < 1 << 20,
        "{shown}"
    );
    assert_eq!(shown["entries"][0]["kind"], "link");
    place.command(&["home", "remove", "a"]).run().expect_code(0);
    assert_eq!(precious.listing(), ["file"]);
    assert!(!place.state.has("ringfence/homes/a"));
}

#[test]
fn g9_the_disk_limit_counts_the_layer() {
    let place = Place::new();
    let fill =
        "dd if=/dev/zero of=$HOME/large bs=64k count=256 2>/dev/null && sync ~/large && sleep 1";
    for home in ["private", "keep=a"] {
        place.inside(&["--home", home], fill).expect_code(0);
        if home != "private" {
            place.command(&["home", "remove", "a"]).run().expect_code(0);
        }
        let outcome = place.inside(&["--home", home, "--disk", "4MiB"], fill);
        assert!(outcome.code() != 0, "{home}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("limits_hit"),
            "{home}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn exactly_a_hidden_path_is_shown() {
    let place = Place::new();
    let home = place.home.text();
    for (shown, file) in [
        (".netrc", ".netrc"),
        (".ssh", ".ssh/id"),
        (".claude.json", ".claude.json"),
    ] {
        for mode in ["private", "none"] {
            let shown = format!("{home}/{shown}");
            let flags = ["--home", mode, "--read", &shown];
            let outcome = place
                .inside(&flags, &format!("cat ~/{file}"))
                .expect_code(0);
            assert_eq!(outcome.stdout, SECRET, "{file} {mode}");
            refused("others", place.inside(&flags, "cat ~/.config/gh/hosts.yml"));
            // A directory shows through the layer, which takes what is written.
            place.inside(&flags, &format!("echo evil > ~/{file}"));
            assert_eq!(place.home.read(file), SECRET, "{file} {mode}");
        }
    }
}

#[test]
fn g11_a_directory_that_is_shown_leaves_the_home_to_tools() {
    let place = Place::new();
    for shown in [".ssh", ".config"] {
        let shown = format!("{}/{shown}", place.home.text());
        place.inside(&["--read", &shown], TOOLS).expect_code(0);
        refused(
            "hidden below",
            place.inside(&["--read", &shown], "cat ~/.config/gh/hosts.yml"),
        );
    }
    assert_eq!(place.home.read(".config/tool/settings"), "old");
}

#[test]
fn g4_a_hidden_file_in_a_closed_directory_of_an_open_home_stays_hidden() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    place.home.write("closed/secret", SECRET);
    place.home.write("closed/project/x", "");
    open(place.home.path(), 0o755);
    open(&place.home.join("closed"), 0o700);
    let policy = "version: 1\nfilesystem: {read: {deny: [~/closed/secret]}}\n";
    let policy = place.state.write("policy.yaml", policy);
    let attack = "cat ~/closed/secret";
    let script = |attack: &str| format!("cd ~/closed/project && {attack}");
    let outside = place.outside(&script(attack)).expect_code(0);
    assert_eq!(outside.stdout, SECRET);
    let inside = ringfence()
        .args(["run", "--policy", policy.to_str().unwrap(), "--"])
        .args(["sh", "-c", &format!("touch y && {attack}")])
        .env("HOME", place.home.path())
        .env("XDG_STATE_HOME", place.state.path())
        .folder(place.home.join("closed/project"));
    refused(attack, inside.run());
    assert!(place.home.has("closed/project/y"));
}

#[test]
fn what_is_not_there_to_be_shown_is_told() {
    let place = Place::new();
    let outcome = place.inside(&["--read", "nowhere"], "true").expect_code(0);
    assert!(
        outcome.stderr.contains("--read: nothing is at "),
        "{}",
        outcome.stderr
    );
    let outcome = place.inside(&["--read", "nowhere", "--quiet"], "true");
    assert_eq!(outcome.expect_code(0).stderr, "");
}

#[test]
fn a_missing_writable_directory_is_made_and_a_missing_file_is_an_error() {
    let place = Place::new();
    place
        .inside(&["--write", "out/deep/"], "echo made > out/deep/x")
        .expect_code(0);
    assert_eq!(place.project.read("out/deep/x"), "made\n");
    let missing = place.inside(&["--write", "none"], "true").expect_code(125);
    assert!(
        missing.stderr.contains("error[write-missing]"),
        "{}",
        missing.stderr
    );
    assert!(
        missing.stderr.contains("--write PATH/"),
        "{}",
        missing.stderr
    );
    assert!(!place.project.has("none"));
    let home = format!("{}/made/", place.home.text());
    place
        .inside(&["--write", &home], "echo made > ~/made/x")
        .expect_code(0);
    assert_eq!(place.home.read("made/x"), "made\n");
    std::os::unix::fs::symlink("/opt", place.project.join("link")).unwrap();
    let link = place
        .inside(&["--write", "link/ringfence-made/"], "true")
        .expect_code(125);
    assert!(
        link.stderr.contains("error[place-by-link]"),
        "{}",
        link.stderr
    );
}

#[test]
fn a_writable_file_can_be_replaced_by_a_rename() {
    let place = Place::new();
    place.home.write("settings.json", "old and longer");
    let file = format!("{}/settings.json", place.home.text());
    let flags = ["--write", &file];
    let script = "echo new > ~/settings.json.tmp && mv ~/settings.json.tmp ~/settings.json && \
                  cat ~/settings.json && ls ~";
    let outcome = place.inside(&flags, script).expect_code(0);
    assert_eq!(outcome.stdout, "new\nsettings.json\n");
    assert_eq!(place.home.read("settings.json"), "new\n");
    for attack in [
        "ln -s /etc/passwd ~/l && mv -T ~/l ~/settings.json",
        "mkdir ~/d && mv -T ~/d ~/settings.json",
        "rm ~/settings.json",
        "mv ~/settings.json ~/moved",
    ] {
        refused(attack, place.inside(&flags, attack));
    }
    assert_eq!(place.home.read("settings.json"), "new\n");
}

/// How tools replace a file: by a new one beside it.
const REPLACING: &[&str] = &[
    "sed -i s/old/new/ FILE",
    "git config --file FILE a.b new",
    "python3 -c 'import os,tempfile; h,p=tempfile.mkstemp(dir=os.path.dirname(\"FILE\")); \
     os.write(h,b\"new\"); os.chmod(p,0o600); os.replace(p,\"FILE\")'",
    "cp FILE FILE~ && echo new > FILE.tmp && chmod 640 FILE.tmp && mv -f FILE.tmp FILE && rm FILE~",
];

#[test]
fn g4_a_writable_file_is_replaced_in_a_directory_that_stays_as_it_is() {
    let (place, elsewhere) = (Place::new(), Folder::durable());
    elsewhere.write("other", "of the host");
    elsewhere.write("sub/secret", SECRET);
    let file = elsewhere.join("settings").display().to_string();
    for script in REPLACING {
        elsewhere.write("settings", "[a]\nb = old\n");
        let outcome = place.inside(&["--write", &file], &script.replace("FILE", &file));
        assert_eq!(outcome.expect_code(0).stderr, "", "{script}");
        let now = elsewhere.read("settings");
        assert!(
            now.contains("new") && !now.contains("old"),
            "{script}: {now}"
        );
        assert_eq!(
            elsewhere.listing(),
            ["other", "settings", "sub", "sub/secret"]
        );
    }
    // Nothing else of it is the host's own, and what is gone is told. Root's other files are not
    // given away with one of them.
    let changes = "echo x > other && rm -r sub";
    let may_change = !is_root();
    let script = format!("cd $(dirname {file}) && echo x > made");
    let script = if may_change {
        format!("{script} && {changes}")
    } else {
        format!("{script} && ! ({changes})")
    };
    let outcome = place.inside(&["--write", &file], &script).expect_code(0);
    assert_eq!(
        elsewhere.listing(),
        ["other", "settings", "sub", "sub/secret"]
    );
    assert_eq!(elsewhere.read("other"), "of the host");
    let told = "written beside files that alone are writable, and gone with this run:";
    assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
    for (line, is_told) in [
        ("made ", true),
        ("changed ", may_change),
        ("removed ", may_change),
    ] {
        assert_eq!(
            outcome.stderr.contains(line),
            is_told,
            "{line}: {}",
            outcome.stderr
        );
    }
    assert!(
        !outcome.stderr.contains("--home keep"),
        "{}",
        outcome.stderr
    );
    let made = elsewhere.path().canonicalize().unwrap().join("made");
    let hint = format!("--write {}", made.display());
    assert!(outcome.stderr.contains(&hint), "{}", outcome.stderr);
    // A mount point cannot be moved away, as the kernel says it.
    let moving = format!("mv {file} {file}.moved");
    let outcome = place.inside(&["--write", &file], &moving);
    assert!(
        outcome.code() != 0 && outcome.stderr.contains("busy"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn files_in_nested_directories_are_replaced_in_any_order() {
    let (place, elsewhere) = (Place::new(), Folder::durable());
    let files = ["f", "sub/f"].map(|name| elsewhere.write(name, "old").display().to_string());
    for order in [[0, 1], [1, 0]] {
        let [one, other] = order.map(|at| files[at].as_str());
        let script = format!("sed -i s/old/new/ {one} && sed -i s/old/new/ {other}");
        let flags = ["--write", one, "--write", other];
        place.inside(&flags, &script).expect_code(0);
        for name in ["f", "sub/f"] {
            assert_eq!(elsewhere.read(name), "new");
            elsewhere.write(name, "old");
        }
    }
}

#[test]
fn g4_a_pipe_beside_a_writable_file_cannot_be_written_to() {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    const NON_BLOCKING: i32 = 0o4000;
    let (place, elsewhere) = (Place::new(), Folder::durable());
    let file = elsewhere.write("f", "old").display().to_string();
    elsewhere.write("sub/x", "");
    let text = elsewhere.path().display().to_string();
    let (pipe, shown) = (format!("{text}/sub/pipe"), format!("{text}/sub"));
    place.outside(&format!("mkfifo {pipe}")).expect_code(0);
    let mut options = std::fs::File::options();
    let options = options.read(true).write(true).custom_flags(NON_BLOCKING);
    let mut reader = options.open(&pipe).unwrap();
    let attack =
        format!("python3 -c 'import os; os.write(os.open(\"{pipe}\", os.O_RDWR), b\"x\")'");
    let mut room = [0];
    place.outside(&attack).expect_code(0);
    assert_eq!(reader.read(&mut room).unwrap(), 1);
    for flags in [
        &["--write", file.as_str()][..],
        &["--write", &file, "--read", &shown],
    ] {
        place
            .inside(flags, &format!("{attack}; true"))
            .expect_code(0);
        assert!(reader.read(&mut room).is_err(), "{flags:?}");
    }
}

#[test]
fn g4_files_of_others_beside_a_writable_file_stay_shut_for_root() {
    use std::os::unix::fs::PermissionsExt;
    let (place, elsewhere) = (Place::new(), Folder::durable());
    let file = elsewhere.write("f", "old").display().to_string();
    let secret = elsewhere.write("sub/secret", SECRET);
    for (path, mode) in [(elsewhere.path(), 0o755), (secret.as_path(), 0o600)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let attack = format!("cat {}", secret.display());
    assert_eq!(place.outside(&attack).expect_code(0).stdout, SECRET);
    let inside = place.inside(&["--write", &file], &attack);
    // An ordinary user's own files are the command's to read in any case.
    assert_eq!(inside.code() != 0, is_root());
    let works = format!("sed -i s/old/new/ {file}");
    place.inside(&["--write", &file], &works).expect_code(0);
    assert_eq!(elsewhere.read("f"), "new");
}

#[test]
fn g4_what_comes_to_a_hidden_path_behind_a_link_stays_hidden() {
    let place = Place::new();
    let real = Folder::durable();
    real.write("token", SECRET);
    real.write("user/.config/tool", "x");
    let link = place.state.join("link");
    std::os::unix::fs::symlink(real.path(), &link).unwrap();
    let hidden = link.join("token").display().to_string();
    let token = real.join("token").display().to_string();
    let replaced = place.start(&["--hide", &hidden], "true", &format!("cat {token}"));
    real.write(".new", SECRET);
    std::fs::rename(real.join(".new"), real.join("token")).unwrap();
    place.project.write("done", "");
    refused("replaced", replaced.finish());
    for name in ["go", "done"] {
        std::fs::remove_file(place.project.join(name)).unwrap();
    }
    let home = link.join("user").display().to_string();
    let attack = "cat ~/.config/gh/hosts.yml ~/.netrc";
    let script = format!("touch go; while [ ! -e done ]; do sleep 0.05; done; {attack}");
    let started = place
        .program(&["--home", "none"], &script)
        .env("HOME", &home)
        .start();
    assert!(wait_until(|| place.project.has("go")), "it did not start");
    real.write("user/.config/gh/hosts.yml", SECRET);
    real.write("user/.netrc", SECRET);
    place.project.write("done", "");
    let outcome = started.finish();
    assert!(!outcome.stdout.contains(SECRET), "{}", outcome.stdout);
}

#[test]
fn what_is_in_the_way_in_a_kept_home_is_told() {
    let place = Place::new();
    place.home.write("proj/in/x", "");
    let flags = ["--home", "keep=way"];
    place
        .inside(&flags, "cd && rm -rf proj && ln -s /etc proj")
        .expect_code(0);
    let outcome = place
        .program(&flags, "pwd")
        .folder(place.home.join("proj/in"))
        .run()
        .expect_code(125);
    for text in ["error[place-in-the-way]", "ringfence home list"] {
        assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
    }
}

#[test]
fn g4_what_is_hidden_beside_a_writable_file_stays_hidden() {
    let (place, elsewhere) = (Place::new(), Folder::durable());
    for name in ["settings", "sub/plain"] {
        elsewhere.write(name, "old");
    }
    for name in ["token", "sub/token"] {
        elsewhere.write(name, SECRET);
    }
    let text = elsewhere.path().display().to_string();
    let denies = format!("[{text}/token, {text}/sub/token]");
    let policy = format!("version: 1\nfilesystem: {{read: {{deny: {denies}}}}}\n");
    let policy = place.state.write("policy.yaml", &policy);
    let file = format!("{text}/settings");
    let flags = ["--policy", policy.to_str().unwrap(), "--write", &file];
    let works = format!("cat {text}/sub/plain && sed -i s/old/new/ {file}");
    place.inside(&flags, &works).expect_code(0);
    assert_eq!(elsewhere.read("settings"), "new");
    for attack in [
        format!("cat {text}/token"),
        format!("cat {text}/sub/token"),
        format!("echo x > {text}/token; rm {text}/token; cat {text}/token"),
        format!("mv {text}/sub {text}/moved && cat {text}/moved/token"),
        format!("ln {text}/token {text}/x && cat {text}/x"),
    ] {
        let outside = place.outside(&format!("cat {text}/token")).expect_code(0);
        assert_eq!(outside.stdout, SECRET);
        let inside = place.inside(&flags, &attack);
        assert!(
            inside.code() != 0 && !inside.stdout.contains(SECRET),
            "{attack}"
        );
    }
}

#[test]
fn g11_what_is_mounted_in_the_home_is_there_for_root() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    for name in ["volume/x", "file", "plain/x"] {
        place.home.write(name, "covered");
    }
    let script = "cat ~/volume/x ~/file ~/plain/x; echo changed > ~/volume/y; cat ~/volume/y";
    let inside = format!(
        "{} run -- sh -c '{script}'",
        env!("CARGO_BIN_EXE_ringfence")
    );
    let outside = format!(
        "cd ~ && mount -t tmpfs none volume && echo mounted > volume/x && \
         echo of the host > volume/y && echo a file > other && mount --bind other file && \
         mount -t ramfs none plain && echo unmapped > plain/x && \
         cd - > /dev/null && {inside} && cat ~/volume/y"
    );
    let outcome = Program::new("unshare")
        .args(["--mount", "sh", "-c", &outside])
        .env("HOME", place.home.path())
        .env("XDG_STATE_HOME", place.state.path())
        .folder(&place.project)
        .run()
        .expect_code(0);
    let seen = "mounted\na file\nunmapped\nchanged\nof the host\n";
    assert_eq!(outcome.stdout, seen, "{}", outcome.stderr);
}

#[test]
fn g4_nothing_below_mounts_in_the_home_shows() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let inside = format!(
        "{} run -- sh -c 'cat ~/many/*/x ~/one'",
        env!("CARGO_BIN_EXE_ringfence")
    );
    let outside = format!(
        "cd ~ && echo {SECRET} > one && mount --bind /dev/null one && \
         for i in $(seq 40); do mkdir -p many/$i && echo {SECRET} > many/$i/x && \
         mount -t tmpfs none many/$i; done; cd - > /dev/null; {inside}"
    );
    let outcome = Program::new("unshare")
        .args(["--mount", "sh", "-c", &outside])
        .env("HOME", place.home.path())
        .env("XDG_STATE_HOME", place.state.path())
        .folder(&place.project)
        .run();
    assert!(!outcome.stdout.contains(SECRET), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("cat:"), "{}", outcome.stderr);
}

#[test]
fn g11_a_closed_directory_of_somebody_else_in_the_home_can_be_worked_in() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    place.home.write("other/proj/x", "seen");
    place
        .outside("chmod 755 ~ && chown -R 12345 ~/other && chmod 700 ~/other")
        .expect_code(0);
    let outcome = place
        .program(&[], "cat x && echo y > y && cat ~/.config/tool/settings")
        .folder(place.home.join("other/proj"))
        .run()
        .expect_code(0);
    assert_eq!(outcome.stdout, "seenold");
    let shown = format!("{}/other", place.home.text());
    let outcome = place.inside(&["--read", &shown], "cat ~/other/proj/x");
    assert_eq!(outcome.expect_code(0).stdout, "seen");
}

#[test]
fn a_ceiling_and_settings_of_srt_bound_the_home() {
    let place = Place::new();
    let ceiling = place
        .project
        .write("ceiling.yaml", "version: 1\nfilesystem: {home: none}\n");
    let policy = place
        .project
        .write("policy.yaml", "version: 1\nfilesystem: {home: keep=web}\n");
    let [ceiling, policy] = [&ceiling, &policy].map(|path| path.to_str().unwrap());
    let flags = ["--policy", policy, "--ceiling", ceiling];
    refused("write", place.inside(&flags, "echo x > ~/new"));
    place.inside(&flags[..2], "echo x > ~/new").expect_code(0);
    assert!(place.state.has("ringfence/homes/web"));
    place
        .inside(
            &[&flags[..2], &["--home", "private"]].concat(),
            "test ! -e ~/new",
        )
        .expect_code(0);
    let shown = place
        .command(&["policy", "show", "--policy", policy])
        .run()
        .expect_code(0)
        .stdout;
    assert!(shown.contains("keep=web"), "{shown}");
    let settings = r#"{"network": {"allowedDomains": [], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}"#;
    let settings = place.project.write("srt.json", settings);
    refused(
        "srt",
        place.inside(
            &["--settings", settings.to_str().unwrap()],
            "echo x > ~/new",
        ),
    );
}

#[test]
fn g4_a_pipe_of_the_host_in_the_home_cannot_be_written_to() {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    const NON_BLOCKING: i32 = 0o4000;
    let place = Place::new();
    place
        .outside("mkfifo ~/pipe && mkdir ~/dir && mkfifo ~/dir/pipe")
        .expect_code(0);
    let shown = format!("{}/dir", place.home.text());
    for (name, flags) in [
        ("pipe", &[][..]),
        ("dir/pipe", &[]),
        ("dir/pipe", &["--read", &shown]),
    ] {
        let mut options = std::fs::File::options();
        let options = options.read(true).write(true).custom_flags(NON_BLOCKING);
        let mut pipe = options.open(place.home.join(name)).unwrap();
        let attack = format!(
            "python3 -c 'import os; os.write(os.open(os.path.expanduser(\"~/{name}\"), os.O_RDWR), b\"x\")'"
        );
        let mut room = [0];
        place.outside(&attack).expect_code(0);
        assert_eq!(pipe.read(&mut room).unwrap(), 1);
        // It may have a pipe of its own there.
        place
            .inside(flags, &format!("{attack}; true"))
            .expect_code(0);
        assert!(pipe.read(&mut room).is_err(), "{name} {flags:?}");
    }
}

/// What the end says about a private home.
const GONE: &str = "written to the private home, and gone with this run:";

/// A repository below the home with one commit, and a bare one beside it.
fn repository() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let project = place.home.join("code/project");
    std::fs::create_dir_all(&project).expect("a project");
    let script = "set -e; git init -q . && echo x > file && git add file
        git -c user.name=a -c user.email=a@example.org commit -q -m one
        git init -q --bare ../up.git";
    let made = Program::new("sh").args(["-c", script]);
    let made = made.env("HOME", place.home.path()).folder(&project);
    made.run().expect_code(0);
    (place, project)
}

#[test]
fn what_is_written_beside_a_project_and_gone_is_told_with_what_keeps_it() {
    let (place, project) = repository();
    let home = place.home.text();
    for (script, told, flags, before) in [
        (
            "git push -q ../up.git HEAD:refs/heads/main",
            "changed  HOME/code/up.git  ×",
            "--write HOME/code/up.git",
            "true",
        ),
        (
            "tar czf ~/x.tgz file",
            "made  HOME/x.tgz",
            "--write HOME/x.tgz",
            "touch HOME/x.tgz",
        ),
        (
            "git worktree add -q ../w",
            "made  HOME/code/w",
            "--write HOME/code/w/",
            "true",
        ),
    ] {
        let own = |text: &str| text.replace("HOME", home);
        let forget = "cd ~/code/project && git worktree prune && git branch -q -D w; true";
        let run = |flags: &[&str]| {
            place.outside(forget).expect_code(0);
            place.program(flags, script).folder(&project).run()
        };
        let outcome = run(&[]).expect_code(0);
        let said = &outcome.stderr;
        assert!(said.contains(GONE) && said.contains(&own(told)), "{said}");
        let hint = format!("to write it on the host: {}\n", own(flags));
        assert!(
            said.contains(&hint) && said.contains("--home keep"),
            "{said}"
        );
        assert!(!run(&["--quiet"]).expect_code(0).stderr.contains(GONE));
        // What is proposed is enough.
        place.outside(&own(before)).expect_code(0);
        let flags = own(flags);
        let flags: Vec<&str> = flags.split(' ').collect();
        let outcome = run(&flags).expect_code(0);
        assert!(!outcome.stderr.contains(GONE), "{}", outcome.stderr);
    }
    let kept = "git -C ~/code/up.git log --oneline main && tar tzf ~/x.tgz && cat ~/code/w/file";
    place.outside(kept).expect_code(0);
}

#[test]
fn copies_and_states_of_tools_are_not_told_as_gone() {
    let place = Place::new();
    let script = "cd ~ && mkdir -p .npm .cargo/registry .local/share/x .config/y && \
        touch .npm/a .cargo/registry/b .cargo/.package-cache .bash_history .local/share/x/c && \
        echo new > .cache/pip/wheel && rm .config/tool/settings && touch x && rm x && \
        : >> .bashrc";
    let outcome = place.inside(&["--report", "r.json"], script);
    assert_eq!(outcome.expect_code(0).stderr, "");
    let report: serde_json::Value = serde_json::from_str(&place.project.read("r.json")).unwrap();
    assert!(report["home"]["rule"] == "private" && report["home"]["dropped"].is_null());
    for flags in [["--home", "keep"], ["--home", "keep=other"]] {
        let outcome = place.inside(&flags, "echo x > ~/new").expect_code(0);
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn what_a_run_changed_and_removed_is_in_its_report() {
    let place = Place::new();
    place.home.write("notes", "old");
    let script = "cd ~ && echo new > notes && rm .bashrc && mkdir d && echo x > d/x";
    let outcome = place.inside(&["--report", "r.json"], script).expect_code(0);
    let report: serde_json::Value = serde_json::from_str(&place.project.read("r.json")).unwrap();
    let dropped = &report["home"]["dropped"];
    let told = dropped["changes"].as_array().unwrap().iter();
    let told: Vec<String> = told
        .map(|own| format!("{} {}", own["change"], own["path"]).replace('"', ""))
        .collect();
    let home = place.home.text();
    let wanted = [".bashrc", "d", "notes"]
        .iter()
        .zip(["removed", "made", "changed"]);
    let wanted: Vec<String> = wanted
        .map(|(name, change)| format!("{change} {home}/{name}"))
        .collect();
    assert_eq!(told, wanted);
    assert!(dropped["more"] == 0 && dropped["isPartial"] == false);
    assert!(!outcome.stderr.contains(&format!("--write {home}/.bashrc")));
}

#[test]
fn g9_names_that_a_run_leaves_behind_are_bounded_and_cannot_drive_the_terminal() {
    let place = Place::new();
    let script = r#"cd ~ && python3 -c '
import os
for number in range(10000):
    open(b"a\nringfence: fine\x1b[2J\xff" + b"y" * 200 + str(number).encode(), "w").close()
for _ in range(300):
    os.mkdir("deep"); os.chdir("deep")
'"#;
    let outcome = place.inside(&["--report", "r.json"], script).expect_code(0);
    let said = &outcome.stderr;
    assert!(
        said.contains(GONE) && said.contains("… and at least"),
        "{said}"
    );
    assert!(
        !said.contains('\u{1b}') && !said.contains("\nringfence: fine"),
        "{said}"
    );
    assert!(
        said.lines().count() <= 9 && !said.contains("--write"),
        "{said}"
    );
    let report: serde_json::Value = serde_json::from_str(&place.project.read("r.json")).unwrap();
    let dropped = &report["home"]["dropped"];
    assert_eq!(dropped["changes"].as_array().map(Vec::len), Some(100));
    assert_eq!(dropped["isPartial"], true);
}

#[test]
fn g9_shut_directories_and_links_in_a_private_home_stop_no_end() {
    let place = Place::new();
    place.home.write("host/file", "old");
    let script = "cd ~ && ln -s / root && mkfifo pipe && echo new > host/new && chmod 0 host";
    let outcome = place.inside(&[], script).expect_code(0);
    for name in ["/root", "/pipe", "/host"] {
        let line = format!("{}{name}", place.home.text());
        assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);
    }
}

#[test]
fn a_path_of_a_flag_may_leave_the_working_directory() {
    let (place, project) = repository();
    let flags = ["--write", "../up.git", "--write", "../new/"];
    let script = "git push -q ../up.git HEAD:refs/heads/main && echo made > ../new/x";
    let outcome = place.program(&flags, script).folder(&project).run();
    assert!(!outcome.expect_code(0).stderr.contains(GONE));
    assert_eq!(place.home.read("code/new/x"), "made\n");
    place
        .outside("git -C ~/code/up.git log --oneline main")
        .expect_code(0);
    // A file means the same for everybody.
    let rules = "[filesystem.write]\nallow = [\"../up.git\"]\n";
    std::fs::write(project.join("ringfence.toml"), rules).expect("a file");
    let words = ["policy", "check", "ringfence.toml"];
    let outcome = place.command(&words).folder(&project).run();
    assert!(outcome.code() != 0, "{}", outcome.stderr);
}

#[test]
fn what_the_user_could_not_write_outside_is_neither_told_nor_proposed() {
    let place = Place::new();
    let shut = place.home.join("shut");
    std::fs::create_dir(&shut).expect("a directory");
    std::fs::create_dir(place.home.join("open")).expect("a directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(&shut, mode).expect("its mode");
    let is_root = place.outside("touch ~/shut/probe").code() == 0;
    let script = "touch ~/shut/x ~/open/x; true";
    let outcome = place.inside(&["--home", "none"], script).expect_code(0);
    let proposed = |name: &str| format!("--write {}/{name}", place.home.text());
    let said = &outcome.stderr;
    let block = said.split("ringfence: refused").nth(1).unwrap_or_default();
    assert!(block.contains(&proposed("open")), "{said}");
    assert_eq!(block.contains("/shut"), is_root, "{said}");
}
