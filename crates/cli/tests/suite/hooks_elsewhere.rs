//! G4: directories of hooks that the user's configuration has Git look at are
//! guarded, wherever they are, in whatever work tree, and there or not.

use ringfence_testkit::{Folder, Outcome, Program};

use super::ringfence;

/// One way to have a hook of one's own run later.
struct Case {
    what: &'static str,
    /// What the user did before.
    prepare: &'static str,
    /// What is done inside. `PLANT DIR` makes a hook that tells of its run.
    attack: &'static str,
    /// Where the user makes a commit afterwards.
    tree: &'static str,
    /// The working directory, all that can be written.
    at: &'static str,
    /// What the user has set.
    variables: &'static [(&'static str, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        what: "its own configuration",
        prepare: "git init -q . && git config core.hooksPath tools && mkdir tools",
        attack: "PLANT tools",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a directory that is not there",
        prepare: "git init -q . && git config core.hooksPath tools/hooks",
        attack: "PLANT tools/hooks",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "the directory around it moved",
        prepare: "git init -q . && git config core.hooksPath tools/hooks && mkdir -p tools/hooks",
        attack: "mv tools away; PLANT tools/hooks",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "in a directory of dependencies, which is moved",
        prepare: "git init -q . && git config core.hooksPath node_modules/a/hooks && \
                  mkdir -p node_modules/a/hooks",
        attack: "mv node_modules/a node_modules/b; PLANT node_modules/a/hooks",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a work tree that was added",
        prepare: "git init -q main && cd main && mkdir tools && PLANT tools false && git add . && \
                  COMMIT && git config core.hooksPath tools && git worktree add -q ../other",
        attack: "PLANT other/tools",
        tree: "other",
        at: ".",
        variables: &[],
    },
    Case {
        what: "another file that leads to the same repository",
        prepare: "git init -q main && git -C main config core.hooksPath tools && mkdir -p other/tools && \
                  echo 'gitdir: ../main/.git' > other/.git",
        attack: "PLANT other/tools",
        tree: "other",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a submodule",
        prepare: "git init -q up && git -C up COMMIT && git init -q own && cd own && \
                  git -c protocol.file.allow=always submodule --quiet add ../up sub && \
                  git -C sub config core.hooksPath tools && mkdir sub/tools",
        attack: "PLANT own/sub/tools",
        tree: "own/sub",
        at: ".",
        variables: &[],
    },
    Case {
        what: "configuration that is a link, included",
        prepare: "git init -q . && mkdir tools && printf '[core]\\nhooksPath = tools\\n' > ours && \
                  ln -s ours shared && git config include.path ../shared",
        attack: "PLANT tools",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "the user's own configuration",
        prepare: "git init -q . && mkdir tools && git config --global core.hooksPath tools",
        attack: "PLANT tools",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "the user's own configuration, and a new repository",
        prepare: "git config --global core.hooksPath tools/hooks",
        attack: "git init -q new; PLANT new/tools/hooks",
        tree: "new",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a work tree whose repository is elsewhere",
        prepare: "git init -q main && cd main && COMMIT && git config core.hooksPath .hooks && \
                  git worktree add -q ../other",
        attack: "PLANT .hooks",
        tree: "other",
        at: "other",
        variables: &[],
    },
    Case {
        what: "a repository around the working directory",
        prepare: "git init -q . && git config core.hooksPath packages/app/hooks && mkdir -p packages/app",
        attack: "PLANT hooks",
        tree: ".",
        at: "packages/app",
        variables: &[],
    },
    Case {
        what: "configuration of a repository around it, included",
        prepare: "git init -q . && git config include.path ../packages/app/settings && mkdir -p packages/app",
        attack: "PLANT hooks; printf '[core]\\nhooksPath = packages/app/hooks\\n' > settings",
        tree: ".",
        at: "packages/app",
        variables: &[],
    },
    Case {
        what: "a work tree that the run adds",
        prepare: "git init -q own && cd own && COMMIT && git config core.hooksPath .husky/_",
        attack: "git -C own worktree add -q ../other; PLANT other/.husky/_",
        tree: "other",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a file of the run's that leads to a repository",
        prepare: "git init -q own && git -C own config core.hooksPath tools",
        attack: "mkdir new; echo 'gitdir: ../own/.git' > new/.git; PLANT new/tools",
        tree: "new",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a link of the run's in the user's own configuration",
        prepare: "git config --global core.hooksPath tools/hooks",
        attack: "git init -q new; PLANT new/t/hooks; ln -s t new/tools",
        tree: "new",
        at: ".",
        variables: &[],
    },
    Case {
        what: "a link in place of a directory that is not there",
        prepare: "git init -q . && git config core.hooksPath tools/hooks",
        attack: "PLANT t/hooks; ln -s t tools",
        tree: ".",
        at: ".",
        variables: &[],
    },
    Case {
        what: "the user's variables",
        prepare: "git init -q .",
        attack: "PLANT tools",
        tree: ".",
        at: ".",
        variables: &[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_0", "tools"),
        ],
    },
];

