//! G7: what a command did is on record, and the record can be trusted.

mod calls;
mod evasions;
mod exports;
mod floods;
mod levels;
mod programs;
mod refused;
mod secrets;
mod story;
mod tampering;
mod unavailable;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ringfence_testkit::{Folder, Outcome, Program};
use serde_json::Value;

use super::arena::Arena;
use super::ringfence;

const LOG: &str = "ringfence/audit/audit.jsonl";

/// A working folder with the programs of attacks and of probes, and a log.
pub(super) struct Ledger {
    pub(super) arena: Arena,
    pub(super) state: Folder,
}

/// What came of a run, and what is on record of it.
pub(super) struct Recorded {
    pub(super) outcome: Outcome,
    pub(super) events: Vec<Value>,
}

impl Ledger {
    pub(super) fn new() -> Self {
        let arena = Arena::new();
        let (fixed, linked) = programs();
        for (program, name) in [(fixed, "probe"), (linked, "probe-linked")] {
            Program::new("cp")
                .args([program, &arena.folder.join(name)])
                .run()
                .expect_code(0);
        }
        let state = Folder::new();
        Self { arena, state }
    }

    pub(super) fn command(&self, flags: &[&str], words: &[&str]) -> Program {
        ringfence()
            .args(["run"])
            .args(flags.iter().copied())
            .args(["--"])
            .args(words.iter().copied())
            .folder(&self.arena.folder)
            .env("XDG_STATE_HOME", self.state.path())
    }

    /// Runs a script and reads what was recorded of it.
    pub(super) fn run(&self, flags: &[&str], script: &str) -> Recorded {
        self.run_words(flags, &["sh", "-c", script])
    }

    pub(super) fn run_words(&self, flags: &[&str], words: &[&str]) -> Recorded {
        let before = self.events().len();
        let outcome = self.command(flags, words).run();
        let events = self.events().split_off(before);
        Recorded { outcome, events }
    }

    /// Everything on record, oldest first.
    pub(super) fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.state.join(LOG)).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("a record in JSON"))
            .collect()
    }

    /// `ringfence audit WORDS…` over this log.
    pub(super) fn audit(&self, words: &[&str]) -> Outcome {
        audit(self.state.path(), words)
    }

    /// The same with `--json`, which must succeed.
    #[track_caller]
    pub(super) fn audit_json(&self, words: &[&str]) -> Value {
        let words = [words, &["--json"]].concat();
        let outcome = self.audit(&words).expect_code(0);
        serde_json::from_str(&outcome.stdout).expect("JSON")
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.arena.folder.join(name).display().to_string()
    }
}

fn audit(state: &Path, words: &[&str]) -> Outcome {
    ringfence()
        .args(["audit"].iter().chain(words).copied())
        .env("XDG_STATE_HOME", state)
        .run()
}

impl Recorded {
    pub(super) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events
            .iter()
            .filter(move |event| event["kind"] == kind)
    }

    /// The calls that are told one by one and about this.
    pub(super) fn calls<'a>(&'a self, action: &'a str) -> Vec<&'a Value> {
        self.of_kind("call")
            .filter(|call| call["action"] == action)
            .collect()
    }

    /// The calls about this that name such a path.
    pub(super) fn naming<'a>(&'a self, action: &'a str, path: &str) -> Vec<&'a Value> {
        let mut calls = self.calls(action);
        calls.retain(|call| {
            call["paths"]
                .as_array()
                .is_some_and(|paths| paths.contains(&path.into()))
        });
        calls
    }

    /// How often calls of a name were counted without being told.
    pub(super) fn counted(&self, call: &str) -> u64 {
        self.of_kind("calls")
            .filter(|count| count["call"] == call)
            .filter_map(|count| count["count"].as_u64())
            .sum()
    }

    #[track_caller]
    pub(super) fn expect_code(self, code: i32) -> Self {
        let Self { outcome, events } = self;
        Self {
            outcome: outcome.expect_code(code),
            events,
        }
    }

    /// Everything as it lies in the file.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.events.iter().map(Value::to_string).collect();
        lines.join("\n")
    }
}

/// The words of a program that was started.
pub(super) fn argv(call: &Value) -> Vec<&str> {
    let words = call["argv"].as_array().into_iter().flatten();
    words.filter_map(Value::as_str).collect()
}

/// The program of probes, linked statically and dynamically; built once.
fn programs() -> (&'static Path, &'static Path) {
    static PROGRAMS: OnceLock<(Folder, PathBuf, PathBuf)> = OnceLock::new();
    let (_, fixed, linked) = PROGRAMS.get_or_init(|| {
        let folder = Folder::new();
        let source = folder.write("probe.c", include_str!("probe.c"));
        let [fixed, linked] = [("-static", "fixed"), ("-rdynamic", "linked")].map(|(how, name)| {
            let program = folder.join(name);
            Program::new("cc")
                .args(["-std=gnu11", "-O1", "-pthread", how, "-o"])
                .args([&program, &source])
                .run()
                .expect_code(0);
            program
        });
        (folder, fixed, linked)
    });
    (fixed, linked)
}
