//! G4: what decides which programs Git runs.

use ringfence_testkit::Folder;

use super::arena::{Arena, refused, refused_after, state};
use super::inside;

/// Makes a repository with one commit in DIR.
fn repository(folder: &str) -> String {
    format!(
        "git init -q {folder} && git -C {folder} -c user.name=A -c user.email=a@example.org \
         commit -q --allow-empty -m first"
    )
}

const SETTING: &str = "printf '[core]\\n\\tfsmonitor = ./evil\\n'";

/// Attacks on the repository whose Git folder is GIT.
const ATTACKS: &[&str] = &[
    "SETTING >> GIT/config",
    "SETTING > GIT/config",
    "SETTING > GIT/CONFIG2 && mv GIT/CONFIG2 GIT/config",
    "git -C GIT/.. config core.fsmonitor ./evil",
    "rm GIT/config",
    "mv GIT/config GIT/c",
    "chmod 777 GIT/config",
    "./attack truncate GIT/config",
    "./attack reopen GIT/config",
    "./attack link-open GIT/config link",
    "./attack link-empty GIT/config link",
    "ln -s GIT/config link && SETTING > link",
    "SETTING > GIT/config.worktree",
    "echo ../evil > GIT/commondir",
    "echo evil > GIT/hooks/pre-commit",
    "echo evil > GIT/hooks/post-checkout.sh",
    "echo x > f && mv f GIT/hooks/pre-commit",
    "echo x > f && ln f GIT/hooks/pre-commit",
    "ln -s /tmp/evil GIT/hooks/pre-commit",
    "mv GIT/hooks/pre-commit.sample GIT/hooks/pre-commit",
    "echo evil > GIT/hooks/pre-commit.sample",
    "rm -r GIT/hooks",
    "mv GIT/hooks GIT/h",
    "mkdir new && ./attack exchange new GIT/hooks",
    "./attack openat GIT/hooks pre-push",
    "./attack bind GIT/hooks/s",
    "cd GIT && mkdir -p new && mv hooks old && mv new hooks",
    "mv GIT away",
    "cp -r GIT copy && SETTING > copy/config && ./attack exchange copy GIT",
    "SETTING > GIT/modules/sub/config",
    "echo evil > GIT/modules/sub/hooks/post-checkout",
    "mkdir -p GIT/worktrees/w && SETTING > GIT/config.worktree",
    // By way of a new repository that was at the same path before.
    "git init -q new && rm -rf new && ln -s GIT/.. new && SETTING > new/.git/config",
    "git init -q new && rm -rf new && mkdir new && mv GIT new/.git && SETTING > new/.git/config",
    // A folder that is no repository for a moment.
    "cd GIT && mv objects o && mv refs r && SETTING > config && mv o objects && mv r refs",
    "cd GIT && mv HEAD H && SETTING > config && mv H HEAD",
    "cd GIT && cp HEAD H && rm HEAD && echo evil > hooks/pre-commit && mv H HEAD",
    // A head that is written anew, as every change of branch does.
    "cd GIT && cp HEAD HEAD.lock && mv HEAD.lock HEAD && SETTING > config",
    "cd GIT && cp HEAD HEAD.lock && mv HEAD.lock HEAD && echo evil > hooks/pre-commit",
    "cd GIT && ./attack-copy exchange HEAD description && ./attack-copy exchange HEAD description && SETTING > config",
];

#[test]
fn g4_hooks_and_configuration_of_existing_repositories_stay_as_they_are() {
    for folder in [".", "a/nested"] {
        let git = format!("{folder}/.git");
        let prepare = format!(
            "mkdir -p {folder} && {} && cp attack {git}/attack-copy && \
             git init -q --bare {git}/modules/sub",
            repository(folder)
        );
        for attack in ATTACKS {
            let attack = attack.replace("GIT", &git).replace("SETTING", SETTING);
            let controls = |arena: &Arena| {
                let look = "find . '(' -name 'config*' -o -name commondir -o -path '*/hooks*' ')' \
                            -printf '%p %y %m %s %l\\n' | sort; cat config";
                arena.outside(&format!("cd {git} && {{ {look}; }}")).stdout
            };
            let outside = Arena::prepared(&prepare);
            let before = controls(&outside);
            outside.outside(&attack).expect_code(0);
            assert_ne!(
                controls(&outside),
                before,
                "`{attack}` has no effect outside"
            );

            let arena = Arena::prepared(&prepare);
            let before = controls(&arena);
            arena.inside(&attack);
            assert_eq!(controls(&arena), before, "{attack}");
        }
    }
}

