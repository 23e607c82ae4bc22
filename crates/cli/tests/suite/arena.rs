//! A working folder with the attack program in it, and running attacks on both
//! sides of the fence.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ringfence_testkit::{Folder, Outcome, Program, is_root, sh};

use super::inside_with;

/// Who can carry out an attack outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Whoever runs the tests.
    Anyone,
    /// Root; for others the kernel refuses it anyway.
    Root,
    /// It depends on the machine, or would harm it.
    Untried,
}

impl Outside {
    fn works_here(self) -> bool {
        self == Self::Anyone || (self == Self::Root && is_root())
    }
}

/// A folder to work in; the attack program is in it as `attack`.
pub(crate) struct Arena {
    pub(crate) folder: Folder,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        // By a program of its own: a copy that this process had open to write
        // could not be executed while a child of another test still holds it.
        Program::new("cp")
            .args([program(), &folder.join("attack")])
            .run()
            .expect_code(0);
        Self { folder }
    }

    /// One in which `script` was run outside of any sandbox.
    pub(crate) fn prepared(script: &str) -> Self {
        let arena = Self::new();
        arena.outside(script).expect_code(0);
        arena
    }

    pub(crate) fn outside(&self, script: &str) -> Outcome {
        sh(script, self.folder.path())
    }

    pub(crate) fn inside(&self, script: &str) -> Outcome {
        self.inside_with(&[], script)
    }

    pub(crate) fn inside_with(&self, flags: &[&str], script: &str) -> Outcome {
        inside_with(self.folder.path(), flags, script)
    }

    /// Runs an attack that leaves nothing behind first outside, where it must
    /// work, then inside, where it must be refused. Returns what it printed.
    #[track_caller]
    pub(crate) fn refuses(&self, attack: &str, outside: Outside) -> String {
        if outside.works_here() {
            self.outside(attack).expect_code(0);
        }
        refused(attack, self.inside(attack)).stdout
    }
}

/// Carries an attack out in two folders that were prepared alike: outside it
/// must work, inside it must be refused. Returns the folder of the latter.
#[track_caller]
pub(crate) fn refused_after(prepare: &str, attack: &str) -> Arena {
    Arena::prepared(prepare).outside(attack).expect_code(0);
    let arena = Arena::prepared(prepare);
    refused(attack, arena.inside(attack));
    arena
}

/// Fails the test if the attack worked, or could not be tried at all.
#[track_caller]
pub(crate) fn refused(attack: &str, outcome: Outcome) -> Outcome {
    let code = outcome.code();
    assert!(
        code != 0 && code < 125 && !outcome.stderr.contains("cannot try"),
        "`{attack}` ended with {code}\nstdout:\n{}\nstderr:\n{}",
        outcome.stdout,
        outcome.stderr
    );
    outcome
}

/// Every path below `folder` with what is there: kind, mode, owner, content.
pub(crate) fn state(folder: &Path) -> String {
    let script = r"find . -printf '%p %y %m %U %G %l\n' | sort; find . -type f | sort | xargs -r -d '\n' cksum";
    sh(script, folder).expect_code(0).stdout
}

/// The attack program, built once.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(Folder, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = Folder::new();
        let source = folder.write("attack.c", include_str!("attacks/attack.c"));
        let program = folder.join("attack");
        let flags = ["-std=gnu11", "-O1", "-static", "-pthread", "-o"];
        Program::new("cc")
            .args(flags)
            .args([&program, &source])
            .run()
            .expect_code(0);
        (folder, program)
    });
    program
}
