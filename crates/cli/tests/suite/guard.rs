//! G4 and G11: names are free in directories that a run made, whatever was there
//! before stays as it was, and what is there in the end is looked at, however it
//! came to be.

use std::os::unix::fs::symlink;

use ringfence_testkit::{Folder, sh, wait_until};

use super::arena::{Arena, refused, refused_after};
use super::{inside_with, ringfence};

const COMMIT: &str = "git -c user.name=a -c user.email=a@example.org commit -q --no-gpg-sign";

#[test]
fn g11_names_are_free_in_directories_that_the_run_made() {
    let arena = Arena::new();
    arena
        .inside(
            "mkdir -p new/.vscode new/deep/.claude/commands node_modules/x/.idea && \
         echo x > new/.envrc && echo x > new/.vscode/settings.json && \
         echo x > new/deep/.claude/commands/y && echo x > new/.mcp.json && mv new moved && \
         echo x > moved/.bashrc",
        )
        .expect_code(0);
    assert!(arena.folder.has("moved/.vscode/settings.json"));
    assert!(arena.folder.has("moved/.bashrc"));
    assert!(arena.folder.has("node_modules/x/.idea"));
}

/// What must not work: a directory that was there, and one in its place.
const REPLACED: &[(&str, &str, &str)] = &[
    (
        "mkdir sub",
        "mv sub away; mkdir sub; mkdir sub/.vscode",
        "sub/.vscode",
    ),
    (
        "mkdir sub",
        "mkdir -p new/.vscode; mv sub away; mv new sub",
        "sub/.vscode",
    ),
    (
        "mkdir sub",
        "rmdir sub; mkdir sub; echo x > sub/.envrc",
        "sub/.envrc",
    ),
    (
        "mkdir -p sub/deep",
        "mkdir -p new/deep/.idea; mv sub away; mv new sub",
        "sub/deep/.idea",
    ),
];

#[test]
fn g4_a_directory_in_place_of_another_is_guarded_like_that() {
    for (prepare, attack, name) in REPLACED {
        let arena = refused_after(prepare, attack);
        assert!(!arena.folder.has(name), "{attack}");
    }
}

#[test]
fn g4_protected_names_at_any_depth_are_read_only() {
    let arena = Arena::prepared(
        "mkdir -p a/b/.vscode a/.claude/commands && echo own > a/b/.vscode/s && echo own > a/.envrc \
         && echo own > a/.claude/commands/c",
    );
    for attack in [
        "echo evil > a/b/.vscode/s",
        "echo evil >> a/.envrc",
        "rm a/.envrc",
        "mv a/.envrc a/x",
        "chmod 777 a/.envrc",
        "truncate -s 0 a/.claude/commands/c",
        "mv a/.claude/commands x",
        "ln a/.envrc x && echo evil > x",
        "exec 3<> a/.envrc",
    ] {
        refused(attack, arena.inside(attack));
    }
    for name in ["a/b/.vscode/s", "a/.envrc", "a/.claude/commands/c"] {
        assert_eq!(arena.folder.read(name), "own\n", "{name}");
    }
}

#[test]
fn g4_a_link_in_place_of_a_protected_name_stays_with_what_it_leads_to() {
    let arena = Arena::prepared("mkdir -p dots a && echo own > dots/envrc");
    symlink("../dots/envrc", arena.folder.join("a/.envrc")).unwrap();
    refused("target", arena.inside("echo evil > dots/envrc"));
    refused("through", arena.inside("echo evil > a/.envrc"));
    arena.inside("rm a/.envrc").expect_code(0);
    assert_eq!(arena.folder.read("a/.envrc"), "own\n");
}

#[test]
fn continuous_integration_is_protected_on_request() {
    let arena = Arena::new();
    let make = "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml";
    refused("ci", arena.inside_with(&["--protect", "ci"], make));
    arena.inside(make).expect_code(0);
    let own = arena.inside_with(&["--protect", ".toolrc"], "echo x > .toolrc");
    assert!(
        refused("own", own)
            .stderr
            .contains("protected name .toolrc")
    );
    arena
        .inside_with(&["--unprotect", ".envrc"], "echo x > .envrc")
        .expect_code(0);
}