#[test]
fn an_ordinary_change_of_branch_leaves_the_users_own_hooks_and_settings_alone() {
    for folder in [".", "nested"] {
        let prepare = format!(
            "{} && cd {folder} && echo '#!/bin/sh' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && \
             git config alias.st status && git config core.hooksPath .git/hooks",
            repository(folder)
        );
        let arena = Arena::prepared(&prepare);
        let git = arena.folder.join(folder).join(".git");
        let before = (
            state(&git.join("hooks")),
            std::fs::read(git.join("config")).unwrap(),
        );
        let script = format!(
            "cd {folder} && git checkout -q -b topic && echo x > f && git add f && \
             git -c user.name=A -c user.email=a@example.org commit -q -m second && git log --oneline"
        );
        let outcome = arena.inside(&script).expect_code(0);
        assert_eq!(outcome.stdout.lines().count(), 2);
        assert!(
            !outcome.stderr.contains("left-behind"),
            "{}",
            outcome.stderr
        );
        let after = (
            state(&git.join("hooks")),
            std::fs::read(git.join("config")).unwrap(),
        );
        assert_eq!(after, before);
    }
}

#[test]
fn an_old_repository_in_the_place_of_a_new_one_is_not_swept() {
    for script in [
        "git init -q new && rm -rf new && ln -s old new",
        "git init -q new && rm -rf new && mv old new && git -C new status && mv new old",
        "git init -q new && mkdir old/sub && mv new old/sub/new",
    ] {
        let prepare = format!(
            "{} && echo '#!/bin/sh' > old/.git/hooks/pre-commit && git -C old config alias.st status",
            repository("old")
        );
        let arena = Arena::prepared(&prepare);
        let before = arena.folder.read("old/.git/config");
        arena.inside(script).expect_code(0);
        assert_eq!(arena.folder.read("old/.git/config"), before, "{script}");
        assert!(arena.folder.has("old/.git/hooks/pre-commit"), "{script}");
    }
}

#[test]
fn a_repository_can_be_made_and_used_inside() {
    let script = format!(
        "{} && cd new && git status --short && git checkout -q -b topic",
        repository("new")
    );
    let folder = Folder::new();
    let outcome = inside(&folder, &script).expect_code(0);
    assert!(!outcome.stderr.contains("refused"), "{}", outcome.stderr);
    assert!(folder.has("new/.git/config") && folder.has("new/.git/hooks"));
}

#[test]
fn g4_a_live_hook_of_a_new_repository_is_refused() {
    let prepare = "true";
    for attack in [
        "git init -q new && echo evil > new/.git/hooks/pre-commit",
        "git init -q new && echo x > f && mv f new/.git/hooks/pre-commit",
        "git init -q new && mv new/.git/hooks/pre-commit.sample new/.git/hooks/pre-commit",
        "git init -q --bare new && echo evil > new/hooks/pre-receive",
    ] {
        let arena = refused_after(prepare, attack);
        assert!(
            !arena.folder.has("new/.git/hooks/pre-commit")
                && !arena.folder.has("new/hooks/pre-receive")
        );
    }
}

