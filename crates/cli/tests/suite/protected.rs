//! G4: names that run code or steer an agent outside the sandbox, later, can
//! be neither made nor changed, however they are spelt and reached.

use ringfence_testkit::{Folder, Program};

use super::arena::{Arena, refused, refused_after};
use super::{inside, ringfence};

/// Protected names of each kind: a file, a folder, something inside a folder
/// that is itself free.
const NAMES: [&str; 8] = [
    ".bashrc",
    ".zshenv",
    ".gitconfig",
    ".mcp.json",
    ".vscode/tasks.json",
    ".claude/settings.json",
    ".claude/commands/x.md",
    ".husky/pre-commit",
];

#[test]
fn g4_missing_names_cannot_be_made_at_any_depth_or_in_any_case() {
    for name in NAMES {
        for name in [name.to_owned(), name.to_uppercase(), format!("a/b/{name}")] {
            let make = format!("mkdir -p $(dirname {name}) && echo evil > {name}");
            // In directories that the run made itself names are free.
            let arena = refused_after("mkdir -p a/b", &make);
            assert!(!arena.folder.has(&name), "{name}");
        }
    }
}

/// Ways to make `.bashrc`, or a folder of `.claude`, that must all fail.
const WAYS: &[(&str, &str, &str)] = &[
    ("", "./attack write .bashrc", ".bashrc"),
    ("", "./attack creat .bashrc", ".bashrc"),
    ("", "./attack openat2 .bashrc", ".bashrc"),
    ("", "./attack open .bashrc 0x40", ".bashrc"),
    ("", "./attack open .bashrc 0x100000040", ".bashrc"),
    ("", "./attack old-open .bashrc 0x41", ".bashrc"),
    ("", "./attack openat . .bashrc", ".bashrc"),
    ("", "./attack mkdirat . .bashrc", ".bashrc"),
    ("", "./attack mknod .bashrc 0100644", ".bashrc"),
    ("", "mkfifo .bashrc", ".bashrc"),
    ("", "./attack symlinkat . .bashrc target", ".bashrc"),
    ("", "ln -s /etc/profile .bashrc", ".bashrc"),
    ("", "./attack bind .bashrc", ".bashrc"),
    ("", "./attack bind ./x/../.bashrc", ".bashrc"),
    ("", "./attack nameless . .bashrc", ".bashrc"),
    ("echo x > f", "mv f .bashrc", ".bashrc"),
    ("echo x > f", "ln f .bashrc", ".bashrc"),
    ("echo x > f", "./attack link-open f .bashrc", ".bashrc"),
    ("echo x > f", "./attack renameat . f .bashrc", ".bashrc"),
    ("ln -s .bashrc l", "echo evil > l", ".bashrc"),
    (
        "ln -s l2 l; ln -s $PWD/.bashrc l2",
        "echo evil > l",
        ".bashrc",
    ),
    ("true", "ln -s .bashrc l && echo evil > l", ".bashrc"),
    ("true", "echo evil > ./x/..//.bashrc", ".bashrc"),
    ("true", "echo evil > /proc/self/cwd/.bashrc", ".bashrc"),
    (
        "true",
        "echo evil > /proc/self/root/$PWD/.bashrc",
        ".bashrc",
    ),
    (
        "true",
        "exec 5< . && echo evil > /proc/self/fd/5/.bashrc",
        ".bashrc",
    ),
    (
        "true",
        "exec 5< . && echo evil > /dev/fd/5/.bashrc",
        ".bashrc",
    ),
    ("true", "cd x && echo evil > ../.bashrc", ".bashrc"),
    ("true", "ln -s . l && echo evil > l/.bashrc", ".bashrc"),
    (
        "true",
        "mkdir -p a/commands && mv a .claude",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir -p a/commands .claude && mv a/commands .claude/",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir -p a/commands .claude && ./attack exchange a .claude",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir -p a .claude && ./attack exchange .claude a && mkdir a/commands && ./attack exchange .claude a",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir -p agent/commands && ln -s agent .claude",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir agent && ln -s agent .claude && mkdir .claude/commands",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir agent && ln -s agent l && mv l .claude && mkdir .claude/commands",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir .claude && ln -s .claude l && mkdir l/commands",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir .claude && cd .claude && mkdir commands",
        ".claude/commands",
    ),
    (
        "true",
        "mkdir .claude && ln -s /tmp .claude/commands",
        ".claude/commands",
    ),
    (
        "mkdir p",
        "mkdir -p p/.claude a/commands && mv a/commands p/.claude/ && true",
        "p/.claude/commands",
    ),
    (
        "true",
        "mkdir -p a/hooks && echo x > a/hooks/h && mv a .github",
        ".github/hooks",
    ),
    ("true", "mkdir -p a/b && mv a/b .vscode", ".vscode"),
    ("mkdir a", "./attack mkdirat a .vscode", "a/.vscode"),
];