/// In repositories that the run made: what is written without a call that is
/// seen, and must not be there in the end.
const PLANTED: &[(&str, &str)] = &[
    (
        "git init -q r && printf '[core]\\nfsmonitor = evil\\n' >> r/.git/config",
        "r/.git/config",
    ),
    (
        "git init -q --bare r && printf '[core]\\nsshCommand = evil\\n' >> r/config",
        "r/config",
    ),
    (
        "git init -q r && exec 3<> r/.git/hooks/update.sample && mv r/.git/hooks/update.sample x && \
         mkdir -p y/.git/hooks && echo x",
        "r/.git/hooks/update",
    ),
    (
        "mkdir -p n/objects n/refs && echo 'ref: refs/heads/m' > n/HEAD && \
         printf '[core]\\nhooksPath = /tmp\\n' > n/config",
        "n/config",
    ),
];

#[test]
fn g4_what_runs_programs_in_a_new_repository_is_swept() {
    for (plant, name) in PLANTED {
        let arena = Arena::new();
        let outcome = arena.inside(plant);
        assert!(!arena.folder.has(name), "{plant}\n{}", outcome.stderr);
    }
    let arena = Arena::new();
    let outcome = arena.inside(PLANTED[0].0).expect_code(0);
    let stderr = &outcome.stderr;
    assert!(stderr.contains("quarantine"), "{stderr}");
    assert!(stderr.contains("core.fsmonitor"), "{stderr}");
    assert!(arena.folder.has("r/.git/HEAD"));
}