/// Ways to leave configuration or hooks behind in NEW, a repository made
/// inside. Git runs what they name when its status is asked for or a commit made.
const PLANTS: &[&str] = &[
    "git init -q new && git -C new config core.fsmonitor 'EVIL'",
    "git init -q new && SETTING >> new/.git/config",
    "git init -q new && SETTING > f && mv f new/.git/config",
    "git init -q new && SETTING > f && ln -f f new/.git/config",
    "git init -q new && SETTING > f && rm new/.git/config && ln f new/.git/config",
    "git init -q new && mv new/.git/config f && ln f new/.git/config && SETTING > f",
    "git init -q new && SETTING > f && git -C new config include.path $PWD/f",
    "git init -q new && SETTING > f && ln -sf ../../f new/.git/config",
    "git init -q new && git -C new config extensions.worktreeConfig true && SETTING > new/.git/config.worktree",
    "git init -q new && SETTING > new/.git/config.lock && mv new/.git/config.lock new/.git/config",
    "git init -q new && exec 5>> new/.git/config && SETTING >&5",
    "git init -q --bare a && SETTING >> a/config && git -C a config core.bare false && mkdir new && mv a new/.git",
    "git init -q --separate-git-dir store new && SETTING >> store/config",
    "git init -q new && mv new/.git new/g && SETTING >> new/g/config && mv new/g new/.git",
    "mkdir -p n/objects n/refs new && SETTING > n/config && echo ref: refs/heads/x > n/HEAD && mv n new/.git",
    "mkdir -p n/objects n/refs new && SETTING > n/config && mv n new/.git && echo ref: refs/heads/x > new/.git/HEAD",
    "mkdir -p n/objects n/refs new && SETTING > n/config && echo ref: refs/heads/x > H && mv H n/HEAD && mv n new/.git",
    "mkdir -p n/objects n/refs new && SETTING > n/config && echo ref: refs/heads/x > H && ln H n/HEAD && mv n new/.git",
    "mkdir -p n/objects n/refs new && SETTING > n/config && ln -s refs/heads/x n/HEAD && mv n new/.git",
    // Held open, or held by another name, while it is examined.
    "mkdir -p n/objects n/refs new && exec 5> n/config && echo ref: refs/heads/x > n/HEAD && SETTING >&5 && mv n new/.git",
    "mkdir -p n/objects n/refs new && : > n/config && ln n/config f && echo ref: refs/heads/x > n/HEAD && SETTING > f && mv n new/.git",
    // Configuration from a folder that is no repository by itself.
    "mkdir -p a/b/w a/objects a/refs new && echo ../.. > a/b/w/commondir && echo ref: refs/heads/x > a/b/w/HEAD && \
     SETTING > a/config && echo gitdir: ../a/b/w > new/.git",
    "mkdir -p n a/objects a/refs new && exec 5> n/commondir 6<> n/commondir && echo ../.. >&5 && \
     echo ref: refs/heads/x > n/HEAD && echo ../a >&6 && SETTING > a/config && echo gitdir: ../n > new/.git",
    "mkdir -p n a/objects a/refs new && echo ../.. > n/commondir && ln n/commondir f && \
     echo ref: refs/heads/x > n/HEAD && echo ../a > f && SETTING > a/config && echo gitdir: ../n > new/.git",
    "git init -q m && git -C m COMMIT && git -C m worktree add -q ../new && mkdir -p a/b a/objects a/refs && \
     mv m/.git/worktrees/new a/b/w && SETTING > a/config && echo gitdir: ../a/b/w > new/.git",
    // Hooks.
    "git init -q new && HOOK > new/.git/hooks/pre-commit && chmod +x new/.git/hooks/pre-commit",
    "git init -q new && HOOK > f && chmod +x f && mv f new/.git/hooks/pre-commit",
    "git init -q new && HOOK > f && chmod +x f && ln -s ../../../f new/.git/hooks/pre-commit",
    "git init -q new && rm -r new/.git/hooks && mkdir h && HOOK > h/pre-commit && chmod +x h/pre-commit && mv h new/.git/hooks",
    "git init -q new && rm -r new/.git/hooks && mkdir h && HOOK > h/pre-commit && chmod +x h/pre-commit && ln -s ../../h new/.git/hooks",
    "git init -q new && mkdir h && HOOK > h/pre-commit && chmod +x h/pre-commit && git -C new config core.hooksPath $PWD/h",
    "mkdir -p n/objects n/refs n/hooks new && HOOK > n/hooks/pre-commit && chmod +x n/hooks/pre-commit && \
     echo ref: refs/heads/x > n/HEAD && mv n new/.git",
    "mkdir -p n/objects n/refs h new && HOOK > h/pre-commit && chmod +x h/pre-commit && ln -s ../../h n/hooks && \
     echo ref: refs/heads/x > n/HEAD && mv n new/.git",
    "git init -q new && HOOK > new/.git/hooks/pre-commit.sample && chmod +x new/.git/hooks/pre-commit.sample && \
     mv new/.git/hooks/pre-commit.sample new/.git/hooks/pre-commit",
];