struct Place {
    folder: Folder,
    home: Folder,
    variables: &'static [(&'static str, &'static str)],
}

impl Place {
    fn prepared(case: &Case) -> Self {
        let place = Self {
            folder: Folder::new(),
            home: Folder::new(),
            variables: case.variables,
        };
        place.outside(case.prepare).expect_code(0);
        place
    }

    fn script(&self, script: &str) -> String {
        let ran = self.folder.join("ran");
        let plant = format!(
            "plant() {{ mkdir -p $1; printf '#!/bin/sh\\n%s\\n' \"${{2:-touch {ran}}}\" > $1/pre-commit; \
             chmod +x $1/pre-commit; }}\n",
            ran = ran.display()
        );
        let commit = "-c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x";
        let script = script
            .replace("PLANT", "plant")
            .replace("git -C up COMMIT", &format!("git -C up {commit}"))
            .replace("COMMIT", &format!("git {commit}"));
        plant + &script
    }

    fn with_variables(&self, program: Program) -> Program {
        let program = program.env("HOME", self.home.path());
        let variables = self.variables.iter();
        variables.fold(program, |program, (name, value)| program.env(name, value))
    }

    fn outside(&self, script: &str) -> Outcome {
        self.with_variables(Program::new("sh"))
            .args(["-c", &self.script(script)])
            .folder(self.folder.path())
            .run()
    }

    fn inside(&self, guard: &str, case: &Case) -> Outcome {
        self.with_variables(ringfence())
            .args(["run", "--guard", guard, "--", "sh", "-c"])
            .args([self.script(case.attack)])
            .folder(self.folder.join(case.at))
            .run()
    }

    /// Whether a hook runs when the user makes a commit.
    fn runs(&self, case: &Case) -> bool {
        self.outside(&format!("cd {} && COMMIT", case.tree));
        self.folder.has("ran")
    }
}

#[test]
fn g4_hooks_are_guarded_wherever_git_looks_for_them() {
    for case in CASES {
        let bare = Place::prepared(case);
        let attack = format!("cd {} && {{ {}; }}", case.at, case.attack);
        bare.outside(&attack).expect_code(0);
        assert!(bare.runs(case), "cannot be tried: {}", case.what);
        for guard in ["live", "sweep"] {
            let place = Place::prepared(case);
            let outcome = place.inside(guard, case);
            let what = case.what;
            assert!(!place.runs(case), "{what}, {guard}\n{}", outcome.stderr);
        }
    }
}