#[test]
fn g4_with_sweep_alone_the_final_state_is_held() {
    let arena = Arena::prepared("mkdir -p old/.vscode && echo own > old/.vscode/s");
    let sweep = ["--guard", "sweep"];
    let outcome = arena.inside_with(
        &sweep,
        "echo evil > .bashrc && mkdir -p .claude/commands new/.vscode && echo x > .claude/commands/c \
         && git init -q r && echo evil > r/.git/hooks/pre-commit && mv old away && \
         mkdir -p old/.vscode && echo evil > old/.vscode/s && echo fine > fine",
    );
    let outcome = outcome.expect_code(0);
    for gone in [
        ".bashrc",
        ".claude/commands",
        "r/.git/hooks/pre-commit",
        "old/.vscode",
    ] {
        assert!(!arena.folder.has(gone), "{gone}\n{}", outcome.stderr);
    }
    for kept in ["new/.vscode", "fine", "r/.git/HEAD", "away/.vscode/s"] {
        assert!(arena.folder.has(kept), "{kept}\n{}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("quarantine"), "{}", outcome.stderr);
    refused(
        "in place",
        arena.inside_with(&sweep, "echo evil > away/.vscode/s"),
    );
}

#[test]
fn g4_a_run_that_was_cut_off_is_swept_before_the_next() {
    let arena = Arena::new();
    let state = Folder::new();
    let run = |script: &str| {
        ringfence()
            .env("XDG_STATE_HOME", state.path())
            .args(["run", "--guard", "sweep", "--", "sh", "-c", script])
            .folder(arena.folder.path())
    };
    let killed = run("echo evil > .bashrc; touch ready; sleep 60").start();
    assert!(wait_until(|| arena.folder.has("ready")));
    killed.signal("KILL");
    killed.finish();
    assert!(arena.folder.has(".bashrc"));
    let outcome = run("test ! -e .bashrc").run().expect_code(0);
    assert!(outcome.stderr.contains(".bashrc"), "{}", outcome.stderr);
    assert!(!arena.folder.has(".bashrc"));
}

#[test]
fn g11_an_old_repository_takes_harmless_settings() {
    let arena = Arena::prepared(&format!(
        "git init -q -b main . && git config alias.st status && echo x > f && git add f && {COMMIT} -m x"
    ));
    arena
        .inside(
            "git config user.email b@example.org && git remote add fork https://git.example.org/f && \
             git branch other && git branch -u main other && git remote remove fork && \
             git remote add fork https://git.example.org/g",
        )
        .expect_code(0);
    let config = arena.folder.read(".git/config");
    for part in ["b@example.org", "git.example.org/g", "st = status"] {
        assert!(config.contains(part), "{part}\n{config}");
    }
    for attack in [
        "git config core.fsmonitor evil",
        "git config alias.st '!evil'",
        "git config --unset alias.st",
        "git config include.path /tmp/x",
        "git config remote.origin.uploadpack evil",
        "echo evil >> .git/config",
        "printf '[core]\\n' > c && mv c .git/config && false",
    ] {
        refused(attack, arena.inside(attack));
        let now = arena.folder.read(".git/config");
        assert_eq!(now, config, "{attack}");
    }
}

#[test]
fn g4_a_directory_that_has_the_number_of_another_is_looked_at_anew() {
    let arena = Arena::prepared("true");
    let attack = "mkdir plain && touch plain/a && rm plain/a && rmdir plain && git init -q r && \
                  rm -rf r/.git/hooks && mkdir r/.git/hooks && echo evil > r/.git/hooks/pre-commit";
    refused(attack, arena.inside(attack));
    assert!(!arena.folder.has("r/.git/hooks/pre-commit"));
}

#[test]
fn g11_git_works_with_what_real_repositories_have() {
    let arena = Arena::prepared(&format!(
        "git init -q -b main up && cd up && mkdir -p .github/workflows .vscode .husky && \
         for f in .github/workflows/ci.yml .vscode/s .envrc .mcp.json .husky/pre-commit; do echo 1 > $f; done && \
         git add -A && {COMMIT} -m one && git checkout -q -b side && echo 2 > .envrc && git add -A && \
         {COMMIT} -m two && git checkout -q main && echo 2 > .vscode/s && git add -A && {COMMIT} -m three"
    ));
    let outcome = inside_with(
        arena.folder.path(),
        &[],
        &format!(
            "set -e; export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=a \
             GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@example.org; \
             git clone -q up copy && cd copy && git checkout -q side && git checkout -q main && \
             git merge -q --no-edit side && git pull -q --no-rebase && git checkout -q -b more HEAD~1 && \
             echo 3 > .mcp.json && git add -A && {COMMIT} -m four && git rebase -q main && \
             git worktree add -q ../tree side && git -C ../tree status --short && \
             git worktree remove ../tree && \
             git -c protocol.file.allow=always submodule add -q ../up sub && {COMMIT} -m five && \
             git -c protocol.file.allow=always submodule update --init -q && git status --short && \
             test -e sub/.vscode/s"
        ),
    );
    let outcome = outcome.expect_code(0);
    assert!(!outcome.stderr.contains("refused"), "{}", outcome.stderr);
}

#[test]
fn g11_a_submodule_can_be_added_to_an_old_repository() {
    let arena = Arena::prepared(&format!(
        "git init -q -b main up && cd up && echo x > f && git add f && {COMMIT} -m x && cd .. && \
         git init -q -b main own && cd own && echo x > f && git add f && {COMMIT} -m x"
    ));
    let script = "cd own && git -c protocol.file.allow=always submodule add -q ../up sub && \
                  git worktree add -q tree && cat sub/f tree/f && git submodule status";
    let outcome = arena.inside(script).expect_code(0);
    assert!(!outcome.stderr.contains("refused"), "{}", outcome.stderr);
    let config = arena.folder.read("own/.git/modules/sub/config");
    assert!(config.contains("worktree = ../../../sub"), "{config}");
}

/// Ways to leave a repository that runs a program behind: what is there before,
/// the attack, and where Git is used afterwards. `CONFIG` writes configuration
/// that runs one.
const LEFT_BEHIND: &[(&str, &str, &str)] = &[
    (
        "git init -q proj",
        "mv proj old; mkdir proj; cd proj; git init -q .; CONFIG > .git/config",
        "proj",
    ),
    (
        "true",
        "mkdir -p objects refs; git init -q objects/p; CONFIG > objects/p/.git/config",
        "objects/p",
    ),
    (
        "git init -q . && mkdir sub",
        "git init -q --bare .git/objects/e; CONFIG > .git/objects/e/config; \
         (echo 'gitdir: ../.git/objects/e'; head -c 300000 /dev/zero | tr '\\0' '\\n') > sub/.git",
        "sub",
    ),
    (
        "true",
        "d=$(printf 'a/%.0s' $(seq 205)); mkdir -p $d; git init -q --bare ${d}r; \
         CONFIG > ${d}r/config; echo \"gitdir: ${d}r\" > .git",
        ".",
    ),
    (
        "true",
        "git init -q .; CONFIG > .git/config; chmod 0311 .git",
        ".",
    ),
    (
        "true",
        "git init -q .; CONFIG > .git/config; chmod 0311 .",
        ".",
    ),
    (
        "true",
        "git init -q .; CONFIG > .git/config; chmod 0555 .git",
        ".",
    ),
    // Configuration that is older than what makes it one.
    (
        "mkdir gx && CONFIG > gx/config",
        "mkdir gx/objects gx/refs; echo 'ref: refs/heads/main' > gx/HEAD; echo 'gitdir: gx' > .git",
        ".",
    ),
    // Names that cannot be made longer, too deep to be looked at.
    (
        "true",
        "l=$(head -c 255 /dev/zero | tr '\\0' L); d=$(printf 'd/%.0s' $(seq 200))$l; \
         mkdir -p $d/objects $d/refs; echo 'ref: refs/heads/main' > $d/HEAD; CONFIG > $d/config; \
         echo \"gitdir: $d\" > .git",
        ".",
    ),
    // What makes a directory one, made as something else and exchanged.
    (
        "true",
        "mkdir -p d/objects d/refs d/HEAD; CONFIG > d/config; echo 'ref: refs/heads/main' > h; \
         EXCHANGE d/HEAD h; echo 'gitdir: d' > .git",
        ".",
    ),
    (
        "true",
        "mkdir -p d/objects d/refs; CONFIG > d/config; echo 'ref: refs/heads/main' > h; cd d; \
         python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"HEAD\")'; cd ..; \
         EXCHANGE d/HEAD h; EXCHANGE h d/HEAD; [ -S d/HEAD ] && EXCHANGE d/HEAD h; \
         echo 'gitdir: d' > .git",
        ".",
    ),
    (
        "true",
        "git init -q .; CONFIG > .git/x; EXCHANGE .git/config .git/x",
        ".",
    ),
    (
        "git init -q .",
        "CONFIG > x; EXCHANGE .git/config x; CONFIG > .git/y; EXCHANGE .git/config .git/y",
        ".",
    ),
    // Without a HEAD of its own, but used by a work tree.
    (
        "true",
        "git init -q --bare b && git -C b -c user.name=a -c user.email=a@example.org \
         commit-tree -m x $(git -C b mktree < /dev/null) > id && git -C b branch m $(cat id) && \
         git -C b worktree add -q ../w m && rm b/HEAD; CONFIG > b/config",
        "w",
    ),
    // Git takes the space at the end of a path for a part of it.
    (
        "git init -q r && mkdir e && CONFIG > e/config",
        "cd r && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x && \
         git worktree add -q ../w && mkdir ../e/objects ../e/refs && ln -s ../../../e '.git/worktrees/.. ' && \
         printf '../.. \\n' | dd of=.git/worktrees/w/commondir conv=nocreat,notrunc status=none",
        "w",
    ),
];

/// Exchanges two names (`renameat2`).
const EXCHANGE: &str = "python3 -c 'import ctypes,sys; c=ctypes.CDLL(None); \
    sys.exit(c.syscall(316,-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2) and 1)'";

#[test]
fn g4_no_repository_that_runs_programs_is_left_behind() {
    for (prepare, attack, place) in LEFT_BEHIND {
        let planted = |arena: &Arena, script: &str| {
            let ran = arena.folder.join("ran").display().to_string();
            let config = format!(
                r#"printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch {ran}; false"\n'"#
            );
            script
                .replace("CONFIG", &config)
                .replace("EXCHANGE", EXCHANGE)
        };
        let prepared = || {
            let arena = Arena::new();
            arena.outside(&planted(&arena, prepare)).expect_code(0);
            arena
        };
        let used = |arena: &Arena| {
            arena.outside(&format!("chmod -R u+rwX . ; git -C {place} status; true"));
            arena.folder.has("ran")
        };
        let outside = prepared();
        outside.outside(&planted(&outside, attack));
        assert!(used(&outside), "`{attack}` has no effect outside");
        for guard in ["live", "sweep"] {
            let arena = prepared();
            let outcome = arena.inside_with(&["--guard", guard], &planted(&arena, attack));
            assert!(!used(&arena), "{guard}: `{attack}`\n{}", outcome.stderr);
        }
    }
}

#[test]
fn g4_a_link_cannot_stand_in_for_a_directory_that_was_there() {
    let prepare = "mkdir -p app/.vscode && echo own > app/.vscode/s";
    for attack in [
        "cp -r app new; mv app old; ln -s new app",
        "cp -r app new; mv app old; ln -s new l; mv l app",
    ] {
        refused_after(prepare, attack);
        let arena = Arena::prepared(prepare);
        arena
            .inside_with(&["--guard", "sweep"], attack)
            .expect_code(0);
        assert!(!arena.folder.has("app"), "{attack}");
    }
}

#[test]
fn g4_what_nobody_may_read_is_protected_too() {
    let arena = Arena::prepared(
        "git init -q . && mkdir sub && echo own > sub/.envrc && git init -q --bare bare && \
         chmod 0311 .git sub",
    );
    for attack in [
        "python3 -c 'open(\".git/config\", \"r+\").write(\"x\")'",
        "python3 -c 'open(\"sub/.envrc\", \"r+\").write(\"x\")'",
        "python3 -c 'open(\"bare/config\", \"r+\").write(\"x\")'",
    ] {
        refused(attack, arena.inside(attack));
    }
    arena
        .outside("test $(stat -c %a .git) = 311")
        .expect_code(0);
}

#[test]
fn what_was_there_before_is_not_taken_away() {
    let prepare = "git init -q vendor/lib && git -C vendor/lib config credential.helper own && \
        echo x > vendor/lib/.git/hooks/pre-commit && mkdir -p src/hooks src/objects src/refs && \
        echo x > src/hooks/use.ts && echo '[a' > src/config && git init -q --bare bare && \
        git -C bare config credential.helper own && echo x > bare/hooks/post-receive";
    let arena = Arena::prepared(prepare);
    // Times of files are no finer than that.
    arena.outside("sleep 0.05");
    let before = super::arena::state(arena.folder.path());
    for guard in ["live", "sweep"] {
        let outcome = arena
            .inside_with(&["--guard", guard], "true")
            .expect_code(0);
        assert_eq!(outcome.stderr, "");
    }
    assert_eq!(super::arena::state(arena.folder.path()), before);
}

/// Files that the policy comes from, each named through links, and ways to put another in place.
const SWAPS: [&str; 8] = [
    "rm -f policy.yaml; ln -s evil/p.yaml policy.yaml",
    "rm -f deep/d; ln -s ../evil deep/d",
    "mv deep deep2; mkdir deep; ln -s ../evil deep/d",
    "rm -rf deep; mkdir -p deep/d; cp evil/p.yaml deep/d/",
    "rm -f two.yaml; cp evil/p.yaml two.yaml",
    "mv conf c2; mv evil conf",
    "cp evil/p.yaml n; mv -f n conf/p.yaml",
    "cat evil/p.yaml > conf/p.yaml",
];

#[test]
fn g4_what_a_policy_is_read_from_cannot_be_swapped_for_the_next_run() {
    let (state, elsewhere) = (Folder::new(), Folder::new());
    let reset = |project: &Folder| {
        project.write("conf/p.yaml", "version: 1\n");
        project.write("evil/p.yaml", "version: 1 # evil\n");
        let links = "mkdir deep && ln -s ../conf deep/d && ln -s conf/p.yaml policy.yaml && \
                     ln -s deep/d/p.yaml two.yaml";
        sh(links, project.path()).expect_code(0);
    };
    let is_evil = |project: &Folder, named: &str| {
        std::fs::read_to_string(project.join(named)).is_ok_and(|text| text.contains("evil"))
    };
    for named in ["conf/p.yaml", "policy.yaml", "deep/d/p.yaml", "two.yaml"] {
        let mut works_outside = 0;
        for swap in SWAPS {
            let outside = Folder::new();
            reset(&outside);
            sh(swap, outside.path());
            works_outside += usize::from(is_evil(&outside, named));
            for guard in ["live", "sweep"] {
                let project = Folder::new();
                reset(&project);
                ringfence()
                    .args(["run", "--quiet", "--guard", guard, "--policy", named, "--"])
                    .args(["sh", "-c", swap])
                    .env("HOME", elsewhere.path())
                    .env("XDG_STATE_HOME", state.path())
                    .folder(&project)
                    .run();
                assert!(!is_evil(&project, named), "{guard} {named}: {swap}");
            }
        }
        assert!(works_outside >= 3, "{named}");
    }
}

#[test]
fn g4_two_sandboxes_in_one_directory_leave_no_repository_that_runs_programs() {
    const TIMES: usize = 40;
    let project = Folder::new();
    let ran = project.join("ran").display().to_string();
    let config = format!(r#"printf '[core]\n\tfsmonitor = "touch {ran}; false"\n'"#);
    let makes = format!(
        "for i in $(seq {TIMES}); do git init -q r$i; {config} > r$i/.git/config; done; true"
    );
    let moves = format!(
        "for i in $(seq {TIMES}); do mv r$i s$i; mkdir -p s$i/.git/objects s$i/.git/refs; \
         echo 'ref: refs/heads/main' > s$i/.git/HEAD; {config} > s$i/.git/config; done 2>/dev/null; true"
    );
    let uses = "for d in r* s*; do git -C $d status; done 2>/dev/null; true";
    for script in [&makes, &moves] {
        sh(script, project.path());
    }
    sh(uses, project.path());
    assert!(project.has("ran"), "it has no effect outside");
    sh("rm -rf r* s*", project.path()).expect_code(0);
    let start = |script: &str| {
        let state = Folder::new();
        let started = ringfence()
            .args(["run", "--quiet", "--", "sh", "-c", script])
            .env("XDG_STATE_HOME", state.path())
            .folder(&project)
            .start();
        (started, state)
    };
    let both = [makes, moves].map(|script| start(&script));
    for (started, _state) in both {
        started.finish().expect_code(0);
    }
    sh(uses, project.path());
    assert!(!project.has("ran"));
}

/// Binds a socket to a name, while another thread goes from a directory in which the name is free
/// to one where it is not, and back.
const BINDS_ELSEWHERE: &str = r"
import os, socket, threading
os.mkdir('free')
free, guarded = os.open('free', os.O_RDONLY), os.open('guarded', os.O_RDONLY)
done = False
def walk():
    while not done:
        os.fchdir(free); os.fchdir(guarded)
walker = threading.Thread(target=walk); walker.start()
for attempt in range(1500):
    server = socket.socket(socket.AF_UNIX)
    try: server.bind('.envrc')
    except OSError: pass
    server.close()
    if '.envrc' in os.listdir(guarded):
        print('made'); break
    try: os.unlink('.envrc', dir_fd=free)
    except OSError: pass
done = True; walker.join()
";

#[test]
fn g4_a_socket_is_bound_where_it_was_judged() {
    let arena = Arena::prepared("mkdir guarded");
    arena.folder.write("attack.py", BINDS_ELSEWHERE);
    let attack = "python3 attack.py";
    let outside = arena.outside(attack).expect_code(0);
    assert_eq!(outside.stdout, "made\n");
    arena.outside("rm -rf free guarded/.envrc").expect_code(0);
    let inside = arena.inside_with(&[], attack).expect_code(0);
    assert_eq!(inside.stdout, "");
}