const COMMIT: &str = "-c user.name=A -c user.email=a@example.org commit -q --allow-empty -m m";

#[test]
fn g4_git_outside_runs_nothing_that_was_put_there_inside() {
    let mut effective = Vec::new();
    for plant in PLANTS {
        let used = |arena: &Arena| {
            arena.outside(&format!("cd new && {{ git status; git {COMMIT}; }}; true"));
            arena.folder.has("ran")
        };
        let planted = |arena: &Arena| {
            let evil = format!("touch {}; false", arena.folder.join("ran").display());
            let setting = format!(
                r#"printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "%s"\n' '{evil}'"#
            );
            plant
                .replace("SETTING", &setting)
                .replace("EVIL", &evil)
                .replace("HOOK", &format!("printf '#!/bin/sh\n%s\n' '{evil}'"))
                .replace("COMMIT", COMMIT)
        };
        let outside = Arena::new();
        outside.outside(&planted(&outside)).expect_code(0);
        assert!(used(&outside), "`{plant}` has no effect outside");

        let arena = Arena::new();
        let outcome = arena.inside(&planted(&arena));
        if used(&arena) {
            effective.push(plant);
        }
        // What did not fail was made harmless without a refusal.
        assert!(
            outcome.code() == 0 || outcome.stderr.contains("ringfence: refused:"),
            "`{plant}` is not reported\n{}",
            outcome.stderr
        );
    }
    assert!(effective.is_empty(), "{effective:#?}");
}

#[test]
fn g11_harmless_configuration_can_be_linked_into_a_new_repository() {
    // As libgit2 does before it tries a rename.
    let arena = Arena::new();
    let script = "git init -q new && mv new/.git/config f && ln f new/.git/config && \
                  ! ln f new/.git/config && echo '[core] fsmonitor = x' >> f && \
                  git -C new config core.fsmonitor; test $? = 1";
    let outcome = arena.inside(script).expect_code(0);
    let stderr = &outcome.stderr;
    assert!(stderr.contains("File exists"), "{stderr}");
    assert!(!stderr.contains("ringfence: refused:"), "{stderr}");
    assert!(!stderr.contains("quarantine"), "{stderr}");
    assert!(arena.folder.read("new/.git/config").contains("[core]"));
    assert!(!arena.folder.has("new/.git/config.ringfence"));
}

#[test]
fn g4_dangerous_configuration_cannot_be_linked_into_a_new_repository() {
    let arena = refused_after(
        "true",
        "git init -q new && rm new/.git/config && echo '[core] fsmonitor = x' > f && ln f new/.git/config",
    );
    assert!(!arena.folder.has("new/.git/config"));
    // In one that was there before, nothing is linked.
    let arena = refused_after(
        &format!("{} && rm .git/config", repository(".")),
        "echo '[core]' > f && ln f .git/config",
    );
    assert!(!arena.folder.has(".git/config"));
}

#[test]
fn g4_hidden_or_protected_git_files_of_the_user_are_guarded() {
    let prepare = format!("{} && mkdir a", repository("."));
    let arena = Arena::prepared(&prepare);
    refused("global", arena.inside("echo evil > .gitconfig"));
    refused("below", arena.inside("mkdir -p a/.config/git"));
}