#[test]
fn g4_no_way_to_make_a_protected_name_works() {
    for (prepare, attack, name) in WAYS {
        let prepare = if prepare.is_empty() { "true" } else { prepare };
        let prepare = format!("mkdir x && {prepare}");
        let outside = Arena::prepared(&prepare);
        outside.outside(attack).expect_code(0);
        assert!(outside.folder.has(name), "`{attack}` has no effect outside");
        let arena = refused_after(&prepare, attack);
        assert!(!arena.folder.has(name), "{attack}");
    }
}

#[test]
fn g4_a_path_that_changes_during_the_call_makes_no_protected_name() {
    let arena = refused_after("true", "./attack race okokoko .bashrc");
    assert!(arena.folder.has("okokoko"), "the race did run");
    assert!(!arena.folder.has(".bashrc"));
}

/// Ways to change an existing `DIR/.bashrc`, or what is in `DIR/.vscode`.
const CHANGES: &[&str] = &[
    "echo evil > DIR/.bashrc",
    "echo evil >> DIR/.bashrc",
    "./attack open DIR/.bashrc 0x200",
    "./attack truncate DIR/.bashrc",
    "./attack reopen DIR/.bashrc",
    "./attack reopen DIR/.bashrc path",
    "rm -f DIR/.bashrc",
    "mv DIR/.bashrc DIR/away",
    "echo x > DIR/f && mv -f DIR/f DIR/.bashrc",
    "echo x > DIR/f && ./attack exchange DIR/f DIR/.bashrc",
    "chmod 777 DIR/.bashrc",
    "./attack fchmod DIR/.bashrc 0777",
    "./attack fchmodat2 DIR/.bashrc 0777",
    "ln DIR/.bashrc DIR/link && echo evil >> DIR/link",
    "./attack link-open DIR/.bashrc DIR/link",
    "./attack link-empty DIR/.bashrc DIR/link",
    "ln -s .bashrc DIR/link && echo evil >> DIR/link",
    "ln -s .bashrc DIR/link && ./attack truncate DIR/link",
    "ln -s .bashrc DIR/link && chmod 777 DIR/link",
    "ln -s $PWD/DIR/.bashrc DIR/link && ./attack reopen DIR/link",
    "cd DIR && echo evil > .bashrc",
    "sed -i s/text/evil/ DIR/.bashrc",
    "touch -c -m -d 2001-01-01 DIR/.bashrc && false || echo evil > DIR/.bashrc",
    "echo evil > DIR/.vscode/new",
    "echo evil > DIR/.vscode/tasks.json",
    "rm DIR/.vscode/tasks.json",
    "rm -r DIR/.vscode",
    "mv DIR/.vscode DIR/away",
    "mkdir DIR/new && ./attack exchange DIR/new DIR/.vscode",
    "ln -s .vscode DIR/link && echo evil > DIR/link/tasks.json",
    "cd DIR/.vscode && echo evil > tasks.json",
    "exec 5< DIR/.vscode && echo evil > /proc/self/fd/5/tasks.json",
    "mv DIR/.claude/commands DIR/away",
    "echo evil > DIR/.claude/commands/x.md",
];