/// Programs that the user's configuration has Git run: what was done before, what is done inside,
/// and what the user does then. `PLANT FILE` makes a program that tells of its run.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "git init -q . && mkdir tools && echo exit 1 > tools/fs && chmod +x tools/fs && \
         git config core.fsmonitor ./tools/fs",
        "PLANT tools/fs",
        "git status",
    ),
    (
        "git init -q . && git config core.fsmonitor tools/fs",
        "PLANT tools/fs",
        "git status",
    ),
    (
        "git init -q . && mkdir tools && echo exit 1 > tools/fs && chmod +x tools/fs && \
         git config core.fsmonitor tools/fs",
        "mv tools away; PLANT tools/fs",
        "git status",
    ),
    (
        "git init -q . && echo '* filter=x' > .gitattributes && echo cat > clean.sh && \
         git config filter.x.clean 'sh clean.sh %f'",
        "PLANT clean.sh",
        "echo x > x; git add x",
    ),
    (
        "git init -q . && echo '* filter=x' > .gitattributes && \
         git config filter.x.clean 'exec \"./tools/clean\" %f'",
        "PLANT tools/clean",
        "echo x > x; git add x",
    ),
    (
        "git init -q . && mkdir bin && echo true > bin/a && git config alias.a '!sh bin/a'",
        "PLANT bin/a",
        "git a",
    ),
    (
        "git init -q . && mkdir tools && echo true > tools/ssh && \
         git config --global core.sshCommand \"$PWD/tools/ssh -4\"",
        "PLANT tools/ssh",
        "git ls-remote ssh://git.example.org/x",
    ),
    // What new repositories begin with.
    (
        "git init -q . && echo a > f && git add f && COMMIT -m a && mkdir -p tpl/hooks && \
         git config --global init.templateDir \"$PWD/tpl\"",
        "PLANT tpl/hooks/post-checkout",
        "git clone -q . new",
    ),
    (
        "git init -q . && echo a > f && git add f && COMMIT -m a && \
         git config --global init.templateDir \"$PWD/tpl\"",
        "mkdir tpl; PLANT own; printf '[core]\nfsmonitor = %s\n' \"$PWD/own\" > tpl/config",
        "git clone -q . new; git -C new status",
    ),
    // Where there is no repository.
    (
        "git config --global --unset init.templateDir; \
         git config --global core.hooksPath \"$PWD/hooks\"",
        "PLANT hooks/pre-commit",
        "git init -q new; cd new; COMMIT --allow-empty -m x",
    ),
    (
        "git config --global --unset core.hooksPath; mkdir tools; echo true > tools/editor; \
         git config --global core.editor \"sh $PWD/tools/editor\"",
        "rm tools/editor; PLANT tools/editor",
        "git init -q new; cd new; COMMIT --allow-empty",
    ),
    (
        "git init -q . && echo a > f && git add f && COMMIT -m a && echo b > f && COMMIT -am b && \
         echo true > check.sh && GIT_EDITOR=true git rebase -q -x 'false' -x 'sh check.sh' HEAD~1; true",
        "PLANT check.sh",
        "git rebase --continue",
    ),
    (
        "git init -q . && echo a > f && git add f && COMMIT -m a && echo b > f && COMMIT -am b && \
         git rebase -q -x false HEAD~1; true",
        "PLANT own; echo 'exec sh own' >> .git/rebase-merge/git-rebase-todo",
        "git rebase --continue",
    ),
    (
        "git init -q . && echo a > f && git add f && COMMIT -m a && echo b > f && COMMIT -am b",
        "PLANT own; git rebase -q -x false HEAD~1; echo 'x sh own' >> .git/rebase-merge/git-rebase-todo",
        "git rebase --continue",
    ),
];

#[test]
fn g4_programs_that_configuration_names_cannot_be_changed() {
    const COMMIT: &str = "git -c user.name=a -c user.email=a@example.org commit -q --no-gpg-sign";
    for (prepare, attack, then) in PROGRAMS {
        let home = Folder::new();
        let script = |project: &Folder, text: &str| {
            let ran = project.join("ran").display().to_string();
            let plant = format!(
                "plant() {{ mkdir -p $(dirname $1); printf '#!/bin/sh\\ntouch {ran}\\n' > $1; \
                 chmod +x $1; }}; "
            );
            let text = text.replace("PLANT", "plant").replace("COMMIT", COMMIT);
            format!("{plant}{text}")
        };
        let outside = |project: &Folder, text: &str| {
            Program::new("sh")
                .args(["-c", &script(project, text)])
                .env("HOME", home.path())
                .env("GIT_COMMITTER_NAME", "a")
                .env("GIT_COMMITTER_EMAIL", "a@example.org")
                .folder(project)
                .run()
        };
        let direct = Folder::new();
        outside(&direct, prepare).expect_code(0);
        outside(&direct, attack);
        outside(&direct, then);
        assert!(direct.has("ran"), "`{attack}` has no effect outside");
        for guard in ["live", "sweep"] {
            let (project, state) = (Folder::new(), Folder::new());
            outside(&project, prepare).expect_code(0);
            let inside = ringfence()
                .args(["run", "--guard", guard, "--", "sh", "-c"])
                .args([script(&project, attack)])
                .env("HOME", home.path())
                .env("XDG_STATE_HOME", state.path())
                .folder(&project)
                .run();
            outside(&project, then);
            assert!(
                !project.has("ran"),
                "{guard}: `{attack}`\n{}",
                inside.stderr
            );
        }
    }
}