#[test]
fn g4_existing_names_cannot_be_changed() {
    for folder in [".", "a/b"] {
        let prepare = format!(
            "mkdir -p {folder}/.vscode {folder}/.claude/commands && cd {folder} && echo text > .bashrc && \
             echo text > .vscode/tasks.json && echo text > .claude/commands/x.md"
        );
        for change in CHANGES {
            let change = change.replace("DIR", folder);
            let arena = refused_after(&prepare, &change);
            for name in [".bashrc", ".vscode/tasks.json", ".claude/commands/x.md"] {
                let path = format!("{folder}/{name}");
                assert!(arena.folder.has(&path), "`{change}` removed {path}");
                assert_eq!(arena.folder.read(&path), "text\n", "{change}");
            }
            let mode = arena
                .outside(&format!("stat -c %a {folder}/.bashrc"))
                .stdout;
            assert_ne!(mode, "777\n", "{change}");
        }
    }
}

#[test]
fn g4_names_that_are_links_of_the_user_cannot_be_written_through() {
    let prepare = "mkdir agent && ln -s agent .claude && echo text > rc && ln -s rc .zshrc";
    for attack in [
        "mkdir .claude/commands",
        "echo evil > .claude/settings.json",
        "echo evil > .zshrc",
        "rm .zshrc && echo evil > .zshrc",
        "rm .claude && mkdir -p .claude/commands",
    ] {
        let arena = refused_after(prepare, attack);
        assert_eq!(arena.folder.read(".zshrc"), "text\n", "{attack}");
    }
}

#[test]
fn a_protected_name_behind_a_link_of_the_user_does_not_keep_a_run_from_starting() {
    for prepare in [
        "mkdir -p agent/commands && ln -s agent .claude",
        "ln -s /nowhere .bashrc && ln -s .vscode .vscode",
        "mkdir -p e && ln -s e .vscode && ln -s /etc/passwd .gitconfig",
        "echo > .claude",
        "mkdir .bashrc",
    ] {
        Arena::prepared(prepare).inside("echo x > f").expect_code(0);
    }
}

#[test]
fn g4_refusals_name_the_path_and_the_rule() {
    let arena = Arena::new();
    let outcome = refused("write", arena.inside("echo evil > .bashrc"));
    for part in [".bashrc", "protected name", "unprotect"] {
        assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
    }
}

#[test]
fn names_are_free_in_the_private_temporary_folder() {
    let script =
        "cd /tmp && echo x > .bashrc && mkdir -p .claude/commands .vscode && rm -r .vscode .bashrc";
    let folder = Folder::new();
    inside(&folder, script).expect_code(0);
}

#[test]
fn names_that_only_look_alike_are_free() {
    let script = "echo x > bashrc && echo x > .bashrc2 && mkdir -p .claude/notes commands vscode && \
                  mv .claude .claude2 && mkdir .github && echo x > .github/CODEOWNERS";
    let folder = Folder::new();
    inside(&folder, script).expect_code(0);
}

#[test]
fn a_policy_lifts_the_protection_of_names() {
    let (arena, policy) = (Arena::prepared("mkdir .vscode"), Folder::new());
    let text = "version: 1\nfilesystem: {write: {unprotect: [.vscode, .claude/commands]}}\n";
    let file = policy.write("policy.yaml", text);
    let flags = ["--policy", file.to_str().unwrap()];
    let script = "echo x > .vscode/tasks.json && mkdir -p .claude/commands a/.vscode";
    arena.inside_with(&flags, script).expect_code(0);
    assert!(arena.folder.has(".vscode/tasks.json") && arena.folder.has("a/.vscode"));
    refused(
        "other names",
        arena.inside_with(&flags, "echo evil > .bashrc"),
    );
    refused(
        "other names",
        arena.inside_with(&flags, "mkdir .claude/hooks"),
    );
}

#[test]
fn g4_extra_writable_roots_are_guarded_too() {
    let (arena, other) = (Arena::new(), Folder::new());
    let place = other.text();
    let attack = format!("echo x > {place}/fine; echo evil > {place}/.bashrc");
    refused(&attack, arena.inside_with(&["--write", place], &attack));
    assert_eq!(other.listing(), ["fine"]);
}

#[test]
fn g4_a_protected_file_given_as_standard_input_cannot_be_written() {
    let arena = Arena::prepared("echo text > .bashrc && git init -q .");
    for name in [".bashrc", ".git/config"] {
        let before = arena.folder.read(name);
        let script = format!(
            "exec {} run -- sh -c 'echo evil >> /proc/self/fd/0' < {name}",
            ringfence().path().display()
        );
        let outcome = Program::new("sh")
            .args(["-c", &script])
            .folder(&arena.folder)
            .run();
        refused(&script, outcome);
        assert_eq!(arena.folder.read(name), before);
    }
}

/// A file in place of the directory that a protected name lies in may say where
/// that is now: how `.jj/repo` came to be one before, and what is done inside.
const POINTERS: &[(&str, &str)] = &[
    (
        "mkdir -p .jj/repo/store",
        "mv .jj/repo x; echo ../x > .jj/repo",
    ),
    ("mkdir -p .jj/repo", "rmdir .jj/repo; echo ../x > .jj/repo"),
    ("mkdir .jj", "echo ../x > .jj/repo"),
    ("mkdir .jj", "echo ../x > f; mv f .jj/repo"),
    ("mkdir .jj", "echo ../x > f; ln f .jj/repo"),
    ("mkdir .jj", "echo ../x > f; ./attack renameat . f .jj/repo"),
    (
        "mkdir -p .jj/repo",
        "echo ../x > f; ./attack exchange f .jj/repo",
    ),
    (
        "mkdir -p .jj/repo",
        "echo ../x > f; ./attack exchange .jj/repo f",
    ),
    ("mkdir .jj; echo ../y > .jj/repo", "echo ../x > .jj/repo"),
    (
        "mkdir .jj; echo ../y > .jj/repo",
        "rm .jj/repo; echo ../x > .jj/repo",
    ),
    (
        "mkdir .jj; echo ../y > .jj/repo",
        "mv .jj away; mkdir .jj; echo ../x > .jj/repo",
    ),
];

#[test]
fn g4_no_file_says_where_a_protected_name_is() {
    for (prepare, attack) in POINTERS {
        let check = "grep -qs ../x .jj/repo";
        let outside = Arena::prepared(prepare);
        outside
            .outside(&format!("{attack}; {check}"))
            .expect_code(0);
        for flags in [&[][..], &["--guard", "sweep"], &["--disk", "100M"]] {
            let arena = Arena::prepared(prepare);
            let outcome = arena.inside_with(flags, attack);
            let told = &outcome.stderr;
            assert_ne!(
                arena.outside(check).code(),
                0,
                "{flags:?} `{attack}`\n{told}"
            );
        }
    }
}

#[test]
fn g11_directories_on_the_way_to_a_protected_name_are_worked_in() {
    let script = "set -e; echo a > .jj/repo/store/new; mkdir .jj/repo/op; mv .jj/repo/store/new .jj/repo/op; \
         mkdir -p other/.jj; echo ../../.jj/repo > other/.jj/repo; mkdir -p new/.jj/repo/store; \
         mkdir -p deep/.jj/repo; echo b > deep/.jj/repo/x";
    for flags in [&[][..], &["--guard", "sweep"]] {
        let arena = Arena::prepared("mkdir -p .jj/repo/store deep");
        arena.inside_with(flags, script).expect_code(0);
        let made = "cat .jj/repo/op/new other/.jj/repo deep/.jj/repo/x";
        let made = arena.outside(made).expect_code(0).stdout;
        assert_eq!(made, "a\n../../.jj/repo\nb\n", "{flags:?}");
    }
}
